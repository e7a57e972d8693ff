"""The two HTTP families under the official SDKs, and the one place that tells them apart.

`httpx2` is a fork of `httpx` with the same classes under another name, and neither accepts the other's
objects. So each class of ours that an HTTP client must recognise is made once a family: a plain class
with the behaviour, joined to the family's own base class. A family is looked up in `sys.modules` only,
because a client of a family that was never imported cannot exist.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

from specclient.middleware.at_hand import AtHand
from specclient.middleware.bodies import AsyncBody, AsyncBytes, SyncBody, SyncBytes
from specclient.middleware.family import Family
from specclient.middleware.local import AsyncLocalBody, SyncLocalBody
from specclient.middleware.steps import headers_reader
from specclient.middleware.transport import AsyncTransport, SyncTransport

NAMES = ("httpx2", "httpx")


@lru_cache(maxsize=len(NAMES))
def family_named(name: str) -> Family:
    """The family of an imported module."""
    module = sys.modules[name]

    def join(behaviour: type, base: type, **further: Any) -> Any:
        return type(behaviour.__name__, (behaviour, base), {"__module__": behaviour.__module__, **further})

    return Family(
        module=module,
        headers=headers_reader(module),
        transport=join(SyncTransport, module.BaseTransport),
        async_transport=join(AsyncTransport, module.AsyncBaseTransport),
        body=join(SyncBody, module.SyncByteStream),
        async_body=join(AsyncBody, module.AsyncByteStream),
        bytes_body=join(SyncBytes, module.SyncByteStream),
        async_bytes_body=join(AsyncBytes, module.AsyncByteStream),
        local_body=join(SyncLocalBody, module.SyncByteStream),
        async_local_body=join(AsyncLocalBody, module.AsyncByteStream),
        at_hand=join(AtHand, module.Response, _plain=module.Response),
    )


def family_of(http_client: object) -> Family | None:
    """The family of an HTTP client, or None for anything that is not one."""
    for name in NAMES:
        module = sys.modules.get(name)
        if module is not None and isinstance(http_client, (module.Client, module.AsyncClient)):
            return family_named(name)
    return None
