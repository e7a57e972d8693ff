"""`specclient serve`: the application under uvicorn, ended in good order."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from specclient._version import __version__
from specclient.config import Config, load_config
from specclient.config.serving import ServeSettings
from specclient.errors import ConfigError
from specclient.gateway.app import create_app
from specclient.tracing import DEFAULT_OPTIONS, TracingOptions

KEEP_ALIVE_SECONDS = 75
"""Longer than the usual pools of clients keep a connection, so that the client closes it first."""


LAST_WORDS_SECONDS = 1.0
"""What an answer gets that was cut off, to tell its client."""


class Server(uvicorn.Server):
    """Tells its address once it accepts connections, and what it waits for when it is told to stop."""

    def __init__(
        self, config: uvicorn.Config, on_ready: Callable[[str], None], on_stopping: Callable[[int], None]
    ) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self._on_stopping = on_stopping

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self.servers:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._on_ready(f"http://{f'[{host}]' if ':' in host else host}:{port}/v1")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self.server_state.tasks:
            self._on_stopping(len(self.server_state.tasks))
        await super().shutdown(sockets)
        left = set(self.server_state.tasks)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=LAST_WORDS_SECONDS)
        if self.force_exit:  # uvicorn leaves the application as it is then
            await self.lifespan.shutdown()


def _ended(app: ASGIApp) -> ASGIApp:
    """`app`, whose requests end where they are cancelled: only the server cancels them, when it stops.

    uvicorn would log that as a fault of the application.
    """

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await app(scope, receive, send)

    return run


def make_server(
    config: Config | None = None,
    *,
    tracing: TracingOptions = DEFAULT_OPTIONS,
    engine: Any = None,
    on_ready: Callable[[str], None] = lambda _: None,
    on_stopping: Callable[[int], None] = lambda _: None,
    log_level: str = "warning",
    **arguments: Any,
) -> Server:
    """A server that has not begun. `arguments` are fields of `ServeSettings`.

    `on_ready` gets the address, and `on_stopping` the number of answers that a stopping server waits for.

    Raises ConfigError for a configuration that cannot be served, before anything listens.
    """
    config = config or load_config()
    settings = ServeSettings.of(config, **arguments)
    app = create_app(config, settings, tracing=tracing, engine=engine)
    return Server(
        uvicorn.Config(
            _ended(app),
            host=settings.host,
            port=settings.port,
            log_level=log_level,
            access_log=False,
            server_header=False,
            headers=[("Server", f"specclient/{__version__}")],
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=int(settings.shutdown_seconds),
            lifespan="on",
        ),
        on_ready,
        on_stopping,
    )


def check_address(host: str, port: int) -> None:
    """Raise ConfigError where nothing can listen, before a model is loaded for it."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, number) as trial:
            if os.name == "posix":  # as the server itself will: what only lingers is no hindrance
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, error.strerror or str(error))
        raise ConfigError(
            f"Cannot listen on {host}:{port}: {reason}. Give another by --port (0 takes a free one) and "
            f"--host, or by serve.port and serve.host."
        ) from None


_REASONS = {
    errno.EADDRINUSE: "the port is taken",
    errno.EADDRNOTAVAIL: "the address is not this machine's",
    errno.EACCES: "this user may not take the port",
}


def serve(config: Config | None = None, **arguments: Any) -> None:
    """Serve until interrupted or told to stop; answers under way get `shutdown_seconds` to end.

    Takes what `make_server` takes. Raises ConfigError also when the address is taken.
    """
    server = make_server(config, **arguments)
    bound = server.config
    check_address(bound.host, bound.port)
    try:
        asyncio.run(server.serve())
    except SystemExit:
        raise ConfigError(f"Cannot listen on {bound.host}:{bound.port}: the port was just taken.") from None
