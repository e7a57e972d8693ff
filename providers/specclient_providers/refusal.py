"""Telling a live refusal of one request field from a refusal of anything else.

A refusal counts only if the error *names the field*: in its `param`, in a validation `loc`, or in the
error's own words about a field. A message that merely quotes the request (which may well hold the word)
is the caller's error, and stays one.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

PREDICTION_FIELDS = ("prediction", "speculation")
_STATUSES = (400, 422)
_MAX_DEPTH = 6
_LITERAL_LIMIT = 20_000

_KIND = r"(?:request\s+)?(?:argument|parameter|param|property|field|option|input|key|name)"
_STRANGE = r"(?:unrecogni[sz]ed|unsupported|unknown|unexpected|invalid|extra|additional|disallowed|forbidden)"
_NOT_ALLOWED = (
    r"(?:not\s+(?:currently\s+|yet\s+)?"
    r"(?:supported|allowed|permitted|available|enabled|recogni[sz]ed|valid|a valid)|should not (?:exist|be))"
)
_WHERE = (
    r"(?:\s+(?:supplied|passed|received|name|found|provided|specified|given)"
    r"|\s+in (?:the )?(?:request|body|object|payload))*"
)

_PREFIX = re.compile(
    r"^(?:[\w.]*(?:error|exception)\s*[:,]\s*|\d{3}\s+|(?:value error|bad request|invalid request|"
    r"unprocessable entity|(?:schema |request )?validation(?: error| failed)?)\s*[:.,]\s*)+",
    re.IGNORECASE,
)
_SAYS_SO = {
    "a strange argument, then its name": (
        rf"^(?:(?:the\s+)?(?:request|body|payload|input)\s+(?:body\s+)?(?:contains|has|includes)\s+(?:an?\s+)?)?"
        rf"{_STRANGE}\s+(?:{_KIND}|value)s?(?:\(s\))?{_WHERE}\s*:?\s*FIELD(?!\s*,)"
    ),
    "the name, then that it is not allowed": (
        rf"^(?:FIELD\s*:\s*)?(?:the\s+)?(?:{_KIND})?\s*:?\s*FIELD{_WHERE}\s*:?\s+(?:{_KIND}\s+)?"
        rf"(?:(?:is|are|was)\s+)?(?:{_NOT_ALLOWED}|{_STRANGE})"
    ),
    "those that are not allowed, then the one": (
        rf"^(?:the\s+)?following\s+{_KIND}s?\s+(?:is|are)\s+(?:{_NOT_ALLOWED}|{_STRANGE})[^:]*:\s*\[?FIELD(?!\s*,)"
    ),
    "what it must not hold": (
        r"^(?:the\s+)?(?:input|request|body|payload)\s+(?:body\s+)?(?:should|must|may|can) ?not "
        rf"(?:contain|include|have) (?:the\s+)?(?:{_KIND}\s+)?FIELD"
    ),
    "JSON schema": (r"additional propert(?:y|ies)[^()]*\(FIELD\s+(?:was|were) unexpected\)"),
    "protobuf JSON (Google)": (
        r"^(?:invalid json payload received\.\s+)?unknown name FIELD(?:\s+at\s+'[^']*')?\s*:\s*cannot find"
    ),
    "Go and serde decoders": (
        r"^(?:json:\s*|failed to (?:parse|deserialize)[^:]*:\s*|[\w.]*:?\s*)?unknown field FIELD"
    ),
    "Go, of another type": r"^(?:json:\s*)?cannot unmarshal \w+ into go struct field [\w.]*\.FIELD",
    "pydantic, as a report": r"^1 validation error for [\w.]+\s+(?:body\.)?FIELD\s+extra inputs",
    "the name, a colon, and that it is strange": (
        rf"^(?:body\.)?FIELD\s*:\s*(?:{_STRANGE}\s+(?:{_KIND}|inputs|fields)\s*(?:are )?(?:{_NOT_ALLOWED})?)"
    ),
    "pydantic, the name last": (
        rf"^extra (?:inputs|fields) (?:are )?not permitted[,:]?\s*\(?(?:{_KIND}\s*[:=]?\s*)?FIELD"
    ),
    "the model does not support it": (
        r"^(?:this|the)\s+model\s+(?:['\"`]?[\w./:-]+['\"`]?\s+)?(?:does not|doesn't)\s+support\s+(?:the\s+)?"
        rf"FIELD(?:\s+{_KIND})?"
    ),
    "the provider does not support it": (
        rf"^[\w./:-]+\s+(?:does not|doesn't)\s+support\s+(?:the\s+)?(?:following\s+)?{_KIND}s?\s*:?\s*"
        r"[\[{(]?\s*FIELD(?!\s*,\s*['\"])"
    ),
    "a Python call": r"^[\w.()]*\s*got an unexpected keyword argument FIELD",
}
"""How a message says that a field is the matter; FIELD stands for its name."""
_FEATURE = re.compile(
    r"^(?:(?:this|the)\s+model\s+(?:['\"`]?[\w./:-]+['\"`]?\s+)?(?:does not|doesn't)\s+support\s+"
    r"predicted outputs?"
    rf"|predicted outputs?\s+(?:is|are)\s+{_NOT_ALLOWED})",
    re.IGNORECASE,
)
"""The same about predictions, by the name of the feature."""

_INSIDE = frozenset({"messages", "tools", "metadata", "response_format"})
_OTHER_PARAM_CODES = ("context_length_exceeded", "rate_limit_exceeded")


def refuses_prediction(status: int, body: object) -> bool:
    """True when a 400 or 422 says that the field `prediction` (or Fireworks' `speculation`) is the
    matter, and nothing else is. See `refuses`."""
    return refuses(status, body, PREDICTION_FIELDS)


def refuses(status: int, body: object, fields: tuple[str, ...]) -> bool:
    """True when a 400 or 422 says that one of `fields` (keys of the request) is the matter.

    `body` is the decoded JSON, or the text. With a list of validation errors every one of them has to
    name the field: another bad field would still be refused without it.
    """
    if status not in _STATUSES:
        return False
    verdicts = list(_Errors(fields).verdicts(_decoded(body), 0))
    return bool(verdicts) and all(verdicts)


def _decoded(value: object) -> object:
    """What travels in a string: JSON (Mistral, proxies that wrap an answer), or a Python list."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return _python_literal(value)


def _python_literal(text: str) -> object:
    """FastAPI servers like trtllm-serve send the repr of pydantic's list of errors."""
    if len(text) > _LITERAL_LIMIT:
        return text
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


@lru_cache(maxsize=64)
def _patterns(fields: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    names = "|".join(re.escape(name) for name in fields)
    name = rf"(?:body\.)?(?:{names})(?![\w.])"
    field = rf"(?:'{name}'|\"{name}\"|`{name}`|{name}(?!['\"`]))"
    found = [re.compile(said.replace("FIELD", field), re.IGNORECASE) for said in _SAYS_SO.values()]
    return (*found, _FEATURE) if fields == PREDICTION_FIELDS else tuple(found)


class _Errors:
    """Goes through the errors that a body states, whatever their form: is each about the fields?"""

    def __init__(self, fields: tuple[str, ...]) -> None:
        self.fields = fields

    def verdicts(self, node: object, depth: int) -> Iterator[bool]:
        if depth > _MAX_DEPTH:
            return
        if isinstance(node, str):
            yield self._named_in_words(node)
        elif isinstance(node, list):
            for item in node:
                yield from self.verdicts(_decoded(item), depth + 1)
        elif isinstance(node, Mapping):
            yield from self._in_object(node, depth)

    def _in_object(self, node: Mapping[str, Any], depth: int) -> Iterator[bool]:
        loc = node.get("loc")
        if isinstance(loc, list | tuple):
            yield self._named_in_location([str(part) for part in loc])
            return
        param = node.get("param")
        if isinstance(param, str) and param:
            yield self._is_one(param) and node.get("code") not in _OTHER_PARAM_CODES
            return
        for key in ("error", "errors", "detail", "details", "message", "msg", "error_msg"):
            inner = _decoded(node.get(key))
            if not inner or (key == "details" and not _looks_like_errors(inner)):
                continue
            yield from self.verdicts(inner, depth + 1)
            return

    def _named_in_location(self, keys: list[str]) -> bool:
        """A location is ["body", "prediction"], ["body", "chat", "prediction", "content"], …: the field
        has to be a key of the request itself, not something inside a message."""
        return any(key in self.fields for key in keys) and not _INSIDE.intersection(keys)

    def _is_one(self, param: str) -> bool:
        return param.removeprefix("body.").split(".")[0].split("[")[0] in self.fields

    def _named_in_words(self, text: str) -> bool:
        line = _PREFIX.sub("", text.strip(), count=1)
        return any(pattern.search(line) for pattern in _patterns(self.fields))


def _looks_like_errors(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value)
