"""A stream's chunks as objects.

One that is like the chunk before it but for its text is copied from that one: checking every field again
would take most of the time that a stream takes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from specclient.core import drive
from specclient.core.alike import LEAF, PADDING, Piece, filled
from specclient.report import Report
from specclient.types import Answer, parse

T = TypeVar("T", bound=Answer)
State = tuple[Any, dict[str, Any], dict[str, Any], set[str]]
"""What an object of pydantic's is made of: class, fields, extra fields, and the names of those that came."""

_new = object.__new__


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

    bare, bare_choice, bare_delta = _bare(kind), _bare(choice_kind), _bare(delta_kind)

    def copied(piece: Piece) -> Any:
        _, text, padding = piece
        own = delta_fields.copy()
        own["content"] = text
        delta = _new(bare_delta)
        delta.__dict__ = own
        delta.__pydantic_extra__ = delta_extra.copy()
        delta.__pydantic_fields_set__ = delta_names.copy()
        delta.__pydantic_private__ = None
        delta.__class__ = delta_kind
        own = choice_fields.copy()
        own["delta"] = delta
        choice = _new(bare_choice)
        choice.__dict__ = own
        choice.__pydantic_extra__ = choice_extra.copy()
        choice.__pydantic_fields_set__ = choice_names.copy()
        choice.__pydantic_private__ = None
        choice.__class__ = choice_kind
        own = fields.copy()
        own["choices"] = [choice]
        chunk = _new(bare)
        chunk.__dict__ = own
        chunk.__pydantic_extra__ = extra.copy() if padding is None else {**extra, PADDING: padding}
        chunk.__pydantic_fields_set__ = names.copy()
        chunk.__pydantic_private__ = None
        chunk.__class__ = kind
        return chunk

    return copied


@cache
def _bare(kind: Any) -> Any:
    """A class whose objects become `kind`'s once they are filled.

    Its attributes are set as those of any object: what pydantic does for each of them would take as long
    as the rest of a copy.
    """
    own: dict[str, Any] = {"__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
    return type(kind)(kind.__name__, (kind,), {**own, "__module__": kind.__module__})


def _state(model: Any, own: str) -> State:
    fields = {name: None if name == own else value for name, value in model.__dict__.items()}
    return type(model), fields, model.__pydantic_extra__, model.__pydantic_fields_set__
