"""`specclient serve`: an OpenAI-compatible address for everything that takes one."""

from __future__ import annotations

from types import ModuleType
from typing import Annotated

import typer

from specclient.cli import options
from specclient.cli.terminal import guarded, note, write_json


@guarded
def serve(
    host: Annotated[
        str | None, typer.Option("--host", help="Address to listen on (default: loopback).")
    ] = None,
    port: Annotated[int | None, typer.Option("--port", help="Port; 0 takes a free one.")] = None,
    token_env: Annotated[
        str | None, typer.Option("--token-env", help="Environment variable with the token to ask of clients.")
    ] = None,
    target: options.TargetName = None,
    provider: options.Provider = None,
    model: options.Model = None,
    config: options.ConfigPath = None,
    as_json: options.Json = False,
) -> None:
    """Serve the configured targets over an OpenAI-compatible address, until interrupted.

    A target's name is the model to ask for. The address goes to stdout once it accepts connections.
    """
    from specclient.cli.clients import load_served, serving_config

    package = gateway()
    from specclient.gateway.run import check_address

    loaded = serving_config(target, provider, model, config)
    settings = package.ServeSettings.of(loaded, host=host, port=port, token_env=token_env)
    check_address(settings.host, settings.port)
    load_served(loaded, host=host, port=port, token_env=token_env)

    def ready(url: str) -> None:
        if as_json:
            write_json({"url": url, "targets": sorted(loaded.targets) or ["local"]})
        else:
            print(url, flush=True)
            note(f"serving {', '.join(sorted(loaded.targets)) or 'local'}; Ctrl-C stops")

    def stopping(answers: int) -> None:
        under_way = "1 answer is" if answers == 1 else f"{answers} answers are"
        note(
            f"{under_way} under way and may take {settings.shutdown_seconds:g} s more; Ctrl-C again stops now"
        )

    package.serve(loaded, host=host, port=port, token_env=token_env, on_ready=ready, on_stopping=stopping)


def gateway() -> ModuleType:
    """The server's package. Raises ConfigError where its libraries are not installed."""
    from specclient.errors import ConfigError

    try:
        from specclient import gateway as package
    except ModuleNotFoundError as error:
        raise ConfigError(str(error)) from None
    return package
