"""Waterfalls as one HTML file: no script, no resource from anywhere else, light and dark.

Each picture is a table, so that a screen reader gets every row's name, duration and source as text; the
bars are decoration on top, and differ by pattern as well as by colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from importlib.resources import files

from specclient.tracing.picture import Bar, Picture, seconds_text

LEGEND = (
    ("server", "reported by the server"),
    ("engine", "stamped by the engine in this process"),
    ("derived", "arithmetic on reported figures"),
    ("client", "the caller's stopwatch"),
    ("gap", "nobody claims it"),
)
NAMES = {"gap": "unattributed"}
TICKS = 5


def page(pictures: Iterable[Picture], title: str = "Where the time went") -> str:
    """The whole HTML document."""
    body = "\n".join(_section(picture) for picture in pictures)
    style = files("specclient.tracing").joinpath("page.css").read_text(encoding="utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
{_legend()}
{body}
</main>
<footer>Phases are placed where both sides know the moment; what nobody claims is shown as such. Spans of
another process are on its own clock.</footer>
</body>
</html>
"""


def _legend() -> str:
    items = "".join(
        f'<li><span class="swatch {kind}" aria-hidden="true"></span>{NAMES.get(kind, kind)}: {text}</li>'
        for kind, text in LEGEND
    )
    return f'<ul class="legend" aria-label="Who measured">{items}</ul>'


def _section(picture: Picture) -> str:
    moments = ["0", *(seconds_text(picture.seconds * n / TICKS) for n in range(1, TICKS + 1))]
    ticks = "".join(f"<span>{moment}</span>" for moment in moments)
    rows = "\n".join(_row(bar, picture.seconds) for bar in picture.bars)
    return f"""<section>
<table>
<caption>{escape(picture.title)}</caption>
<thead><tr><th scope="col">part</th><th scope="col">time</th><th scope="col">measured by</th>
<th scope="col" class="axis"><div class="ticks">{ticks}</div></th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
{"".join(_extras(picture))}
</section>"""


def _row(bar: Bar, total: float) -> str:
    note = f'<span class="note">{escape(bar.note)}</span>' if bar.note else ""
    left = min(max(bar.start / total, 0.0), 1.0) * 100 if total > 0 else 0.0
    width = min(max(bar.seconds / total, 0.0) * 100, 100 - left) if total > 0 else 0.0
    kind = bar.kind if bar.kind in ("call", "gap", "wait") else f"{bar.source or 'gap'} {bar.kind}"
    told = f"{bar.label}: {seconds_text(bar.seconds)} from {seconds_text(bar.start)}"
    return (
        f'<tr><th scope="row" style="padding-left:{bar.depth * 1.2:.1f}rem">{escape(bar.label)}{note}</th>'
        f'<td class="time">{seconds_text(bar.seconds)}</td><td>{escape(bar.source or "nobody")}</td>'
        f'<td class="axis"><div class="track" aria-hidden="true"><div class="bar {escape(kind)}" '
        f'style="left:{left:.3f}%;width:{width:.3f}%" title="{escape(told)}"></div></div></td></tr>'
    )


def _extras(picture: Picture) -> Iterator[str]:
    if picture.facts:
        rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in picture.facts)
        yield f"<dl>{rows}</dl>"
    if picture.remarks:
        yield f"<ul>{''.join(f'<li>{escape(remark)}</li>' for remark in picture.remarks)}</ul>"
