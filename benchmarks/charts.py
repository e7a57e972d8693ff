"""Charts of the benchmarks, each one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer


def plotly() -> Any:
    """Plotly's graph objects; who lacks them is told what to install."""
    try:
        import plotly.graph_objects as graph_objects
    except ImportError:
        raise typer.BadParameter("plotly is not installed; pip install 'specclient[bench]'") from None
    return graph_objects


def bars(values: Mapping[str, float], path: Path, *, title: str, axis: str) -> None:
    """One bar for each value, the highest on top, labelled with whole numbers of `axis`."""
    go = plotly()
    ordered = sorted(values.items(), key=lambda item: item[1])
    figure = go.Figure(
        go.Bar(
            x=[value for _, value in ordered],
            y=[name for name, _ in ordered],
            orientation="h",
            text=[f"{value:.0f}" for _, value in ordered],
        )
    )
    figure.update_layout(title=title, xaxis_title=axis, template="simple_white")
    figure.write_html(path, include_plotlyjs=True)
