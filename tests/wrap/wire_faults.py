"""The wire faults that our own clients are tried with, as answers for any client: streamed, and whole."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.demand import faults as events
from tests.demand import test_b_bytes_and_bodies as below
from tests.server import DONE, Answer, chunk, completion, data, error, finish, reply, sse, stream

_JSON = {"content-type": "application/json"}
_SURROGATE = "a\ud83d"
_NO_ANSWER = (" in the middle", " first", " endless", " for a stream")


def _streams() -> Iterator[tuple[str, Answer]]:
    for name, whole in below.WHOLE.items():
        yield name, whole()
    for name, (broken, *_) in below.BROKEN.items():
        yield name, broken()
    for name, (event, *_) in events.ERRORS.items():
        pieces = [data(piece) if isinstance(piece, dict) else piece for piece in (*events.THREE, event)]
        yield f"{name} in the middle", stream(b"".join(pieces))
        yield f"{name} first", sse(event)
    for name, endless in events.ENDLESS.items():
        yield f"{name} endless", endless()
    for name, last in events.LAST.items():
        for framing in ("chunked", "close"):
            yield f"{name} {framing}", stream(*map(data, events.THREE), last, framing=framing)
    for name, dropped in events.DROPS.items():
        yield name, dropped()
    for name, fields in events.EMPTY.items():
        odd = {"id": "c", "object": "chat.completion.chunk", **fields}
        yield name, sse(odd, chunk("Hel"), odd, chunk("lo"), finish(), {**odd, "usage": {"prompt_tokens": 1}})
    for name, (deltas, _) in events.CALLS.items():
        yield name, sse(*[chunk(tool_calls=calls) for calls in deltas], finish("tool_calls"))
    for name, (contents, _) in events.PARTS.items():
        yield name, sse(*[chunk(content) for content in contents], finish())
    for index in ("0", -1, 10**20, [1], None):
        yield f"index {index}", sse(below.choice(index, "x"), finish())
    yield (
        "half a surrogate pair",
        stream(b"data: " + json.dumps(chunk(_SURROGATE)).encode() + b"\n\n", data(finish()), DONE),
    )
    for name, (body, _) in events.B34.items():
        yield f"{name} for a stream", reply(body)


def _plain() -> Iterator[tuple[str, Answer]]:
    for name, (body, _) in events.B34.items():
        yield name, reply(body)
    for name, (contents, _) in events.PARTS.items():
        body = completion()
        body["choices"][0]["message"]["content"] = contents[-1]
        yield name, reply(body)
    for name, (status, headers, _) in events.STATUSES.items():
        yield name, error(status, "no", headers)
    for name, cut in below.CUT.items():
        yield f"cut {name}", cut()
    for name, content in {**below.NO_JSON, **below.ODD_JSON}.items():
        yield name, reply(content, headers=_JSON)
    for name, (reason, _) in below.REASONS.items():
        if name != "stall":  # an SDK waits for it as long as its own limit says
            yield f"reason {name}", reason(429)
    for name, (headers, _) in below.WAITS.items():
        yield f"wait {name}", error(429, "slow", headers)
    yield "half a surrogate pair", reply(json.dumps(completion(_SURROGATE)).encode(), headers=_JSON)


STREAMS = dict(_streams())
PLAIN = dict(_plain())
NOWHERE = [where for where in below.NOWHERE if "//x" not in where and "[" not in where]
"""Locations of redirects for which no HTTP client asks a name server."""

ERRORS = frozenset(
    [
        *below.BROKEN,
        *(
            name
            for name in STREAMS
            if name.endswith((" in the middle", " first", " endless", " for a stream"))
        ),
        *events.DROPS,
        *events.B34,
        *(name for name in PLAIN if name.startswith(("B22", "cut ", "reason ", "wait "))),
        *below.NO_JSON,
    ]
)
"""Those that are no answer, whatever a client makes of them."""

SOME_STREAMS = (
    "a-byte-each",
    "cr",
    "two-done",
    "gzip-cut",
    "too-deep",
    "chunked-cut",
    "B10 first",
    "B10-event in the middle",
    "B13-cut-frame endless",
    "B13-bare chunked",
    "B24-reset",
    "B32-null",
    "B33-later",
    "B34 for a stream",
    "half a surrogate pair",
)
"""One of each kind."""

SOME_PLAIN = (
    "B34",
    "B22-said-yes",
    "cut gzip",
    "cut no-http",
    "two-objects",
    "utf-16",
    "reason br",
    "wait ms",
    "half a surrogate pair",
)
