"""Telling a live refusal of `prediction` from a refusal of anything else.

A refusal counts only if the error *names the field*: in its `param`, in a validation `loc`, or in the
error's own words about a field. A message that merely quotes the request (which may well hold the word)
is the caller's error, and stays one.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

FIELDS = ("prediction", "speculation")
_STATUSES = (400, 422)
_MAX_DEPTH = 6
_LITERAL_LIMIT = 20_000

_FIELD = r"['\"`]?(?:body\.)?(?:prediction|speculation)['\"`]?(?![\w.])"
_KIND = r"(?:request\s+)?(?:argument|parameter|property|field|option|input|key|name)"
_STRANGE = r"(?:unrecogni[sz]ed|unsupported|unknown|unexpected|invalid|extra|additional|disallowed|forbidden)"
_NOT_ALLOWED = r"not\s+(?:supported|allowed|permitted|available|recogni[sz]ed|valid|a valid)"
_FILLER = r"(?:\s+(?:supplied|passed|received|name|found|provided|in request|in body))*"

_SAYS_SO = {
    "a strange argument, then its name": (
        rf"^{_STRANGE}\s+{_KIND}s?(?:\(s\))?{_FILLER}\s*:?\s*{_FIELD}(?!\s*,)"
    ),
    "the name, then that it is not allowed": (
        rf"^(?:the\s+)?(?:{_KIND})?\s*:?\s*{_FIELD}\s*:?\s+(?:{_KIND}\s+)?(?:is|are|was)\s+"
        rf"(?:{_NOT_ALLOWED}|{_STRANGE})"
    ),
    "JSON schema": (rf"additional propert(?:y|ies)[^()]*\({_FIELD}\s+(?:was|were) unexpected\)"),
    "protobuf JSON (Google)": (
        rf"^invalid json payload received\.\s+unknown name {_FIELD}(?:\s+at\s+'[^']*')?\s*:\s*cannot find"
    ),
    "Go and serde decoders": (
        rf"^(?:json:\s*|failed to (?:parse|deserialize)[^:]*:\s*|[\w.]*:?\s*)?unknown field {_FIELD}"
    ),
    "pydantic, as a report": rf"^1 validation error for [\w.]+\s+(?:body\.)?{_FIELD}\s+extra inputs",
    "pydantic, as text": rf"^(?:body\.)?{_FIELD}:\s*extra (?:inputs|fields) (?:are )?not permitted",
    "the model does not support it": (
        r"^(?:this|the)\s+model\s+(?:['\"`]?[\w./:-]+['\"`]?\s+)?(?:does not|doesn't)\s+support\s+(?:the\s+)?"
        rf"(?:{_FIELD}(?:\s+{_KIND})?|predicted outputs?)"
    ),
    "a Python call": rf"^[\w.()]*\s*got an unexpected keyword argument {_FIELD}",
}
_PATTERNS = tuple(re.compile(pattern, re.IGNORECASE) for pattern in _SAYS_SO.values())
_PREFIX = re.compile(
    r"^(?:error:\s*)?(?:\d{3}\s+)?(?:(?:bad request|unprocessable entity|validation error)\s*[:.]\s*)?",
    re.IGNORECASE,
)
_OTHER_PARAM_CODES = ("context_length_exceeded", "rate_limit_exceeded")


def refuses_prediction(status: int, body: object) -> bool:
    """True when a 400 or 422 says that the field `prediction` (or Fireworks' `speculation`) is the
    matter, and nothing else is.

    `body` is the decoded JSON, or the text. With a list of validation errors every one of them has to
    name the field: another bad field would still be refused without the prediction.
    """
    if status not in _STATUSES:
        return False
    verdicts = list(_verdicts(_decoded(body), 0))
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


def _verdicts(node: object, depth: int) -> Iterator[bool]:
    """One verdict for each error that the body states: is it about the field?"""
    if depth > _MAX_DEPTH:
        return
    if isinstance(node, str):
        yield _message_names_field(node)
    elif isinstance(node, list):
        for item in node:
            yield from _verdicts(_decoded(item), depth + 1)
    elif isinstance(node, Mapping):
        yield from _verdicts_of_object(node, depth)


def _verdicts_of_object(node: Mapping[str, Any], depth: int) -> Iterator[bool]:
    loc = node.get("loc")
    if isinstance(loc, list | tuple):
        yield _loc_names_field(loc)
        return
    param = node.get("param")
    if isinstance(param, str) and param:
        yield _is_field(param) and node.get("code") not in _OTHER_PARAM_CODES
        return
    for key in ("error", "errors", "detail", "details", "message", "msg", "error_msg"):
        inner = _decoded(node.get(key))
        if not inner or (key == "details" and not _looks_like_errors(inner)):
            continue
        yield from _verdicts(inner, depth + 1)
        return


def _looks_like_errors(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value)


def _loc_names_field(loc: list[Any] | tuple[Any, ...]) -> bool:
    """A location is ["body", "prediction"], ["body", "chat", "prediction", "content"], …: the field
    has to be a key of the request itself, not something inside a message."""
    keys = [str(part) for part in loc]
    return any(key in FIELDS for key in keys) and not any(
        key in ("messages", "tools", "metadata", "response_format") for key in keys
    )


def _is_field(param: str) -> bool:
    return param.removeprefix("body.").split(".")[0].split("[")[0] in FIELDS


def _message_names_field(text: str) -> bool:
    line = _PREFIX.sub("", text.strip(), count=1)
    return any(pattern.search(line) for pattern in _PATTERNS)
