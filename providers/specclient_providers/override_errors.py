"""A wrong correction in one sentence: where it stands, what is wrong with it, what would be right."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from specclient_providers.errors import OverrideError

TAG = "<"
"""Begins the names that only tell the members of a union apart, and that no user has written."""

_WORDS: Mapping[str, str] = {
    "tuple_type": "should be a list",
    "list_type": "should be a list",
    "bool_type": "should be true or false",
    "bool_parsing": "should be true or false",
    "model_type": "should be a table",
    "model_attributes_type": "should be a table",
    "dict_type": "should be a table",
    "string_type": "should be text",
    "string_too_short": "should not be empty",
    "too_short": "should not be empty",
    "missing": "is needed",
    "date_type": "should be a date like 2027-04-14",
    "date_parsing": "should be a date like 2027-04-14",
    "date_from_datetime_parsing": "should be a date like 2027-04-14",
    "date_from_datetime_inexact": "should be a date like 2027-04-14, without a time",
    "int_type": "should be a whole number",
    "int_parsing": "should be a whole number",
    "int_from_float": "should be a whole number",
}


def refused(origin: str | None, key: str, what: str) -> OverrideError:
    """The error for one key."""
    place = f"overrides.{key}" if key else "overrides"
    end = "" if what.endswith("?") else "."
    return OverrideError(f"{origin or 'configuration'}: {place}: {what}{end}", key=key)


def of_validation(
    error: ValidationError, origin: str | None, known_at: Callable[[tuple[str, ...]], Iterable[str]]
) -> OverrideError:
    """The first thing that pydantic found wrong; `known_at` gives the keys that may stand at a place."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = tuple(str(part) for part in first["loc"] if not str(part).startswith(TAG) and part != "[key]")
    return refused(origin, ".".join(place), _what(first, place, known_at))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Those of the known names that are close, else all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=2, cutoff=0.6)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else f"known are {', '.join(names)}"


def _what(
    error: Mapping[str, Any], place: tuple[str, ...], known_at: Callable[[tuple[str, ...]], Iterable[str]]
) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return f"is no fact that can be set; {did_you_mean(place[-1], known_at(place[:-1]))}"
    if kind == "literal_error":
        return f"should be {context['expected']}"
    if kind == "greater_than":
        return f"should be more than {context['gt']}"
    if kind == "value_error":
        return str(context["error"])
    words = _WORDS.get(kind, str(error["msg"]))
    return words[:1].lower() + words[1:]
