"""Writing the body: the prediction's shape, the one length limit, and what the caller should know."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from specclient.core.draft import PlanDraft
from specclient.core.learned import Learned
from specclient.prediction import Prediction
from specclient_providers.endpoint import LengthRule

LENGTH_KEYS = ("max_tokens", "max_completion_tokens")
_HEADROOM = 1.25
"""An edited file may be longer than the known text."""
_BYTES_PER_TOKEN = 3
"""Low for code and prose, so that a length guessed without a vocabulary errs on the long side."""


@dataclass(frozen=True, slots=True)
class KnownText:
    """The prediction as text, and the caller's own value for it where that is a legal wire shape.

    Token ids have no text; they can only go where ids are taken.
    """

    prediction: Prediction | None
    text: str = field(repr=False)
    raw: Any = field(default=None, repr=False)
    token_ids: list[int] | None = field(default=None, repr=False)

    def tokens(self) -> int:
        """Length in tokens: exact for ids or with a vocabulary at hand, else an upper estimate."""
        if self.token_ids is not None:
            return len(self.token_ids)
        exact = self.prediction.estimate_tokens() if self.prediction else None
        return (
            exact
            if exact is not None
            else math.ceil(len(self.text.encode("utf-8", "replace")) / _BYTES_PER_TOKEN)
        )


def known_text(raw: Any, prediction: Prediction | None) -> KnownText | None:
    """The prediction from either place, or None when there is none or it is empty."""
    if prediction is not None:
        return KnownText(prediction, prediction.text) if prediction.text else None
    if isinstance(raw, list) and raw and all(isinstance(item, int) for item in raw):
        return KnownText(None, "", token_ids=list(raw))
    parsed = Prediction.of(raw)
    return None if parsed is None else KnownText(parsed, parsed.text, raw=raw)


def shape_of(raw: Any) -> str | None:
    """Which wire shape a caller's own value has, if any."""
    if isinstance(raw, str):
        return "string"
    if isinstance(raw, Mapping) and raw.get("type") == "content":
        return "parts" if isinstance(raw.get("content"), list) else "object"
    return None


def write_prediction(draft: PlanDraft, known: KnownText) -> bool:
    """Put the prediction into the body in a documented shape; False where none of them fits."""
    shapes = draft.facts.prediction.shapes
    if known.token_ids is not None:
        if "token_ids" not in shapes:
            return False
        draft.body["speculation"] = known.token_ids
        return True
    given = shape_of(known.raw)
    if given in shapes:
        written = _documented(known.raw)
        if written == known.raw:
            written = known.raw
        else:
            draft.note("shape", "Only the documented keys of the prediction were sent.")
        draft.body["prediction"] = written
        return True
    draft.body["prediction"] = _SHAPES[shapes[0]](known.text)
    if given is not None:
        draft.note("shape", f"The prediction was rewritten from {given} to {shapes[0]}, as documented.")
    return True


def _documented(raw: Any) -> Any:
    """The caller's own value without keys that no endpoint documents: strict ones refuse them."""
    if not isinstance(raw, Mapping):
        return raw
    content = raw["content"]
    if isinstance(content, list):
        content = [{"type": "text", "text": part["text"]} for part in content]
    return {"type": "content", "content": content}


_SHAPES: dict[str, Callable[[str], Any]] = {
    "object": lambda text: {"type": "content", "content": text},
    "parts": lambda text: {"type": "content", "content": [{"type": "text", "text": text}]},
    "string": lambda text: text,
}


def make_room(draft: PlanDraft, known: KnownText) -> None:
    """Where the output cap also bounds the prediction, raise an unset cap and point out a small one."""
    default = draft.facts.prediction.length_default
    if default is None:
        return
    need = math.ceil(known.tokens() * _HEADROOM)
    source = draft.facts.prediction.claim.source
    given = next((key for key in LENGTH_KEYS if draft.body.get(key) is not None), None)
    if given is None:
        if need > default:
            key = draft.facts.request.length.key if draft.facts.request.length else "max_tokens"
            draft.body[key] = need
            draft.note(
                "length_raised",
                f"{key} was set to {need}, because the prediction has about {known.tokens()} tokens and the "
                f"default of {default} would cut it.",
                source,
            )
    elif isinstance(draft.body[given], int) and draft.body[given] < known.tokens():
        draft.note(
            "length_below_prediction",
            f"{given}={draft.body[given]} is kept, but the prediction has about {known.tokens()} tokens and "
            f"is cut there.",
            source,
        )


def one_length_limit(draft: PlanDraft) -> None:
    """Send exactly one output cap, under the name that this endpoint and model take."""
    rule = draft.facts.request.length
    if rule is None or not _caps_output(draft):
        return
    given = [key for key in LENGTH_KEYS if draft.body.get(key) is not None]
    if rule.only:
        for key in LENGTH_KEYS:  # an unset limit under a name that is refused would be refused all the same
            if key != rule.key and key in draft.body and draft.body[key] is None:
                del draft.body[key]
    if not given:
        return
    if draft.outcome == "forwarded" and rule.key in _renamed_keys(draft):
        return
    if len(given) == 2:
        other = next(key for key in given if key != rule.key)
        value = draft.body.pop(other)
        draft.note(
            "length_duplicate",
            f"Of two length limits {rule.key}={draft.body[rule.key]} is sent and {other}={value} is not.",
            rule.source,
        )
    elif given[0] != rule.key and rule.only:
        rename_length(draft, given[0], rule)


def limit_under_a_known_name(draft: PlanDraft, learned: Learned) -> None:
    """Send the cap under the other name where the endpoint has refused this one."""
    if not _caps_output(draft):
        return None
    for key, other in zip(LENGTH_KEYS, reversed(LENGTH_KEYS), strict=True):
        refused = learned.refused(draft.facts.url, draft.facts.model, key=key)
        if refused is not None and draft.body.get(key) is not None and other not in draft.body:
            draft.body[other] = draft.body.pop(key)
            return draft.note("length_renamed", refused.text, refused.source)
    return None


def _caps_output(draft: PlanDraft) -> bool:
    return "max_tokens" in draft.body or "max_completion_tokens" in draft.body


def _renamed_keys(draft: PlanDraft) -> set[str]:
    """Caps that may not go beside the prediction: the routing has dealt with them already."""
    return {
        conflict.parameter
        for conflict in draft.facts.prediction.conflicts
        if conflict.remedy.startswith("rename:")
    }


def rename_length(draft: PlanDraft, key: str, rule: LengthRule) -> None:
    value = draft.body.pop(key)
    draft.body[rule.key] = value
    draft.note(
        "length_renamed",
        f"{key}={value} is sent as {rule.key}, the name that {draft.facts.title} takes here.",
        rule.source,
    )


def drop_stray_stream_options(draft: PlanDraft) -> None:
    """`stream_options` on a plain call is an error at every endpoint, and says nothing there."""
    if "stream_options" in draft.body and not draft.body.get("stream"):
        del draft.body["stream_options"]
        draft.note("stream_options_without_stream", "stream_options was left out: the call does not stream.")


def caution(draft: PlanDraft) -> None:
    """Point out parameters that the endpoint is known to refuse; they are sent all the same."""
    speculating = draft.facts.speculation.method is not None
    for item in draft.facts.request.cautions:
        if (speculating or not item.when_speculating) and present(draft.body, item.parameter):
            draft.note(f"caution:{item.parameter}", f"{item.text}.", item.source)


def read_for(parameter: str) -> frozenset[str]:
    """The keys of a request that `present` looks at for a parameter; "audio" is also looked for in messages
    whose content is a list of parts."""
    name = parameter.partition(">")[0]
    return frozenset(_KEYS.get(name, (name,)))


def present(body: Mapping[str, Any], parameter: str) -> bool:
    """Whether a request uses a parameter in the sense of a rule: "tools", "n>1", "min_p>0", …"""
    return _test_of(parameter)(body)


@lru_cache(maxsize=256)
def _test_of(parameter: str) -> Callable[[Mapping[str, Any]], bool]:
    name, above, limit = parameter.partition(">")
    if not above:
        return _TESTS.get(name) or (lambda body: body.get(name) is not None)
    least = float(limit)

    def exceeds(body: Mapping[str, Any]) -> bool:
        value = body.get(name)
        return isinstance(value, int | float) and value > least

    return exceeds


def _uses_tools(body: Mapping[str, Any]) -> bool:
    return bool(body.get("tools")) or bool(body.get("functions"))


def _uses_logprobs(body: Mapping[str, Any]) -> bool:
    return body.get("logprobs") not in (None, False) or body.get("top_logprobs") is not None


def _uses_audio(body: Mapping[str, Any]) -> bool:
    if body.get("audio") is not None:
        return True
    return any(
        isinstance(part, Mapping) and part.get("type") == "input_audio"
        for message in _list(body.get("messages"))
        if isinstance(message, Mapping) and isinstance(message.get("content"), list)
        for part in message["content"]
    )


def _uses_modalities(body: Mapping[str, Any]) -> bool:
    return any(kind != "text" for kind in _list(body.get("modalities")))


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


_TESTS: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "tools": _uses_tools,
    "logprobs": _uses_logprobs,
    "audio": _uses_audio,
    "modalities": _uses_modalities,
}
_KEYS = {"tools": ("tools", "functions"), "logprobs": ("logprobs", "top_logprobs")}
