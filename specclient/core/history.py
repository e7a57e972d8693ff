"""What the assistant's earlier messages may carry back to an endpoint.

Answers hold a model's reasoning under names that differ by server, and some servers refuse a request whose
history holds a name that is not theirs.
"""

from __future__ import annotations

from typing import Any

from specclient.core.draft import PlanDraft
from specclient_providers.endpoint import REASONING_KEYS, HistoryRule

PARTS = "content_parts"
"""Where specclient's own answers keep content that came as a list of parts: never sent."""

READ = frozenset({PARTS, *REASONING_KEYS})
"""The keys of an assistant's message that are looked at."""


def fit(draft: PlanDraft) -> None:
    """Take out of the earlier answers what this endpoint is known to refuse, and say so."""
    messages = draft.body.get("messages")
    if not isinstance(messages, list) or not any(map(_is_answer, messages)):
        return
    rule, removed = draft.facts.request.history, set[str]()
    fitted = [_fitted(message, rule, removed) for message in messages]
    if any(new is not old for new, old in zip(fitted, messages, strict=True)):
        draft.body["messages"] = fitted
    if removed:
        names = ", ".join(sorted(removed))
        draft.note(
            "reasoning_history",
            f"{names} of earlier answers was not sent, because {draft.facts.title} refuses it there.",
            rule.claim.source,
        )


def _is_answer(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") == "assistant"


def _fitted(message: Any, rule: HistoryRule, removed: set[str]) -> Any:
    if not _is_answer(message):
        return message
    parts = message.get(PARTS)
    if isinstance(parts, list):
        ours = {PARTS, "reasoning_content"} if rule.thinking_parts else {PARTS}
        message = {key: value for key, value in message.items() if key not in ours}
        if rule.thinking_parts:
            message["content"] = parts
    if rule.claim.state != "rejected":
        return message
    refused = [key for key in REASONING_KEYS if key in message and key not in rule.takes]
    if not refused:
        return message
    removed.update(refused)
    return {key: value for key, value in message.items() if key not in refused}
