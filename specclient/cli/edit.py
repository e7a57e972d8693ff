"""`specclient edit`: regenerate a file with an edit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specclient.cli import options
from specclient.cli.terminal import guarded, note, stderr, write_json

if TYPE_CHECKING:
    from specclient.edit import FileEdit


@guarded
def edit(
    file: Annotated[Path, typer.Argument(help="The file to regenerate.", show_default=False)],
    instruction: Annotated[
        str | None, typer.Option("--instruction", "-i", help="What to change; '-' reads it from stdin.")
    ] = None,
    instruction_file: Annotated[
        Path | None, typer.Option("--instruction-file", help="A file that says what to change.")
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", "-w", help="Replace the file (default: print the diff).")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Write although the answer looks wrong.")] = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="Take blanks, quotes and dashes as the model wrote them.")
    ] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Run without and with the prediction, and print both.")
    ] = False,
    predict: Annotated[
        bool, typer.Option("--prediction/--no-prediction", help="Send the file as the prediction.")
    ] = True,
    encoding: Annotated[
        str | None, typer.Option("--encoding", help="The file's encoding, if not UTF-8.")
    ] = None,
    target: options.TargetName = None,
    provider: options.Provider = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    max_tokens: options.MaxTokens = None,
    own_temperature: Annotated[
        bool, typer.Option("--own-temperature", help="Leave the temperature to the endpoint (default: 0).")
    ] = False,
    config: options.ConfigPath = None,
    as_json: options.Json = False,
) -> None:
    """Regenerate FILE with an edit, the file itself being the prediction.

    The unified diff goes to stdout; what the prediction bought and where the time went go to stderr.
    """
    from specclient.cli.clients import open_client
    from specclient.edit import EditRun
    from specclient.errors import ConfigError

    if compare and (write or not predict):
        raise ConfigError(
            "--compare prints both runs and writes nothing: leave --write and --no-prediction out."
        )
    wanted = _instruction(instruction, instruction_file)
    settings: dict[str, Any] = {"exact": exact, "encoding": encoding, **options.chosen(max_tokens=max_tokens)}
    if own_temperature:
        settings["temperature"] = None
    # What is wrong with the file is said before a model is fetched.
    EditRun.start(file, wanted, write=write, **settings)
    with open_client(target, provider, model, base_url=base_url, config=config) as client:
        if compare:
            from specclient.cli.compare import compare_edit

            compare_edit(client, file, wanted, as_json=as_json, **settings)
            return
        result = run_edit(client, file, wanted, predict=predict, **settings)
    show_warnings(result)
    if write:
        result.write(force=force)
    if as_json:
        write_json(as_dict(result))
    else:
        _print(result)


def _print(result: FileEdit) -> None:
    """The diff, unless it was written; then what happened and where the time went."""
    from specclient.cli.account import print_account

    if not result.written:
        print_diff(result)
    if not result.changed:
        note(f"{result.path}: the answer is the file as it was")
    elif result.written:
        note(f"{result.path}: written")
    if result.report is not None:
        print_account(result.report, stderr())


def run_edit(client: Any, file: Path, instruction: str, *, predict: bool = True, **settings: Any) -> FileEdit:
    """One edit with its progress on stderr; nothing is written."""
    from specclient.cli.progress import LiveText
    from specclient.edit import edit_file

    title = f"{file.name}, {'with' if predict else 'without'} prediction"
    with LiveText(title, file.stat().st_size) as live:
        return edit_file(client, file, instruction, predict=predict, on_text=live.feed, **settings)


def as_dict(edit: FileEdit) -> dict[str, Any]:
    """The JSON form of an edit."""
    return {
        "path": str(edit.path),
        "changed": edit.changed,
        "written": edit.written,
        "encoding": edit.image.encoding,
        "line_ending": edit.image.line_ending,
        "text": edit.text,
        "diff": edit.diff(),
        "warnings": [
            {"code": warning.code, "text": warning.text, "blocks": warning.blocks}
            for warning in edit.warnings
        ],
        "specclient": edit.report,
    }


def print_diff(edit: FileEdit) -> None:
    """The diff on stdout: in colour on a terminal, else in the file's own bytes, so that it applies."""
    diff = edit.diff()
    if sys.stdout.isatty():
        from specclient.cli.terminal import stdout

        stdout().print(_coloured(diff), end="", soft_wrap=True)
        return
    codec = edit.image.encoding if "\n".encode(edit.image.encoding) == b"\n" else "utf-8"
    sys.stdout.flush()
    sys.stdout.buffer.write(diff.encode(codec))
    sys.stdout.buffer.flush()


def _coloured(diff: str) -> Any:
    from rich.text import Text

    text = Text()
    for line in diff.splitlines(keepends=True):
        head = line[:3] in ("---", "+++")
        style = "bold" if head else {"+": "green", "-": "red", "@": "cyan"}.get(line[0], "")
        text.append(line, style=style)
    return text


def _instruction(text: str | None, file: Path | None) -> str:
    from specclient.errors import ConfigError
    from specclient.textfile import FileImage

    if (text is None) == (file is None):
        raise ConfigError("Say what to change by either --instruction or --instruction-file.")
    if file is not None:
        return FileImage.load(file).text
    return sys.stdin.read() if text == "-" else text or ""


def show_warnings(edit: FileEdit) -> None:
    for warning in edit.warnings:
        note(f"{'warning' if warning.blocks else 'note'}: {warning}")
