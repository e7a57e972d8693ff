"""What `create` takes, and how it becomes a request that holds only what the caller set."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict

from pydantic import BaseModel

from specclient.core.asked import fault_in_count, fault_in_messages
from specclient.errors import ConfigError


class NotGiven:
    """Stands for an argument that was not given. None is a value: it is sent as JSON null."""

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return "NOT_GIVEN"


class Omit(NotGiven):
    """The newer name of the same thing."""

    def __repr__(self) -> str:
        return "omit"


NOT_GIVEN = not_given = NotGiven()
omit = Omit()


def given_fields(value: Any, name: str) -> dict[str, Any]:
    """What is laid over the client's own; "not given", like None, takes a field out."""
    if value is None or isinstance(value, NotGiven):
        return {}
    if not isinstance(value, Mapping):
        raise ConfigError(f"{name} is an object of names and values, not {type(value).__name__}.")
    return {name: None if isinstance(item, NotGiven) else item for name, item in value.items()}


Messages = Iterable[Mapping[str, Any] | BaseModel]


class _Shared(TypedDict, total=False):
    """What both APIs and an edit take; the meaning is OpenAI's."""

    frequency_penalty: float | None
    logit_bias: dict[str, int] | None
    max_tokens: int | None
    metadata: dict[str, str] | None
    presence_penalty: float | None
    seed: int | None
    stop: str | list[str] | None
    stream_options: dict[str, Any] | None
    top_p: float | None
    user: str


class CommonParams(_Shared, total=False):
    """Parameters of both APIs; their meaning is OpenAI's."""

    n: int | None
    temperature: float | None


class _ChatOnly(TypedDict, total=False):
    """What chats take and text completions do not."""

    audio: dict[str, Any] | None
    function_call: str | dict[str, Any]
    functions: list[dict[str, Any]]
    logprobs: bool | None
    max_completion_tokens: int | None
    modalities: list[str] | None
    moderation: Any
    parallel_tool_calls: bool
    prompt_cache_key: str
    prompt_cache_options: dict[str, Any]
    prompt_cache_retention: str | None
    reasoning_effort: str | None
    response_format: dict[str, Any]
    safety_identifier: str
    service_tier: str | None
    store: bool | None
    tool_choice: str | dict[str, Any]
    tools: list[dict[str, Any]]
    top_logprobs: int | None
    verbosity: str | None
    web_search_options: dict[str, Any]


class ChatParams(CommonParams, _ChatOnly, total=False):
    """Everything that `chat.completions.create` takes beside what its signature names."""


class EditParams(_Shared, _ChatOnly, total=False):
    """What an edit passes on to `chat.completions.create`: all but what its signature names or it sets."""

    model: str
    extra_headers: Mapping[str, Any] | None
    extra_query: Mapping[str, Any] | None
    extra_body: Mapping[str, Any] | None
    timeout: Any
    max_retries: int | None
    idempotency_key: str | None
    workload: str | None


class CompletionParams(CommonParams, total=False):
    """Everything that `completions.create` takes beside what its signature names."""

    best_of: int | None
    echo: bool | None
    logprobs: int | None
    suffix: str | None


CHAT = frozenset(ChatParams.__annotations__)
COMPLETIONS = frozenset(CompletionParams.__annotations__)
_SIGNATURE = {"model", "prediction", "stream"}
BODIES = {"chat": CHAT | _SIGNATURE | {"messages"}, "completions": COMPLETIONS | _SIGNATURE | {"prompt"}}
"""Every field of a request's body that is documented, by API: with those that the signatures name."""


def build_request(
    params: Mapping[str, Any], known: frozenset[str], extra_body: Mapping[str, Any] | None, method: str
) -> dict[str, Any]:
    """The request: what was given, and `extra_body` over it.

    Raises TypeError for a name that is no parameter, as a call of any function does, and ConfigError for
    a value that no endpoint could take.
    """
    request: dict[str, Any] = {}
    for name, value in params.items():
        if isinstance(value, NotGiven):
            continue
        if name not in known and name not in ("messages", "prompt", "model"):
            raise TypeError(_unexpected(name, known, method))
        request[name] = value
    if "messages" in request:
        request["messages"] = _messages(request["messages"])
    for name in ("n", "best_of"):
        if (said := fault_in_count(name, request.get(name))) is not None:
            raise ConfigError(said)
    if not isinstance(request.get("model"), str | None):
        raise ConfigError(f"model is the name of one, a string, not {type(request['model']).__name__}.")
    if extra_body is not None:
        if not isinstance(extra_body, Mapping):
            raise ConfigError(f"extra_body is an object of fields, not {type(extra_body).__name__}.")
        request.update(extra_body)
    return request


def _messages(given: Any) -> list[Any]:
    """Messages as dicts. Raises ConfigError, in one sentence, for what is none."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise ConfigError(str(fault_in_messages(given)))
    messages = [plain(message) for message in given]
    if (said := fault_in_messages(messages)) is not None:
        raise ConfigError(said)
    return messages


def plain(message: Mapping[str, Any] | BaseModel) -> Any:
    """A message as a dict; an answer's own message may be passed back as it is."""
    if isinstance(message, BaseModel):
        return message.model_dump(mode="json", exclude_unset=True)
    return dict(message) if isinstance(message, Mapping) else message


def _unexpected(name: str, known: frozenset[str], method: str) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return (
        f"{method}() got an unexpected keyword argument {name!r}; {hint}"
        f"fields of one provider's own go into extra_body={{…}}."
    )
