"""The report that our own gateway put in its answer: kept, under another name than the client's own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from specclient.middleware.context import KEY

GATEWAY_KEY = "specclient_gateway"
"""Where an answer keeps the gateway's report: the client's own takes the key `specclient`."""

_KEY = re.compile(rb'"%b"(?=\s*+:)' % KEY.encode())
"""The key at any depth. Quotes inside a text are escaped, so it is never text."""


def set_aside(raw: bytes, answer: Mapping[str, Any], encode: Callable[[Mapping[str, Any]], bytes]) -> bytes:
    """An event or a body whose `answer` holds a report, with that under its other name.

    Every other byte stays as it is, unless the same key is further inside too: then only writing the
    answer anew with `encode` can tell them apart.
    """
    renamed, found = _KEY.subn(b'"%b"' % GATEWAY_KEY.encode(), raw)
    if found == 1:
        return renamed
    return encode({GATEWAY_KEY if name == KEY else name: value for name, value in answer.items()})
