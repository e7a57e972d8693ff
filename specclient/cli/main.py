"""`specclient`: one module a command.

Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 the request failed or was refused,
2 usage or configuration, 130 interrupted.
"""

from __future__ import annotations

import atexit
import gc
import os
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
    # A stream that the caller closed is None, and the next file opened would take its number.
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    from specclient.cli.surroundings import wait_asleep

    wait_asleep()
    from specclient.cli.app import app
    from specclient.cli.terminal import given_up, stdout_failed

    # Python collects garbage twice more on its way out, which takes seconds over all that torch made, and
    # the system takes the memory back anyway. Every file and thread is closed by its owner before.
    atexit.register(gc.freeze)
    try:
        try:
            app(prog_name="specclient")
        finally:
            sys.stdout.flush()  # what Python could only complain of on its way out
    except OSError as error:
        if not stdout_failed(error):
            raise
        sys.exit(given_up(error))
