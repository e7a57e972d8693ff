"""Telling a live refusal of one request field from a refusal of anything else.

A refusal counts only if the error *names the field*: in its `param`, in a validation's location, or in
the error's own words about a field (`wordings.py`). A message that merely quotes the request (which may
well hold the word) is the caller's error, and stays one.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from specclient_providers.wordings import PREDICTION_FIELDS, PREFIX, names

_STATUSES = (400, 422)
_MAX_DEPTH = 8
_LITERAL_LIMIT = 300_000
"""Characters of a Python repr that are read: servers quote the whole prediction that they refuse."""

_PROXY = re.compile(
    r"^(?:upstream|provider|received client error|the model returned the following errors?)\b[^{\[]*$", re.I
)
"""What else than an exception's name stands before an answer that a proxy quotes."""
_PREAMBLE = 400
"""Characters that a proxy may put before an answer that it quotes."""
_REPORT = re.compile(r"^(\d+) validation errors?(?: for [\w.]+)?:?\s*\n", re.IGNORECASE)
"""A report of pydantic's: the number of errors, then each on lines of its own; vLLM's has their reprs."""
_INSIDE = frozenset({"messages", "tools", "functions", "metadata", "response_format", "json_schema"})
_OTHER_CODES = frozenset(
    {
        *("context_length_exceeded", "rate_limit_exceeded", "content_filter"),
        *("json_validate_failed", "tool_use_failed"),
    }
)
"""Errors about what was generated, or about sizes and rates, whatever else they mention."""
_REASONS = frozenset(
    {"bad request", "unprocessable entity", "unprocessable content", "validation error", "invalid request"}
)
"""Names of the status, which some servers write where others have the error."""
_NO_PARAM = frozenset({"validation_error", "body", "request", "request_body", "none", "null"})
"""What some servers write as the `param` of an error that names its field in words."""
_HOLDERS = (
    *("error", "errors", "issues", "detail", "details", "fieldViolations", "external_model_error"),
    *("message", "msg", "description", "error_msg", "error_message"),
)
"""Where an object keeps the error proper, the more exact first."""
_ERROR_KEYS = frozenset({*_HOLDERS, "loc", "param", "keyword", "field"})
_NO_ROUTE = re.compile(
    r"^no endpoints found that (?:can handle|support) the requested parameters", re.IGNORECASE
)
"""OpenRouter's 404 when a request requires parameters that no endpoint of the model takes: the prediction
is the one that we require (https://github.com/block/buzz/issues/3018)."""


def refuses_prediction(status: int, body: object) -> bool:
    """True when an error says that the field `prediction` (or Fireworks' `speculation`) is the matter,
    and nothing else is. See `refuses`."""
    return refuses(status, body, PREDICTION_FIELDS) or (status == 404 and _finds_no_route(body))


def refuses(status: int, body: object, fields: tuple[str, ...]) -> bool:
    """True when a 400 or 422 says that one of `fields` (keys of the request) is the matter.

    `body` is the decoded JSON, or the text. With a list of validation errors every one of them has to
    name the field: another bad field would still be refused without it.
    """
    if status not in _STATUSES:
        return False
    verdicts = list(_Errors(fields).verdicts(_decoded(body), 0))
    return bool(verdicts) and all(verdicts)


def _finds_no_route(body: object) -> bool:
    node = _decoded(body)
    for _ in range(2):
        if isinstance(node, Mapping):
            node = node.get("error") or node.get("message")
    return isinstance(node, str) and _NO_ROUTE.match(node.strip()) is not None


def _decoded(value: object) -> object:
    """What travels in a string: JSON (Mistral, proxies that quote an answer), or a Python repr."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text[:1] in ("{", "["):
        return _loads(text)
    if text[:2] in ('"{', '"['):
        inner = _loads(text)
        return _decoded(inner) if isinstance(inner, str) and inner != text else inner
    report = _REPORT.match(text)
    if report is not None:
        return _reported(text[report.end() :], int(report.group(1))) or text
    return _quoted(text)


def _loads(text: str) -> object:
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return _python_literal(text)
    except RecursionError:
        return text


def _reported(text: str, count: int) -> list[Any]:
    """The errors of a report; none where one of them cannot be read."""
    lines = text.splitlines()
    reprs = [_python_literal(line.strip()) for line in lines if line.lstrip().startswith("{")]
    if len(reprs) == count and all(isinstance(item, Mapping) for item in reprs):
        return reprs
    places = [line for line in lines if line and not line[0].isspace()]
    return [{"loc": place} for place in places] if len(places) == count else []


def _quoted(text: str) -> object:
    """The answer that a proxy quotes after its own words ("Error code: 400 - {…}"), if that is what it is."""
    starts = [place for place in (text.find("{"), text.find("[")) if place > 0]
    if not starts:
        return text
    before = text[: min(starts)].strip().rstrip("\"'").rstrip()
    if len(before) > _PREAMBLE or (PREFIX.sub("", before, count=1) and not _PROXY.match(before)):
        return text
    tail = text[min(starts) :]
    try:
        quoted, _ = json.JSONDecoder().raw_decode(tail)
    except RecursionError:
        return text
    except ValueError:
        quoted = _python_literal(tail[: max(tail.rfind("}"), tail.rfind("]")) + 1])
    if isinstance(quoted, Mapping) and not _ERROR_KEYS.isdisjoint(quoted):
        return quoted
    return quoted if isinstance(quoted, list) and _looks_like_errors(quoted) else text


def _python_literal(text: str) -> object:
    """FastAPI servers like trtllm-serve send the repr of pydantic's list of errors."""
    if len(text) > _LITERAL_LIMIT:
        return text
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


class _Errors:
    """Goes through the errors that a body states, whatever their form: is each about the fields?"""

    def __init__(self, fields: tuple[str, ...]) -> None:
        self.fields = fields

    def verdicts(self, node: object, depth: int) -> Iterator[bool]:
        if depth > _MAX_DEPTH:
            return
        if isinstance(node, str):
            yield names(node, self.fields)
        elif isinstance(node, list):
            for item in node:
                yield from self.verdicts(_decoded(item), depth + 1)
        elif isinstance(node, Mapping):
            yield from self._in_object(node, depth)

    def _in_object(self, node: Mapping[str, Any], depth: int) -> Iterator[bool]:
        placed = self._placed(node)
        if placed is not None:
            yield placed
            return
        raw = node.get("metadata", {}).get("raw") if isinstance(node.get("metadata"), Mapping) else None
        if raw:  # OpenRouter: what the upstream said
            yield from self.verdicts(_decoded(raw), depth + 1)
            return
        for key in _HOLDERS:
            inner = _decoded(node.get(key))
            if not inner or (key == "details" and not _looks_like_errors(inner)):
                continue
            if isinstance(inner, str) and inner.strip().rstrip(".").lower() in _REASONS:
                continue
            if isinstance(inner, Mapping) and _ERROR_KEYS.isdisjoint(inner) and _by_field(inner):
                yield from (name in self.fields for name in inner)
                return
            found = list(self.verdicts(inner, depth + 1))
            if found:
                yield from (verdict and node.get("code") not in _OTHER_CODES for verdict in found)
                return
        if _ERROR_KEYS.isdisjoint(node) and _by_field(node):
            yield from (name in self.fields for name in node)

    def _placed(self, node: Mapping[str, Any]) -> bool | None:
        """Whether the place that an error names is one of the fields; None where it names no place."""
        loc = node.get("loc")
        if isinstance(loc, str) and loc:
            loc = re.split(r"\s*->\s*|[.\s]+", loc.strip())
        if isinstance(loc, list | tuple):
            return self._named_in_location([str(part) for part in loc])
        param = next((node[key] for key in ("param", "field") if isinstance(node.get(key), str)), "")
        if param and param.lower() not in _NO_PARAM and not param.isdigit():
            return self._is_one(param) and node.get("code") not in _OTHER_CODES
        keys, path = node.get("keys"), node.get("path")
        if isinstance(keys, list) and isinstance(path, list):  # zod
            return not path and bool(keys) and all(key in self.fields for key in keys)
        params = node.get("params")
        if isinstance(params, Mapping) and "additionalProperty" in params:  # ajv
            return not node.get("instancePath") and params["additionalProperty"] in self.fields
        return None

    def _named_in_location(self, keys: list[str]) -> bool:
        """A location is ["body", "prediction"], ["body", "chat", "prediction", "content"], …: the field
        has to be a key of the request itself, not something inside a message."""
        return any(key in self.fields for key in keys) and not _INSIDE.intersection(keys)

    def _is_one(self, param: str) -> bool:
        place = param.strip("'\"` ").removeprefix("$.").removeprefix("/").replace("/", ".")
        return place.removeprefix("body.").removeprefix("request.").split(".")[0].split("[")[0] in self.fields


def _looks_like_errors(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _by_field(value: Mapping[str, Any]) -> bool:
    """ASP.NET and Rails: an object from each bad field's name to what is wrong with it."""
    return bool(value) and all(isinstance(item, list) for item in value.values())
