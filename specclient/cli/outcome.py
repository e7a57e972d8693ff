"""An edit with its progress, and what came of it: as a diff and as warnings."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specclient.cli.terminal import note

if TYPE_CHECKING:
    from specclient.edit import FileEdit


def run_edit(
    client: Any,
    file: Path,
    instruction: str,
    *,
    expected: int,
    predict: bool = True,
    run: str | None = None,
    **settings: Any,
) -> FileEdit:
    """One edit with its progress on stderr, `expected` characters long; nothing is written.

    `run` names it in the progress, where there is more to tell than whether the prediction is sent.
    """
    from specclient.cli.progress import LiveText
    from specclient.edit import edit_file

    title = f"{file.name}, {run or ('with prediction' if predict else 'no prediction')}"
    with LiveText(title, expected) as live:
        return edit_file(client, file, instruction, predict=predict, on_text=live.feed, **settings)


def print_diff(edit: FileEdit) -> None:
    """The diff on stdout: in colour on a terminal, else in the file's own bytes, so that it applies."""
    diff = edit.diff()
    if sys.stdout.isatty():
        from specclient.cli.terminal import stdout

        # A name that is no text in this system's encoding cannot be drawn as it is.
        shown = diff.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        stdout().print(_coloured(shown), end="", soft_wrap=True)
        return
    codec = edit.image.encoding if "\n".encode(edit.image.encoding) == b"\n" else "utf-8"
    sys.stdout.flush()
    sys.stdout.buffer.write(diff.encode(codec, "surrogateescape"))
    sys.stdout.buffer.flush()


def _coloured(diff: str) -> Any:
    from rich.text import Text

    text = Text()
    for line in diff.splitlines(keepends=True):
        head = line[:3] in ("---", "+++")
        style = "bold" if head else {"+": "green", "-": "red", "@": "cyan"}.get(line[0], "")
        text.append(line, style=style)
    return text


def show_warnings(edit: FileEdit) -> None:
    for warning in edit.warnings:
        note(f"{'warning' if warning.blocks else 'note'}: {warning}")
