"""Fit the rates and weights that a new engine starts from, and write them into the package.

    python -m benchmarks.fit_priors

Replays the files at even places of the two sets of edits, twice, under the reference CPU curve, and
keeps every rate that rests on enough guesses. The files at odd places are never read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.common import DATA, ROOT, say
from benchmarks.oracle import load_cases, load_tokenizer, replay
from benchmarks.replay import CPU
from specclient_engine.proposers import AcceptanceTable, acceptance, build_proposer
from specclient_engine.proposers.memory import Memories
from specclient_engine.proposers.rewriting import KINDS, RuleKind

SETS = ("canitedit", "edit_pairs")
ROUNDS = 2
FEWEST = 30.0
"""Guesses that a shipped rate rests on."""
CONFIRMED: dict[RuleKind, tuple[float | None, ...]] = {
    "word": (None, None, 0.9, 0.95),
    "phrase": (None, None, 0.9, 0.95),
    "indent": (None, None, 0.9, 0.95),
    "newline": (0.9, 0.97, 0.98, 0.99),
}
"""Rates of rules by how often they held: these edits are too few to fit them."""
BEGINNING = {
    "beginning/0": 0.05,
    "beginning/0/0/1": 0.6,
    "beginning/0/1/1": 0.6,
    **{f"beginning/{step}": rate for step, rate in enumerate((0.9, 0.95, 0.97, 0.99), start=1)},
}
"""Rates of a file's beginning behind something else: these edits have no fences and no preambles."""
PLACE = ROOT / "local_engine" / "specclient_engine" / "proposers" / "priors.json"


def main(
    data: Annotated[Path, typer.Option(help="Folder of the sets: NAME.jsonl each.")] = DATA,
    tokenizer: Annotated[Path | None, typer.Option(help="Folder with a tokenizer.json.")] = None,
    out: Annotated[Path, typer.Option(help="Where to write.")] = PLACE,
) -> None:
    """Write priors.json."""
    ids, label = load_tokenizer(tokenizer)
    table = AcceptanceTable({})
    acceptance.MEMORY = float("inf")
    acceptance.ENOUGH = float("inf")
    for _ in range(ROUNDS):
        # What the first round wrote is this round's future.
        table.memories = Memories()
        for name in SETS:
            for case in load_cases(data / f"{name}.jsonl")[::2]:
                proposer = build_proposer(ids.encode(case.prompt), [case.before], ids, table=table)
                replay(proposer, ids.encode(case.after), CPU)
            say(f"{name}: {label}")
    learnt = table.to_dict()
    rates = {key: hits / tries for key, (hits, tries) in learnt["counts"].items() if tries >= FEWEST}
    for rule, held in CONFIRMED.items():
        for times, rate in enumerate(held):
            if rate is not None:
                rates.setdefault(f"rewrite/{KINDS.index(rule) * 8 + 2 * times}", rate)
    rates |= BEGINNING
    origin = (
        f"benchmarks/fit_priors.py on the files at even places of {' and '.join(SETS)}, {ROUNDS} rounds, in "
        f"tokens of {label}; rates of rules and of beginnings are set by hand: these files have too few"
    )
    fitted = {
        "origin": origin,
        "rates": {key: round(rate, 3) for key, rate in sorted(rates.items())},
        "blend": {kind: [round(w, 2) for w in weights] for kind, weights in sorted(learnt["blend"].items())},
    }
    out.write_text(json.dumps(fitted, indent=1) + "\n", encoding="utf-8")
    say(f"wrote {len(rates)} rates")


if __name__ == "__main__":
    typer.run(main)
