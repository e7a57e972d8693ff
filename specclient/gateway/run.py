"""`specclient serve`: the application under uvicorn, ended in good order."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import uvicorn

from specclient._version import __version__
from specclient.config import Config, load_config
from specclient.errors import ConfigError
from specclient.gateway.app import create_app
from specclient.gateway.settings import ServeSettings
from specclient.tracing import DEFAULT_OPTIONS, TracingOptions

KEEP_ALIVE_SECONDS = 75
"""Longer than the usual pools of clients keep a connection, so that the client closes it first."""


class Server(uvicorn.Server):
    """Tells its address once it accepts connections."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[str], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self.servers:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._on_ready(f"http://{f'[{host}]' if ':' in host else host}:{port}/v1")


def make_server(
    config: Config | None = None,
    *,
    tracing: TracingOptions = DEFAULT_OPTIONS,
    engine: Any = None,
    on_ready: Callable[[str], None] = lambda _: None,
    log_level: str = "warning",
    **arguments: Any,
) -> Server:
    """A server that has not begun. `arguments` are fields of `ServeSettings`.

    Raises ConfigError for a configuration that cannot be served, before anything listens.
    """
    config = config or load_config()
    settings = ServeSettings.of(config, **arguments)
    app = create_app(config, settings, tracing=tracing, engine=engine)
    return Server(
        uvicorn.Config(
            app,
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
    )


def serve(config: Config | None = None, **arguments: Any) -> None:
    """Serve until interrupted or told to stop; answers under way get `shutdown_seconds` to end.

    Takes what `make_server` takes. Raises ConfigError also when the address is taken.
    """
    server = make_server(config, **arguments)
    try:
        asyncio.run(server.serve())
    except SystemExit:
        bound = server.config
        raise ConfigError(
            f"Cannot listen on {bound.host}:{bound.port}: the address is taken or not this machine's."
        ) from None
