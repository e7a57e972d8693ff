"""A request as it goes out, and how its connection is made.

Apart from the transports, because a client is made of these long before it needs what carries them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from specclient._version import __version__
from specclient.config.places import expanded
from specclient.errors import ConfigError

if TYPE_CHECKING:
    import ssl

log = logging.getLogger(__name__)
MAX_CONNECTIONS = 1000
DEFAULT_HEADERS = {
    "accept": "application/json",
    "accept-encoding": "gzip, deflate",
    "user-agent": f"specclient/{__version__}",
}


@dataclass(frozen=True, slots=True)
class Send:
    """A request as it goes out. Headers and address may hold the key: no repr shows them, nor the body."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)
    streamed: bool = False
    max_bytes: int = 256 * 1024 * 1024
    plan: Any = field(default=None, repr=False)
    """The plan itself, for carriers that do more than send it (the embedded engine, a draft corpus)."""

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc.rpartition("@")[2]


@dataclass(frozen=True, slots=True)
class Connect:
    """How connections are made: part of a target's configuration."""

    proxy: str | None = field(default=None, repr=False)
    verify: bool | str | ssl.SSLContext = True
    max_connections: int = MAX_CONNECTIONS
    client_cert: str | None = None

    def ssl_context(self) -> ssl.SSLContext:
        """The caller's own context, or one that verifies, unless told not to, which is logged.

        Raises ConfigError for a file that holds no certificates.
        """
        context = self._made() if isinstance(self.verify, bool | str) else self.verify
        if self.client_cert is not None:
            _identify(context, self.client_cert)
        return context

    def check(self) -> None:
        """Look into the files that are named, so that none fails at the first call. Raises ConfigError."""
        if isinstance(self.verify, str):
            self._made()
        if self.client_cert is not None:
            import ssl

            _identify(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), self.client_cert)

    def _made(self) -> ssl.SSLContext:
        import ssl

        import httpx

        if isinstance(self.verify, str):
            try:
                where = expanded(self.verify)
                folder, file = (where, None) if where.is_dir() else (None, where)
                return ssl.create_default_context(cafile=file, capath=folder)
            except (OSError, ValueError) as error:
                raise ConfigError(f"verify {self.verify!r} holds no certificates ({error}).") from None
        if not self.verify:
            log.warning("certificates are not verified: verify=False")
        return httpx.create_ssl_context(verify=bool(self.verify))


def _identify(context: ssl.SSLContext, client_cert: str) -> None:
    """Load the client's own certificate. Raises ConfigError."""
    try:
        context.load_cert_chain(expanded(client_cert), password=_no_password)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"client_cert {client_cert!r} is no PEM file with a certificate and its key ({error})."
        ) from None


def _no_password() -> str:
    """Asked for where a key is encrypted, in place of a question at the terminal in the middle of a call."""
    raise ValueError("the key is encrypted: decrypt it, or load it into an ssl.SSLContext, given as verify")
