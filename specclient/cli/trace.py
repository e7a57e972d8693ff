"""`specclient trace`: a recorded call as a waterfall."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from specclient.cli import options
from specclient.cli.terminal import guarded, note, read_stdin, stdout, write_json


@guarded
def trace(
    recording: Annotated[
        str,
        typer.Argument(
            help="A file with reports (from --json) or OTLP spans, as JSON or JSON lines; '-' for stdin."
        ),
    ],
    html: Annotated[
        Path | None, typer.Option("--html", help="Also write the waterfall to this file.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Draw where the time of recorded calls went, and who measured it."""
    from specclient.errors import ConfigError, FileError
    from specclient.tracing.page import page
    from specclient.tracing.recordings import NotARecording, pictures
    from specclient.tracing.waterfall import Waterfall

    try:
        drawn = pictures(_read(recording))
    except NotARecording as error:
        name = "stdin" if recording == "-" else recording
        raise ConfigError(f"{name} cannot be drawn: {error}.") from None
    if html is not None:
        try:
            html.write_text(page(drawn), encoding="utf-8")
        except OSError as error:
            raise FileError(f"{html} cannot be written: {error.strerror}.") from error
        note(f"wrote {html}")
    if as_json:
        write_json([asdict(picture) for picture in drawn])
        return
    console = stdout()
    for picture in drawn:
        console.print(Waterfall(picture))


def _read(recording: str) -> str:
    from specclient.errors import FileError

    try:
        return read_stdin() if recording == "-" else Path(recording).read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"{recording} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise FileError(f"{recording} is not UTF-8 text.") from None
