"""The same edit without and with its prediction, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from specclient.cli.account import decode_speed, print_account
from specclient.cli.outcome import print_diff, run_edit, show_warnings
from specclient.cli.terminal import stderr, stdout, write_json

if TYPE_CHECKING:
    from rich.table import Table

    from specclient.edit import FileEdit
    from specclient.report import Report

NOT_REPORTED = "not reported"


def compare_edit(
    client: Any, file: Path, instruction: str, *, expected: int, as_json: bool, **settings: Any
) -> None:
    """Run the edit twice and print the diff, the table and the waterfall; as JSON both edits in full."""
    # The engine drafts from the prompt too, and the file stands there: the baseline is plain decoding.
    off: dict[str, Any] = {"extra_body": {"speculation": "off"}} if client.target.provider == "local" else {}
    # What the first call warms up, and the prompt that it leaves in the cache, are the baseline's gain.
    predicted = run_edit(client, file, instruction, expected=expected, **settings)
    plain = run_edit(client, file, instruction, expected=expected, predict=False, **settings, **off)
    if as_json:
        write_json(
            {
                "without": plain.as_dict(),
                "with": predicted.as_dict(),
                "decode_speedup": _ratio(_speed(predicted.report), _speed(plain.report)),
                "outputs_identical": plain.answer == predicted.answer,
            }
        )
        return
    print_diff(predicted)
    show_warnings(predicted)
    console = stdout()
    console.print()
    console.print(comparison(plain, predicted))
    if predicted.report is not None:
        console.print()
        console.print("the run with prediction", style="italic")
        print_account(predicted.report, console)
    if plain.answer != predicted.answer:
        stderr().print("The two outputs differ.", style="yellow")


def comparison(plain: FileEdit, predicted: FileEdit) -> Table:
    """The table of both runs: what was done, how fast, and whether the same text came out."""
    from rich.table import Table

    table = Table(title="the same edit twice", title_justify="left")
    table.add_column("")
    for title in ("without prediction", "with prediction", "ratio"):
        table.add_column(title, justify="right")
    one, two = plain.report, predicted.report
    for label, read, form, better in _ROWS:
        before, after = read(one) if one else None, read(two) if two else None
        pair = {"less": (before, after), "more": (after, before), "": (None, None)}[better]
        ratio = _ratio(*pair)
        table.add_row(
            label, _text(before, form), _text(after, form), "" if ratio is None else f"{ratio:.1f} x"
        )
    table.add_row("outputs identical", "", "yes" if plain.answer == predicted.answer else "no", "")
    if one and two and (one.usage.cached or 0) > (two.usage.cached or 0):
        table.caption = "Without came second, and found the prompt in the cache: a shorter prefill."
        table.caption_justify = "left"
    return table


def _passes(report: Report) -> float | None:
    return report.speculation.forward_passes if report.speculation is not None else None


def _prompt(report: Report) -> str | None:
    usage = report.usage
    return (
        None if usage.prompt is None else f"{usage.prompt} / {'?' if usage.cached is None else usage.cached}"
    )


def _counts(report: Report) -> str | None:
    prediction = report.prediction
    if prediction.accepted_tokens is None or prediction.rejected_tokens is None:
        return None
    return f"{prediction.accepted_tokens} / {prediction.rejected_tokens}"


def _speed(report: Report | None) -> float | None:
    speed = decode_speed(report) if report is not None else None
    return None if speed is None else speed[0]


def _seconds(name: str) -> Any:
    def read(report: Report) -> float | None:
        phase = getattr(report.timing, name)
        return None if phase is None else float(phase.seconds)

    return read


# (label, how to read it, its form, what is better: "less", "more", "" for neither)
_ROWS: tuple[tuple[str, Any, str, str], ...] = (
    ("prompt tokens / cached", _prompt, "{}", ""),
    ("output tokens", lambda report: report.usage.completion, "{:,}", ""),
    ("forward passes", _passes, "{:,}", "less"),
    ("accepted / rejected", _counts, "{}", ""),
    ("prefill", _seconds("prefill"), "{:.2f} s", ""),
    ("decode", _seconds("decode"), "{:.2f} s", "less"),
    ("decode speed", _speed, "{:,.1f} tokens/s", "more"),
    ("whole call", _seconds("total"), "{:.2f} s", "less"),
)


def _text(value: Any, form: str) -> str:
    return NOT_REPORTED if value is None else form.format(value)


def _ratio(value: Any, base: Any) -> float | None:
    if not value or not base:
        return None
    return float(value) / float(base)
