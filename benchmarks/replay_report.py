"""What a replay found, as tables, as JSON and as a chart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.charts import plotly
from benchmarks.common import machine
from benchmarks.oracle import Outcome
from specclient_engine.api import CostModel
from specclient_engine.cost import CostCurve
from specclient_engine.request_state import MAX_DRAFT


@dataclass(slots=True)
class Row:
    """One rule on one set of edits with one curve."""

    edits: str
    curve: str
    rule: str
    ours: bool
    total: Outcome = field(default_factory=Outcome)
    files: list[tuple[str, int, float]] = field(default_factory=list)

    def add(self, name: str, outcome: Outcome) -> None:
        """Take in one file."""
        self.total += outcome
        self.files.append((name, outcome.tokens, outcome.per_pass))


def best_rival(rows: Sequence[Row], row: Row, figure: Callable[[Outcome], float]) -> Row:
    """The rival that is best by `figure` on the same edits with the same curve."""
    others = [r for r in rows if not r.ours and (r.edits, r.curve) == (row.edits, row.curve)]
    return max(others, key=lambda r: figure(r.total))


def table(rows: Sequence[Row], edits: str, curve: str, cost: CostModel) -> Table:
    """The figures of one set of edits with one curve; the most that any rule could gain is in the caption."""
    chosen = [row for row in rows if (row.edits, row.curve) == (edits, curve)]
    shown = Table(title=f"{edits}, cost curve: {curve}")
    shown.add_column("rule")
    for name in ("tokens per pass", "gain", "accepted", "µs per pass"):
        shown.add_column(name, justify="right")
    for row in chosen:
        total = row.total
        shown.add_row(
            row.rule,
            f"{total.per_pass:.2f}",
            f"{total.gain:.2f}",
            f"{100 * total.accepted / max(1, total.drafted):.0f} %",
            f"{1e6 * total.thinking / total.passes:.0f}",
            style="bold" if row.rule == "specclient" else None,
        )
    ours = chosen[0]
    by_pass = best_rival(rows, ours, lambda o: o.per_pass)
    by_gain = best_rival(rows, ours, lambda o: o.gain)
    most = max(rows * cost.seconds(1, 0) / cost.seconds(rows, 0) for rows in range(1, MAX_DRAFT + 2))
    shown.caption = (
        f"Were every draft right, the gain by this curve would be {most:.1f}.\n{_times(ours.total)}"
        f"Against the best rival: {ours.total.per_pass / by_pass.total.per_pass:.2f}x tokens per pass "
        f"({by_pass.rule}), {ours.total.gain / by_gain.total.gain:.2f}x gain ({by_gain.rule})."
    )
    return shown


def _times(total: Outcome) -> str:
    """Milliseconds a token, without and with drafts, where the curve is in seconds and not in passes."""
    plain, drafted = (1000 * seconds / total.tokens for seconds in (total.plain_seconds, total.seconds))
    return f"{plain:.2f} ms a token without drafts, {drafted:.2f} with ours.\n" if plain < 1000 else ""


def as_json(rows: Sequence[Row], label: str, curves: Mapping[str, CostCurve]) -> dict[str, Any]:
    """Everything that was measured, file by file."""
    return {
        "tokenizer": label,
        "curves": {name: curve.to_dict() for name, curve in curves.items()},
        "machine": machine(),
        "rows": [
            {
                "edits": row.edits,
                "curve": row.curve,
                "rule": row.rule,
                "tokens_per_pass": row.total.per_pass,
                "gain": row.total.gain,
                **asdict(row.total),
                "files": [
                    {"name": name, "tokens": tokens, "tokens_per_pass": per_pass}
                    for name, tokens, per_pass in row.files
                ],
            }
            for row in rows
        ],
    }


def draw(rows: Sequence[Row], path: Path) -> None:
    """Tokens per pass by file length, ours and the best rival of each set, as one HTML file."""
    go = plotly()
    figure = go.Figure()
    first = rows[0].curve
    for row in rows:
        if row.rule != "specclient" or row.curve != first:
            continue
        for drawn in (row, best_rival(rows, row, lambda o: o.per_pass)):
            figure.add_scatter(
                x=[tokens for _, tokens, _ in drawn.files],
                y=[per_pass for _, _, per_pass in drawn.files],
                text=[name for name, _, _ in drawn.files],
                mode="markers",
                name=f"{row.edits}: {drawn.rule}",
            )
    figure.update_layout(
        title="Tokens for each forward pass, by length of the file",
        xaxis={"title": "tokens of the edited file", "type": "log"},
        yaxis={"title": "tokens per pass", "type": "log"},
        template="plotly_white",
    )
    figure.write_html(path, include_plotlyjs=True)
