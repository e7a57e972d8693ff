"""OpenAI's request as the engine's: every parameter is used, or refused by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from specclient.core.asked import fault_in_count, fault_in_messages, half_a_pair
from specclient.core.plan import Plan
from specclient.errors import BadRequestError

if TYPE_CHECKING:
    from specclient_engine import GenerationRequest, Step

_WITHOUT_MEANING_HERE = frozenset(
    [
        "model",
        "messages",
        "prompt",
        "stream",
        "stream_options",
        "prediction",
        "metadata",
        "user",
        "safety_identifier",
        "store",
        "service_tier",
        "prompt_cache_key",
        "prompt_cache_retention",
        "parallel_tool_calls",
        "extra_headers",
    ]
)
"""Read elsewhere, or about a hosted service only: their absence changes no output."""

RANGES: dict[str, tuple[float, float]] = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
}
"""What OpenAI documents. The engine itself would take more, but a client should not learn to rely on it."""
_BIASES = (-100, 100)
_MOST_LOGPROBS = {"top_logprobs": 20, "logprobs": 5}
"""Documented too: of chats and of text completions."""

_SAMPLING = ("temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "seed")
_USED = frozenset(
    [
        "max_tokens",
        "max_completion_tokens",
        "stop",
        "logit_bias",
        "logprobs",
        "top_logprobs",
        "n",
        "tools",
        "tool_choice",
        "response_format",
        "speculation",
        "cache_salt",
        "ignore_eos",
        "repetition_penalty",
        "echo",
        "best_of",
        "suffix",
    ]
) | set(_SAMPLING)

PARAMETERS = _USED | _WITHOUT_MEANING_HERE
"""Every parameter that is not refused by its name."""


@dataclass(frozen=True, slots=True)
class LocalRequest:
    """The engine's request, and what the answer's form depends on."""

    generation: GenerationRequest
    chat: bool
    model: str
    include_usage: bool
    tokenizer: Any = None

    def logprobs_of(self, step: Step) -> list[dict[str, Any]] | None:
        """A step's log-probabilities in OpenAI's form; None where none were asked for."""
        if not step.logprobs:
            return None
        return [
            {**self._entry(chosen), "top_logprobs": [self._entry(other) for other in others]}
            for chosen, others in step.logprobs
        ]

    def _entry(self, logprob: Any) -> dict[str, Any]:
        raw = self.tokenizer.token_bytes(logprob.token_id)
        return {"token": raw.decode("utf-8", "replace"), "logprob": logprob.logprob, "bytes": list(raw)}


def read_request(plan: Plan, engine: Any) -> LocalRequest:
    """Raises BadRequestError for what the engine cannot do, or for a value that is none."""
    from specclient_engine import GenerationRequest, SamplingParams

    body = plan.body
    _refuse(body)
    chat = plan.facts.api == "chat"
    known = plan.prediction if plan.outcome == "local" else None
    sampling: dict[str, Any] = {name: body[name] for name in _SAMPLING if body.get(name) is not None}
    if body.get("repetition_penalty") is not None:
        sampling["repetition_penalty"] = body["repetition_penalty"]
    if body.get("logit_bias"):
        sampling["logit_bias"] = _bias(body["logit_bias"])
    wanted = _logprobs(body, chat=chat)
    if wanted is not None:
        sampling["logprobs"] = wanted
    try:
        generation = GenerationRequest(
            prompt_ids=_prompt(body, engine, chat=chat),
            predictions=() if known is None else (known.text,),
            max_tokens=_limit(body),
            stop=_stop(body.get("stop")),
            sampling=SamplingParams(**sampling),
            speculation=_speculation(body.get("speculation")),
            ignore_eos=bool(body.get("ignore_eos", False)),
            cache_salt=_salt(body.get("cache_salt")),
        )
    except (TypeError, ValueError) as error:
        raise _bad(f"The embedded engine cannot read the request: {error}.", None) from error
    options = body.get("stream_options")
    return LocalRequest(
        generation,
        chat,
        str(body.get("model") or plan.facts.model or "local"),
        include_usage=isinstance(options, Mapping) and bool(options.get("include_usage")),
        tokenizer=getattr(engine, "tokenizer", None),
    )


def _refuse(body: Mapping[str, Any]) -> None:
    for key, value in body.items():
        if key not in PARAMETERS and value is not None:
            raise _bad(f"The embedded engine does not know the parameter {key!r}.", key)
    for key in ("n", "best_of"):
        if (said := fault_in_count(key, body.get(key))) is not None:
            raise _bad(said, key)
        if body.get(key) not in (None, 1):
            raise _bad(f"The embedded engine makes one answer a request; send it {body[key]} times.", key)
    for key, (low, high) in RANGES.items():
        value = body.get(key)
        if value is not None and not _within(value, low, high):
            raise _bad(f"{key} is a number from {low} to {high}, not {value!r}.", key)
    form = body.get("response_format")
    if form is not None and not (isinstance(form, Mapping) and form.get("type") == "text"):
        raise _bad(
            "The embedded engine has no structured output yet: leave response_format out.", "response_format"
        )
    if body.get("tool_choice") not in (None, "auto", "none"):
        raise _bad("The embedded engine cannot force a tool call: leave tool_choice at auto.", "tool_choice")
    for key in ("echo", "suffix"):
        if body.get(key):
            raise _bad(f"The embedded engine does not offer {key!r}.", key)
    for key in ("messages", "prompt", "stop", "tools"):
        if (said := half_a_pair({key: body.get(key)})) is not None:
            raise _bad(said, key)


def _prompt(body: Mapping[str, Any], engine: Any, *, chat: bool) -> Sequence[int]:
    from specclient.core.engines import translated

    with translated():
        if chat:
            tools = None if body.get("tool_choice") == "none" else body.get("tools")
            messages = body.get("messages")
            if (said := fault_in_messages(messages)) is not None:
                raise _bad(said, "messages")
            chat_ids: Sequence[int] = engine.chat_prompt(
                [_message(message) for message in messages or ()],
                None if tools is None else _list_of_objects(tools, "tools"),
            )
            return chat_ids
        prompt = body.get("prompt")
        if isinstance(prompt, list) and prompt and all(isinstance(item, int) for item in prompt):
            return prompt
        if isinstance(prompt, list) and len(prompt) == 1:
            prompt = prompt[0]
        if not isinstance(prompt, str):
            raise _bad("The embedded engine takes one prompt, a string or a list of token ids.", "prompt")
        text_ids: Sequence[int] = engine.text_prompt(prompt)
        return text_ids


def _list_of_objects(value: Any, name: str) -> list[Mapping[str, Any]]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, Mapping) for item in value):
        raise _bad(f"{name} is a list of objects.", name)
    return list(value)


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    """Text parts become one text, and no content an empty one: chat templates of text models take strings."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return {**message, "content": content or ""}
    if not isinstance(content, list):
        raise _bad(
            f"A message's content is text or a list of parts, not {type(content).__name__}.", "messages"
        )
    texts = [
        part["text"]
        for part in content
        if isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str)
    ]
    if len(texts) < len(content):
        raise _bad("The embedded engine reads text only: a message holds a part that is none.", "messages")
    return {**message, "content": "".join(texts)}


def _limit(body: Mapping[str, Any]) -> int | None:
    for key in ("max_completion_tokens", "max_tokens"):
        value = body.get(key)
        if value is not None:
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise _bad(f"{key} is a whole number of at least 1.", key)
            return value
    return None


def _stop(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, (list, tuple)) or not all(isinstance(text, str) for text in value):
        raise _bad("stop is a string or a list of strings.", "stop")
    return tuple(value)


def _within(value: Any, low: float, high: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high


def _bias(value: Any) -> dict[int, float]:
    try:
        biases = {int(token): float(bias) for token, bias in value.items()}
    except (AttributeError, TypeError, ValueError, OverflowError):
        raise _bad("logit_bias is an object of token ids and numbers.", "logit_bias") from None
    low, high = _BIASES
    if (beyond := next((bias for bias in biases.values() if not low <= bias <= high), None)) is not None:
        raise _bad(f"logit_bias holds numbers from {low} to {high}, not {beyond!r}.", "logit_bias")
    return biases


def _logprobs(body: Mapping[str, Any], *, chat: bool) -> int | None:
    asked = body.get("logprobs")
    name = "top_logprobs" if chat else "logprobs"
    if asked is None or asked is False:
        if chat and body.get(name):
            raise _bad("top_logprobs goes with logprobs: true, which is not set.", name)
        return None
    wanted, most = body.get(name) or 0, _MOST_LOGPROBS[name]
    if not isinstance(wanted, int) or wanted is True or not 0 <= wanted <= most:
        raise _bad(f"{name} is a whole number from 0 to {most}, not {wanted!r}.", name)
    return wanted


def _speculation(value: Any) -> Any:
    if value in (None, True, "on", "auto"):
        return "auto"
    if value in (False, "off"):
        return "off"
    raise _bad('speculation is "auto" or "off".', "speculation")


def _salt(value: Any) -> str | None:
    """vLLM's parameter of that name, with the values that vLLM takes. It is a secret: no error shows it."""
    if value is None or (isinstance(value, str) and value):
        return value
    what = "an empty one" if isinstance(value, str) else type(value).__name__
    raise _bad(f"cache_salt is a string that is not empty, not {what}.", "cache_salt")


def _bad(message: str, param: str | None) -> BadRequestError:
    return BadRequestError(message, status_code=400, param=param, code="unsupported" if param else None)
