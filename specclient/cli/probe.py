"""`specclient probe`: which server answers at an address, and what it can do with a prediction."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from specclient.cli import options
from specclient.cli.terminal import EXIT_FAILED, guarded, note, stdout, write_json

if TYPE_CHECKING:
    import httpx

    from specclient_providers.detection import Detected


@guarded
def probe(
    url: Annotated[str, typer.Argument(help="The server's address.", show_default=False)],
    api_key_env: Annotated[
        str | None, typer.Option("--api-key-env", help="Environment variable with the server's key.")
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, max=3600, help="Seconds for each question.")
    ] = 5.0,
    as_json: options.Json = False,
) -> None:
    """Tell which server answers at URL, its models, how it speculates, and what to switch on.

    A few GET requests for public pages; no prompt is sent.
    """
    import httpx

    from specclient.config.masking import without_password
    from specclient_providers.detection import detect

    address = _root(url)
    root = without_password(address)
    with httpx.Client(base_url=address, headers=_headers(api_key_env), timeout=timeout) as client:
        questions = _Questions(client)
        found = detect(questions)
    if not questions.answered:
        said = (
            f"nothing answers at {root} ({questions.fault or 'no connection'}): is the server started, and "
            f"are host and port its own?"
        )
        if as_json:
            write_json({"url": root, "error": {"type": "APIConnectionError", "message": said}})
        note(f"error: {said}")
        raise typer.Exit(EXIT_FAILED)
    if as_json:
        write_json({"url": root, **asdict(found), "refused": questions.refused})
    else:
        stdout().print(_table(root, found))
    if questions.refused is not None:
        given = "another key" if api_key_env else "its key, by --api-key-env NAME"
        note(f"{root} answers {questions.refused} to what is not public: give {given}, to see more.")


def _root(url: str) -> str:
    from specclient.config.sendable import fault_in_address
    from specclient.errors import ConfigError

    url = url.strip() if "://" in url else f"http://{url.strip()}"
    if (said := fault_in_address(url)) is not None:
        raise ConfigError(f"The address to probe {said}.")
    parts = urlsplit(url)
    try:
        _ = parts.port
    except ValueError as error:
        raise ConfigError(f"The address to probe is no address: {error}.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError("The address to probe begins with http:// or https://.")
    path = parts.path.rstrip("/").removesuffix("/chat/completions").removesuffix("/v1")
    return f"{parts.scheme}://{parts.netloc}{path}"


def _headers(variable: str | None) -> dict[str, str]:
    from specclient.config.sendable import fault_in_header_value
    from specclient.errors import ConfigError

    if variable is None:
        return {}
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ConfigError(f"The environment variable {variable} is not set.")
    if (said := fault_in_header_value(key)) is not None:
        raise ConfigError(f"The environment variable {variable} {said}: it is to hold the key alone.")
    return {"Authorization": f"Bearer {key}"}


class _Questions:
    """Asks the server what detection wants to know; remembers whether anything answered."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.answered = False
        self.fault = ""
        self.refused: int | None = None
        """The status by which the server asked for a key, or for another one."""

    def __call__(self, method: str, path: str) -> tuple[int, Mapping[str, str], Any] | None:
        import httpx

        try:
            response = self.client.request(method, path)
        except httpx.HTTPError as error:
            self.fault = type(error).__name__
            return None
        self.answered = True
        if response.status_code in (401, 403):
            self.refused = response.status_code
        try:
            body = response.json()
        except ValueError:
            body = response.text
        return response.status_code, response.headers, body


def _table(root: str, found: Detected) -> Any:
    from rich.table import Table
    from rich.text import Text

    from specclient.facts import capabilities

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column("", style="dim", no_wrap=True)
    table.add_column("", overflow="fold")
    speculating = {True: "on", False: "off", None: "not told"}[found.speculating]
    rows = [
        ("address", root),
        ("server", f"{found.server} {found.version or ''}".strip()),
        ("provider", found.provider),
        *(("model", model) for model in found.models),
        ("prediction", capabilities(found.provider).prediction.state),
        ("speculation", f"{speculating}{f', {found.method}' if found.method else ''}"),
        *(("works", text) for text in found.works),
        *(("advice", text) for text in found.switch_on),
        *(("seen", text) for text in found.evidence),
    ]
    for label, value in rows:
        table.add_row(label, Text(value))
    return table
