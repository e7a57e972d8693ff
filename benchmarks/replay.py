"""Oracle replay: how few passes our drafts need for known edits, beside other systems' rules.

    python -m benchmarks.replay                          all sets, all rules, this machine's curve among three
    python -m benchmarks.replay --model qwen2.5-coder-0.5b --dtype int8 --save-curve curve.json
    python -m benchmarks.replay --curve curve.json --set edit_pairs --chart replay.html

No model writes anything: the target writes the edited file token by token (greedy, and always the human's
version), every draft is judged by exact prefix, and a pass of M rows behind N cached tokens costs what a
curve says; prefill and the drafting's own time are left out of the gain (the latter is measured and
printed). One curve is this machine's own: a small model that is at hand, or the one named, is loaded and its
passes are timed before the replay, which then counts in its tokens. The other two are fixed and know no
cost of attention. Drafts are no longer than the engine's.

Rules search prompt and output; the prompt is the instruction and the file before the edit. Ours learns its
acceptance online, from the files before this one in the order of the set; "cold" starts every file from the
shipped priors.

"longer" repeats every file five times in a row. In `canitedit x5` the edit is made in the middle copy
only, in `canitedit x5 all` in each of the five.

The shipped priors were fitted on the files at even places of both sets (`benchmarks.fit_priors`), so the
"even" row is in sample and the "odd" row is held out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.common import DATA, say
from benchmarks.oracle import Case, load_cases, load_tokenizer, longer, model_at_hand, replay
from benchmarks.replay_report import Row, as_json, draw, table
from benchmarks.rival_rules import LineRealignment, NgramLookup, WindowResync
from specclient_engine.api import CostModel, Draft, Proposer, Tokenizer
from specclient_engine.cost import CostCurve
from specclient_engine.measuring import measure_cost
from specclient_engine.models import locate
from specclient_engine.proposers import AcceptanceTable, build_proposer
from specclient_engine.runner import load_runner

CPU = CostCurve.linear(0.016, 0.0115, 0.00063)
"""Prepacked bf16 linears of a 135M model on two Zen 4 cores: max(16, 11.5 + 0.63 M) ms."""
FLAT = CostCurve([1, 64, 128], [1.0, 1.0, 2.0])
"""An idealised GPU: one unit up to 64 rows, then in proportion."""
MEASURED_SECONDS = 10.0
"""How long passes are timed: twenty times as long as at load, so that the least of each is found."""

Maker = Callable[[Sequence[int], Sequence[int]], Proposer]


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
            target = self.tokenizer.encode(case.after)
            row.add(case.name, replay(proposer, target, cost, cached=len(prompt)))
        return row

    def rival(self, row: Row, cases: Sequence[Case], cost: CostModel, make: Maker) -> Row:
        """Another system's rule, which drafts as much as it always does."""
        for case in cases:
            prompt, predicted = self.tokenizer.encode(case.prompt), self.tokenizer.encode(case.before)
            target = self.tokenizer.encode(case.after)
            drafter = make(prompt, predicted)
            row.add(case.name, replay(drafter, target, cost, cached=len(prompt), length=whole))
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


def measure(folder: Path, dtype: str) -> tuple[CostCurve, str]:
    """What passes of the model in `folder` cost here, and what it is computed in."""
    say(f"timing the passes of {folder.name}")
    runner = load_runner(folder, dtype=dtype)  # type: ignore[arg-type]
    measured = measure_cost(runner, budget=MEASURED_SECONDS)
    pairs = zip(measured.rows, measured.base_seconds, strict=True)
    say("ms by rows: " + ", ".join(f"{rows}: {1000 * seconds:.1f}" for rows, seconds in pairs))
    return measured, str(getattr(runner, "kind", "the plain path"))


def main(
    data: Annotated[Path, typer.Option(help="Folder of the sets: NAME.jsonl each.")] = DATA,
    edits: Annotated[
        list[str] | None, typer.Option("--set", help="canitedit, canitedit x5, canitedit x5 all, or a NAME.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="The model whose passes are timed: a known name or a folder.")
    ] = None,
    dtype: Annotated[str, typer.Option(help="auto, bfloat16, float32 or int8, for the timing.")] = "auto",
    tokenizer: Annotated[
        Path | None, typer.Option(help="Folder with a tokenizer.json, if not the model's.")
    ] = None,
    curve: Annotated[Path | None, typer.Option(help="A saved cost curve in place of a timing.")] = None,
    save_curve: Annotated[Path | None, typer.Option(help="Write the measured curve here (JSON).")] = None,
    chart: Annotated[Path | None, typer.Option(help="Write tokens per pass by file length (HTML).")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Compare drafting rules on known edits."""
    folder = locate(model).path if model is not None else model_at_hand()
    ids, label = load_tokenizer(tokenizer or folder)
    published = ["canitedit", "canitedit x5", "canitedit x5 all", "edit_pairs"]
    sets = load_sets(data, edits or (published if data.is_dir() else ["edits"]))
    replayer = Replayer(ids, [case for cases in sets.values() for case in cases])
    curves: dict[str, CostCurve] = {"reference CPU": CPU, "flat": FLAT}
    if curve is not None:
        curves[f"this machine, {curve.name}"] = CostCurve.from_dict(json.loads(curve.read_text("utf-8")))
    elif folder is not None:
        measured, kind = measure(folder, dtype)
        curves[f"this machine, {folder.name} in {kind}"] = measured
        if save_curve is not None:
            save_curve.write_text(json.dumps(measured.to_dict(), indent=2) + "\n", encoding="utf-8")
    else:
        say("no model is at hand: name one with --model to see the gain on this machine")
    rows: list[Row] = []
    for name, cases in sets.items():
        for curve_name, cost in curves.items():
            for row in replayer.rows(name, cases, curve_name, cost):
                rows.append(row)
                say(f"{name}, {curve_name}: {row.rule}: {row.total.per_pass:.2f} tokens per pass")
    if chart is not None:
        draw(rows, chart)
    if json_:
        print(json.dumps(as_json(rows, label, curves), indent=2))
        return
    console = Console()
    console.print(f"Tokenizer: {label}")
    for name in sets:
        for curve_name in curves:
            console.print(table(rows, name, curve_name, curves[curve_name]))


if __name__ == "__main__":
    typer.run(main)
