"""Make the pictures of docs/tracing.md from real calls, and that of docs/bench.md from a report.

    pip install '.[all]' playwright && apt-get install chromium
    python docs/screenshots.py --model qwen2.5-coder-0.5b --phoenix PATH/phoenix --mlflow PATH/mlflow

A file's edit runs on the embedded engine twice: first to load it, then traced, so that the picture shows a
call and not the loading. Phoenix and MLflow are started on loopback and ended again; either may be left out.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from playwright.sync_api import Page, sync_playwright
from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME

import specclient
from specclient.tracing.export import JsonlSpanExporter
from specclient.tracing.page import page as html_page
from specclient.tracing.picture import Picture
from specclient.tracing.recordings import pictures
from specclient.tracing.waterfall import Waterfall

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "img"
sys.path.insert(0, str(ROOT / "tests" / "tracing"))

import backends  # noqa: E402  the starters of the tests

KNOWN = (ROOT / "examples" / "demo" / "inventory.py").read_text(encoding="utf-8")
WHERE_IS_THE_TIMELINE = '[data-component-id="shared.model-trace-explorer.toggle-show-timeline"]'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", default="qwen2.5-coder-0.5b", help="a model of the embedded engine")
    parser.add_argument("--phoenix", help="the executable of Arize Phoenix")
    parser.add_argument("--mlflow", help="the executable of MLflow")
    parser.add_argument("--report", type=Path, help="a page that specclient bench --html wrote")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    arguments = parser.parse_args()
    IMAGES.mkdir(exist_ok=True)

    with contextlib.ExitStack() as stack:
        exporters: dict[str, OTLPSpanExporter] = {}
        if arguments.phoenix:
            phoenix = stack.enter_context(backends.phoenix(arguments.phoenix, _folder(stack)))
            exporters["phoenix"] = OTLPSpanExporter(f"{phoenix}/v1/traces")
        if arguments.mlflow:
            mlflow = stack.enter_context(backends.mlflow(arguments.mlflow, _folder(stack)))
            header = {"x-mlflow-experiment-id": "0"}
            exporters["mlflow"] = OTLPSpanExporter(f"{mlflow}/v1/traces", headers=header)
        trace, recorded = record(arguments.model, list(exporters.values()), _folder(stack))
        browse = stack.enter_context(browser(arguments.chromium))
        drawn = pictures(recorded)
        for scheme in ("light", "dark"):
            shoot_html(browse, html_page(drawn), f"page-{scheme}.png", scheme)
        shoot_terminal(browse, drawn[0])
        if arguments.report:
            shoot_report(browse, arguments.report)
        if "phoenix" in exporters:
            shoot_phoenix(browse, phoenix, trace)
        if "mlflow" in exporters:
            shoot_mlflow(browse, mlflow, trace)
    for image in sorted(IMAGES.glob("*.png")):
        print(f"{image.relative_to(ROOT)}  {image.stat().st_size // 1024} KB")


def _folder(stack: contextlib.ExitStack) -> Path:
    return Path(stack.enter_context(tempfile.TemporaryDirectory()))


def record(model: str, exporters: list[OTLPSpanExporter], folder: Path) -> tuple[str, str]:
    """Run the call; its trace's id, and its spans as text."""
    path = folder / "spans.jsonl"
    resource = Resource.create({"service.name": "editor", "openinference.project.name": "specclient"})
    provider = TracerProvider(resource=resource)
    for exporter in (JsonlSpanExporter(path), *exporters):
        provider.add_span_processor(BatchSpanProcessor(exporter))
    instruction = (ROOT / "examples" / "demo" / "instruction.txt").read_text(encoding="utf-8").strip()
    request: dict[str, Any] = {
        "messages": [{"role": "user", "content": f"{instruction} Answer with the whole file.\n\n{KNOWN}"}],
        "prediction": KNOWN,
        "stream": True,
    }
    silent = specclient.TracingOptions(telemetry="off")
    with specclient.Client(provider="local", model=model, tracing=silent) as client:
        for _ in client.chat.completions.create(**request, max_tokens=8):
            pass
        tracing = specclient.TracingOptions(tracer_provider=provider)
        with (
            specclient.Client(provider="local", model=model, tracing=tracing) as traced,
            provider.get_tracer("editor").start_as_current_span("edit inventory.py") as span,
        ):
            for _ in traced.chat.completions.create(**request):
                pass
            trace = f"{span.get_span_context().trace_id:032x}"
    provider.shutdown()
    return trace, path.read_text(encoding="utf-8")


@contextlib.contextmanager
def browser(executable: str) -> Iterator[Any]:
    """A function that opens a page of a given size and colour scheme."""
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=[*flags, "--no-first-run"])

        def browse(scheme: str = "light", width: int = 1200, height: int = 700) -> Page:
            context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
            return context.new_page()

        yield browse
        chromium.close()


def shoot_html(browse: Any, html: str, name: str, scheme: str) -> None:
    page = browse(scheme, 1100, 420)
    page.set_content(html)
    page.screenshot(path=IMAGES / name, full_page=True)


def shoot_report(browse: Any, report: Path) -> None:
    page = browse(width=1100, height=1000)
    page.goto(report.absolute().as_uri())
    page.locator(".js-plotly-plot").first.wait_for(timeout=60_000)
    time.sleep(1)
    page.screenshot(path=IMAGES / "bench.png")


def shoot_terminal(browse: Any, picture: Picture) -> None:
    console = Console(file=io.StringIO(), record=True, width=100, force_terminal=True)
    console.print(Waterfall(picture))
    page = browse("dark", 900, 300)
    page.set_content(console.export_html(theme=SVG_EXPORT_THEME, code_format=_TERMINAL))
    page.locator("pre").screenshot(path=IMAGES / "terminal.png")


_TERMINAL = """<style>{stylesheet} body {{ margin: 0; background: #0d1117; }}
pre {{ color: #e6edf3; padding: 1rem; margin: 0; font: 14px/1.25 "DejaVu Sans Mono", monospace; }}</style>
<pre>{code}</pre>"""


def shoot_phoenix(browse: Any, url: str, trace: str) -> None:
    projects = _json(f"{url}/v1/projects")["data"]
    project = next(project["id"] for project in projects if project["name"] == "specclient")
    page = browse(width=1400, height=760)
    page.goto(f"{url}/projects/{project}/traces/{trace}")
    page.get_by_text("decode").first.wait_for(state="attached", timeout=60_000)
    page.get_by_text(re.compile("^chat ")).last.click()
    page.get_by_role("tab", name="Attributes").click()
    time.sleep(2)
    page.screenshot(path=IMAGES / "phoenix.png")


def shoot_mlflow(browse: Any, url: str, trace: str) -> None:
    page = browse(width=1400, height=760)
    page.goto(f"{url}/#/experiments/0/traces?selectedEvaluationId=tr-{trace}")
    switch = page.locator(WHERE_IS_THE_TIMELINE).first
    switch.wait_for(timeout=60_000)
    switch.click()
    page.get_by_text("decode").first.wait_for(state="attached", timeout=60_000)
    page.get_by_text(re.compile("^chat ")).last.click()
    time.sleep(2)
    page.screenshot(path=IMAGES / "mlflow.png", clip={"x": 0, "y": 0, "width": 980, "height": 620})


def _json(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)


if __name__ == "__main__":
    main()
