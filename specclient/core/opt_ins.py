"""Switching on documented reports of usage and timing, and hiding them from a caller who did not ask."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from specclient.core.draft import PlanDraft
from specclient.core.learned import Learned
from specclient_providers import EndpointFacts
from specclient_providers.endpoint import OptIn

_HEADER = "header:"
_ENVELOPE = frozenset({"id", "object", "created", "model", "system_fingerprint", "service_tier", "choices"})


def asked_headers(facts: EndpointFacts, given: Iterable[str]) -> frozenset[str]:
    """Those of the caller's headers, by lower-case name, that switch on a report of this endpoint."""
    ours = {name.decode() for name in header_names(facts)}
    return frozenset(name.lower() for name in given) & ours if ours else frozenset()


def header_names(facts: EndpointFacts) -> frozenset[bytes]:
    """The request headers, by lower-case name, that switch on a report of this endpoint."""
    fields = [opt.field for opt in facts.request.opt_ins]
    return frozenset(
        name.removeprefix(_HEADER).lower().encode() for name in fields if name.startswith(_HEADER)
    )


def switch_on(draft: PlanDraft, learned: Learned | None, asked_headers: frozenset[str]) -> None:
    """Add what makes the endpoint report, where neither the caller nor a live refusal has spoken."""
    stream = draft.body.get("stream") is True
    facts = draft.facts
    for opt in facts.request.opt_ins:
        if opt.when == ("plain" if stream else "stream"):
            continue
        refused = learned.refused(facts.url, facts.model, key=opt.code) if learned is not None else None
        if refused is not None:
            draft.note(f"opt_in_refused:{opt.code}", refused.text, refused.source)
            continue
        if opt.field.startswith(_HEADER):
            name = opt.field.removeprefix(_HEADER)
            if name.lower() in asked_headers:
                continue
            draft.headers[name] = str(opt.value)
        elif not _set(draft, opt):
            continue
        draft.hidden.add(opt.code)
        draft.note(f"opt_in:{opt.code}", f"{opt.field.removeprefix(_HEADER)} was switched on.", opt.source)


def _set(draft: PlanDraft, opt: OptIn) -> bool:
    given = draft.at(opt.field)
    if isinstance(opt.value, list):
        if not isinstance(given, list | None):
            return False
        missing = [item for item in opt.value if item not in (given or [])]
        return bool(missing) and draft.put(opt.field, [*(given or []), *missing])
    return given is None and draft.put(opt.field, opt.value)


def hide(event: dict[str, Any], hidden: frozenset[str], known: tuple[OptIn, ...]) -> dict[str, Any] | None:
    """The answer object as it would be without the reports that we switched on.

    A stream's chunk that exists only to carry them is None. The object itself is not changed.
    """
    changed = event
    for opt in known:
        if opt.code not in hidden:
            continue
        if opt.code == "include_usage":
            if event.get("choices") == [] and event.get("usage") is not None:
                return None
            if "usage" in changed and changed["usage"] is None:
                changed = {key: value for key, value in changed.items() if key != "usage"}
            continue
        for trace in opt.traces:
            changed = _without(changed, trace.split("."))
    only_ours = changed is not event and changed.get("choices") == [] and changed.keys() <= _ENVELOPE
    return None if only_ours else changed


def _without(node: Any, keys: list[str]) -> Any:
    """A copy without the value at a path ("*" is every item of a list); the node itself if it has none."""
    key, *rest = keys
    if key == "*" and isinstance(node, list):
        items = [_without(item, rest) for item in node]
        return items if any(new is not old for new, old in zip(items, node, strict=True)) else node
    if not isinstance(node, dict) or key not in node:
        return node
    if rest:
        inner = _without(node[key], rest)
        if inner is node[key]:
            return node
        if inner != {}:
            return {**node, key: inner}
    return {name: value for name, value in node.items() if name != key}
