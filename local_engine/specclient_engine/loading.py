"""Puts an engine together from a model's files: runner, tokenizer, template, drafting."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from specclient_engine.api import CostModel, Progress, ProgressCallback, Proposer
from specclient_engine.chat import ChatTemplate
from specclient_engine.cost import CostCurve
from specclient_engine.draft_length import DraftLengthPolicy
from specclient_engine.drafters.draft_model import SOURCE, DraftModel
from specclient_engine.drafters.economy import Economy
from specclient_engine.drafters.fallback import FallbackProposer
from specclient_engine.errors import EngineError, UnsupportedRequest
from specclient_engine.measuring import measure_cost
from specclient_engine.models import locate
from specclient_engine.proposers import AcceptanceTable, build_proposer
from specclient_engine.runner import Dtype, load_runner
from specclient_engine.runner.base import ModelRunner
from specclient_engine.scheduler import SpeculationTools
from specclient_engine.tokenizer import FolderTokenizer

if TYPE_CHECKING:
    from specclient_engine.request_state import RequestState


@dataclass(frozen=True, slots=True)
class Parts:
    """What an engine is made of."""

    runner: ModelRunner
    tokenizer: FolderTokenizer
    template: ChatTemplate
    speculation: SpeculationTools


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
    folder = locate(model, progress).path
    tokenizer = FolderTokenizer(folder)
    progress(Progress("load", folder.name, 0, 1, "steps"))
    runner = load_runner(folder, dtype=dtype, device=device, max_context=max_context, progress=progress)
    progress(Progress("load", folder.name, 1, 1, "steps"))
    progress(Progress("measure", folder.name, 0, 1, "steps"))
    cost = measure_cost(runner) if runner.can_roll_back else CostCurve([1], [1.0])
    progress(Progress("measure", folder.name, 1, 1, "steps"))
    drafter = None
    if draft_model is not None:
        draft_folder = locate(draft_model, progress).path
        draft_runner = load_runner(
            draft_folder, dtype=dtype, device=device, max_context=max_context, progress=progress
        )
        check_draft_model(draft_folder, draft_runner, tokenizer)
        drafter = DraftModel(draft_runner, Economy(SOURCE, cost), tokenizer.vocab_size)
    return Parts(runner, tokenizer, ChatTemplate(folder), speculation_tools(tokenizer, cost, drafter))


def check_draft_model(folder: Path, runner: ModelRunner, target: FolderTokenizer) -> None:
    """Raises UnsupportedRequest when the model in `folder` cannot draft for `target`."""
    if not target.same_vocabulary(FolderTokenizer(folder)):
        raise UnsupportedRequest(
            f"the draft model in {folder} has another vocabulary than the model; use one of the same family"
        )
    if not runner.can_roll_back:
        raise UnsupportedRequest(
            f"the draft model in {folder} cannot take back a wrong draft: {runner.rollback_reason}"
        )


def speculation_tools(
    tokenizer: FolderTokenizer, cost: CostModel, drafter: DraftModel | None = None
) -> SpeculationTools:
    """Drafts from known text and repetition, and from `drafter` where they have nothing good.

    What is learnt about them outlives the request.
    """
    table = AcceptanceTable()

    def proposer_for(request: RequestState) -> Proposer:
        known = build_proposer(request.prompt, request.request.predictions, tokenizer, table=table)
        if drafter is None:
            return known
        try:
            return FallbackProposer(known, drafter.proposer_for(request))
        except EngineError as error:
            request.account.draft_model_inactive = str(error)
            return known

    policy = DraftLengthPolicy(cost)
    if drafter is None:
        return SpeculationTools(proposer_for, policy, cost)
    return SpeculationTools(proposer_for, policy, cost, drafter.release)
