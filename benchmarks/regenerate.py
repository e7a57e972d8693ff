"""Regenerate files with a real model: our engine beside the engines one could pick instead.

    python -m benchmarks.regenerate                                   transformers as the rival
    python -m benchmarks.regenerate --llama-python P --llama-model F  and llama.cpp, from its own environment
    python -m benchmarks.regenerate --vllm-python P                   and vLLM, from its own environment

The edits are spread evenly over the lengths of the data set. Every engine gets the same prompt as token
ids and decodes greedily. Figures are decode tokens per second over all edits: tokens after the first, by
the seconds after the first. Before any figure is printed our output with the prediction must equal our
output without it, token for token; in bfloat16, where near-ties may flip, the differences are counted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.charts import bars
from benchmarks.common import DATA, Edit, load_edits, machine, say, spread
from benchmarks.rivals import Run, Transformers, llama_cpp, run_llama_cpp, run_vllm, vllm
from specclient.edit.prompt import messages
from specclient.textfile import FileImage
from specclient_engine import Engine, GenerationRequest
from specclient_engine.models import DEFAULT_MODEL, locate


@dataclass(slots=True)
class Contender:
    """One engine in one mode, and its runs, one for each edit."""

    name: str
    runs: list[Run] = field(default_factory=list)
    forward_passes: int | None = None
    by_source: dict[str, list[int]] = field(default_factory=dict)

    @property
    def tokens_per_second(self) -> float:
        return sum(r.decoded for r in self.runs) / sum(r.decode_seconds for r in self.runs)

    @property
    def tokens_per_pass(self) -> float | None:
        return sum(r.decoded for r in self.runs) / self.forward_passes if self.forward_passes else None


@dataclass(frozen=True, slots=True)
class Job:
    """An edit as the engines see it."""

    edit: Edit
    prompt: tuple[int, ...]
    max_tokens: int


def prepare(engine: Engine, edits: Sequence[Edit]) -> list[Job]:
    jobs = []
    for edit in edits:
        image = FileImage.from_bytes(edit.before.encode(), name=f"{edit.name}.py")
        prompt = tuple(engine.chat_prompt(messages(image, edit.instruction)))
        room = len(engine.tokenizer.encode(edit.before)) * 2 + 256
        jobs.append(Job(edit, prompt, room))
    return jobs


def ours(engine: Engine, jobs: Sequence[Job]) -> list[Contender]:
    kind = kind_of(engine)
    plain = Contender(f"specclient {kind}, no speculation")
    predicted = Contender(f"specclient {kind}, file as prediction")
    for number, job in enumerate(jobs, start=1):
        for contender in (plain, predicted):
            _our_run(engine, job, contender, speculate=contender is predicted)
        same = plain.runs[-1].tokens == predicted.runs[-1].tokens
        say(f"[{number}/{len(jobs)}] {job.edit.name}: {len(plain.runs[-1].tokens)} tokens, identical: {same}")
        if not same and kind != "bfloat16":
            raise SystemExit(
                f"{job.edit.name}: the output with the prediction differs from the plain output."
            )
    flipped = sum(a.tokens != b.tokens for a, b in zip(plain.runs, predicted.runs, strict=True))
    say(f"{kind}: {flipped} of {len(jobs)} outputs differ between the two runs")
    return [plain, predicted]


def kind_of(engine: Engine) -> str:
    """What the weights are multiplied as."""
    runner: Any = engine.runner
    return str(getattr(runner, "kind", None) or str(runner.model.dtype).removeprefix("torch."))


def _our_run(engine: Engine, job: Job, contender: Contender, *, speculate: bool) -> None:
    request = GenerationRequest(
        prompt_ids=job.prompt,
        predictions=(job.edit.before,) if speculate else (),
        max_tokens=job.max_tokens,
        speculation="auto" if speculate else "off",
    )
    handle = engine.submit(request)
    tokens = tuple(token for step in handle for token in step.token_ids)
    stats = handle.stats
    contender.runs.append(
        Run(
            tokens,
            (stats.finished - stats.first_token) / 1e9,
            (stats.first_token - stats.scheduled) / 1e9,
        )
    )
    contender.forward_passes = (contender.forward_passes or 0) + stats.forward_passes
    for source, (drafted, accepted) in stats.by_source.items():
        counts = contender.by_source.setdefault(source, [0, 0])
        counts[0] += drafted
        counts[1] += accepted


def measure(name: str, jobs: Sequence[Job], run: Callable[[Job], Run]) -> Contender:
    contender = Contender(name)
    for number, job in enumerate(jobs, start=1):
        contender.runs.append(run(job))
        say(f"{name} [{number}/{len(jobs)}] {job.edit.name}: {len(contender.runs[-1].tokens)} tokens")
    return contender


def _served(run: Callable[[str, Sequence[int], int], Run], address: str, job: Job) -> Run:
    return run(address, job.prompt, job.max_tokens)


def show(contenders: Sequence[Contender], reference: Contender) -> None:
    table = Table(title="decode, tokens per second over all edits", title_justify="left")
    for column in ("engine", "tokens", "tok/s", "a pass", "we are", "same text"):
        table.add_column(column, justify="left" if column == "engine" else "right")
    for contender in contenders:
        ratio = reference.tokens_per_second / contender.tokens_per_second
        same = sum(a.tokens == b.tokens for a, b in zip(contender.runs, reference.runs, strict=True))
        per_pass = contender.tokens_per_pass
        table.add_row(
            contender.name,
            str(sum(len(r.tokens) for r in contender.runs)),
            f"{contender.tokens_per_second:.1f}",
            "" if per_pass is None else f"{per_pass:.2f}",
            f"{ratio:.2f}×",
            f"{same}/{len(reference.runs)}",
        )
    Console().print(table)


def as_json(contenders: Sequence[Contender], jobs: Sequence[Job], dtype: str) -> dict[str, Any]:
    return {
        "machine": machine(),
        "dtype": dtype,
        "edits": [job.edit.name for job in jobs],
        "contenders": [
            {
                "name": c.name,
                "tokens": [len(r.tokens) for r in c.runs],
                "decode_seconds": [r.decode_seconds for r in c.runs],
                "tokens_per_second": c.tokens_per_second,
                "tokens_per_pass": c.tokens_per_pass,
                "by_source": c.by_source,
            }
            for c in contenders
        ],
    }


def main(
    model: Annotated[str, typer.Option(help="A known name, or a folder of safetensors.")] = DEFAULT_MODEL,
    data: Annotated[Path, typer.Option(help="Edits, one JSON object a line.")] = DATA / "canitedit.jsonl",
    count: Annotated[int, typer.Option(help="How many edits, spread over the lengths.")] = 6,
    dtype: Annotated[str, typer.Option(help="Ours: auto, bfloat16, float32, int8, or several.")] = "auto",
    transformers: Annotated[bool, typer.Option(help="Run transformers beside us.")] = True,
    llama_python: Annotated[Path | None, typer.Option(help="Interpreter that has xllamacpp.")] = None,
    llama_model: Annotated[Path | None, typer.Option(help="GGUF file for llama.cpp.")] = None,
    vllm_python: Annotated[Path | None, typer.Option(help="Interpreter that has vLLM.")] = None,
    vllm_drafts: Annotated[str, typer.Option(help="Draft lengths to try with vLLM.")] = "8,16,32",
    chart: Annotated[Path | None, typer.Option(help="Write a bar chart (HTML) here.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    files = locate(model)
    contenders: list[Contender] = []
    for kind in dtype.split(","):
        with Engine.load(files.path, dtype=kind) as engine:
            jobs = prepare(engine, spread(load_edits(data), count))
            # The first request pays for warming caches and for learning the machine's costs: not counted.
            _our_run(engine, jobs[0], Contender("warm-up"), speculate=True)
            contenders += ours(engine, jobs)
    reference = contenders[1]
    if transformers:
        rival = Transformers(files.path)
        greedy = measure("transformers, greedy bf16", jobs, lambda j: rival.run(j.prompt, j.max_tokens))
        lookup = measure(
            "transformers, prompt lookup 10", jobs, lambda j: rival.run(j.prompt, j.max_tokens, lookup=10)
        )
        contenders += [greedy, lookup]
        del rival
    if llama_python is not None and llama_model is not None:
        for mode in ("none", "NGRAM_SIMPLE", "NGRAM_MOD"):
            with llama_cpp(llama_python, llama_model, mode, os.cpu_count() or 1) as at:
                run = partial(_served, run_llama_cpp, at)
                contenders.append(measure(f"llama.cpp, {mode.lower()}", jobs, run))
    if vllm_python is not None:
        for draft in [int(d) for d in vllm_drafts.split(",")]:
            with vllm(vllm_python, files.path, draft) as at:
                run_vllm(at, jobs[0].prompt, 8)
                contenders.append(measure(f"vLLM, n-gram {draft}", jobs, partial(_served, run_vllm, at)))
    if chart is not None:
        speeds = {contender.name: contender.tokens_per_second for contender in contenders}
        bars(speeds, chart, title="Regenerating files: decode tokens per second", axis="tokens per second")
    if json_:
        print(json.dumps(as_json(contenders, jobs, dtype), indent=2))
    else:
        show(contenders, reference)
        say(json.dumps(machine()))


if __name__ == "__main__":
    typer.run(main)
