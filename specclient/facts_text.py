"""Capabilities for a terminal: one statement a line, its source below it, wrapped to the width."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specclient.facts import Capabilities, Fact, FigureCapability, ModelCapability

_LABEL = 16
_DOUBTS = {
    "secondary": "secondary: a third party says so",
    "recalled": "recalled: not checked again",
    "disputed": "disputed: sources differ",
    "user": "from your configuration",
}
_NAMES = {
    "queue": "queue",
    "prefill": "prefill",
    "decode": "decode",
    "ttft": "first token",
    "total": "total",
    "accepted": "accepted",
    "rejected": "rejected",
    "drafted": "drafts tried",
    "accepted_draft": "drafts accepted",
    "acceptance_rate": "acceptance rate",
    "mean_acceptance_length": "accepted length",
    "forward_passes": "passes",
    "prompt_tokens": "prompt",
    "completion_tokens": "completion",
    "total_tokens": "total tokens",
    "cached_tokens": "cached",
    "reasoning_tokens": "reasoning",
}
"""The figures in the order to show them. Others are only there for these to be reckoned from."""


def render(found: Capabilities, width: int = 80) -> str:
    """The whole of it: prediction first, then what can be read from answers, then what to mind."""
    head = f"{found.title} ({found.provider}): {found.api}, {found.model or 'no model named'}, on {found.on}"
    lines = textwrap.wrap(head, width)
    for label, text in _rows(found):
        lines += _wrapped(label, text, width)
    return "\n".join(lines)


def _wrapped(label: str, text: str, width: int) -> list[str]:
    """A label and its text with a hanging indent; addresses are never broken."""
    indent = " " * (_LABEL + 2)
    lines = textwrap.wrap(
        text, max(width - len(indent), 24), break_long_words=False, break_on_hyphens=False
    ) or [""]
    return [f"{f'  {label:<{_LABEL}}' if not at else indent}{line}".rstrip() for at, line in enumerate(lines)]


def _rows(found: Capabilities) -> Iterator[tuple[str, str]]:
    yield from _fact("prediction", _summary(found), found.prediction)
    yield from _about_prediction(found)
    yield from _fact("counters", found.counters.state, found.counters)
    yield from _fact("timings", found.timings.state, found.timings)
    yield from _figures(found)
    yield from _speculation(found)
    yield from _fact("unknown fields", found.unknown_fields.state, found.unknown_fields)
    for opt in found.opt_ins:
        when = {"always": "", "stream": " in streams", "plain": " in plain calls"}[opt.when]
        yield "switched on", f"{opt.field.removeprefix('header:')}{when}"
    for text in found.cautions.values():
        yield "careful", f"{text}."
    for text in found.restrictions:
        yield "note", text


def _about_prediction(found: Capabilities) -> Iterator[tuple[str, str]]:
    prediction = found.prediction
    if prediction.why_not == "model":
        for rule in found.per_model:
            if rule.state == "documented":
                yield "documented", _models(rule)
    if prediction.state != "documented" or prediction.why_not == "model":
        return
    if prediction.shapes:
        yield "written as", ", ".join(shape.replace("_", " ") for shape in prediction.shapes)
    withheld = [name for name, how in prediction.conflicts.items() if how == "withhold"]
    if withheld:
        yield "not beside", ", ".join(withheld)
    for name, how in prediction.conflicts.items():
        if how.startswith("rename:"):
            yield "not beside", f"{name}, which is sent as {how.removeprefix('rename:')}"
    if prediction.rejected_charged is not None:
        yield "rejected tokens", "charged as output" if prediction.rejected_charged else "free of charge"


def _speculation(found: Capabilities) -> Iterator[tuple[str, str]]:
    server = found.speculation
    yield from _fact("speculation", server.state, server)
    if server.methods:
        yield "methods", ", ".join(server.methods)
    if server.drafts_from_prompt:
        yield "from the prompt", ", ".join(server.drafts_from_prompt)
    if server.drafts_from_corpus:
        yield "from a corpus", ", ".join(server.drafts_from_corpus)
    if server.per_request:
        yield "a request's say", server.per_request
    if server.method:
        yield "drafts with", server.method
    elif server.switch_on:
        yield "drafts with", f"not known; to draft from known text, start it with {server.switch_on}"


def _figures(found: Capabilities) -> Iterator[tuple[str, str]]:
    """Where answers hold the figures; usage that is OpenAI's own goes without saying."""
    rows: dict[str, str] = {}
    for figure in found.figures:
        plain = figure.paths[0].startswith("usage.") and figure.name.endswith("_tokens")
        if figure.name in _NAMES and not plain:
            rows.setdefault(figure.name, _where(figure))
    for name, formula in found.derived.items():
        rows.setdefault(name, _formula(formula, found))
    yield from ((label, rows[name]) for name, label in _NAMES.items() if name in rows)


def _where(figure: FigureCapability) -> str:
    note = f". {figure.note}" if figure.note else ""
    return f"{_path(figure.paths[0])} ({figure.unit}){note}"


def _formula(formula: str, found: Capabilities) -> str:
    """A derivation by the names that answers have, instead of those that we gave them."""
    paths = {figure.name: _path(figure.paths[0]) for figure in reversed(found.figures)}
    return re.sub(r"\w+", lambda name: paths.get(name[0], _NAMES.get(name[0], name[0])), formula)


def _path(path: str) -> str:
    return f"header {path.removeprefix('header:')}" if path.startswith("header:") else path


def _models(rule: ModelCapability) -> str:
    until = f"; {'ended' if rule.expired else 'until'} {rule.until}" if rule.until else ""
    near = ", which is soon" if rule.ends_soon else ""
    since = f"; api-version from {rule.api_version_from}" if rule.api_version_from else ""
    return f"for {', '.join(rule.models)}{since}{until}{near}"


def _summary(capability: Capabilities) -> str:
    """The state in one line, with a date that has passed or is near in plain sight."""
    found = capability.prediction
    if found.why_not == "model" and capability.model is None:
        return "depends on the model"
    words = [found.state]
    if found.preview:
        words.append("preview")
    if found.expired:
        words.append(f"ended on {found.until}")
    elif found.ends_soon:
        words.append(f"ends soon, on {found.until}")
    elif found.until:
        words.append(f"until {found.until}")
    if not found.supported and found.why_not not in (found.state, "expired"):
        words.append(f"not for this {found.why_not.replace('_', '-')}")
    return ", ".join(words)


def _fact(label: str, state: str, fact: Fact) -> Iterator[tuple[str, str]]:
    """What is so; in doubt, why; then who says so and when it was read."""
    yield label, f"{state}. {fact.note}" if fact.note else state
    if fact.certainty in _DOUBTS and fact.source is not None:
        yield "", f"({_DOUBTS[fact.certainty]})"
    if fact.source is not None:
        yield "", fact.source + (f" (read on {fact.checked})" if fact.checked is not None else "")
