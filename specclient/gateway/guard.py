"""Who may ask, and how much: checked before anything is read or planned.

A server on loopback is reachable from every web page that its user visits. A page cannot set the Host
header, so a name that is not ours means DNS rebinding; it cannot hide its Origin, so an Origin that is
not allowed means a foreign page; and it cannot send JSON without asking first, so a POST of any other
kind is refused. A token, where one is set, is compared in constant time.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

from specclient.config.serving import ServeSettings, is_loopback
from specclient.gateway.answers import Problem, problem_response
from specclient.gateway.metrics import Metrics

OPEN_PATHS = frozenset({"/healthz"})
UNCOUNTED_PATHS = OPEN_PATHS | {"/metrics"}
"""Answered however busy the server is: that is when somebody looks."""
_AS_KEY = (
    "send the one that it was started with as the API key (Authorization: Bearer …; specclient's clients "
    "take it from SPECCLIENT_API_KEY)."
)
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Guard:
    """ASGI middleware around everything that the server answers."""

    def __init__(self, app: ASGIApp, settings: ServeSettings, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics
        self._settings = settings
        self._token = None if settings.token is None else settings.token.get_secret_value().encode()
        self._hosts = frozenset(_known_hosts(settings))
        self._origins = frozenset(settings.allowed_origins)
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        problem = self._problem(scope)
        if problem is not None:
            self._metrics.refused(problem.status)
            await problem_response(problem)(scope, receive, send)
            return
        if scope["path"] in UNCOUNTED_PATHS:
            await self._app(scope, receive, send)
            return
        if self._in_flight >= self._settings.max_requests:
            busy = Problem(
                429,
                f"This server answers {self._settings.max_requests} requests at once (serve.max_requests); "
                f"try again in a moment.",
                kind="rate_limit_error",
                code="too_many_requests",
                retry_after=1,
            )
            self._metrics.refused(busy.status)
            await problem_response(busy)(scope, receive, send)
            return
        self._in_flight += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._in_flight -= 1

    def _problem(self, scope: Scope) -> Problem | None:
        headers = {name.lower(): value for name, value in scope["headers"]}
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if self._hosts and _without_port(host) not in self._hosts:
            return Problem(421, "This server is not known by that name; add it to serve.allowed_hosts.")
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1") not in self._origins:
            return Problem(403, "Web pages may not call this server; add theirs to serve.allowed_origins.")
        if scope["path"] in OPEN_PATHS or scope["method"] == "OPTIONS":
            return None
        if self._token is not None and (said := self._unknown(headers.get(b"authorization", b""))):
            return Problem(401, said, kind="authentication_error", code="invalid_api_key")
        if scope["method"] == "POST" and not _is_json(headers.get(b"content-type", b"")):
            return Problem(415, "Requests to this server are JSON: send content-type: application/json.")
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > self._settings.max_body_bytes:
            return too_large(self._settings)
        return None

    def _unknown(self, authorization: bytes) -> str | None:
        """What is wrong with a request's token; None where it is ours."""
        assert self._token is not None
        kind, _, given = authorization.partition(b" ")
        if kind.lower() != b"bearer" or not given.strip():
            return f"This specclient server asks for its token, and none came: {_AS_KEY}"
        if not hmac.compare_digest(given.strip(), self._token):
            return f"The token that came is not this specclient server's: {_AS_KEY}"
        return None


def too_large(settings: ServeSettings) -> Problem:
    """The body is larger than the server takes."""
    return Problem(413, f"The request is larger than {settings.max_body_bytes} bytes (serve.max_body_bytes).")


def _known_hosts(settings: ServeSettings) -> Iterable[str]:
    """Names in the Host header; none at all where a token protects an address open to any name."""
    if not is_loopback(settings.host) and not settings.allowed_hosts:
        return ()
    bound = f"[{settings.host}]" if ":" in settings.host else settings.host
    return {*LOOPBACK_NAMES, bound.lower(), *(name.lower() for name in settings.allowed_hosts)}


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() and not name.endswith(":") else host


def _is_json(content_type: bytes) -> bool:
    return content_type.partition(b";")[0].strip().lower() == b"application/json"
