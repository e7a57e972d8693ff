"""What a call asks its driver to do.

A call is a generator of these operations; `drive.py` performs them and sends back the result, or throws
the error. `Ready` is no work: it says that a stream's headers came.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from specclient.core.exchange import AsyncExchange, Exchange
from specclient.core.send import Send
from specclient.core.wire import Wire
from specclient.tracing import Call

if TYPE_CHECKING:
    from specclient.core.destination import Destination

AnyExchange = Exchange | AsyncExchange


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait before the next try."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Open:
    """Send the request; the result is an exchange. Make the call's span current meanwhile."""

    destination: Destination
    send: Send
    wire: Wire
    call: Call | None


@dataclass(frozen=True, slots=True)
class Read:
    """Read the next objects of an exchange, or with `text` its whole body as text."""

    exchange: AnyExchange
    text: bool = False


@dataclass(frozen=True, slots=True)
class Close:
    exchange: AnyExchange


class Ready:
    """A stream's headers came."""


READY = Ready()
Op = Sleep | Open | Read | Close | Ready
Steps = Generator[Op, Any, None]
