"""Answers as objects: OpenAI's names and fields, read leniently.

Unknown fields are kept (`model_extra`), a field that the server did not send is not in
`model_fields_set`, and a value of an unexpected type is kept as it came rather than losing the answer.
`specclient` holds the call's `Report` on every plain answer and on a stream's last chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, SkipValidation, ValidationError

from specclient.report import Report

M = TypeVar("M", bound="Model")


class Model(BaseModel):
    """Base of all answers. Truthful about what came: nothing unknown is dropped."""

    model_config = ConfigDict(extra="allow", protected_namespaces=(), defer_build=True)

    def to_dict(self, *, mode: str = "json", exclude_unset: bool = True, **options: Any) -> dict[str, Any]:
        """As a dict that holds only what came."""
        return self.model_dump(mode=mode, exclude_unset=exclude_unset, **{"warnings": False, **options})

    def to_json(self, *, indent: int | None = 2, exclude_unset: bool = True, **options: Any) -> str:
        """As JSON that holds only what came."""
        options = {"warnings": False, **options}  # an odd value was kept on purpose
        return self.model_dump_json(indent=indent, exclude_unset=exclude_unset, **options)


class PromptTokensDetails(Model):
    cached_tokens: int | None = None
    audio_tokens: int | None = None


class CompletionTokensDetails(Model):
    """Both prediction counters lie inside `completion_tokens`. None: not reported."""

    accepted_prediction_tokens: int | None = None
    rejected_prediction_tokens: int | None = None
    reasoning_tokens: int | None = None
    audio_tokens: int | None = None


class CompletionUsage(Model):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: PromptTokensDetails | None = None
    completion_tokens_details: CompletionTokensDetails | None = None


class Function(Model):
    name: str | None = None
    arguments: str | None = None


class ToolCall(Model):
    id: str | None = None
    type: str | None = None
    function: Function | None = None


class ToolCallDelta(ToolCall):
    """A piece of a tool call. Some servers leave `index` out: see `specclient.client.accumulator`."""

    index: int | None = None


class TokenLogprob(Model):
    token: str | None = None
    logprob: float | None = None
    bytes: list[int] | None = None
    top_logprobs: list[TokenLogprob] | None = None


class ChoiceLogprobs(Model):
    content: list[TokenLogprob] | None = None
    refusal: list[TokenLogprob] | None = None


class Audio(Model):
    """Spoken content: base64 in `data`, what is said in `transcript`."""

    id: str | None = None
    data: str | None = None
    expires_at: int | None = None
    transcript: str | None = None


class URLCitation(Model):
    start_index: int | None = None
    end_index: int | None = None
    title: str | None = None
    url: str | None = None


class Annotation(Model):
    type: str | None = None
    url_citation: URLCitation | None = None


class Reasoned(Model):
    """What may bring a model's reasoning along.

    No field of its own: where none came, none is in a dump, because some servers refuse a history that
    holds the name, even with null.
    """

    @property
    def reasoning_content(self) -> str | None:
        """The reasoning, where the server sends it under this name; None where it does not."""
        return (self.model_extra or {}).get("reasoning_content")


class ChatCompletionMessage(Reasoned):
    role: str | None = None
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCall] | None = None
    function_call: Function | None = None
    annotations: list[Annotation] | None = None
    audio: Audio | None = None


class Choice(Model):
    index: int | None = None
    message: ChatCompletionMessage = ChatCompletionMessage.model_construct()
    finish_reason: str | None = None
    logprobs: ChoiceLogprobs | None = None


class Answer(Model):
    """What every answer and every chunk has."""

    id: str | None = None
    object: str | None = None
    created: int | None = None
    model: str | None = None
    usage: CompletionUsage | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None
    specclient: SkipValidation[Report | None] = None

    @property
    def _request_id(self) -> str | None:
        return None if self.specclient is None else self.specclient.request_id


class ChatCompletion(Answer):
    choices: list[Choice] = []


class ChoiceDelta(Reasoned):
    role: str | None = None
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCallDelta] | None = None
    function_call: Function | None = None
    audio: Audio | None = None


class ChunkChoice(Model):
    index: int | None = None
    delta: ChoiceDelta = ChoiceDelta.model_construct()
    finish_reason: str | None = None
    logprobs: ChoiceLogprobs | None = None


class ChatCompletionChunk(Answer):
    choices: list[ChunkChoice] = []


class CompletionChoice(Model):
    index: int | None = None
    text: str | None = None
    finish_reason: str | None = None
    logprobs: Any = None


class Completion(Answer):
    """An answer of the older completions API; a chunk of it when streamed."""

    choices: list[CompletionChoice] = []


class ModelInfo(Model):
    """A model that an endpoint offers."""

    id: str | None = None
    object: str | None = None
    created: int | None = None
    owned_by: str | None = None


class ModelList(Model):
    """One page with all models: iterate it, or take `.data`."""

    object: str | None = None
    data: list[ModelInfo] = []

    def __iter__(self) -> Iterator[ModelInfo]:  # type: ignore[override]  # a page iterates its items
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)


def parse(model: type[M], value: dict[str, Any]) -> M:
    """`value` as a `model`; what does not fit its declared type is kept as it is."""
    try:
        built: M = model.__pydantic_validator__.validate_python(value)
        return built
    except ValidationError as error:
        wrong = {str(fault["loc"][0]) for fault in error.errors(include_url=False, include_input=False)}
    built = model.model_validate({key: item for key, item in value.items() if key not in wrong})
    for key in wrong:
        built.__dict__[key] = _kept(model, key, value[key])
        built.__pydantic_fields_set__.add(key)
    return built


def _kept(model: type[Model], key: str, item: Any) -> Any:
    """A value that did not fit: its parts that are objects are read as far as they can be."""
    nested = _nested(model.model_fields[key].annotation)
    if nested is not None and isinstance(item, list):
        return [parse(nested, part) if isinstance(part, dict) else part for part in item]
    if nested is not None and isinstance(item, dict):
        return parse(nested, item)
    if item is None:  # null for a list or an object that always is one
        return model.model_fields[key].get_default(call_default_factory=True)
    return item


def _nested(annotation: Any) -> type[Model] | None:
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return annotation
    return next((found for part in get_args(annotation) if (found := _nested(part))), None)
