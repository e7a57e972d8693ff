"""The proposers work wherever there is Python: no torch, no transformers."""

from __future__ import annotations

import subprocess
import sys


def test_proposers_need_nothing_but_python() -> None:
    program = (
        "import sys\n"
        "import specclient_engine.cost, specclient_engine.draft_length, specclient_engine.proposers\n"
        "print([name for name in ('torch', 'transformers', 'numpy', 'tokenizers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
