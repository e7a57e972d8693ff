"""B: what servers, proxies and networks really do, as scripts for the server."""

from __future__ import annotations

from typing import Any

import specclient
from tests.server import Close, chunk, completion, data, role, sse, stream, usage_chunk

THREE = [role(), chunk("one "), chunk("two ")]
GONE = {"message": "upstream is gone", "code": 502}


def raw(value: object, event: str = "") -> bytes:
    head = f"event: {event}\n".encode() if event else b""
    return head + data(value)


ERRORS: dict[str, tuple[Any, type[Exception], str]] = {
    "B10": ({"error": GONE}, specclient.InternalServerError, "upstream is gone"),
    "B10-text": ({"error": "upstream is gone"}, specclient.APIError, "upstream is gone"),
    "B10-vllm": (
        {"object": "error", "message": "upstream is gone", "code": 400},
        specclient.BadRequestError,
        "upstream is gone",
    ),
    "B10-null-choices": ({"error": GONE, "choices": None}, specclient.InternalServerError, "gone"),
    "B10-no-choices": ({"error": GONE, "choices": []}, specclient.InternalServerError, "gone"),
    "B10-openrouter": (
        {**chunk("", finish_reason="error"), "error": GONE, "provider": "Acme"},
        specclient.InternalServerError,
        "gone",
    ),
    "B10-in-a-choice": (
        {**chunk(""), "choices": [{"index": 0, "delta": {}, "error": GONE, "finish_reason": "error"}]},
        specclient.InternalServerError,
        "gone",
    ),
    "B10-code-in-words": (
        {"error": {"message": "upstream is gone", "code": "server_error"}},
        specclient.APIError,
        "gone",
    ),
    "B10-type": ({"type": "error", "error": GONE}, specclient.InternalServerError, "gone"),
    "B10-status": (
        {"error": {"message": "slow down", "status": 429}},
        specclient.RateLimitError,
        "slow down",
    ),
    "B10-event": (raw(GONE, "error"), specclient.InternalServerError, "gone"),
    "B10-event-nested": (raw({"error": GONE}, "error"), specclient.InternalServerError, "gone"),
    "B10-event-text": (b"event: error\ndata: upstream is gone\n\n", specclient.APIError, "upstream is gone"),
    "B10-detail": ({"detail": "upstream is gone"}, specclient.APIError, "gone"),
    "B10-bare": ({"message": "upstream is gone", "code": 502}, specclient.InternalServerError, "gone"),
}


B34 = {
    "B34": ({"error": {"code": 429, "message": "Slow down"}, "choices": None}, specclient.RateLimitError),
    "B34-no-choices": ({"error": {"code": 429, "message": "Slow down"}}, specclient.RateLimitError),
    "B34-text-code": ({"error": {"code": "429", "message": "Slow down"}}, specclient.RateLimitError),
    "B34-metadata": (
        {"error": {"code": 503, "message": "Slow down", "metadata": {"provider_name": "Acme"}}},
        specclient.InternalServerError,
    ),
    "B34-choices-kept": (
        {**completion(""), "error": {"code": 429, "message": "Slow down"}},
        specclient.RateLimitError,
    ),
    "B34-in-a-choice": (
        {**completion(), "choices": [{"index": 0, "error": {"code": 429, "message": "Slow down"}}]},
        specclient.RateLimitError,
    ),
}


ENDLESS = {
    "B13": lambda: sse(*THREE, done=False),
    "B13-close": lambda: sse(*THREE, done=False, framing="close"),
    "B13-cut-frame": lambda: stream(*map(data, THREE), data(chunk("three"))[:25], framing="close"),
    "B13-usage-only": lambda: sse(*THREE, usage_chunk(), done=False),
    "B13-null-reason": lambda: sse(*THREE, chunk("", finish_reason=None), done=False),
    "B13-no-last-chunk": lambda: sse(*THREE, done=False, terminate=False),
}


LAST = {
    "B13": b"data: [DONE]\n\n",
    "B13-bare": b"data: [DONE]",
    "B13-one-line-end": b"data: [DONE]\r\n",
    "B13-blanks": b"data:   [DONE]  \n\n",
    "B13-no-blank": b"data:[DONE]\n\n",
}


STATUSES = {
    "B22": (529, {}, True),
    "B22-said-no": (503, {"x-should-retry": "false"}, False),
    "B22-said-yes": (409, {"x-should-retry": "true"}, True),
    "B22-400-said-yes": (400, {"x-should-retry": "true"}, True),
    "B22-capitals": (503, {"X-Should-Retry": "FALSE"}, False),
    "B22-cloudflare": (520, {}, True),
    "B22-501": (501, {}, True),
    "B22-402": (402, {}, False),
}


DROPS = {
    "B24": lambda: stream(*map(data, THREE), Close()),
    "B24-reset": lambda: stream(*map(data, THREE), Close(reset=True)),
    "B24-tools": lambda: stream(
        data(chunk(tool_calls=[{"index": 0, "function": {"name": "f", "arguments": '{"a'}}])), Close()
    ),
    "B24-reasoning": lambda: stream(data(chunk(reasoning_content="Hm")), Close(reset=True)),
    "B24-refusal": lambda: stream(data(chunk(refusal="I ")), Close()),
    "B24-second-choice": lambda: stream(
        data({**chunk(), "choices": [{"index": 1, "delta": {"content": "x"}}]}), Close()
    ),
}


EMPTY = {
    "B32": {"choices": []},
    "B32-null": {"choices": None},
    "B32-absent": {},
    "B32-null-delta": {"choices": [{"index": 0, "delta": None}]},
    "B32-no-delta": {"choices": [{"index": 0, "finish_reason": None}]},
    "B32-filter": {"choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
    "B32-null-choice": {"choices": [None]},
}


def _call(arguments: str, *, name: str | None = None, **extra: Any) -> dict[str, Any]:
    return {"function": {"arguments": arguments} | ({"name": name} if name else {}), **extra}


CALLS: dict[str, tuple[list[list[dict[str, Any]]], list[tuple[str, str]]]] = {
    "B33": (
        [[_call("{}", name="f", id="1"), _call("[]", name="g", id="2")]],
        [("f", "{}"), ("g", "[]")],
    ),
    "B33-one": ([[_call('{"a"', name="f", id="1")], [_call(":1}")]], [("f", '{"a":1}')]),
    "B33-empty-id": ([[_call('{"a"', name="f", id="1")], [_call(":1}", id="")]], [("f", '{"a":1}')]),
    "B33-index": (
        [
            [_call('{"a"', name="f", id="1", index=0)],
            [_call("[]", name="g", id="2", index=1), _call(":1}", index=0)],
        ],
        [("f", '{"a":1}'), ("g", "[]")],
    ),
    "B33-later": (
        [[_call("{}", name="f", id="1")], [_call("[", name="g", id="2")], [_call("]")]],
        [("f", "{}"), ("g", "[]")],
    ),
    "B33-same-id": ([[_call("{", name="f", id="1")], [_call("}", id="1")]], [("f", "{}")]),
    "B33-no-ids": ([[_call("{}", name="f"), _call("[]", name="g")]], [("f", "{}"), ("g", "[]")]),
}


PARTS = {
    "B36": (
        [
            [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm. "}]}],
            [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}],
        ],
        "Hm. ",
    ),
    "B36-together": (
        [
            [
                {"type": "thinking", "thinking": [{"type": "text", "text": "Hm. "}]},
                {"type": "text", "text": "Hello"},
            ]
        ],
        "Hm. ",
    ),
    "B36-text-thinking": ([[{"type": "thinking", "thinking": "Hm. "}], "Hello"], "Hm. "),
    "B36-reference": ([[{"type": "text", "text": "Hello"}, {"type": "reference", "reference_ids": [1]}]], ""),
    "B36-one-part": ([{"type": "text", "text": "Hello"}], ""),
    "B36-strings": ([["Hel", "lo"]], ""),
}
