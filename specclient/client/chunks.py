"""A stream's chunks as objects.

One that is like the chunk before it but for its text is copied from that one: checking every field again
would take most of the time that a stream takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from specclient.core import drive
from specclient.core.alike import LEAF, PADDING, Piece, filled
from specclient.report import Report
from specclient.types import Answer, parse

T = TypeVar("T", bound=Answer)
State = tuple[type[Any], dict[str, Any], dict[str, Any], set[str]]
"""What an object of pydantic's is made of: class, fields, extra fields, and the names of those that came."""

_new = object.__new__
_set_fields, _set_extra, _set_names, _set_private = (
    BaseModel.__dict__[name].__set__
    for name in ("__dict__", "__pydantic_extra__", "__pydantic_fields_set__", "__pydantic_private__")
)


def maker(model: type[T]) -> drive.Make[T]:
    """From an object of the stream to a chunk. It holds no stream, so a dropped one is collected at once."""
    model.model_rebuild()
    validate = model.__pydantic_validator__.validate_python
    known: dict[str, Any] | None = None
    copied: Callable[[Piece], T] | None = None

    def checked(obj: dict[str, Any]) -> T:
        try:
            chunk: T = validate(obj)
        except ValidationError:
            chunk = parse(model, obj)
        return chunk

    def make(obj: dict[str, Any] | Piece, report: Report | None) -> T:
        nonlocal known, copied
        if isinstance(obj, tuple):
            if obj[0] is not known:
                known, copied = obj[0], _copier(checked(filled(obj)))
            chunk = checked(filled(obj)) if copied is None else copied(obj)
        else:
            chunk = checked(obj)
        if report is not None:
            chunk.specclient = report
        return chunk

    return make


def _copier(first: Any) -> Callable[[Piece], Any] | None:
    """Makes chunks that are like `first` but for the text of their only choice, each all its own.

    None where `first` holds anything that two chunks could not share.
    """
    choice = first.choices[0]
    delta = getattr(choice, "delta", None)
    if not (isinstance(choice, BaseModel) and isinstance(delta, BaseModel)):
        return None
    kind, fields, extra, names = _state(first, "choices")
    choice_kind, choice_fields, choice_extra, choice_names = _state(choice, "delta")
    delta_kind, delta_fields, delta_extra, delta_names = _state(delta, "content")
    for values in (fields, extra, choice_fields, choice_extra, delta_fields, delta_extra):
        if not all(isinstance(value, LEAF) for value in values.values()):
            return None

    def copied(piece: Piece) -> Any:
        _, text, padding = piece
        delta = _new(delta_kind)
        _set_fields(delta, {**delta_fields, "content": text})
        _set_extra(delta, delta_extra.copy())
        _set_names(delta, delta_names.copy())
        _set_private(delta, None)
        choice = _new(choice_kind)
        _set_fields(choice, {**choice_fields, "delta": delta})
        _set_extra(choice, choice_extra.copy())
        _set_names(choice, choice_names.copy())
        _set_private(choice, None)
        chunk = _new(kind)
        _set_fields(chunk, {**fields, "choices": [choice]})
        _set_extra(chunk, extra.copy() if padding is None else {**extra, PADDING: padding})
        _set_names(chunk, names.copy())
        _set_private(chunk, None)
        return chunk

    return copied


def _state(model: Any, own: str) -> State:
    fields = {name: None if name == own else value for name, value in model.__dict__.items()}
    return type(model), fields, model.__pydantic_extra__, model.__pydantic_fields_set__
