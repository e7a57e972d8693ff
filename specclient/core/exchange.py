"""One attempt's answer, whatever carries it.

`read()` returns the next parsed JSON objects of the answer (an event that is like one before it but for its
text may come as an `alike.Piece`), an empty list for bytes that were no event (a keep-alive), `DONE` as an
element where the stream said that it is over, and None at its end. A plain answer is one object.
`http_sync.py`, `http_async.py` and `local.py` have the exchanges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from specclient.core.wire import Wire


class _Done:
    def __repr__(self) -> str:
        return "DONE"


DONE: Any = _Done()
"""What `read()` gives for `data: [DONE]`."""


class ReadingStopped(GeneratorExit):
    """Somebody else closed the stream that is being read: the call ends as a generator that is closed."""


DRAIN_BYTES = 64 * 1024
READ_BYTES = 64 * 1024


class Exchange(Protocol):
    """An answer being read by a synchronous caller."""

    status: int
    headers: Mapping[str, str]
    wire: Wire
    stats: Any
    """The embedded engine's account at the end; None over HTTP."""

    def read(self) -> Sequence[Any] | None: ...

    def read_text(self) -> str:
        """The whole body as text, cut at 1 MiB: for error pages."""
        ...

    def drain(self) -> None:
        """After [DONE]: read the rest for a moment, so that the connection can be used again, and close."""
        ...

    def close(self) -> None: ...

    def stop(self) -> None:
        """Called while another thread reads: its `read` raises ReadingStopped."""
        ...


class AsyncExchange(Protocol):
    """An answer being read by an asynchronous caller."""

    status: int
    headers: Mapping[str, str]
    wire: Wire
    stats: Any

    async def read(self) -> Sequence[Any] | None: ...

    async def read_text(self) -> str: ...

    async def drain(self) -> None: ...

    async def close(self) -> None: ...

    def stop(self) -> None:
        """Called while another task reads: its `read` raises ReadingStopped."""
        ...
