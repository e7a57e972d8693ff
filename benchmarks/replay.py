"""Oracle replay: how few passes our drafts need for known edits, beside other systems' rules. No model.

    python -m benchmarks.replay                          both sets of edits, all rules, three cost curves
    python -m benchmarks.replay --set edit_pairs --curve curve.json --chart replay.html

The target writes the edited file token by token (greedy, and always the human's version), every draft is
judged by exact prefix, and a pass of M rows costs c(M) of a curve; prefill, attention and the drafting's
own time are left out of the gain (the last is measured and printed). Rules search prompt and output; the
prompt is the instruction and the file before the edit. Ours learns its acceptance online, from the files
before this one in the order of the set; "cold" starts every file from the shipped priors.

"longer" repeats every file five times in a row. In `canitedit x5` the edit is made in the middle copy
only, in `canitedit x5 all` in each of the five.

The shipped priors were fitted on the files at even places of both sets (`benchmarks.fit_priors`), so the
"even" row is in sample and the "odd" row is held out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.common import DATA, machine, say
from benchmarks.oracle import Case, Outcome, load_cases, load_tokenizer, longer, replay
from benchmarks.rival_rules import LineRealignment, NgramLookup, WindowResync
from specclient_engine.api import CostModel, Draft, Proposer, Tokenizer
from specclient_engine.cost import CostCurve
from specclient_engine.proposers import AcceptanceTable, build_proposer

CPU = CostCurve.linear(0.016, 0.0115, 0.00063)
"""Prepacked bf16 linears of a 135M model on two Zen 4 cores: max(16, 11.5 + 0.63 M) ms."""
FLAT = CostCurve([1, 64, 128], [1.0, 1.0, 2.0])
"""An idealised GPU: one unit up to 64 rows, then in proportion."""

Maker = Callable[[Sequence[int], Sequence[int]], Proposer]


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


def rivals(newline: Sequence[bool]) -> dict[str, Maker]:
    """The rules of other systems by name; each makes its drafter from prompt and predicted ids."""

    def ngram(longest: int, shortest: int, draft: int, *, first: bool = False) -> Maker:
        return lambda prompt, _: NgramLookup(
            prompt, longest=longest, shortest=shortest, draft=draft, first=first
        )

    def cascade(draft: int) -> Maker:
        return lambda _, predicted: LineRealignment(predicted, newline, draft=draft)

    return {
        "transformers prompt lookup (n<=2, first, k=10)": ngram(2, 1, 10, first=True),
        "prompt lookup (n<=3, first, k=10)": ngram(3, 1, 10, first=True),
        "n-gram (n<=5, recent, k=16)": ngram(5, 2, 16),
        "n-gram (n<=8, recent, k=32)": ngram(8, 2, 32),
        "n-gram (n<=16, recent, k=64)": ngram(16, 2, 64),
        "llama.cpp-like (n=12, k=48)": ngram(12, 12, 48),
        "Cascade, lines' LCS (k=16)": cascade(16),
        "Cascade, lines' LCS (k=64)": cascade(64),
        "EfficientEdit resync (whole remainder)": lambda _, predicted: WindowResync(predicted),
    }


def whole(draft: Draft) -> int:
    """The draft length of a rule that knows no cost: all of it."""
    return len(draft.tokens)


class Replayer:
    """Runs rules over sets of edits with one tokenizer."""

    def __init__(self, tokenizer: Tokenizer, cases: Sequence[Case]) -> None:
        self.tokenizer = tokenizer
        ids = {
            token for case in cases for text in (case.prompt, case.after) for token in tokenizer.encode(text)
        }
        self.newline = [False] * (max(ids) + 1)
        for token in ids:
            self.newline[token] = b"\n" in tokenizer.token_bytes(token)

    def ours(self, row: Row, cases: Sequence[Case], cost: CostModel, *, cold: bool = False) -> Row:
        """Our proposer with the engine's own draft lengths."""
        table = AcceptanceTable()
        for case in cases:
            if cold:
                table = AcceptanceTable()
            prompt = self.tokenizer.encode(case.prompt)
            proposer = build_proposer(prompt, [case.before], self.tokenizer, table=table)
            row.add(case.name, replay(proposer, self.tokenizer.encode(case.after), cost))
        return row

    def rival(self, row: Row, cases: Sequence[Case], cost: CostModel, make: Maker) -> Row:
        """Another system's rule, which drafts as much as it always does."""
        for case in cases:
            prompt, predicted = self.tokenizer.encode(case.prompt), self.tokenizer.encode(case.before)
            target = self.tokenizer.encode(case.after)
            row.add(case.name, replay(make(prompt, predicted), target, cost, length=whole))
        return row

    def rows(self, edits: str, cases: Sequence[Case], curve: str, cost: CostModel) -> Iterator[Row]:
        """Ours, warm, by halves and cold, then every rival."""
        yield self.ours(Row(edits, curve, "specclient", True), cases, cost)
        yield self.ours(Row(edits, curve, "specclient, even files", True), cases[::2], cost)
        yield self.ours(Row(edits, curve, "specclient, odd files (held out)", True), cases[1::2], cost)
        yield self.ours(Row(edits, curve, "specclient, cold for every file", True), cases, cost, cold=True)
        for name, make in rivals(self.newline).items():
            yield self.rival(Row(edits, curve, name, False), cases, cost, make)


def load_sets(data: Path, wanted: Sequence[str]) -> dict[str, list[Case]]:
    """The sets of edits by name, those in `wanted` only."""
    sets: dict[str, list[Case]] = {}
    if {"canitedit", "canitedit x5", "canitedit x5 all"} & set(wanted):
        cases = load_cases(data / "canitedit.jsonl")
        sets["canitedit"] = cases
        sets["canitedit x5"] = longer(cases, every_copy=False)
        sets["canitedit x5 all"] = longer(cases, every_copy=True)
    for name in wanted:
        if not name.startswith("canitedit"):
            sets[name] = load_cases(data / f"{name}.jsonl")
    return {name: sets[name] for name in wanted}


def best_rival(rows: Sequence[Row], row: Row, figure: Callable[[Outcome], float]) -> Row:
    """The rival that is best by `figure` on the same edits with the same curve."""
    others = [r for r in rows if not r.ours and (r.edits, r.curve) == (row.edits, row.curve)]
    return max(others, key=lambda r: figure(r.total))


def table(rows: Sequence[Row], edits: str, curve: str) -> Table:
    """The figures of one set of edits with one curve."""
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
    shown.caption = (
        f"Against the best rival: {ours.total.per_pass / by_pass.total.per_pass:.2f}x tokens per pass "
        f"({by_pass.rule}), {ours.total.gain / by_gain.total.gain:.2f}x gain ({by_gain.rule})."
    )
    return shown


def as_json(rows: Sequence[Row], label: str) -> dict[str, Any]:
    """Everything that was measured, file by file."""
    return {
        "tokenizer": label,
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
    try:
        import plotly.graph_objects as go
    except ImportError:
        raise typer.BadParameter("plotly is not installed; pip install 'specclient[bench]'") from None
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


def main(
    data: Annotated[Path, typer.Option(help="Folder of the sets: NAME.jsonl each.")] = DATA,
    edits: Annotated[
        list[str] | None, typer.Option("--set", help="canitedit, canitedit x5, canitedit x5 all, or a NAME.")
    ] = None,
    tokenizer: Annotated[Path | None, typer.Option(help="Folder with a tokenizer.json.")] = None,
    curve: Annotated[Path | None, typer.Option(help="This machine's cost curve, a JSON file.")] = None,
    chart: Annotated[Path | None, typer.Option(help="Write tokens per pass by file length (HTML).")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Compare drafting rules on known edits."""
    ids, label = load_tokenizer(tokenizer)
    sets = load_sets(data, edits or ["canitedit", "canitedit x5", "canitedit x5 all", "edit_pairs"])
    replayer = Replayer(ids, [case for cases in sets.values() for case in cases])
    curves: dict[str, CostModel] = {"reference CPU": CPU, "flat": FLAT}
    if curve is not None:
        curves["this machine"] = CostCurve.from_dict(json.loads(curve.read_text(encoding="utf-8")))
    rows: list[Row] = []
    for name, cases in sets.items():
        for curve_name, cost in curves.items():
            for row in replayer.rows(name, cases, curve_name, cost):
                rows.append(row)
                say(f"{name}, {curve_name}: {row.rule}: {row.total.per_pass:.2f} tokens per pass")
    if chart is not None:
        draw(rows, chart)
    if json_:
        print(json.dumps(as_json(rows, label), indent=2))
        return
    console = Console()
    console.print(f"Tokenizer: {label}")
    for name in sets:
        for curve_name in curves:
            console.print(table(rows, name, curve_name))


if __name__ == "__main__":
    typer.run(main)
