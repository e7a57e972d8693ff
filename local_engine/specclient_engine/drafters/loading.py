"""Finds out what kind of drafter was named, and loads it beside the target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from specclient_engine.api import CostModel, ProgressCallback, Proposer
from specclient_engine.drafters.draft_model import SOURCE, DraftModel
from specclient_engine.drafters.economy import Economy
from specclient_engine.errors import UnsupportedRequest
from specclient_engine.models import locate
from specclient_engine.runner.base import ModelRunner
from specclient_engine.tokenizer import FolderTokenizer, read_json

if TYPE_CHECKING:
    import torch

    from specclient_engine.drafters.hidden import Head, HeadDrafter
    from specclient_engine.request_state import RequestState
    from specclient_engine.runner.plain import PlainRunner

MTP = "mtp"
"""Names the model's own multi-token-prediction layers where a draft model is asked for."""


class Drafter(Protocol):
    """Makes the proposers of the requests that a model drafts for."""

    @property
    def on_hidden(self) -> Callable[[RequestState, int, torch.Tensor], None] | None:
        """Takes what the target reveals; None: this drafter reads no hidden states."""
        ...

    def proposer_for(self, state: RequestState) -> Proposer:
        """A proposer with a cache of its own. Raises EngineError when there is no room for one."""
        ...

    def release(self, state: RequestState) -> None:
        """Frees what the request's proposer held."""
        ...


@dataclass(frozen=True, slots=True)
class DraftSource:
    """A drafter by name, not loaded yet. `folder` is None for the model's own layers."""

    kind: Literal["model", "eagle3", "mtp"]
    folder: Path | None

    @property
    def is_head(self) -> bool:
        """Whether it reads the target's hidden states, which only the plain path shows."""
        return self.kind != "model"


def find_drafter(name: str | Path, progress: ProgressCallback) -> DraftSource:
    """What `name` is: "mtp", the folder of an EAGLE-3 head, or a model as `locate` takes it."""
    if str(name) == MTP:
        return DraftSource("mtp", None)
    folder = Path(name).expanduser()
    config = read_json(folder / "config.json")
    if config.get("speculators_model_type") == "eagle3" or "draft_vocab_size" in config:
        return DraftSource("eagle3", folder)
    return DraftSource("model", locate(name, progress).path)


def load_drafter(
    source: DraftSource,
    target: ModelRunner,
    tokenizer: FolderTokenizer,
    cost: CostModel,
    load: Callable[[Path], ModelRunner],
) -> Drafter:
    """The drafter beside `target`, whose passes cost `cost`. `load` makes the runner of a draft model.

    Raises UnsupportedRequest when it cannot draft for the target.
    """
    if source.is_head:
        return load_head(source, cast("PlainRunner", target), cost)
    assert source.folder is not None
    runner = load(source.folder)
    check_draft_model(source.folder, runner, tokenizer)
    return DraftModel(runner, Economy(SOURCE, cost), tokenizer.vocab_size)


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


def load_head(source: DraftSource, runner: PlainRunner, cost: CostModel) -> HeadDrafter:
    """The head on `runner`, which from now on reveals the states that it reads."""
    from specclient_engine.drafters.eagle import EagleHead
    from specclient_engine.drafters.hidden import HeadDrafter
    from specclient_engine.drafters.mtp import MtpHead

    model: Any = runner.model
    head: Head
    if source.folder is None:
        head = MtpHead(model)
    else:
        layers = model.config.get_text_config(decoder=True).num_hidden_layers
        head = EagleHead.load(source.folder, target_layers=layers, embeddings=model.get_input_embeddings())
    runner.reveal(head.states)
    return HeadDrafter(head, Economy(head.source, cost))
