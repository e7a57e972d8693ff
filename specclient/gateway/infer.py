"""Known text for clients that cannot send any: the file that they pasted into the prompt.

Editors ask a model to rewrite a file by quoting it. The largest quoted block of the last user messages is
then the best guess at the answer. It is only a guess, so it is off unless a target asks for it, and a
report that rests on it says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from specclient.prediction import Prediction
from specclient.report import Reason

SHORTEST = 80
"""Characters: a shorter block is an example or a name, and predicting it gains nothing."""

MESSAGES = 3
"""How many of the last user messages are looked at."""

_FENCED = re.compile(r"^(`{3,}|~{3,})[^\n`]*\n(.*?)^\1\s*$", re.DOTALL | re.MULTILINE)
_TAGGED = re.compile(r"<(file|code|document|content|source)\b[^>]*>\n?(.*?)</\1>", re.DOTALL | re.IGNORECASE)

INFERRED = Reason(
    code="inferred",
    text="The client sent no prediction; the largest quoted block of its last messages was taken for one "
    "(infer_prediction).",
)


def inferred_prediction(request: Mapping[str, Any]) -> tuple[Prediction | None, Reason]:
    """The quoted text that the answer probably repeats, or None, and the reason for either."""
    longest = max(_quoted(request.get("messages")), key=len, default="")
    if len(longest) >= SHORTEST:
        return Prediction(longest), INFERRED
    found = f"the largest has {len(longest)}" if longest else "there is none"
    text = (
        f"The client sent no prediction, and a quoted block of its last {MESSAGES} messages is taken for one "
        f"from {SHORTEST} characters on: {found} (infer_prediction)."
    )
    return None, Reason(code="not_inferred", text=text)


def _quoted(messages: Any) -> list[str]:
    if not isinstance(messages, list):
        return []
    users = [
        message for message in messages if isinstance(message, Mapping) and message.get("role") == "user"
    ]
    return [block for message in users[-MESSAGES:] for block in _blocks(_text(message.get("content")))]


def _blocks(text: str) -> list[str]:
    return [found.group(2) for pattern in (_FENCED, _TAGGED) for found in pattern.finditer(text)]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, Mapping) and part.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))
