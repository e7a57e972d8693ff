"""What the two HTTP transports share: requests, headers, redirects, proxies, pools and errors.

httpx itself takes one read timeout for a whole body. httpcore hands the `timeout` through to the network
stream unread, so that a `Wire` can be asked before every read; that, and nothing else, is why this room
stands one floor below httpx. Certificates come from `httpx.create_ssl_context` (SSL_CERT_FILE and
SSL_CERT_DIR hold), proxies from the usual environment variables. The transports themselves are
`http_sync.py` and `http_async.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urljoin, urlsplit, urlunsplit

import httpcore

from specclient.config.masking import MASK
from specclient.config.sendable import fault_in_header_value
from specclient.core.send import DEFAULT_HEADERS, Send
from specclient.core.wire import LimitReached, Wire
from specclient.errors import APIConnectionError, APITimeoutError, ConfigError

MAX_REDIRECTS = 5
UNASKED = "the server sent an answer before it was asked"
"""Behind the end of the answer before, in one read with it: it is nobody's."""
_SECRET_HEADERS = frozenset({"authorization", "api-key", "x-api-key", "cookie", "proxy-authorization"})


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
    if (said := fault_in_header_value(value)) is not None:
        raise ConfigError(f"The value of header {name} {said}.")
    return value.encode("latin-1")


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
