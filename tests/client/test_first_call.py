"""What a first call has to import is imported before its clock starts."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
import specclient
from specclient.client.base import ClientBase
from tests.server import ScriptedServer, completion, reply

loaded = {}
load = ClientBase.load_transports

def remembered(client):
    load(client)
    loaded.update(sys.modules)

ClientBase.load_transports = remembered
with ScriptedServer() as server:
    server.play(reply(completion("Hello")))
    url = server.origin + "/v1"
    with specclient.Client(base_url=url, provider="openai_compatible", model="m", api_key="k") as client:
        client.chat.completions.create(messages=[{"role": "user", "content": "x"}])
late = [name for name in sys.modules if name not in loaded]
print(*(name for name in late if name.partition(".")[0] in {"specclient", "httpcore", "urllib", "ssl"}))
"""


def test_a_first_call_imports_nothing_while_it_is_timed() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=60
    )
    assert ended.stdout.split() == []
