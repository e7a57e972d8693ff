"""The same edit with its prediction, without one, and where it can be asked for in plain decoding."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
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
_OVER = {"plain decoding": "over plain", "no prediction": "over none"}


def compare_edit(
    client: Any, file: Path, instruction: str, *, expected: int, as_json: bool, **settings: Any
) -> None:
    """Run the edit in every arm and print the diff, the table and the waterfall; as JSON every edit."""

    on_engine = client.target.provider == "local"

    def run(**more: Any) -> FileEdit:
        if on_engine:
            # Under a salt of its own a run computes its prompt, and drafts from nothing that another wrote.
            more["extra_body"] = {**more.get("extra_body", {}), "cache_salt": secrets.token_urlsafe()}
        return run_edit(client, file, instruction, expected=expected, **settings, **more)

    # What the first call warms up is the others' gain.
    predicted = run()
    arms = {"no prediction": run(predict=False)}
    if on_engine:
        # Without a prediction the engine drafts from the prompt, where the file stands as well.
        off = {"speculation": "off"}
        arms = {"plain decoding": run(predict=False, run="plain decoding", extra_body=off), **arms}
    identical = all(arm.answer == predicted.answer for arm in arms.values())
    if as_json:
        without = arms["no prediction"]
        plain = arms.get("plain decoding")
        write_json(
            {
                **({} if plain is None else {"plain": plain.as_dict()}),
                "without": without.as_dict(),
                "with": predicted.as_dict(),
                "decode_speedup": _ratio(_speed(predicted.report), _speed(without.report)),
                "outputs_identical": identical,
            }
        )
        return
    print_diff(predicted)
    show_warnings(predicted)
    console = stdout()
    console.print()
    console.print(comparison(arms, predicted))
    if predicted.report is not None:
        console.print()
        console.print("the run with prediction", style="italic")
        print_account(predicted.report, console)
    if not identical:
        stderr().print("The outputs differ.", style="yellow")


def comparison(arms: Mapping[str, FileEdit], predicted: FileEdit) -> Table:
    """The table of all runs: what was done, how fast, by how much the prediction won, and the same text."""
    from rich.table import Table

    count = "twice" if len(arms) == 1 else "three times"
    table = Table(title=f"the same edit {count}", title_justify="left")
    table.add_column("")
    over = ["ratio"] if len(arms) == 1 else [_OVER[name] for name in arms]
    for title in (*arms, "with prediction", *over):
        table.add_column(title, justify="right")
    last = predicted.report
    firsts = [arm.report for arm in arms.values()]
    for label, read, form, better in _ROWS:
        after = read(last) if last else None
        before = [read(report) if report else None for report in firsts]
        ratios = [_gain(value, after, better) for value in before]
        table.add_row(label, *(_text(value, form) for value in (*before, after)), *ratios)
    same = ["yes" if arm.answer == predicted.answer else "no" for arm in arms.values()]
    table.add_row("outputs identical", *same)
    if last and any(report and (report.usage.cached or 0) > (last.usage.cached or 0) for report in firsts):
        table.caption = "The prediction came first; after it the prompt was in the cache: shorter prefills."
        table.caption_justify = "left"
    return table


def _gain(before: Any, after: Any, better: str) -> str:
    pair = {"less": (before, after), "more": (after, before), "": (None, None)}[better]
    ratio = _ratio(*pair)
    return "" if ratio is None else f"{ratio:.1f} x"


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
