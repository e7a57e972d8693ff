"""From the arguments of a call to a driven flow, and from there to the answer.

Imported with the first call: a client that makes none does without what calls are made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from specclient.client.params import CHAT, COMPLETIONS, NotGiven, build_request, given_fields
from specclient.client.raw import RawResponse
from specclient.client.stream import AsyncStream, Stream
from specclient.config.target import Timeout
from specclient.core import drive
from specclient.core.destination import CallOptions
from specclient.core.flow import Flow
from specclient.economics.workload import checked
from specclient.prediction import Prediction, PredictionLike
from specclient.types import Answer, ChatCompletion, ChatCompletionChunk, Completion, parse

if TYPE_CHECKING:
    from specclient.client.base import ClientBase

Api = Literal["chat", "completions"]
KNOWN = {"chat": CHAT, "completions": COMPLETIONS}
MODELS: dict[str, tuple[type[Answer], type[Answer]]] = {
    "chat": (ChatCompletion, ChatCompletionChunk),
    "completions": (Completion, Completion),
}


@dataclass(slots=True, kw_only=True)
class Extras:
    """The arguments of a call that are not part of its body."""

    extra_headers: Mapping[str, str | None] | None = field(default=None, repr=False)
    extra_query: Mapping[str, Any] | None = field(default=None, repr=False)
    extra_body: Mapping[str, Any] | None = field(default=None, repr=False)
    timeout: Any = field(default_factory=NotGiven)
    max_retries: int | None = None
    idempotency_key: str | None = None
    workload: str | None = None

    def options(self, defaults: CallOptions) -> CallOptions:
        """Laid over the client's own."""
        given = not isinstance(self.timeout, NotGiven)
        return CallOptions(
            timeout=Timeout.of(self.timeout) if given else defaults.timeout,
            max_retries=defaults.max_retries if self.max_retries is None else self.max_retries,
            headers={**defaults.headers, **given_fields(self.extra_headers, "extra_headers")},
            query={**defaults.query, **given_fields(self.extra_query, "extra_query")},
            idempotency_key=self.idempotency_key,
            workload=checked(self.workload),
            adapter=defaults.adapter,
        )


EXTRAS = tuple(each.name for each in fields(Extras))


def make_flow(
    client: ClientBase,
    api: Api,
    params: Mapping[str, Any],
    extras: Extras,
    *,
    prediction: PredictionLike | NotGiven | None,
    stream: bool | NotGiven | None,
) -> Flow:
    """The flow of one call. A callable prediction is evaluated here, once."""
    method = "chat.completions.create" if api == "chat" else "completions.create"
    request = build_request(params, KNOWN[api], extras.extra_body, method)
    if stream:
        request["stream"] = True
    given = None if isinstance(prediction, NotGiven) else prediction
    client.load_transports()
    return Flow(
        request,
        client.destinations,
        prediction=Prediction.of(given, request),
        api=api,
        options=extras.options(client.defaults),
        tracing_options=client.tracing,
    )


def plain_answer(flow: Flow, api: Api) -> Any:
    """The finished plain call as an object, report attached."""
    assert flow.result is not None
    answer = parse(MODELS[api][0], flow.result)
    answer.specclient = flow.report
    return answer


def _split(options: dict[str, Any]) -> tuple[Extras, dict[str, Any]]:
    return Extras(**{name: options.pop(name) for name in EXTRAS if name in options}), options


def send(client: ClientBase, api: Api, *, raw: bool, stream: Any, prediction: Any, **options: Any) -> Any:
    """One call: the answer, or a stream whose headers came; with `raw` inside a `RawResponse`."""
    extras, params = _split(options)
    client.ensure_open()
    flow = make_flow(client, api, params, extras, prediction=prediction, stream=stream)
    drive.begin(flow)
    answer: Any = Stream(flow, MODELS[api][1]) if flow.streamed else plain_answer(flow, api)
    return RawResponse(flow, answer) if raw else answer


async def asend(
    client: ClientBase, api: Api, *, raw: bool, stream: Any, prediction: Any, **options: Any
) -> Any:
    """The async twin of `send`."""
    extras, params = _split(options)
    client.ensure_open()
    flow = make_flow(client, api, params, extras, prediction=prediction, stream=stream)
    await drive.abegin(flow)
    answer: Any = await AsyncStream.begin(flow, MODELS[api][1]) if flow.streamed else plain_answer(flow, api)
    return RawResponse(flow, answer) if raw else answer
