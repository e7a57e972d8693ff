"""The page docs/cli.md, written from the commands' own help.

python -m specclient.cli.reference > docs/cli.md
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_TERMINAL = {"COLUMNS": "100", "TERMINAL_WIDTH": "100"}


def page() -> str:
    """The whole page: what `--help` says, for every command."""
    sections = (f"## {name}\n\n```\n{_help(name)}\n```\n" for name in _names())
    head = (
        "# The command line\n\n"
        "Written from the commands' own help by `python -m specclient.cli.reference`; a test compares.\n\n"
    )
    return head + "\n".join(sections)


def _names() -> Iterator[str]:
    from typer.main import get_command

    from specclient.cli.app import app

    root: Any = get_command(app)
    yield "specclient"
    for name, command in root.commands.items():
        yield f"specclient {name}"
        for inner in getattr(command, "commands", {}):
            yield f"specclient {name} {inner}"


def _help(name: str) -> str:
    from typer.testing import CliRunner

    from specclient.cli.app import app

    arguments = [*name.split()[1:], "--help"]
    text = CliRunner(env=_TERMINAL).invoke(app, arguments, prog_name="specclient").output
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


if __name__ == "__main__":
    print(page(), end="")
