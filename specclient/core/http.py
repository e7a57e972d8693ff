"""What the two HTTP transports share: requests, headers, redirects, proxies, pools and errors.

httpx itself takes one read timeout for a whole body. httpcore hands the `timeout` through to the network
stream unread, so that a `Wire` can be asked before every read; that, and nothing else, is why this room
stands one floor below httpx. Certificates come from `httpx.create_ssl_context` (SSL_CERT_FILE and
SSL_CERT_DIR hold), proxies from the usual environment variables. The transports themselves are
`http_sync.py` and `http_async.py`.
"""

from __future__ import annotations

import logging
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urljoin, urlsplit, urlunsplit

import httpcore

from specclient._version import __version__
from specclient.config.masking import MASK
from specclient.core.wire import LimitReached, Wire
from specclient.errors import APIConnectionError, APITimeoutError, ConfigError

log = logging.getLogger(__name__)
MAX_CONNECTIONS = 1000
MAX_REDIRECTS = 5
DEFAULT_HEADERS = {
    "accept": "application/json",
    "accept-encoding": "gzip, deflate",
    "user-agent": f"specclient/{__version__}",
}
_UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_SECRET_HEADERS = frozenset({"authorization", "api-key", "x-api-key", "cookie", "proxy-authorization"})


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
        context = self.verify if isinstance(self.verify, ssl.SSLContext) else self._made()
        if self.client_cert is not None:
            try:
                context.load_cert_chain(Path(self.client_cert).expanduser())
            except OSError as error:
                raise ConfigError(
                    f"client_cert: {self.client_cert!r} is no PEM file with a certificate and key ({error})."
                ) from None
        return context

    def _made(self) -> ssl.SSLContext:
        import httpx

        if isinstance(self.verify, str):
            where = Path(self.verify).expanduser()
            folder, file = (where, None) if where.is_dir() else (None, where)
            try:
                return ssl.create_default_context(cafile=file, capath=folder)
            except OSError as error:
                raise ConfigError(f"verify: {self.verify!r} holds no certificates ({error}).") from None
        if not self.verify:
            log.warning("certificates are not verified: verify=False")
        return httpx.create_ssl_context(verify=bool(self.verify))


FAULTS: tuple[type[Exception], ...] = (
    LimitReached,
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
)
"""What a transport may raise. Anything else passes through untouched: it must never be retried."""


def translated(error: Exception, wire: Wire, send: Send) -> Exception:
    """One of FAULTS as an error of ours."""
    if isinstance(error, LimitReached):
        return timed_out(error, send)
    if isinstance(error, httpcore.TimeoutException):
        return timed_out(wire.reached(), send)
    if isinstance(error, httpcore.UnsupportedProtocol):
        return ConfigError(f"base_url {send.host!r} is not an http:// or https:// address.")
    if isinstance(error, httpcore.LocalProtocolError):
        return ConfigError(f"The request to {send.host} is not valid HTTP; look at the configured headers.")
    message = f"The connection to {send.host} failed: {_sentence(error)}."
    return APIConnectionError(message, request=safe_request(send))


def timed_out(error: LimitReached, send: Send) -> APITimeoutError:
    """The error for a limit: which one, how long, where."""
    return APITimeoutError(
        f"No answer from {send.host} within the limit {error.limit} ({error.seconds:g} s).",
        limit=error.limit,
        request=safe_request(send),
    )


def _sentence(error: BaseException) -> str:
    """What is known of a fault: its own words, or those of what it came from."""
    cause: BaseException | None = error
    while cause is not None and not str(cause):
        cause = cause.__cause__ or cause.__context__
    return (type(error).__name__ if cause is None else str(cause)).rstrip(".")


def safe_request(send: Send) -> Any:
    """The request as an httpx one, for error attributes; what could be a secret is masked."""
    import httpx

    headers = {k: (MASK if k.lower() in _SECRET_HEADERS else v) for k, v in send.headers.items()}
    parts = urlsplit(send.url)
    pairs = [
        (k, v if k == "api-version" else MASK) for k, v in parse_qsl(parts.query, keep_blank_values=True)
    ]
    url = urlunsplit(parts._replace(netloc=send.host, query=urlencode(pairs, safe="*")))
    return httpx.Request(send.method, url, headers=headers)


def core_request(send: Send, wire: Wire) -> httpcore.Request:
    headers: list[tuple[bytes, bytes]] = [(b"Host", send.host.encode("ascii"))]
    headers += [(k.encode("ascii", "replace"), _header_value(k, v)) for k, v in send.headers.items()]
    if send.body or send.method != "GET":
        headers.append((b"Content-Length", str(len(send.body)).encode()))
    timeouts: dict[str, Any] = {"connect": wire, "read": wire, "write": wire, "pool": wire.pool()}
    wire.joins_body = bool(send.body)
    return httpcore.Request(
        send.method, _url(send.url), headers=headers, content=send.body, extensions={"timeout": timeouts}
    )


@lru_cache(maxsize=256)
def _url(address: str) -> httpcore.URL:
    return httpcore.URL(address)


def _header_value(name: str, value: str) -> bytes:
    """A header's value as bytes. What is wrong with it is said here, because h11 would quote it."""
    if _UNSENDABLE.search(value) or value != value.strip():
        raise ConfigError(f"The value of header {name} holds a line break, or blanks at its ends.")
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        raise ConfigError(f"The value of header {name} holds a character that no header can.") from None


def response_headers(raw: list[tuple[bytes, bytes]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found


def redirected(send: Send, status: int, headers: Mapping[str, str]) -> Send | None:
    """The request to make after a redirect, or None where it is not one that can be followed.

    To another scheme, host or port it goes without any header that may hold a secret, and a POST whose
    method the redirect would change is not followed at all.
    """
    if status not in (301, 302, 303, 307, 308) or "location" not in headers:
        return None
    if send.method != "GET" and status not in (307, 308):
        return None
    url = _address(send.url, headers["location"])
    if url is None:
        return None
    old, new = urlsplit(send.url), urlsplit(url)
    if (old.scheme, old.netloc) == (new.scheme, new.netloc):
        return replace(send, url=url)
    kept = {k: v for k, v in send.headers.items() if k in DEFAULT_HEADERS or k.lower() == "content-type"}
    return replace(send, url=url, headers=kept)


def _address(url: str, location: str) -> str | None:
    """Where a redirect leads; None where that is no other address than before, or none of HTTP."""
    try:
        following = quote(urljoin(url, location.strip()).encode("latin-1"), safe="%:/?#[]@!$&'()*+,;=~")
        parts = urlsplit(following)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        return None
    return following if known and following != url else None
