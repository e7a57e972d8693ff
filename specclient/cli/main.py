"""`specclient`: one module a command.

Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 the request failed or was refused,
2 usage or configuration, 130 interrupted.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the console script."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ModuleNotFoundError as error:
        print(
            f"The command line needs {error.name}: pip install 'specclient[cli]'.",
            file=sys.stderr,
        )
        sys.exit(2)
    from specclient.cli.app import app

    app(prog_name="specclient")
