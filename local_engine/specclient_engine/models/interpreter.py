"""How this project starts a Python of its own: with this process's modules, and none of a foreign folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def python_command() -> list[str]:
    """This interpreter, told to take no module from the folder that it is called in: that may be anybody's.

    What this process was told about its environment and the user's own packages holds there too.
    """
    as_here = {"-E": sys.flags.ignore_environment, "-s": sys.flags.no_user_site}
    return [sys.executable, "-P", *(flag for flag, holds in as_here.items() if holds)]


def working_directory(otherwise: Path | str) -> str | None:
    """Where to start a process: None (here), or `otherwise` where this process's own folder was deleted."""
    try:
        os.getcwd()
    except OSError:
        return str(otherwise)
    return None
