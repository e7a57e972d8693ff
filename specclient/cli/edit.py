"""`specclient edit`: regenerate a file with an edit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specclient.cli import options
from specclient.cli.outcome import print_diff, run_edit, show_warnings
from specclient.cli.terminal import EXIT_FAILED, as_typed, guarded, note, read_stdin, stderr, write_json

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

    The unified diff goes to stdout; what the prediction bought and where the time went go to stderr. Exit 1
    where the answer looks wrong, written or not, unless forced.
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
    expected = len(EditRun.start(file, wanted, write=write, **settings).image.text)
    # What is compared is one target: a fallback's answer would say nothing of it, and might not even document
    # what is asked of the engine.
    alone: dict[str, Any] = {"fallback": ()} if compare else {}
    with open_client(target, provider, model, base_url=base_url, config=config, **alone) as client:
        if compare:
            from specclient.cli.compare import compare_edit

            compare_edit(client, file, wanted, expected=expected, as_json=as_json, **settings)
            return
        result = run_edit(client, file, wanted, expected=expected, predict=predict, **settings)
    show_warnings(result)
    if write:
        _write(result, force=force, show=not as_json)
    if as_json:
        write_json(result.as_dict())
    else:
        _print(result)
    if not (result.written or force) and any(warning.blocks for warning in result.warnings):
        # A script goes on with the diff, as to `git apply`, where it would not with the file.
        note(f"error: {result.image.name}: look at the diff before you use it; --write would need --force.")
        raise typer.Exit(EXIT_FAILED)


def _write(result: FileEdit, *, force: bool, show: bool) -> None:
    """Replace the file; where that must not or cannot be, the diff is not lost with it."""
    from specclient.errors import FileError

    try:
        result.write(force=force)
    except FileError:
        if show:
            print_diff(result)
        raise


def _print(result: FileEdit) -> None:
    """The diff, unless it was written; then what happened and where the time went."""
    from specclient.cli.account import print_account

    if not result.written:
        print_diff(result)
    if not result.changed:
        note(f"{result.image.name}: the answer is the file as it was")
    elif result.written:
        note(f"{result.image.name}: written")
    if result.report is not None:
        print_account(result.report, stderr())


def _instruction(text: str | None, file: Path | None) -> str:
    from specclient.errors import ConfigError
    from specclient.textfile import FileImage

    if (text is None) == (file is None):
        raise ConfigError("Say what to change by either --instruction or --instruction-file.")
    if file is not None:
        return FileImage.load(file).text
    return read_stdin() if text == "-" else as_typed("--instruction", text) or ""
