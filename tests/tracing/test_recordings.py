"""Recorded calls: found in what the commands and exporters write, drawn in the terminal and as a page."""

from __future__ import annotations

import copy
import io
import json
import math
import re
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from rich.console import Console
from test_waterfall import REPORT
from tracing_helpers import Clock
from typer.testing import CliRunner

from specclient.cli.app import app
from specclient.report import Phase, PredictionReport, Report
from specclient.tracing import CallStart, TracingOptions, start_call, start_server
from specclient.tracing.export import JsonlSpanExporter
from specclient.tracing.page import page
from specclient.tracing.picture import of_report
from specclient.tracing.recordings import NotARecording, pictures
from specclient.tracing.waterfall import Waterfall

DUMPED = REPORT.model_dump(mode="json")


class Reading:
    queue = Phase(seconds=0.01, source="server")
    prefill = Phase(seconds=0.02, source="server")
    decode = Phase(seconds=0.05, source="derived")


@pytest.fixture
def recorded(tmp_path: Path, clock: Clock) -> Path:
    """A call, and the gateway that serves it, in one file."""
    path = tmp_path / "spans.jsonl"
    clock.wall_now = time.time_ns()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(JsonlSpanExporter(path)))
    options = TracingOptions(tracer_provider=provider)
    call = start_call(CallStart(provider="vllm", model="m", stream=True, timeline=clock.timeline()), options)
    headers: dict[str, str] = {}
    call.inject(headers, self_hosted=True)
    start_server(headers, method="POST", route="/v1/x", options=options).finish(503)
    for milliseconds in (40, 50):
        clock.advance(milliseconds)
        call.timeline.frame()
        call.timeline.content()
    timing = call.timeline.timing(Reading(), streamed=True)
    prediction = PredictionReport(outcome="forwarded", accepted_tokens=0, source="provider_usage")
    call.finish(Report(target="t", provider="vllm", model="m", timing=timing, prediction=prediction))
    provider.shutdown()
    return path


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(DUMPED),
        json.dumps({"file": "a.py", "report": DUMPED}),
        json.dumps({"choices": [], "specclient": DUMPED}),
        json.dumps([{"with": {"report": DUMPED}}]),
        "\n".join(
            [
                f"data: {json.dumps({'choices': []})}",
                f"data: {json.dumps({'specclient': DUMPED})}",
                "data: [DONE]",
            ]
        ),
    ],
)
def test_a_report_is_found_where_it_stands(text: str) -> None:
    assert pictures(text) == [of_report(REPORT)]


@pytest.mark.parametrize("count", [1, 2])
def test_spans_as_the_console_exporter_prints_them_are_told_by_name(count: int) -> None:
    out = io.StringIO()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=out)))
    for _ in range(count):
        provider.get_tracer("t").start_span("call").end()
    with pytest.raises(NotARecording, match=r"ConsoleSpanExporter, which is not OTLP JSON; .*Jsonl"):
        pictures(out.getvalue())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "neither a report nor OTLP spans"),
        ("{}", "neither"),
        ("[1, null]", "neither"),
        ("not json", "line 1 is not JSON"),
        (json.dumps({**DUMPED, "timing": {"queue": "soon"}}), "timing.queue"),
        (json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "x"}]}]}]}), "incomplete"),
    ],
)
def test_what_is_no_recording_is_said_to_be_none(text: str, why: str) -> None:
    with pytest.raises(NotARecording, match=re.escape(why)):
        pictures(text)


def test_spans_of_one_trace_are_one_picture(recorded: Path) -> None:
    (picture,) = pictures(recorded.read_text())
    root = picture.bars[0]
    assert (root.label, root.depth, root.source, root.kind) == ("chat m", 0, "client", "call")
    bars = {bar.label: bar for bar in picture.bars}
    assert bars["prefill"].source == "server"
    assert bars["decode"].source == "derived"
    assert bars["unattributed"].source is None
    assert bars["unattributed"].start == pytest.approx(0.0, abs=1e-9)
    assert bars["unattributed"].seconds == pytest.approx(0.01)
    assert bars["queue"].start == pytest.approx(0.01)
    assert bars["POST /v1/x"].source == "server"
    assert bars["POST /v1/x"].note == "503"
    assert ("accepted tokens", "0 (provider_usage)") in picture.facts


def test_the_exporters_lines_are_otlp_json(recorded: Path) -> None:
    lines = [json.loads(line) for line in recorded.read_text().splitlines()]
    spans = [
        span
        for line in lines
        for resource in line["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    chat = next(span for span in spans if span["name"] == "chat m")
    assert re.fullmatch(r"[0-9a-f]{32}", chat["traceId"])
    assert re.fullmatch(r"[0-9a-f]{16}", chat["spanId"])
    assert "parentSpanId" not in chat
    assert int(chat["endTimeUnixNano"]) - int(chat["startTimeUnixNano"]) == 90_000_000
    assert {span["parentSpanId"] for span in spans if span is not chat} == {chat["spanId"]}
    values = {pair["key"]: pair["value"] for pair in chat["attributes"]}
    assert values["gen_ai.request.stream"] == {"boolValue": True}
    assert values["specclient.prediction.accepted_tokens"] == {"intValue": "0"}
    assert values["specclient.timing.prefill"] == {"doubleValue": 0.02}


def test_an_exporter_that_cannot_write_says_so(tmp_path: Path, recorded: Path) -> None:
    from opentelemetry.sdk.trace.export import SpanExportResult

    provider = TracerProvider()
    span = provider.get_tracer("x").start_span("x")
    span.end()
    exporter = JsonlSpanExporter(tmp_path / "missing" / "x.jsonl")
    assert exporter.export([span]) is SpanExportResult.FAILURE  # type: ignore[list-item]
    provider.shutdown()


class Checked(HTMLParser):
    """Collects what a page refers to, and whether its tags are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_needs_nothing_else_and_hides_nothing_in_colour() -> None:
    report = REPORT.model_copy(update={"model": "<script>alert(1)</script>"})
    html = page([of_report(report)])
    parsed = Checked()
    parsed.feed(html)
    assert parsed.open == []
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in parsed.tags}
    assert not re.search(r"https?:|url\(|@import", html)
    assert "default-src 'none'" in html
    assert "prefers-color-scheme: dark" in html
    assert ("html", {"lang": "en"}) in parsed.tags
    assert "<caption>chat &lt;script&gt;" in html
    rows = re.findall(r'<th scope="row".*?</tr>', html)
    assert len(rows) == 9
    assert all(re.search(r"<td>(server|derived|client|nobody)</td>", row) for row in rows)


def test_the_bars_stand_where_the_times_are() -> None:
    html = page([of_report(REPORT)])
    prefill = next(row for row in html.splitlines() if ">prefill<" in row)
    assert "left:42.500%;width:10.000%" in prefill


def run(*arguments: str, **rest: Any) -> Any:
    return CliRunner().invoke(app, ["trace", *arguments], **rest)


def test_the_command_draws_and_writes_the_page(recorded: Path, tmp_path: Path) -> None:
    page_path = tmp_path / "out.html"
    result = run(str(recorded), "--html", str(page_path))
    assert result.exit_code == 0
    assert "unattributed" in result.stdout
    assert "wrote" in result.stderr
    assert page_path.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_command_reads_stdin_and_writes_json() -> None:
    result = run("-", "--json", input=json.dumps(DUMPED))
    assert result.exit_code == 0
    (picture,) = json.loads(result.stdout)
    assert picture["bars"][-1]["label"] == "decode"


@pytest.mark.parametrize("content", [b"{}", b"\xff\xfe", None])
def test_the_command_refuses_with_one_sentence(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.json"
    if content is not None:
        path.write_bytes(content)
    result = run(str(path))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1


def test_a_page_that_cannot_be_written(recorded: Path, tmp_path: Path) -> None:
    result = run(str(recorded), "--html", str(tmp_path / "missing" / "out.html"))
    assert result.exit_code == 2
    assert "cannot be written" in result.stderr


NONSENSE = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1e308,
        math.inf,
        math.nan,
        "x",
        "",
        [],
        {},
        [1],
        {"a": 1},
        "9" * 30,
        -(10**30),
        "SPAN_KIND_X",
    ]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


@given(data=st.data())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_wrong_in_a_file_is_said_or_drawn_around(recorded: Path, data: st.DataObject) -> None:
    documents = [json.loads(line) for line in recorded.read_text().splitlines()]
    for _ in range(data.draw(st.integers(1, 3))):
        *way, last = data.draw(st.sampled_from(list(places(documents))))
        place: Any = documents
        for step in way:
            place = place[step]
        place[last] = copy.deepcopy(data.draw(NONSENSE))  # what is drawn next may go into it
    try:
        found = pictures("\n".join(json.dumps(each) for each in documents))
    except NotARecording:
        return
    assert "<html" in page(found)
    for picture in found:
        Console(file=io.StringIO(), width=80).print(Waterfall(picture))


def test_the_names_of_span_kinds_are_read_as_well(recorded: Path) -> None:
    text = recorded.read_text().replace('"kind":2', '"kind":"SPAN_KIND_SERVER"')
    assert "SPAN_KIND_SERVER" in text
    assert pictures(text) == pictures(recorded.read_text())
