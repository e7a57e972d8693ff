"""A transport that is made at its first use.

What carries requests over HTTP takes as long to import as all the rest of a client, which many programs
make, and only some of their runs use.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any


class LateTransport:
    """Stands for the transport that `make` makes, sync or async, once."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._transport: Any = None

    def made(self) -> Any:
        """The transport itself: imports would count in a call's figures, so ask before it starts."""
        if self._transport is None:
            with self._lock:
                if self._transport is None:
                    self._transport = self._make()
        return self._transport

    def open(self, send: Any, wire: Any) -> Any:
        """See the transport's own; what an async one returns is to be awaited."""
        return self.made().open(send, wire)

    def close(self) -> Any:
        """See the transport's own. One that was never made is not made to be closed."""
        return NOTHING_TO_CLOSE if self._transport is None else self._transport.close()


class NothingToClose:
    """What closing comes to where nothing was opened; an async client awaits it."""

    def __await__(self) -> Iterator[None]:
        return iter(())


NOTHING_TO_CLOSE = NothingToClose()
