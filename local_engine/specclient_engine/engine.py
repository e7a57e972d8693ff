"""The engine as its users see it: load a model, submit requests, close."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from operator import index
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from specclient_engine.api import GenerationRequest, Progress, ProgressCallback, SamplingParams, Tokenizer
from specclient_engine.errors import ContextTooLong, EngineClosed, NotEnoughMemory, UnsupportedRequest
from specclient_engine.handle import Handle
from specclient_engine.request_state import RequestState, generation_limit
from specclient_engine.scheduler import Scheduler, SpeculationTools

if TYPE_CHECKING:
    from specclient_engine.chat import ChatTemplate
    from specclient_engine.runner import Dtype
    from specclient_engine.runner.base import ModelRunner
    from specclient_engine.tokenizer import FolderTokenizer

_CHUNK_ON_CPU = 256
_CHUNK_ON_DEVICE = 2048
_FINITE = (-1e30, 1e30)
"""Single precision holds these, and the sums that logits make with them."""


class Engine:
    """One loaded model and the thread that runs it. Safe to use from any number of threads.

    `load` is the way to make one; the constructor takes the parts, for those who bring their own.
    """

    def __init__(
        self,
        runner: ModelRunner,
        tokenizer: Tokenizer,
        speculation: SpeculationTools,
        *,
        template: ChatTemplate | None = None,
        prefill_chunk: int | None = None,
    ) -> None:
        self.runner = runner
        self.tokenizer = tokenizer
        self._template = template
        if prefill_chunk is None:
            prefill_chunk = _CHUNK_ON_CPU if runner.device.type == "cpu" else _CHUNK_ON_DEVICE
        self._scheduler = Scheduler(runner, speculation, prefill_chunk=prefill_chunk)
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._scheduler.run, name="specclient-engine", daemon=True)
        self._thread.start()
        # Runs at garbage collection and at interpreter exit: the thread must not outlive the libraries.
        self._finalizer = weakref.finalize(self, _stop, self._scheduler, self._thread)

    @classmethod
    def load(
        cls,
        model: str | Path,
        *,
        dtype: Dtype = "auto",
        device: str = "auto",
        draft_model: str | Path | None = None,
        max_context: int | None = None,
        progress: ProgressCallback | None = None,
    ) -> Self:
        """Loads `model`: a known name, a folder, a GGUF file or a hub id.

        `max_context` caps the positions of a sequence (None: the model's own). `draft_model` drafts where
        known text and repetition do not: a smaller model with the same vocabulary, the folder of an
        EAGLE-3 head, or "mtp" for the model's own multi-token-prediction layers.
        Raises the engine's errors for what cannot be found, read or fitted.
        """
        from specclient_engine.loading import load_parts

        parts = load_parts(
            model,
            dtype=dtype,
            device=device,
            draft_model=draft_model,
            max_context=max_context,
            progress=progress if progress is not None else _silent,
        )
        return cls(parts.runner, parts.tokenizer, parts.speculation, template=parts.template)

    @property
    def max_context(self) -> int:
        """Most tokens of prompt and answer together."""
        return min(self.runner.max_context, self.runner.token_capacity)

    def chat_prompt(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None = None
    ) -> list[int]:
        """Ids of the prompt for the assistant's next turn, by the model's own template."""
        if self._template is None:
            raise UnsupportedRequest("this engine was built without a chat template; use a loaded model")
        return self._folder_tokenizer().encode_prompt(self._template.render(messages, tools))

    def text_prompt(self, text: str) -> list[int]:
        """Ids of a plain text to continue, with what the tokenizer puts before a text (BOS)."""
        return self._folder_tokenizer().encode_prompt(text, add_special_tokens=True)

    def submit(self, request: GenerationRequest) -> Handle:
        """Queues a request and returns at once.

        Raises ContextTooLong or NotEnoughMemory, with the figures, for what can never run, and
        UnsupportedRequest for what makes no sense. EngineClosed behind `close`, and in a forked process.
        """
        if os.getpid() != self._process:
            raise EngineClosed(
                "the engine's thread stayed in the process that loaded it; load it in this one"
            )
        _check(request, self.runner.vocab_size)
        limit = generation_limit(request.prompt_ids, request.max_tokens, self.max_context)
        if limit < 1:
            self._refuse(len(request.prompt_ids))
        state = RequestState(request, self.tokenizer, limit)
        handle = Handle(state.mailbox, self)
        self._scheduler.submit(state)
        return handle

    def close(self) -> None:
        """Ends every request with EngineClosed and frees the thread. Does nothing the second time."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _folder_tokenizer(self) -> FolderTokenizer:
        from specclient_engine.tokenizer import FolderTokenizer

        if not isinstance(self.tokenizer, FolderTokenizer):
            raise UnsupportedRequest("this engine was built without a model folder; give prompt ids")
        return self.tokenizer

    def _refuse(self, prompt: int) -> None:
        if prompt >= self.runner.max_context:
            raise ContextTooLong(
                f"the prompt has {prompt} tokens and the model's context is {self.runner.max_context}: "
                "shorten the prompt or use a model with a longer context"
            )
        raise NotEnoughMemory(
            f"the prompt has {prompt} tokens and the memory left at load holds a cache of "
            f"{self.runner.token_capacity}: shorten the prompt, or free memory and load the model again"
        )


def _check(request: GenerationRequest, vocab_size: int) -> None:
    """Refuses what no pass could answer."""
    sampling = request.sampling
    if not len(request.prompt_ids):
        raise UnsupportedRequest("the prompt is empty; give at least one token")
    if request.max_tokens is not None:
        _check_number("max_tokens", request.max_tokens, whole=True)
        if request.max_tokens < 1:
            raise UnsupportedRequest(f"max_tokens is {request.max_tokens}; it must be at least 1")
    for kind, ids in (("prompt", request.prompt_ids), ("logit_bias", sampling.logit_bias)):
        _check_ids(kind, ids, vocab_size)
    for kind, texts in (("stop", request.stop), ("predictions", request.predictions)):
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise UnsupportedRequest(f"{kind} is a list of strings, also where there is only one")
    if request.speculation not in ("auto", "off"):
        raise UnsupportedRequest(f"speculation is {request.speculation!r}; it must be 'auto' or 'off'")
    if request.cache_salt is not None and not (isinstance(request.cache_salt, str) and request.cache_salt):
        raise UnsupportedRequest("cache_salt is a string that is not empty, or None")
    _check_ranges(sampling)


def _check_ids(kind: str, ids: Iterable[int], vocab_size: int) -> None:
    try:
        fit = all(0 <= index(token) < vocab_size for token in ids)
    except TypeError as error:
        raise UnsupportedRequest(f"{kind} holds something that is no token id ({error})") from error
    if not fit:
        raise UnsupportedRequest(f"{kind} has token ids outside the model's vocabulary of {vocab_size}")


def _check_ranges(sampling: SamplingParams) -> None:
    """A value that no sampler can use would fail a pass, and a pass is shared with other requests."""
    ranges = {
        "temperature": (0.0, float("inf")),
        "top_p": (0.0, 1.0),
        "min_p": (0.0, 1.0),
        "top_k": (0, float("inf")),
        "presence_penalty": _FINITE,
        "frequency_penalty": _FINITE,
        "repetition_penalty": _FINITE,
    }
    for name, (low, high) in ranges.items():
        value = getattr(sampling, name)
        _check_number(name, value, whole=name == "top_k")
        if not low <= value <= high:
            wanted = f"be {low} or more" if high == float("inf") else f"lie between {low} and {high}"
            raise UnsupportedRequest(f"{name} is {value}; it must {wanted}")
    if sampling.repetition_penalty <= 0.0:
        raise UnsupportedRequest(f"repetition_penalty is {sampling.repetition_penalty}; it must be above 0")
    for bias in sampling.logit_bias.values():
        _check_number("logit_bias", bias)
        if not abs(bias) <= _FINITE[1]:
            raise UnsupportedRequest("logit_bias holds a value that is no finite number")
    for name in ("seed", "logprobs"):
        if getattr(sampling, name) is not None:
            _check_number(name, getattr(sampling, name), whole=True)
    if (sampling.logprobs or 0) < 0:
        raise UnsupportedRequest(f"logprobs is {sampling.logprobs}; it must be at least 0")


def _check_number(name: str, value: object, *, whole: bool = False) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral if whole else Real):
        kind = "a whole number" if whole else "a number"
        raise UnsupportedRequest(f"{name} must be {kind}, not {type(value).__name__}")


def _stop(scheduler: Scheduler, thread: threading.Thread) -> None:
    scheduler.close()
    if thread is not threading.current_thread():
        thread.join()


def _silent(_progress: Progress) -> None:
    """Nobody watches."""
