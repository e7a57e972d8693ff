"""What no endpoint could answer in a request, told before anything is sent.

Only what is a slip for certain: the rest is the endpoint's to judge, and its own sentence is better.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_NEED_CONTENT = frozenset({"system", "developer", "user", "tool"})
_HALF_A_PAIR = re.compile("[\ud800-\udfff]")


def fault_in_messages(messages: Any) -> str | None:
    """One sentence for messages that are none, else None."""
    if not isinstance(messages, list | tuple):
        return f"messages is a list of objects with role and content, not {_kind(messages)}."
    for place, message in enumerate(messages):
        if not isinstance(message, Mapping):
            return f"messages[{place}] is an object with role and content, not {_kind(message)}."
        if "content" in message and message["content"] is None and message.get("role") in _NEED_CONTENT:
            return (
                f"messages[{place}].content is null; a message of role {message['role']} has text or parts."
            )
    return None


def fault_in_count(name: str, value: Any) -> str | None:
    """One sentence for a number of answers that is none, else None."""
    if value is None or (type(value) is int and value >= 1):
        return None
    return f"{name} is a whole number of at least 1, not {value!r}."


def half_a_pair(request: Mapping[str, Any]) -> str | None:
    """One sentence for text that UTF-8 cannot hold, and where it is; else None."""
    for where, text in _texts(request, ""):
        if found := _HALF_A_PAIR.search(text):
            return (
                f"{where} holds half a surrogate pair (U+{ord(found[0]):04X} at {found.start()}), which is "
                f"no character; decode the text anew, with errors='replace'."
            )
    return None


def _texts(value: Any, where: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item, f"{where}.{key}" if where else str(key))
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield from _texts(item, f"{where}[{place}]")


def _kind(value: Any) -> str:
    return "null" if value is None else f"{type(value).__name__}"
