"""What the engine holds while it serves, beside its weights and its cache.

    python -m benchmarks.memory                                      the default model
    python -m benchmarks.memory --model smollm2-135m --dtype float32

In one process: load, answer a request with a very long prediction, answer one with a long prompt, which is
prefilled in pieces, then several at once. After each, the highest memory of the process (its resident set)
since the one before is set against what it must hold: every weight once, in the kind of number that it is
computed with, and the keys and values of every position that was written. All the rest is counted: the idle
interpreter, torch and every other library, those of this command included, the tokenizer, proposers, logits,
workspace. It stays under 400 MB (of a million bytes), and the command exits with 1 where it does not. Linux
only: the peaks are the kernel's.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.common import machine, say
from benchmarks.verbatim import long_file
from specclient_engine import Engine, GenerationRequest
from specclient_engine.models import DEFAULT_MODEL, locate
from specclient_engine.runner.base import BYTES
from specclient_engine.runner.fused import FusedRunner
from specclient_engine.runner.fused_aten import AtenRunner

LIMIT = 400_000_000


def resident() -> int:
    """Bytes of memory that this process holds now."""
    return _status("VmRSS:")


def peak() -> int:
    """The most bytes that it held since `forget_peak`."""
    return _status("VmHWM:")


def forget_peak() -> None:
    """Starts a new peak at what is held now."""
    Path("/proc/self/clear_refs").write_text("5")


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def serve(engine: Engine, requests: Sequence[GenerationRequest]) -> int:
    """Answers the requests at once; the positions of the cache that they wrote."""
    handles = [engine.submit(request) for request in requests]
    written = 0
    for handle in handles:
        for _ in handle:
            pass
        assert handle.stats is not None
        written += handle.stats.prompt_tokens + handle.stats.completion_tokens
    return written


def work(engine: Engine, prediction: int, prompt: int) -> list[tuple[str, list[GenerationRequest]]]:
    """What is served: a name, and the requests that run at once."""
    text = long_file(prediction // 4)
    ids = engine.tokenizer.encode(text)
    text = engine.tokenizer.decode(ids[:prediction])
    question = ids[:256]
    known = GenerationRequest(prompt_ids=question, predictions=(text,), max_tokens=200, ignore_eos=True)
    size = min(prompt, len(ids), engine.max_context - 64)
    long = GenerationRequest(prompt_ids=ids[-size:], max_tokens=32, ignore_eos=True)
    several = [
        GenerationRequest(
            prompt_ids=ids[start : start + 200], predictions=(text[:20_000],), max_tokens=64, ignore_eos=True
        )
        for start in range(0, 800, 100)
    ]
    return [
        (f"a prediction of {min(prediction, len(ids))} tokens", [known]),
        (f"a prompt of {size} tokens", [long]),
        (f"{len(several)} requests at once", several),
    ]


def measure(model: str, dtype: str, prediction: int, prompt: int) -> dict[str, Any]:
    """The figures of one process, in bytes."""
    folder = locate(model).path
    libraries = resident()
    with Engine.load(folder, dtype=dtype) as engine:  # type: ignore[arg-type]
        runner = engine.runner
        if not isinstance(runner, FusedRunner):
            raise SystemExit(f"{model} runs through the plain path, whose memory is that of transformers.")
        weights = held_weights(runner)
        rows: list[dict[str, Any]] = [{"after": "loading", "cache": 0, "peak": resident()}]
        positions = 0
        for name, requests in work(engine, prediction, prompt):
            say(name)
            forget_peak()
            # Slots of ended requests are kept for prompts that begin alike: all that was written counts.
            positions += serve(engine, requests)
            rows.append({"after": name, "cache": positions * runner.kv.bytes_per_token, "peak": peak()})
    for row in rows:
        row["beside"] = row["peak"] - weights - row["cache"]
    return {
        "model": model,
        "kind": runner.kind,
        "runner": type(runner).__name__,
        "libraries": libraries,
        "weights": weights,
        "limit": LIMIT,
        "rows": rows,
    }


def held_weights(runner: FusedRunner) -> int:
    """Bytes of every matrix once: tied embeddings are the head's, others are looked up as they are held."""
    shape, products = runner.shape, BYTES[runner.kind]
    looked_up = runner.embedding_bytes if isinstance(runner, AtenRunner) else products
    own = 0 if shape.tied else shape.vocab * shape.hidden * looked_up
    return shape.linear_parameters * products + own


def show(found: dict[str, Any]) -> None:
    def mb(count: int) -> str:
        return f"{count / 1e6:.0f} MB"

    held = f"weights {mb(found['weights'])}, idle libraries {mb(found['libraries'])}"
    title = f"{found['model']} in {found['kind']} ({found['runner']}): {held}"
    table = Table(title=title, title_justify="left")
    for column in ("after", "process, at most", "cache written", "all the rest"):
        table.add_column(column, justify="left" if column == "after" else "right")
    for row in found["rows"]:
        table.add_row(row["after"], mb(row["peak"]), mb(row["cache"]), mb(row["beside"]))
    table.caption = f"All the rest, idle libraries included, is meant to stay under {mb(found['limit'])}."
    Console().print(table)


def main(
    model: Annotated[str, typer.Option(help="A known name, or a folder of safetensors.")] = DEFAULT_MODEL,
    dtype: Annotated[str, typer.Option(help="auto, bfloat16, float32 or int8.")] = "auto",
    prediction: Annotated[int, typer.Option(help="Tokens of the long prediction.")] = 20_000,
    prompt: Annotated[int, typer.Option(help="Tokens of the long prompt.")] = 4096,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Measure memory while serving; exit 1 where it is above the limit."""
    found = measure(model, dtype, prediction, prompt)
    if json_:
        print(json.dumps({"machine": machine(), **found}, indent=2))
    else:
        show(found)
    if any(row["beside"] > LIMIT for row in found["rows"]):
        sys.exit(1)


if __name__ == "__main__":
    typer.run(main)
