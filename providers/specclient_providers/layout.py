"""Where an endpoint's figures are in its bodies and headers, made ready to be looked for in many answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from specclient_providers.endpoint import Figure


@dataclass(slots=True)
class Node:
    """What may stand at one key of a body: figures, and further keys."""

    leaves: list[tuple[int, Figure, str]] = field(default_factory=list)
    """(rank, figure, its path): of two that are there the lower rank counts."""
    below: dict[str, Node] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Layout:
    """An endpoint's figures by where they are. `interesting` are the first keys of all paths in bodies."""

    figures: tuple[Figure, ...]
    body: Node
    header: tuple[tuple[Figure, list[str]], ...]
    interesting: frozenset[str]
    in_choices: frozenset[str] | None
    """Keys of the first choice that hold figures; None when other choices have to be looked at too."""


_layouts: dict[int, Layout] = {}


def layout_of(figures: tuple[Figure, ...]) -> Layout:
    """The layout of a tuple of figures, made once: it is needed anew for every answer."""
    known = _layouts.get(id(figures))
    if known is not None and known.figures is figures:
        return known
    body, header, rank = Node(), [], 0
    choices: list[list[str]] = []
    for figure in figures:
        inside = [path for path in figure.paths if not path.startswith("header:")]
        for path in inside:
            node, keys = body, path.split(".")
            for key in keys:
                node = node.below.setdefault(key, Node())
            node.leaves.append((rank, figure, path))
            rank += 1
            if keys[0] == "choices":
                choices.append(keys)
        outside = [path.removeprefix("header:").lower() for path in figure.paths if path not in inside]
        if outside:
            header.append((figure, outside))
    if len(_layouts) >= 256:
        _layouts.clear()
    in_first = all(len(keys) > 2 and keys[1] == "0" for keys in choices)
    in_choices = frozenset(keys[2] for keys in choices) if in_first else None
    layout = Layout(figures, body, tuple(header), frozenset(body.below), in_choices)
    _layouts[id(figures)] = layout
    return layout


def first_choice(choices: object) -> Mapping[str, Any]:
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) else {}


def gather(obj: object, nodes: Mapping[str, Node], present: list[tuple[int, Figure, str, Any]]) -> None:
    """Every figure of `nodes` that `obj` holds and that is not null."""
    if type(obj) is dict or isinstance(obj, Mapping):
        pairs: Iterable[tuple[object, Any]] = obj.items()
    elif isinstance(obj, list):
        pairs = [(key, obj[int(key)]) for key in nodes if key.isdigit() and int(key) < len(obj)]
        pairs += [(key, join(obj)) for key, join in _JOINED.items() if key in nodes]
    else:
        return
    for key, value in pairs:
        if value is None or (node := nodes.get(key)) is None:  # type: ignore[call-overload]
            continue
        for rank, figure, path in node.leaves:
            present.append((rank, figure, path, value))
        if node.below:
            gather(value, node.below, present)


def _sums(items: list[Any]) -> dict[str, float]:
    """The counts of several objects together; a figure that one of them lacks is left out."""
    found = [item for item in items if isinstance(item, Mapping)]
    if len(found) < 2 or len(found) != len(items):
        return {}
    values = {key: [number(item.get(key)) for item in found] for key in found[0]}
    return {
        key: sum(value for value in several if value is not None)
        for key, several in values.items()
        if None not in several
    }


def _sole(items: list[Any]) -> Any:
    return items[0] if len(items) == 1 else None


_JOINED: Mapping[str, Callable[[list[Any]], Any]] = {"*": _sums, "only": _sole}
"""Keys of a path that stand for a whole list: its counts together, or its only item."""


def number(raw: object) -> float | None:
    """A finite-or-not number from a JSON number or its string; a bool is none."""
    if isinstance(raw, bool) or not isinstance(raw, int | float | str):
        return None
    try:
        return float(raw)
    except (ValueError, OverflowError):
        return None
