"""`specclient launch`: start a tool that speaks to OpenAI, with our server as its OpenAI."""

from __future__ import annotations

import secrets
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specclient.cli import options
from specclient.cli.surroundings import given
from specclient.cli.terminal import guarded, note

if TYPE_CHECKING:
    from specclient.config import Config

_START_SECONDS = 30.0
_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


@guarded
def launch(
    command: Annotated[list[str], typer.Argument(help="The tool and its arguments.", show_default=False)],
    target: options.TargetName = None,
    provider: options.Provider = None,
    model: options.Model = None,
    config: options.ConfigPath = None,
) -> None:
    """Start a tool with OPENAI_BASE_URL and OPENAI_API_KEY leading to our server; its exit code is returned.

    The server listens on a free loopback port, asks for a token that only the tool gets, and ends with it.
    """
    from specclient.cli.clients import load_served, serving_config
    from specclient.cli.serve import gateway
    from specclient.errors import ConfigError

    if shutil.which(command[0]) is None:
        raise ConfigError(
            f"{command[0]} cannot be started: it is neither on the PATH nor the path of a program; "
            f"install it first."
        )
    gateway()
    loaded = serving_config(target, provider, model, config)
    served = load_served(loaded)
    token = secrets.token_urlsafe(24)
    with _running(loaded, token) as url:
        note(f"starting {command[0]}: target {served} answers it at {url} until it ends")
        try:
            code = _run(command, environment(command[0], url, token, served))
        except OSError as error:
            raise ConfigError(f"{command[0]} cannot be started: {error.strerror}.") from None
    raise typer.Exit(code)


def environment(tool: str, url: str, token: str, model: str) -> dict[str, str]:
    """What a tool reads its address, key and model from.

    Most read OPENAI_BASE_URL (OpenAI's own SDKs) or the older OPENAI_API_BASE. Beyond that: aider's model
    names the wire format (https://aider.chat/docs/llms/openai-compat.html), goose takes the address
    without its path (https://goose-docs.ai/docs/getting-started/providers).
    """
    common = {"OPENAI_BASE_URL": url, "OPENAI_API_BASE": url, "OPENAI_API_KEY": token, "OPENAI_MODEL": model}
    own: Mapping[str, Mapping[str, str]] = {
        "aider": {"AIDER_MODEL": f"openai/{model}"},
        "goose": {"GOOSE_PROVIDER": "openai", "GOOSE_MODEL": model, "OPENAI_HOST": url.removesuffix("/v1")},
    }
    return {**common, **own.get(PurePath(tool).stem.lower(), {})}


def _run(command: list[str], variables: Mapping[str, str]) -> int:
    """Run the tool in the foreground.

    An interrupt is for the tool, which shares the terminal; what would end us alone is passed on to it,
    because it has no server without us.
    """
    told: list[int] = []
    child: subprocess.Popen[bytes] | None = None

    def pass_on(number: int, _: object) -> None:
        told.append(number)
        if child is not None:
            child.send_signal(number)

    # A handler, not SIG_IGN: that one would be inherited.
    before = {signal.SIGINT: signal.signal(signal.SIGINT, lambda *_: None)}
    heeded = [
        number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN
    ]  # as under nohup
    before |= {number: signal.signal(number, pass_on) for number in heeded}
    try:
        with subprocess.Popen(command, env={**given(), **variables}) as child:
            for number in told:  # before the tool was there
                child.send_signal(number)
            code = child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code


@contextmanager
def _running(config: Config, token: str) -> Iterator[str]:
    """Our server in a thread, on a free port; its address once it accepts connections."""
    import asyncio

    from specclient.errors import ConfigError
    from specclient.gateway.run import make_server

    ready = threading.Event()
    address: list[str] = []

    def on_ready(url: str) -> None:
        address.append(url)
        ready.set()

    server: Any = make_server(
        config, host="127.0.0.1", port=0, token=token, on_ready=on_ready, shutdown_seconds=1
    )
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), name="specclient-serve")
    thread.start()
    try:
        if not ready.wait(_START_SECONDS):
            raise ConfigError("The server did not start.")
        yield address[0]
    finally:
        server.should_exit = True
        thread.join()
