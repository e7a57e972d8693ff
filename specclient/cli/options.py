"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Write the result as JSON.")]
TargetName = Annotated[str | None, typer.Option("--target", "-t", help="A target of the configuration.")]
Provider = Annotated[
    str | None, typer.Option("--provider", "-p", help="A provider; 'local' is the embedded engine.")
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model", "-m", help="The model; for 'local' a known name, a folder, a GGUF file or a hub id."
    ),
]
BaseUrl = Annotated[str | None, typer.Option("--base-url", help="Address of the endpoint.")]
ApiVersion = Annotated[str | None, typer.Option("--api-version", help="API version (Azure).")]
ConfigPath = Annotated[
    Path | None, typer.Option("--config", help="Configuration file in place of the one that is found.")
]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", min=1, help="Length limit of the answer.")]


def chosen(**values: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in values.items() if value is not None}
