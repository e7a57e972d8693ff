"""The application: routes, the guard around them, and errors in OpenAI's shape."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from specclient._version import __version__
from specclient.config import Config, load_config
from specclient.config.serving import ServeSettings
from specclient.errors import ConfigError
from specclient.gateway.answers import Problem, json_response, problem_response
from specclient.gateway.completions import Completions
from specclient.gateway.guard import Guard
from specclient.gateway.metrics import Metrics
from specclient.gateway.targets import Targets
from specclient.tracing import DEFAULT_OPTIONS, TracingOptions

_MADE_BY = {
    "config": "what specclient.config.load_config() returns",
    "settings": "a specclient.gateway.ServeSettings",
}


def create_app(
    config: Config | None = None,
    settings: ServeSettings | None = None,
    *,
    tracing: TracingOptions = DEFAULT_OPTIONS,
    engine: Any = None,
) -> Starlette:
    """The server as an ASGI application, for a server of your own or for tests.

    `config` defaults to the one found from the working directory, `settings` to its `[serve]` table,
    `engine` is a loaded engine for targets of provider `local`. Raises ConfigError for what cannot work.
    """
    config = load_config() if config is None else config
    for name, given, kind in (("config", config, Config), ("settings", settings, ServeSettings | None)):
        if not isinstance(given, kind):
            raise ConfigError(f"{name} of create_app() is {_MADE_BY[name]}, not {type(given).__name__}.")
    settings = settings or ServeSettings.of(config)
    targets = Targets(config, settings.targets, tracing, engine, models=settings.models)
    targets.check()
    metrics = Metrics({*config.targets, *targets.resolved, "local"})

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await targets.close()

    async def models(_: Request) -> Response:
        return json_response({"object": "list", "data": [_model(targets, name) for name in targets.resolved]})

    async def model(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in targets.resolved:
            return problem_response(targets.unknown(name))
        return json_response(_model(targets, name))

    async def scrape(request: Request) -> Response:
        content, content_type = metrics.exposition(request.headers.get("accept", ""))
        return Response(content, headers={"content-type": content_type})

    async def health(_: Request) -> Response:
        return json_response({"status": "ok", "version": __version__})

    def serving(api: str) -> Completions:
        return Completions(api, targets, settings, tracing, metrics)

    middleware = [Middleware(Guard, settings=settings, metrics=metrics)]
    if settings.allowed_origins:
        cors = Middleware(
            CORSMiddleware,
            allow_origins=settings.allowed_origins,
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type"],
        )
        middleware.insert(0, cors)
    return Starlette(
        routes=[
            Route("/v1/chat/completions", serving("chat"), methods=["POST"]),
            Route("/v1/completions", serving("completions"), methods=["POST"]),
            Route("/v1/models", models, methods=["GET"]),
            Route("/v1/models/{name:path}", model, methods=["GET"]),
            Route("/healthz", health, methods=["GET"]),
            Route("/metrics", scrape, methods=["GET"]),
        ],
        middleware=middleware,
        exception_handlers={HTTPException: _http_problem, Exception: _fault},
        lifespan=lifespan,
    )


def _model(targets: Targets, name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": targets.resolved[name].provider}


async def _http_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    told = {
        404: "This server has no such path; it speaks /v1/chat/completions, /v1/completions and /v1/models.",
        405: f"{request.method} is not for this path.",
    }
    return problem_response(Problem(error.status_code, told.get(error.status_code, error.detail)))


async def _fault(_: Request, error: Exception) -> Response:
    return problem_response(Problem(500, f"The server failed: {type(error).__name__}.", "server_error"))
