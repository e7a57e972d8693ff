"""The measurement as one HTML file with charts, readable without a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from specclient.bench.stats import Estimate
from specclient.bench.summary import Group
from specclient.bench.words import about_rows, gain_text, group_title, rows, shared_gaps, speculation_text

_COLOURS = {"queue": "#9aa0a6", "prefill": "#e8a33d", "decode": "#2f7ed8"}
_VERDICTS = {"use it": "#1e8e3e", "do not": "#c5221f", "not enough evidence": "#80868b"}
_WORKLOADS = ("#2f7ed8", "#e8710a", "#1e8e3e", "#a142f4", "#c5221f", "#00838f", "#7a5c00", "#5f6368")
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
table { border-collapse: collapse; margin: 1rem 0 } td, th { padding: .25rem .8rem; text-align: right }
td:first-child, th:first-child { text-align: left } tr + tr { border-top: 1px solid #e8eaed }
.verdict { color: white; border-radius: .3rem; padding: .1rem .5rem; white-space: nowrap }
.facts td { text-align: left } .facts td:first-child { white-space: nowrap; vertical-align: top }
.small { color: #5f6368; font-size: .9em }
"""


def page(groups: Sequence[Group], about: Mapping[str, Any]) -> str:
    """The whole page. Needs plotly (`specclient[bench]`)."""
    import plotly.graph_objects as go
    import plotly.io as pio

    figures = [_gains(go, groups), _phases(go, groups)]
    if len({group.clients for group in groups}) > 1:
        figures.append(_throughput(go, groups))
    charts = [
        pio.to_html(figure, full_html=False, include_plotlyjs=number == 0, config={"displaylogo": False})
        for number, figure in enumerate(figures)
    ]
    facts = "".join(f"<tr><td>{escape(k)}</td><td>{escape(v)}</td></tr>" for k, v in about_rows(about))
    everywhere = shared_gaps(groups)
    sections = "".join(_section(group, everywhere) for group in groups)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>specclient bench</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><h1>Does a prediction pay here?</h1>"
        f"{_verdicts(groups)}{''.join(charts)}{sections}"
        f"{_gaps('Not measured anywhere', everywhere)}<h2>This measurement</h2>"
        f'<table class="facts">{facts}</table></body></html>\n'
    )


def _verdicts(groups: Sequence[Group]) -> str:
    lines = [
        f"<tr><td>{escape(group_title(group))}</td><td>{escape(gain_text(group.gain))}</td>"
        f'<td style="text-align: left">{_badge(group)}</td></tr>'
        for group in groups
    ]
    return f"<table><tr><th></th><th>whole call</th><th></th></tr>{''.join(lines)}</table>"


def _badge(group: Group) -> str:
    colour = _VERDICTS[group.decision]
    return f'<span class="verdict" style="background:{colour}">{escape(group.decision)}</span>'


def _section(group: Group, everywhere: Sequence[str]) -> str:
    lines = []
    for row in rows(group):
        without, predicted, ratio = row.cells(group)
        cells = "".join(f"<td>{escape(text)}</td>" for text in (without, predicted, ratio))
        lines.append(f"<tr><td>{escape(row.label)}</td>{cells}</tr>")
    told = "".join(f"<tr><td>{escape(k)}</td><td>{escape(v)}</td></tr>" for k, v in speculation_text(group))
    return (
        f"<h2>{escape(group_title(group))}</h2><p>{_badge(group)} {escape(group.because)}</p>"
        f"<table><tr><th></th><th>without</th><th>with</th><th>gain</th></tr>{''.join(lines)}</table>"
        f'<table class="facts">{told}</table>'
        f"{_gaps('Not measured here', [gap for gap in group.not_measured if gap not in everywhere])}"
    )


def _gaps(title: str, gaps: Sequence[str]) -> str:
    if not gaps:
        return ""
    items = "".join(f"<li>{escape(gap)}</li>" for gap in gaps)
    return f'<div class="small">{title}:<ul>{items}</ul></div>'


def _gains(go: Any, groups: Sequence[Group]) -> Any:
    """Gains with their intervals, and the line at which nothing is gained."""
    figure = go.Figure()
    for label, name in (("whole call", "gain"), ("decoding, per token", "decode_gain")):
        told = [(group, getattr(group, name)) for group in groups if getattr(group, name) is not None]
        figure.add_bar(
            name=label,
            orientation="h",
            y=[group_title(group) for group, _ in told],
            x=[gain.value for _, gain in told],
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [_reach(gain, gain.high) for _, gain in told],
                "arrayminus": [_reach(gain, gain.low) for _, gain in told],
            },
        )
    figure.add_vline(x=1, line_dash="dash", line_color="#5f6368")
    title = "Times as fast with the prediction (median, 95 % interval)"
    return _laid_out(figure, title, "times as fast", bars=2 * len(groups))


def _laid_out(figure: Any, title: str, x: str, *, bars: int) -> Any:
    """Bars lie, so that the names beside them can be read, and the first is on top."""
    figure.update_layout(title=title, xaxis_title=x, template="plotly_white", height=170 + 26 * bars)
    figure.update_yaxes(autorange="reversed", automargin=True)
    return figure


def _reach(gain: Estimate, end: float | None) -> float:
    return 0.0 if end is None else abs(end - gain.value)


def _phases(go: Any, groups: Sequence[Group]) -> Any:
    """Where the time goes, without and with, as far as somebody told."""
    figure = go.Figure()
    labels = [[group_title(g) for g in groups for _ in (0, 1)], ["without", "with"] * len(groups)]
    arms = [arm for group in groups for arm in (group.without, group.predicted)]
    for name, colour in _COLOURS.items():
        told = [getattr(arm, name) for arm in arms]
        lengths = [None if phase is None else phase.value for phase in told]
        figure.add_bar(name=name, orientation="h", y=labels, x=lengths, marker_color=colour)
    figure.update_layout(barmode="stack")
    return _laid_out(figure, "Queue, prefill and decode (medians)", "seconds", bars=len(arms))


def _throughput(go: Any, groups: Sequence[Group]) -> Any:
    """Tokens a second over all clients, by their number."""
    figure = go.Figure()
    for number, workload in enumerate(dict.fromkeys(group.workload for group in groups)):
        for arm, dash in (("without", "dot"), ("predicted", "solid")):
            told = [(g.clients, getattr(g, arm).throughput) for g in groups if g.workload == workload]
            points = sorted((clients, figure_.value) for clients, figure_ in told if figure_ is not None)
            figure.add_scatter(
                name=f"{workload}, {'with' if arm == 'predicted' else arm}",
                x=[clients for clients, _ in points],
                y=[value for _, value in points],
                line={"dash": dash, "color": _WORKLOADS[number % len(_WORKLOADS)]},
                mode="lines+markers",
            )
    figure.update_layout(
        title="Throughput",
        xaxis_title="clients at once",
        yaxis_title="tokens a second",
        template="plotly_white",
    )
    figure.update_xaxes(tickvals=sorted({group.clients for group in groups}))
    figure.update_yaxes(rangemode="tozero")
    return figure
