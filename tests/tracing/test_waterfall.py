"""A report as a picture, and the picture in the terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from specclient.report import (
    Attempt,
    ClientTiming,
    Phase,
    PredictionReport,
    Reason,
    Report,
    Speculation,
    Timing,
)
from specclient.tracing.picture import Bar, of_report, seconds_text
from specclient.tracing.waterfall import track_text, waterfall

TIMING = Timing(
    queue=Phase(seconds=0.1, source="server"),
    prefill=Phase(seconds=0.2, source="server"),
    decode=Phase(seconds=0.9, source="derived"),
    total=Phase(seconds=2.0, source="client"),
    client=ClientTiming(connect=0.05, await_headers=0.2, await_content=0.3, receive=0.9),
    sent_at=0.65,
    phases_at=0.75,
    unattributed=0.1,
    anchor="first_content",
    consistent=True,
)
REPORT = Report(
    target="prod",
    provider="fireworks",
    model="m",
    request_id="req-1",
    attempts=(
        Attempt(target="old", provider="groq", model="m", error="RateLimitError", seconds=0.1),
        Attempt(target="prod", provider="fireworks", model="m", status=200, seconds=1.4, waited=0.5),
    ),
    prediction=PredictionReport(
        outcome="forwarded", effect="used", accepted_tokens=10, rejected_tokens=0, source="provider_usage"
    ),
    speculation=Speculation(mean_acceptance_length=3.25),
    timing=TIMING,
)


def printed(report: Report, *, width: int = 100, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, errors="strict")
    Console(file=file, width=width, color_system=None).print(waterfall(report))
    file.flush()
    return raw.getvalue().decode(encoding)


def test_the_bars_of_a_report() -> None:
    bars = {bar.label: bar for bar in of_report(REPORT).bars}
    assert list(bars) == [
        "chat m",
        "attempt 1",
        "back-off",
        "attempt 2",
        "connect",
        "unattributed",
        "queue",
        "prefill",
        "decode",
    ]
    places = {name: (round(bar.start, 9), round(bar.seconds, 9), bar.source) for name, bar in bars.items()}
    assert places["attempt 1"] == (0.0, 0.1, "client")
    assert places["back-off"] == (0.1, 0.5, "client")
    assert places["attempt 2"] == (0.6, 1.4, "client")
    assert places["connect"] == (0.6, 0.05, "client")
    assert places["unattributed"] == (0.65, 0.1, None)
    assert places["queue"] == (0.75, 0.1, "server")
    assert places["prefill"] == (0.85, 0.2, "server")
    assert places["decode"] == (1.05, 0.9, "derived")
    assert bars["attempt 1"].note == "old, RateLimitError"
    assert bars["attempt 2"].note == "prod, HTTP 200"


def test_tries_at_one_target_need_not_name_it() -> None:
    attempts = tuple(attempt.model_copy(update={"target": "prod"}) for attempt in REPORT.attempts)
    bars = {bar.label: bar for bar in of_report(REPORT.model_copy(update={"attempts": attempts})).bars}
    assert (bars["attempt 1"].note, bars["attempt 2"].note) == ("RateLimitError", "HTTP 200")


def test_time_before_the_request_is_a_row_of_its_own() -> None:
    timing = TIMING.model_copy(update={"client": ClientTiming(connect=0.05)})
    bars = {
        bar.label: bar for bar in of_report(REPORT.model_copy(update={"timing": timing, "attempts": ()})).bars
    }
    assert (bars["prepare"].start, bars["prepare"].seconds) == (0.0, pytest.approx(0.6))
    assert bars["prepare"].source == "client"


def test_loading_the_engine_has_its_name() -> None:
    timing = TIMING.model_copy(update={"client": ClientTiming(load=0.4)})
    report = REPORT.model_copy(update={"timing": timing, "attempts": ()})
    bars = {bar.label: (bar.start, pytest.approx(bar.seconds)) for bar in of_report(report).bars}
    assert bars["load"] == (0.0, 0.4)
    assert bars["prepare"] == (0.4, timing.sent_at - 0.4)


def test_without_reported_phases_the_stopwatch_has_its_own_names() -> None:
    timing = TIMING.model_copy(update={"queue": None, "prefill": None, "decode": None, "phases_at": None})
    bars = of_report(REPORT.model_copy(update={"timing": timing, "attempts": ()})).bars
    labels = [bar.label for bar in bars]
    assert labels == ["chat m", "prepare", "connect", "await_headers", "await_content", "receive"]
    assert {bar.source for bar in bars} == {"client"}


def test_phases_that_do_not_fit_are_told_and_not_drawn() -> None:
    timing = TIMING.model_copy(update={"phases_at": None, "consistent": False})
    picture = of_report(REPORT.model_copy(update={"timing": timing}))
    assert not {"queue", "prefill", "decode", "unattributed"} & {bar.label for bar in picture.bars}
    assert any("do not fit" in remark and "prefill 200 ms" in remark for remark in picture.remarks)


def test_a_long_remark_is_indented() -> None:
    timing = TIMING.model_copy(update={"phases_at": None, "consistent": False})
    out = io.StringIO()
    Console(file=out, width=60).print(waterfall(REPORT.model_copy(update={"timing": timing})))
    lines = out.getvalue().splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("• The reported phases"))
    assert lines[begin + 1].startswith("  ")
    assert lines[begin + 1].strip()


def test_an_empty_report_is_drawn_too() -> None:
    empty = Report(target="t", provider="p", model=None)
    assert [bar.label for bar in of_report(empty).bars] == ["chat"]
    assert "chat" in printed(empty)


def test_every_row_says_who_measured_it() -> None:
    text = printed(REPORT)
    rows = {line.strip().split("  ")[0]: line for line in text.splitlines()}
    assert rows["queue"].rstrip().endswith("server")
    assert rows["decode"].rstrip().endswith("derived")
    assert rows["unattributed"].rstrip().endswith("nobody")
    assert rows["accepted tokens"].split() == ["accepted", "tokens", "10", "(provider_usage)"]
    assert "3.25 tokens a verification step" in text


def test_markup_in_names_is_shown_as_it_is() -> None:
    reason = Reason(code="x", text="[bold]not markup[/bold]")
    report = REPORT.model_copy(
        update={"model": "[red]m", "prediction": PredictionReport(outcome="withheld", reasons=(reason,))}
    )
    text = printed(report)
    assert "chat [red]m on prod" in text
    assert "[bold]not markup[/bold]" in text


@pytest.mark.parametrize("width", [20, 40, 200])
def test_any_width(width: int) -> None:
    assert max(map(len, printed(REPORT, width=width).splitlines())) <= width


@pytest.mark.parametrize("width", [20, 30, 40, 50, 60, 80])
def test_no_width_cuts_a_duration_from_its_unit(width: int) -> None:
    drawn = printed(REPORT, width=width)
    bars = of_report(REPORT).bars
    rows = drawn.splitlines()[2 : 2 + len(bars)]
    for row, bar in zip(rows, bars, strict=True):
        assert f" {seconds_text(bar.seconds)} " in f"{row} ", (row, bar)
    assert "".join(drawn.split()).count("provider_usage") == 2
    assert ("measured by" in drawn) == (width >= 40)


def test_a_terminal_without_unicode_blocks() -> None:
    timing = TIMING.model_copy(update={"unattributed": 0.1})
    report = Report(target="t", provider="p", model="m", timing=timing)
    text = printed(report, encoding="ascii")
    assert "====" in text
    assert "...." in text


@pytest.mark.parametrize(
    ("start", "seconds", "wanted"),
    [
        (0.0, 1.0, "█" * 10),
        (0.5, 0.25, "     ██▌"),
        (0.0, 0.0001, "▏"),
        (0.9999, 0.5, "         █"),
        (1.0, 0.0, "         ▏"),
    ],
)
def test_the_track_of_a_bar(start: float, seconds: float, wanted: str) -> None:
    assert track_text(Bar("x", start, seconds, "server", "phase"), 1.0, 10) == wanted


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0000005, "0.5 µs"),
        (0.0123, "12.3 ms"),
        (1.5, "1.5 s"),
        (0, "0 µs"),
        (-0.0, "0 µs"),
        (123.4, "123 s"),
        (0.99996, "1 s"),
        (0.0009999, "1 ms"),
        (0.9992, "999 ms"),
    ],
)
def test_durations_as_text(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text
