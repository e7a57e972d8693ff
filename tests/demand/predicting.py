"""A: calls with a prediction, to the scripted server in the place of any provider."""

from __future__ import annotations

from typing import Any

from tests.conformance.all_doors import FOREVER
from tests.doors import SyncDoor
from tests.server import completion, reply

KNOWN = "def total(items):\n    return sum(items)\n"


OBJECT = {"type": "content", "content": KNOWN}


TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


WILLISON = {
    "prompt_tokens": 158,
    "completion_tokens": 226,
    "total_tokens": 384,
    "completion_tokens_details": {"accepted_prediction_tokens": 49, "rejected_prediction_tokens": 107},
}


def at(door: SyncDoor, provider: str, model: str = "m", **more: Any) -> None:
    """A client of the scripted server as if it were that provider, on any day."""
    url = door.server.origin if provider == "azure" else door.server.url
    until = {"prediction": {"until": FOREVER[provider]}} if provider in FOREVER else {}
    overrides = until | more.pop("overrides", {})
    door.make(provider=provider, model=model, base_url=url, overrides=overrides, **more)


def ask(door: SyncDoor, answer: Any = None, **arguments: Any) -> Any:
    """One call with the prediction: its report. `door.sent` is the body."""
    door.server.play(reply(completion()) if answer is None else answer)
    return door.create(**{"prediction": KNOWN, **arguments}).specclient
