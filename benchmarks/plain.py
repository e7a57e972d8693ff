"""Plain decoding, no speculation at all: our kinds of number beside transformers, from the same weights.

    python -m benchmarks.plain                                  both small models
    python -m benchmarks.plain --model DIR --tokens 128         another one
    python -m benchmarks.plain --chart plain.html               with a bar chart

Every contender continues the same prompt greedily. They take turns in every round, and the best round
of each counts, so that a slow minute of the machine does not decide. Figures are decode tokens per
second: tokens after the first, by the seconds after the first.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.charts import bars
from benchmarks.common import machine, say
from benchmarks.rivals import Run, Transformers
from specclient_engine import Engine, GenerationRequest
from specclient_engine.models import DEFAULT_MODEL, locate

PROMPT = Path(__file__).with_name("common.py")
RIVAL = "transformers bfloat16"
KINDS = ("bfloat16", "int8", "float32")


def decode(engine: Engine, prompt: tuple[int, ...], tokens: int) -> Run:
    request = GenerationRequest(prompt_ids=prompt, max_tokens=tokens, speculation="off", ignore_eos=True)
    handle = engine.submit(request)
    made = tuple(token for step in handle for token in step.token_ids)
    return Run(made, (handle.stats.finished - handle.stats.first_token) / 1e9)


def race(model: str, kinds: list[str], tokens: int, rounds: int) -> dict[str, Run]:
    """The best run of each contender."""
    folder = locate(model).path
    best: dict[str, Run] = {}
    with ExitStack() as stack:
        engines = {kind: stack.enter_context(Engine.load(folder, dtype=kind)) for kind in kinds}
        tokenizer = next(iter(engines.values())).tokenizer
        prompt = tuple(tokenizer.encode(PROMPT.read_text(encoding="utf-8"))[:256])
        rival = Transformers(folder)
        contenders: dict[str, Callable[[], Run]] = {RIVAL: lambda: rival.run(prompt, tokens)}
        for kind, engine in engines.items():
            contenders[f"specclient {kind}"] = lambda engine=engine: decode(engine, prompt, tokens)
        for number in range(1, rounds + 1):
            for name, run in contenders.items():
                made = run()
                say(f"{model} [{number}/{rounds}] {name}: {rate(made):.1f} tok/s")
                if name not in best or rate(made) > rate(best[name]):
                    best[name] = made
    return best


def rate(run: Run) -> float:
    """Decode tokens per second."""
    return run.decoded / run.decode_seconds


def agreement(run: Run, other: Run) -> int:
    """How many tokens from the start are the same."""
    same = [a == b for a, b in zip(run.tokens, other.tokens, strict=False)]
    return same.index(False) if False in same else len(same)


def show(model: str, best: dict[str, Run]) -> None:
    table = Table(title=f"{model}: plain decoding", title_justify="left")
    for column in ("engine", "tok/s", "ms a token", "against transformers", "same first tokens"):
        table.add_column(column, justify="left" if column == "engine" else "right")
    for name, run in best.items():
        ratio = rate(run) / rate(best[RIVAL])
        same = f"{agreement(run, best[RIVAL])} of {len(run.tokens)}"
        table.add_row(name, f"{rate(run):.1f}", f"{1000 / rate(run):.1f}", f"{ratio:.2f}×", same)
    Console().print(table)


def as_json(results: dict[str, dict[str, Run]]) -> dict[str, Any]:
    models = {
        model: {
            name: {"tokens_per_second": rate(run), "against_transformers": rate(run) / rate(best[RIVAL])}
            for name, run in best.items()
        }
        for model, best in results.items()
    }
    return {"machine": machine(), "models": models}


def main(
    model: Annotated[list[str] | None, typer.Option(help="Known names or folders of safetensors.")] = None,
    kinds: Annotated[str, typer.Option(help="Our kinds of number, by commas.")] = ",".join(KINDS),
    tokens: Annotated[int, typer.Option(help="Tokens to decode.")] = 64,
    rounds: Annotated[int, typer.Option(help="Turns each contender takes.")] = 3,
    chart: Annotated[Path | None, typer.Option(help="Write a bar chart (HTML) here.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of the tables.")] = False,
) -> None:
    names = model or ["smollm2-135m", DEFAULT_MODEL]
    results = {name: race(name, kinds.split(","), tokens, rounds) for name in names}
    if chart is not None:
        speeds = {
            f"{model}: {name}": rate(run) for model, best in results.items() for name, run in best.items()
        }
        bars(speeds, chart, title="Plain decoding: tokens per second", axis="tokens per second")
    if json_:
        print(json.dumps(as_json(results), indent=2))
        return
    for name, best in results.items():
        show(name, best)
    Console().print(machine())


if __name__ == "__main__":
    typer.run(main)
