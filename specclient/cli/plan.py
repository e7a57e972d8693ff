"""`specclient plan`: what speculation could gain, and what fits into memory, before anything is loaded."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specclient.cli import options
from specclient.cli.terminal import EXIT_FAILED, guarded, stdout, write_json

if TYPE_CHECKING:
    from specclient.economics.sizing import Memory, ModelShape

_SHAPE = "A folder, a GGUF file, a known name, or parameters=…,layers=…,kv_heads=…,head_dim=…"
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


@guarded
def plan(
    target_model: Annotated[str, typer.Option("--target-model", help=f"The model that verifies. {_SHAPE}.")],
    draft_model: Annotated[
        str | None, typer.Option("--draft-model", help="The model that drafts; none: drafts from text.")
    ] = None,
    acceptance: Annotated[
        float,
        typer.Option("--acceptance", "-a", min=0, max=1, help="Chance of a draft token to be accepted."),
    ] = 0.8,
    gamma: Annotated[
        int | None, typer.Option("--gamma", "-g", min=0, max=4096, help="Draft length (default: the best).")
    ] = None,
    cost_ratio: Annotated[
        float | None,
        typer.Option("--cost-ratio", "-c", min=0, help="Draft's time for a token over the target's."),
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Load the models and measure the costs here.")
    ] = False,
    context: Annotated[int, typer.Option("--context", min=1, help="Tokens of one request.")] = 4096,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Requests at once.")] = 1,
    memory: Annotated[
        str | None,
        typer.Option("--memory", help="Memory there is, as 24GB or 16GiB (default: what is free)."),
    ] = None,
    dtype: Annotated[str, typer.Option("--dtype", help="float32, bfloat16 or int8.")] = "bfloat16",
    as_json: options.Json = False,
) -> None:
    """Reckon the gain of speculation from acceptance and costs, and the memory it takes.

    Exit 1 where it does not fit into --memory.
    """
    from specclient.economics.sizing import WEIGHT_BYTES, memory_needed, shape_of
    from specclient.errors import ConfigError

    if cost_ratio is not None and not math.isfinite(cost_ratio):
        raise ConfigError(f"--cost-ratio is a finite number, not {cost_ratio}.")
    if dtype not in WEIGHT_BYTES:
        raise ConfigError(f"--dtype is one of {', '.join(WEIGHT_BYTES)}, not {dtype!r}.")
    target = shape_of(target_model)
    draft = shape_of(draft_model) if draft_model else None
    costs = _Costs(target, draft, cost_ratio)
    if measure:
        costs.measure(target_model, draft_model, dtype)
    rows, best = costs.table(acceptance, gamma)
    needed = memory_needed(target, draft, context=context, concurrency=concurrency, dtype=dtype)
    there = _bytes(memory) if memory else _free_memory()
    result: dict[str, Any] = {
        "acceptance": acceptance,
        "cost_ratio": costs.ratio,
        "cost_source": costs.source,
        "verify_cost_source": "assumed" if costs.curve is None else "measured here",
        "draft_lengths": rows,
        "best": best,
        "memory": _memory(needed, there, context, concurrency, target.max_context),
    }
    if as_json:
        write_json(result)
    else:
        _print(result, target, draft)
    if memory and not result["memory"]["fits"]:
        raise typer.Exit(EXIT_FAILED)


class _Costs:
    """The cost ratio of draft and target, and of longer passes, with where each came from."""

    def __init__(self, target: ModelShape, draft: ModelShape | None, ratio: float | None) -> None:
        self.curve: Any = None
        if ratio is not None:
            self.ratio, self.source = ratio, "given"
        elif draft is None:
            self.ratio, self.source = 0.0, "drafts from text cost no pass"
        else:
            # Decoding one token reads every weight once, so that time goes with their number.
            self.ratio = draft.parameters / target.parameters
            self.source = "estimated from the numbers of parameters"

    def measure(self, target_model: str, draft_model: str | None, dtype: str) -> None:
        """Replace the estimates by this machine's own times."""
        self.curve = _measured(target_model, dtype)
        if draft_model is not None:
            self.ratio = _measured(draft_model, dtype).seconds(1, 0) / self.curve.seconds(1, 0)
        self.source = "measured here"

    def verify(self, gamma: int) -> float:
        """The time of a pass over γ + 1 tokens, in passes over one."""
        if self.curve is None:
            return 1.0
        # A longer pass is never cheaper: what looks so is the noise of the measurement.
        return max(1.0, float(self.curve.seconds(gamma + 1, 0) / self.curve.seconds(1, 0)))

    def table(self, acceptance: float, gamma: int | None) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Rows over draft lengths, and the row of the length asked for or the best one."""
        from specclient.economics.speculation import best_gamma, expected_tokens, gain

        def row(length: int) -> dict[str, Any]:
            return {
                "gamma": length,
                "tokens_per_pass": expected_tokens(acceptance, length),
                "verify_cost": self.verify(length),
                "gain": gain(acceptance, length, self.ratio, self.verify(length)),
            }

        length = gamma if gamma is not None else best_gamma(acceptance, self.ratio, self.verify)[0]
        shown = sorted({1, 2, 3, 4, 6, 8, 12, 16, 32} | ({length} if length or gamma is not None else set()))
        return [row(each) for each in shown], row(length)


def _measured(model: str, dtype: str) -> Any:
    from specclient.cli.progress import EngineProgress
    from specclient.core.engines import check_installed, made_ready
    from specclient.errors import ConfigError

    if "=" in model:
        raise ConfigError("--measure needs a model that can be loaded, not its numbers.")
    check_installed()
    from specclient_engine.measuring import measure_cost
    from specclient_engine.models import locate
    from specclient_engine.runner import load_runner

    with made_ready(), EngineProgress() as progress:
        folder = locate(model, progress).path
        return measure_cost(
            load_runner(folder, dtype=dtype, device="auto", max_context=None, progress=progress)  # type: ignore[arg-type]
        )


def _memory(
    needed: Memory, there: int | None, context: int, concurrency: int, limit: int | None
) -> dict[str, Any]:
    longest = None if there is None else needed.most_context(there, concurrency)
    return {
        "context": context,
        "concurrency": concurrency,
        "target_bytes": needed.target,
        "draft_bytes": needed.draft,
        "cache_bytes": needed.cache,
        "total_bytes": needed.total,
        "available_bytes": there,
        "fits": None if there is None else needed.total <= there,
        "most_context": longest if longest is None or limit is None else min(longest, limit),
        "most_requests": None if there is None else needed.most_requests(there, context),
    }


def _bytes(text: str) -> int:
    from specclient.errors import ConfigError

    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-zA-Z]+)\s*", text)
    if match is None or match[2].upper() not in _UNITS:
        raise ConfigError(f"--memory takes a size as 24GB or 16GiB, not {text!r}.")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def _free_memory() -> int | None:
    """Memory that this machine could give now, or None where it does not tell."""
    try:
        with open("/proc/meminfo") as file:
            lines = dict(line.split(":", 1) for line in file)
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None


def _print(result: dict[str, Any], target: ModelShape, draft: ModelShape | None) -> None:
    from rich.table import Table

    console = stdout()
    by = f"drafted by {draft.name}" if draft else "drafted from text"
    console.print(f"{target.name}, {by}, acceptance {result['acceptance']:g}", markup=False)
    console.print(
        f"cost of a draft token {result['cost_ratio']:.3g} passes ({result['cost_source']})", markup=False
    )
    if result["verify_cost_source"] == "assumed":
        console.print("cost of the pass: not measured, taken for one token's; --measure measures it here")
    table = Table(box=None, pad_edge=False)
    for title in ("draft length", "tokens a pass", "cost of the pass", "times faster"):
        table.add_column(title, justify="right")
    for row in result["draft_lengths"]:
        mark = "bold" if row["gamma"] == result["best"]["gamma"] else ""
        figures = (f"{row[name]:.2f}" for name in ("tokens_per_pass", "verify_cost", "gain"))
        table.add_row(str(row["gamma"]), *figures, style=mark)
    console.print(table)
    if all(row["gain"] <= 1 for row in result["draft_lengths"]):
        console.print("No draft length gains anything here.")
    for line in _memory_lines(result["memory"], with_draft=draft is not None):
        console.print(line, markup=False)


def _memory_lines(memory: dict[str, Any], *, with_draft: bool) -> list[str]:
    """What is needed, and whether it fits, for people."""
    weights = memory["target_bytes"] + memory["draft_bytes"]
    lines = [
        f"memory: {_gb(memory['target_bytes'])} target, "
        + (f"{_gb(memory['draft_bytes'])} draft, " if with_draft else "")
        + f"{_gb(memory['cache_bytes'])} cache for {memory['concurrency']} x {memory['context']:,} tokens, "
        f"{_gb(memory['total_bytes'])} together"
    ]
    there = memory["available_bytes"]
    if there is not None and weights >= there:
        lines.append(f"does not fit into {_gb(there)}: the weights alone take {_gb(weights)}")
    elif there is not None:
        lines.append(
            f"{'fits' if memory['fits'] else 'does not fit'} into {_gb(there)}: at most "
            f"{memory['most_context']:,} tokens each, or {memory['most_requests']:,} requests of this length"
        )
    return lines


def _gb(size: int) -> str:
    return f"{size / 1e9:,.2f} GB"
