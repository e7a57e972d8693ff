"""What is logged, and how to see it.

The logger is `specclient`: one line a call at INFO (target, outcome, prediction, tries, seconds), and that
in all. Never a key, a prompt, a prediction or an answer. `SPECCLIENT_LOG` or
`OPENAI_LOG` set to `info` or `debug` shows it on stderr, for applications that set up no logging.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

log = logging.getLogger("specclient")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO}


def from_environment(env: Mapping[str, str] = os.environ) -> None:
    """Show the log on stderr where the environment asks for it, once."""
    asked = env.get("SPECCLIENT_LOG") or env.get("OPENAI_LOG") or ""
    level = _LEVELS.get(asked.strip().lower())
    if level is None or log.handlers:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("[%(asctime)s %(name)s %(levelname)s] %(message)s"))
    log.addHandler(handler)
    log.setLevel(level)
