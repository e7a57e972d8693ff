"""Tool calls in pieces, from servers that leave out the index or the id."""

from __future__ import annotations

from typing import Any

import pytest

from specclient.client.accumulator import Accumulator
from specclient.types import ChatCompletionChunk, parse
from tests.server import chunk


def merged(*deltas: list[dict[str, Any]]) -> list[tuple[str | None, str, str]]:
    accumulator = Accumulator()
    for delta in deltas:
        accumulator.feed(parse(ChatCompletionChunk, chunk(tool_calls=delta)))
    calls = accumulator.snapshot().choices[0].message.tool_calls or []
    return [
        (call.id, call.function.name or "", call.function.arguments or "") for call in calls if call.function
    ]


def call(name: str | None = None, arguments: str = "", **rest: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}, **rest}


@pytest.mark.parametrize(
    ("deltas", "expected"),
    [
        ([[call("f", "{}"), call("g", "[]")]], [(None, "f", "{}"), (None, "g", "[]")]),
        ([[call("f", "{")], [call(None, "}")]], [(None, "f", "{}")]),
        ([[call("f", "{", id="a")], [call(None, "}", id="")]], [("a", "f", "{}")]),
        ([[call("f", "{", id="a")], [call(None, "}", id="a")]], [("a", "f", "{}")]),
        ([[call("f", "{}", id="a")], [call("g", "{}", id="b")]], [("a", "f", "{}"), ("b", "g", "{}")]),
        (
            [[call("f", "1", index=0), call("g", "2", index=1)], [call(None, "3", index=0)]],
            [(None, "f", "13"), (None, "g", "2")],
        ),
    ],
)
def test_pieces_come_together(
    deltas: list[list[dict[str, Any]]], expected: list[tuple[str | None, str, str]]
) -> None:
    assert merged(*deltas) == expected
