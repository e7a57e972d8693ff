"""Puts an engine together from a model's files: runner, tokenizer, template, drafting."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from specclient_engine.api import CostModel, Progress, ProgressCallback, Proposer
from specclient_engine.chat import ChatTemplate
from specclient_engine.cost import CostCurve
from specclient_engine.draft_length import DraftLengthPolicy
from specclient_engine.drafters.fallback import FallbackProposer
from specclient_engine.drafters.loading import Drafter, find_drafter, load_drafter
from specclient_engine.errors import EngineError, ModelCorrupt
from specclient_engine.measuring import measure_cost
from specclient_engine.models import locate
from specclient_engine.proposers import AcceptanceTable, build_proposer
from specclient_engine.runner import Dtype, load_runner
from specclient_engine.runner.base import ModelRunner
from specclient_engine.runner.memory import return_freed_memory, return_library_pages
from specclient_engine.scheduler import SpeculationTools
from specclient_engine.timings import kept_timings
from specclient_engine.tokenizer import FolderTokenizer

if TYPE_CHECKING:
    from specclient_engine.request_state import RequestState

_MAX_ROWS = 256
"""Rows of one pass over all its drafts: their logits, over a large vocabulary, are the workspace."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What an engine is made of."""

    runner: ModelRunner
    tokenizer: FolderTokenizer
    template: ChatTemplate
    speculation: SpeculationTools


@contextmanager
def _no_collection() -> Iterator[None]:
    """No search for garbage: what is loaded stays, and to look through all of it as it grows takes a tenth of
    the time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@_no_collection()
def load_parts(
    model: str | Path,
    *,
    dtype: Dtype,
    device: str,
    draft_model: str | Path | None,
    max_context: int | None,
    progress: ProgressCallback,
) -> Parts:
    """Finds and loads everything that `Engine.load` describes."""

    def load(where: Path, *, plain: bool = False) -> ModelRunner:
        with _readable(where):
            return load_runner(
                where, dtype=dtype, device=device, max_context=max_context, progress=progress, plain=plain
            )

    folder = locate(model, progress).path
    source = find_drafter(draft_model, progress) if draft_model is not None else None
    with _readable(folder):
        tokenizer, template = FolderTokenizer(folder), ChatTemplate(folder)
    progress(Progress("load", folder.name, 0, 1, "steps"))
    runner = load(folder, plain=source is not None and source.is_head)
    progress(Progress("load", folder.name, 1, 1, "steps"))
    progress(Progress("measure", folder.name, 0, 1, "steps"))
    cost = measure_cost(runner, kept=kept_timings(runner)) if runner.can_roll_back else CostCurve([1], [1.0])
    progress(Progress("measure", folder.name, 1, 1, "steps"))
    drafter = load_drafter(source, runner, tokenizer, cost, load) if source is not None else None
    return_freed_memory()
    return_library_pages()
    return Parts(runner, tokenizer, template, speculation_tools(tokenizer, cost, drafter))


@contextmanager
def _readable(folder: Path) -> Iterator[None]:
    """What the libraries say of broken files, each in its own way, as one error that names the folder."""
    try:
        yield
    except (EngineError, ImportError, MemoryError):
        raise
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        raise ModelCorrupt(
            f"{folder} cannot be loaded as a model ({type(error).__name__}: {lines[0]}): fetch it again, or "
            "mend its config.json"
        ) from error


def speculation_tools(
    tokenizer: FolderTokenizer, cost: CostModel, drafter: Drafter | None = None
) -> SpeculationTools:
    """Drafts from known text and repetition, and from `drafter` where they have nothing good.

    What is learnt about them outlives the request.
    """
    table = AcceptanceTable()

    def proposer_for(request: RequestState) -> Proposer:
        asked = request.request
        known = build_proposer(
            request.prompt, asked.predictions, tokenizer, table=table, salt=asked.cache_salt
        )
        request.account.prediction_tokens = known.known_tokens
        if drafter is None:
            return known
        try:
            return FallbackProposer(known, drafter.proposer_for(request))
        except EngineError as error:
            request.account.draft_model_inactive = str(error)
            return known

    policy = DraftLengthPolicy(cost, max_rows=_MAX_ROWS)
    if drafter is None:
        return SpeculationTools(proposer_for, policy, cost)
    return SpeculationTools(proposer_for, policy, cost, drafter.release, drafter.on_hidden)
