"""A model's own multi-token-prediction layers (DeepSeek-V3 report, arXiv 2412.19437).

Layer k reads the state that layer k - 1 made at a position (layer 0: the target's last) beside the token
k + 1 further on, and guesses the token after that one. transformers holds the layers; the loop over
them is ours, because the engine keeps its caches by length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import PreTrainedModel

from specclient_engine.drafters.hidden import Choose
from specclient_engine.errors import UnsupportedRequest
from specclient_engine.runner.plain_cache import RollbackLayer


class MtpHead:
    """The layers of `main`, read from its own checkpoint unless `layers` are given."""

    source = "mtp"
    states: Sequence[int] = (-1,)

    def __init__(self, main: PreTrainedModel, layers: Any = None) -> None:
        try:
            from transformers.cache_utils import MtpCache
            from transformers.modeling_layers import MtpModel
        except ImportError as error:
            raise UnsupportedRequest("MTP layers need a newer transformers; upgrade it") from error
        if getattr(main.config.get_text_config(), "num_mtp_layers", None) is None:
            raise UnsupportedRequest("this model has no MTP layers; leave draft_model out or name a model")
        self.model = (layers if layers is not None else MtpModel.from_pretrained(main)).eval()
        self._cache_class = MtpCache

    def open(self, room: int) -> _MtpHeadCache:
        """A cache for a text of at most `room` tokens."""
        cache = self._cache_class(config=self.model.config)
        layers = [RollbackLayer(room) for _ in self.model.layers]
        cache.layers = [*layers]
        return _MtpHeadCache(self.model, cache, layers)


class _MtpHeadCache:
    """The caches of the layers.

    The text is confirmed up to position `end`. Layer k can then keep the positions before `end - k`: its
    token for a later one is not known yet. The state of position `end - k` itself is right already and
    waits for that token. Everything further on rests on drafted tokens and is rolled back.
    """

    def __init__(self, model: Any, cache: Any, layers: list[RollbackLayer]) -> None:
        self._model = model
        self._cache = cache
        self._layers = layers
        self._waiting: list[torch.Tensor | None] = [None] * len(layers)

    def draft(self, tokens: Sequence[int], hidden: torch.Tensor, choose: Choose) -> int:
        """As `HeadCache.draft`. At most one token a layer; all layers read what was confirmed."""
        text = list(tokens)
        end = len(tokens) - 1
        states = hidden
        drafting = True
        for depth, layer in enumerate(self._layers):
            waiting = self._waiting[depth]
            if waiting is not None:
                states = torch.cat([waiting, states])
            first = layer.length
            kept = max(first, end - depth)
            self._waiting[depth] = states[kept - first : max(0, end - depth + 1 - first)].clone()
            states = self._read(depth, states[: max(0, len(text) - 1 - depth - first)], text)
            layer.roll_back(min(kept, layer.length))
            drafting = drafting and len(states) > 0
            token = choose(self._model._project_to_logits(states[-1:])[0]) if drafting else None
            if token is None:
                drafting = False
            else:
                text.append(token)
        return end

    def _read(self, depth: int, states: torch.Tensor, text: Sequence[int]) -> torch.Tensor:
        """One pass of a layer behind what it has kept: the states that it makes."""
        if not len(states):
            return states
        ahead = self._layers[depth].length + depth + 1
        ids = torch.tensor([list(text[ahead : ahead + len(states)])], device=states.device)
        positions = torch.arange(ahead, ahead + len(states), device=states.device)[None]
        made: torch.Tensor = self._model.forward_layer(
            depth, states[None], positions, self._cache, input_ids=ids
        )
        return made[0]
