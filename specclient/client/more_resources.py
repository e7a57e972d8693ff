"""The older completions API, and the list of models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote

from specclient.client.calls import Extras, asend, send
from specclient.client.params import NOT_GIVEN
from specclient.client.resources import (
    AsyncStreamingCompletions,
    Given,
    StreamingCompletions,
    not_here,
)
from specclient.core import drive
from specclient.core.fetch import Fetch
from specclient.core.local import DEFAULT_MODEL
from specclient.errors import ConfigError, NotFoundError
from specclient.prediction import PredictionLike
from specclient.types import ModelInfo, ModelList, parse

if TYPE_CHECKING:
    from specclient.client.base import ClientBase


class TextCompletions:
    """The completions API: a prompt instead of messages."""

    def __init__(self, client: ClientBase, *, raw: bool = False) -> None:
        self._client = client
        self._raw = raw

    def create(
        self,
        *,
        prompt: str | list[int] | list[str],
        model: str | Given = NOT_GIVEN,
        prediction: PredictionLike | Given = NOT_GIVEN,
        stream: bool | Given = NOT_GIVEN,
        **options: Any,
    ) -> Any:
        """A `Completion`, or with `stream=True` a stream of them. Options as for chat completions."""
        return send(
            self._client,
            "completions",
            raw=self._raw,
            prompt=prompt,
            model=model,
            prediction=prediction,
            stream=stream,
            **options,
        )

    @cached_property
    def with_raw_response(self) -> TextCompletions:
        return TextCompletions(self._client, raw=True)

    @cached_property
    def with_streaming_response(self) -> StreamingCompletions:
        return StreamingCompletions(self)


class AsyncTextCompletions:
    """The async twin of `TextCompletions`."""

    def __init__(self, client: ClientBase, *, raw: bool = False) -> None:
        self._client = client
        self._raw = raw

    async def create(
        self,
        *,
        prompt: str | list[int] | list[str],
        model: str | Given = NOT_GIVEN,
        prediction: PredictionLike | Given = NOT_GIVEN,
        stream: bool | Given = NOT_GIVEN,
        **options: Any,
    ) -> Any:
        """See `TextCompletions.create`."""
        return await asend(
            self._client,
            "completions",
            raw=self._raw,
            prompt=prompt,
            model=model,
            prediction=prediction,
            stream=stream,
            **options,
        )

    @cached_property
    def with_raw_response(self) -> AsyncTextCompletions:
        return AsyncTextCompletions(self._client, raw=True)

    @cached_property
    def with_streaming_response(self) -> AsyncStreamingCompletions:
        return AsyncStreamingCompletions(self)


def _local_models(client: ClientBase) -> ModelList | None:
    target = client.destinations[0].target
    if target.provider != "local":
        return None
    return ModelList(object="list", data=[ModelInfo(id=target.model or DEFAULT_MODEL, object="model")])


def _local_model(client: ClientBase, name: str) -> ModelInfo | None:
    offered = _local_models(client)
    if offered is None:
        return None
    if name != offered.data[0].id:
        raise NotFoundError(f"The embedded engine has no model {name!r} here.", status_code=404)
    return offered.data[0]


def _fetch(client: ClientBase, extras: Extras, model: str | None = None) -> Fetch:
    """The list of models, or one of them, as a request."""
    client.ensure_open()
    if model == "":
        raise ConfigError("models.retrieve() takes the name of a model, and was given an empty one.")
    below = "" if model is None else "/" + quote(model, safe="")
    return Fetch(client.destinations[0], "models", extras.options(client.defaults), below)


class Models:
    """`client.models`."""

    def __init__(self, client: ClientBase) -> None:
        self._client = client

    def list(self, **extras: Any) -> ModelList:
        """The models of the endpoint: one page, iterable."""
        fetch = _fetch(self._client, Extras(**extras))
        if (local := _local_models(self._client)) is not None:
            return local
        drive.begin(fetch)
        return parse(ModelList, fetch.result or {})

    def retrieve(self, model: str, **extras: Any) -> ModelInfo:
        """One model of the endpoint."""
        fetch = _fetch(self._client, Extras(**extras), model)
        if (local := _local_model(self._client, model)) is not None:
            return local
        drive.begin(fetch)
        return parse(ModelInfo, fetch.result or {})

    def __getattr__(self, name: str) -> NoReturn:
        raise not_here(self, name)


class AsyncModelList:
    """What `models.list()` of the async client gives: `async for` it, or await it for the page."""

    def __init__(self, client: ClientBase, extras: Extras) -> None:
        self._client = client
        self._extras = extras

    async def _page(self) -> ModelList:
        fetch = _fetch(self._client, self._extras)
        if (local := _local_models(self._client)) is not None:
            return local
        await drive.abegin(fetch)
        return parse(ModelList, fetch.result or {})

    def __await__(self) -> Generator[Any, Any, ModelList]:
        return self._page().__await__()

    async def __aiter__(self) -> AsyncIterator[ModelInfo]:
        for model in (await self._page()).data:
            yield model


class AsyncModels:
    """The async twin of `Models`."""

    def __init__(self, client: ClientBase) -> None:
        self._client = client

    def list(self, **extras: Any) -> AsyncModelList:
        """The models of the endpoint."""
        return AsyncModelList(self._client, Extras(**extras))

    async def retrieve(self, model: str, **extras: Any) -> ModelInfo:
        """One model of the endpoint."""
        fetch = _fetch(self._client, Extras(**extras), model)
        if (local := _local_model(self._client, model)) is not None:
            return local
        await drive.abegin(fetch)
        return parse(ModelInfo, fetch.result or {})

    def __getattr__(self, name: str) -> NoReturn:
        raise not_here(self, name)
