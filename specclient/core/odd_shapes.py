"""Answers of another shape than OpenAI's, in that shape."""

from __future__ import annotations

from typing import Any


def objects(choices: Any) -> list[Any]:
    """The objects among what should be a list of choices."""
    return [choice for choice in choices if type(choice) is dict] if type(choices) is list else []


def split_parts(holder: dict[str, Any], parts: Any) -> str:
    """Content as a list of parts (Mistral's reasoning models): text and reasoning set apart.

    `content` becomes the text, `reasoning_content` the reasoning, and the list stays as `content_parts`.
    """
    text: list[str] = []
    reasoning: list[str] = []
    parts = parts if isinstance(parts, list) else [parts]
    for part in parts:
        if isinstance(part, str):
            text.append(part)
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            text.append(part["text"])
        elif isinstance(part, dict) and "thinking" in part:
            inner = part["thinking"]
            pieces = inner if isinstance(inner, list) else [inner]
            reasoning += [str(p.get("text", "")) if isinstance(p, dict) else str(p) for p in pieces]
    content = "".join(text)
    holder.update(content=content, content_parts=parts)
    if reasoning:
        holder["reasoning_content"] = "".join(reasoning)
    return content


def as_chunk(obj: dict[str, Any]) -> dict[str, Any]:
    """A plain answer to a streaming request as one chunk."""
    choices = [
        {**{k: v for k, v in choice.items() if k != "message"}, "delta": choice.get("message") or {}}
        for choice in obj["choices"]
        if isinstance(choice, dict)
    ]
    return {**obj, "object": "chat.completion.chunk", "choices": choices}
