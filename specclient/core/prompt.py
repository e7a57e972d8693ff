"""Finding the known text in a request's prompt, and putting it there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_OPENING = "\n\n<known_text>\n"
_CLOSING = "\n</known_text>"


def holds(body: dict[str, Any], text: str) -> bool:
    """True when the prompt contains the text, whatever its line endings."""
    wanted = _plain(text)
    return any(wanted in _plain(piece) for piece in _pieces(body))


def append(body: dict[str, Any], text: str) -> bool:
    """Add the text to the end of the last user message, or of a plain prompt; False if there is none."""
    prompt = body.get("prompt")
    if isinstance(prompt, str):
        body["prompt"] = f"{prompt}{_OPENING}{text}{_CLOSING}"
        return True
    return _change_last_user(body, lambda content: f"{content}{_OPENING}{text}{_CLOSING}")


def wrap_in_tags(body: dict[str, Any], text: str) -> bool:
    """Write the last user message in the tags of an apply model: what is known, and what to change.

    Known text and a message that already has a <code> tag are not tagged again.
    """
    return _change_last_user(
        body,
        lambda content: (
            content if "<code>" in content else f"<code>{text}</code>\n<update>{content}</update>"
        ),
    )


def _change_last_user(body: dict[str, Any], change: Any) -> bool:
    messages = body.get("messages")
    if not isinstance(messages, list):
        return False
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if (
            isinstance(message, dict)
            and message.get("role") == "user"
            and isinstance(message.get("content"), str)
        ):
            changed = {**message, "content": change(message["content"])}
            body["messages"] = [*messages[:index], changed, *messages[index + 1 :]]
            return True
    return False


def _pieces(body: dict[str, Any]) -> Iterator[str]:
    prompt = body.get("prompt")
    yield from (
        piece for piece in (prompt if isinstance(prompt, list) else [prompt]) if isinstance(piece, str)
    )
    for message in body.get("messages") or ():
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, str):
            yield content
        elif isinstance(content, list):
            yield from (
                part["text"]
                for part in content
                if isinstance(part, dict) and isinstance(part.get("text"), str)
            )


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").strip("\n")
