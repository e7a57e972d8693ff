"""`Client` and `AsyncClient`: the resources over a configuration, and OpenAI's names for both."""

from __future__ import annotations

import os
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from specclient.client.base import ClientBase
from specclient.client.params import NOT_GIVEN, EditParams, NotGiven
from specclient.config import Target
from specclient.core.send import Connect

if TYPE_CHECKING:
    from specclient.client.more_resources import AsyncModels, AsyncTextCompletions, Models, TextCompletions
    from specclient.client.resources import AsyncChat, Chat
    from specclient.edit import FileEdit, OnText


class Client(ClientBase):
    """The synchronous client. Safe to use from several threads; close it, or leave its `with` block."""

    def _http_transport(self, connect: Connect) -> Any:
        from specclient.core.http_sync import HttpTransport

        return HttpTransport(connect)

    def _corpus_transport(self, inner: Any) -> Any:
        from specclient.core.corpus import CorpusTransport

        return CorpusTransport(inner)

    def _local_transport(self, target: Target) -> Any:
        from specclient.core.local import LocalTransport

        return LocalTransport(target.model, target.engine, engine=self._engine)

    @cached_property
    def chat(self) -> Chat:
        from specclient.client.resources import Chat

        return Chat(self)

    @cached_property
    def completions(self) -> TextCompletions:
        from specclient.client.more_resources import TextCompletions

        return TextCompletions(self)

    @cached_property
    def models(self) -> Models:
        from specclient.client.more_resources import Models

        return Models(self)

    def edit(
        self,
        path: str | os.PathLike[str],
        instruction: str,
        *,
        write: bool = False,
        force: bool = False,
        predict: bool = True,
        exact: bool = False,
        encoding: str | None = None,
        on_text: OnText | None = None,
        temperature: float | NotGiven | None = NOT_GIVEN,
        **request: Unpack[EditParams],
    ) -> FileEdit:
        """Regenerate a file as `instruction` says, with the file as the prediction.

        - `write`: replace the file in one step; without it nothing on the disk changes
        - `force`: write although a warning blocks
        - `predict`: False sends no prediction
        - `exact`: take blanks, quotes and dashes as the model wrote them, in untouched lines too
        - `encoding`: the file's, where it is neither UTF-8, nor marked, nor declared in its first lines
        - `on_text`: called with each piece of the answer as it arrives
        - `temperature`: 0 unless given; where the endpoint refuses that, and for None, the endpoint's own
        - `request`: passed on to `chat.completions.create`, as `model`, `max_tokens` or `timeout`

        Raises FileError for a file that cannot be read, IncompleteOutput for an answer that was cut off,
        EditRefused where a warning blocks, WriteFailed where the file could not be replaced, ConfigError for
        what an edit sets itself, and whatever `create` raises.
        """
        from specclient.edit import edit_file

        return edit_file(
            self,
            path,
            instruction,
            write=write,
            force=force,
            predict=predict,
            exact=exact,
            encoding=encoding,
            on_text=on_text,
            temperature=temperature,
            **request,
        )

    def close(self) -> None:
        """Close the connections. Clients made by `with_options` share them."""
        self._closed = True
        for destination in self.destinations:
            destination.transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient(ClientBase):
    """The asynchronous client, with the same signatures. Usable from several event loops."""

    def _http_transport(self, connect: Connect) -> Any:
        from specclient.core.http_async import AsyncHttpTransport

        return AsyncHttpTransport(connect)

    def _corpus_transport(self, inner: Any) -> Any:
        from specclient.core.corpus import AsyncCorpusTransport

        return AsyncCorpusTransport(inner)

    def _local_transport(self, target: Target) -> Any:
        from specclient.core.local import AsyncLocalTransport

        return AsyncLocalTransport(target.model, target.engine, engine=self._engine)

    @cached_property
    def chat(self) -> AsyncChat:
        from specclient.client.resources import AsyncChat

        return AsyncChat(self)

    @cached_property
    def completions(self) -> AsyncTextCompletions:
        from specclient.client.more_resources import AsyncTextCompletions

        return AsyncTextCompletions(self)

    @cached_property
    def models(self) -> AsyncModels:
        from specclient.client.more_resources import AsyncModels

        return AsyncModels(self)

    async def edit(
        self,
        path: str | os.PathLike[str],
        instruction: str,
        *,
        write: bool = False,
        force: bool = False,
        predict: bool = True,
        exact: bool = False,
        encoding: str | None = None,
        on_text: OnText | None = None,
        temperature: float | NotGiven | None = NOT_GIVEN,
        **request: Unpack[EditParams],
    ) -> FileEdit:
        """Regenerate a file as `instruction` says: `Client.edit`, to be awaited."""
        from specclient.edit import edit_file_async

        return await edit_file_async(
            self,
            path,
            instruction,
            write=write,
            force=force,
            predict=predict,
            exact=exact,
            encoding=encoding,
            on_text=on_text,
            temperature=temperature,
            **request,
        )

    async def close(self) -> None:
        """Close this event loop's connections. Clients made by `with_options` share them."""
        self._closed = True
        for destination in self.destinations:
            await destination.transport.close()

    aclose = close

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _like_openai(arguments: dict[str, Any]) -> dict[str, Any]:
    """What `OpenAI(...)` means: OpenAI itself, or the address that it is given, with OpenAI's variables."""
    if any(arguments.get(name) for name in ("target", "provider")):
        return arguments
    url = arguments.get("base_url") or os.environ.get("OPENAI_BASE_URL")
    if not url:
        return {**arguments, "provider": "openai"}
    given = {**arguments, "base_url": str(url)}
    if not given.get("api_key") and os.environ.get("OPENAI_API_KEY"):
        given["api_key_env"] = "OPENAI_API_KEY"
    for name, variable in (("organization", "OPENAI_ORG_ID"), ("project", "OPENAI_PROJECT_ID")):
        given[name] = given.get(name) or os.environ.get(variable) or None
    return given


class OpenAI(Client):
    """`Client` for those who swap an import: without arguments it is OpenAI, from OPENAI_API_KEY.

    With a `base_url` it is whoever answers there; what is documented of that address holds.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**_like_openai(arguments))


class AsyncOpenAI(AsyncClient):
    """The async twin of `OpenAI`."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**_like_openai(arguments))
