"""What the tracing examples share: a word before the call instead of a stack of retries after it."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit


def must_answer(address: str) -> None:
    """Ends the program where nothing listens at an address."""
    parts = urlsplit(address)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname or "", port), timeout=5).close()
    except OSError:
        raise SystemExit(
            f"nothing answers at {address}: start it, or name another address (--help)"
        ) from None
