"""One attempt's answer, as its JSON objects come in. No I/O.

Reads what servers really send: choices that are null or empty, content as a list of parts, errors inside
a 200, usage in any chunk, streams that end without [DONE] or without a finish reason. Delivered text is
never lost over the shape of what surrounds it.

The chunk that may be the last (it has a finish reason, or comes after one) is held back until the next
one or the end shows which, because the last one carries the report.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specclient.core.alike import PLAIN_KEYS, Piece, filled
from specclient.core.errors import embedded_error
from specclient.core.exchange import DONE
from specclient.core.odd_shapes import as_chunk, objects, split_parts
from specclient.core.plan import Plan
from specclient.core.wire import Wire
from specclient.errors import APIResponseValidationError, IncompleteStreamError
from specclient.tracing import ResponseFacts
from specclient_providers import AnswerReader, Reading

_REASONING = ("reasoning_content", "reasoning", "thinking")
_OTHER_CONTENT = ("tool_calls", "function_call", "refusal", "audio")


class Answer:
    """`event` takes a stream's objects, `body` a plain answer; then `reading` and `facts` tell of it."""

    def __init__(self, plan: Plan, wire: Wire, *, streamed: bool, given: str = "") -> None:
        self.plan = plan
        self.wire = wire
        self.streamed = streamed
        self.has_content = False
        self.has_other_content = False
        """Whether anything but text was given: tool calls, reasoning, further choices."""
        self.done = False
        """[DONE] was read."""
        self.over = False
        """Nothing more is to be read."""
        self.headers: Mapping[str, str] = {}
        self._timeline = wire.timeline
        self._reader = AnswerReader(plan.facts)
        self._pieces: list[str] = [given] if given else []
        self._held: dict[str, Any] | None = None
        self._first: dict[str, Any] = {}
        self._last: Mapping[str, Any] = {}
        self._finish: dict[int, str] = {}
        self._wanted = _choices_wanted(plan.body)
        self._hide = plan.hide if plan.hidden else None
        self._given = given
        self._like: tuple[dict[str, Any], dict[str, Any] | None] | None = None  # and how it is shown

    @property
    def text(self) -> str:
        """The text of the first choice so far: what `.partial` of an error holds."""
        return "".join(self._pieces)

    @property
    def finished(self) -> bool:
        """Whether every choice that was asked for has its finish reason."""
        return len(self._finish) >= self._wanted

    @property
    def complete(self) -> bool:
        """Whether the answer has said that it is one."""
        return self.done or bool(self._finish)

    def take_headers(self, headers: Mapping[str, str]) -> None:
        self.headers = headers
        self._reader.headers(headers)

    def event(self, obj: Any) -> dict[str, Any] | Piece | None:
        """Take one object of a stream; the object to give to the caller now, if any. A `Piece` stays one.

        Raises the error that the object holds, if it holds one.
        """
        if obj is DONE:
            self.done = self.over = True
            return None
        if self.done:  # in one block with [DONE], and no part of the answer
            return None
        if type(obj) is tuple:
            return self._piece(obj)
        self._timeline.frame()
        if type(obj) is not dict:
            raise APIResponseValidationError(
                "The stream holds JSON that is not an object.", partial=self.text
            )
        choices = obj.get("choices")
        if not choices or type(choices) is not list or type(choices[0]) is not dict:
            choices = objects(choices)
            obj = {**obj, "choices": choices}
        if not choices or "error" in obj or "error" in choices[0]:
            self._refuse_error(obj)
        if choices and "delta" not in choices[0] and "message" in choices[0]:
            obj = as_chunk(obj)
            choices = obj["choices"]
        if not self._first:
            self._first = obj
        finished = bool(self._finish)
        for choice in choices:
            if type(choice) is dict:
                self._choice(choice)
        if obj.get("usage") or finished or self._finish or not (obj.keys() <= PLAIN_KEYS):
            self._reader.event(obj)
            self._last = {**self._last, **{k: v for k, v in obj.items() if v is not None}}
        if self._hide is not None and (obj := self._hide(obj)) is None:
            return None
        if not self._finish:
            given: dict[str, Any] = obj
            return given
        out, self._held = self._held, obj
        return out

    def _piece(self, piece: Piece) -> dict[str, Any] | Piece | None:
        """`event` for one that is like one before it but for its text: most events of most streams."""
        if self._finish or self._given:
            return self.event(filled(piece))
        if self._hide is not None:
            like = piece[0]
            if self._like is None or self._like[0] is not like:
                self._like = like, self._hide(like)
            shown = self._like[1]
            if shown is None:
                return self.event(filled(piece))
            piece = shown, piece[1], piece[2]
        self._timeline.text()
        self._pieces.append(piece[1])
        self.has_content = True
        return piece

    def _refuse_error(self, obj: Mapping[str, Any]) -> None:
        if (error := embedded_error(obj, self.headers)) is not None:
            error.partial = self.text
            raise error

    def _choice(self, choice: dict[str, Any]) -> None:
        delta = choice.get("delta")
        if delta and type(delta) is dict:
            content = delta.get("content")
            if content:
                if type(content) is not str:
                    content = split_parts(delta, content)
                if content:
                    if self._given:
                        content = delta["content"] = self._after_given(content)
                    self._text(choice, content)
            if not content:
                self._other(delta)
        elif (text := choice.get("text")) and type(text) is str:  # the completions API
            self._text(choice, text)
        if reason := choice.get("finish_reason"):
            self._finish[_index(choice)] = str(reason)
            if self.finished:
                self.wire.finished()

    def _text(self, choice: dict[str, Any], text: str) -> None:
        if choice.get("index"):
            self.has_other_content = True
        else:
            self._pieces.append(text)
        self.has_content = True
        self._timeline.content()

    def _other(self, delta: Mapping[str, Any]) -> None:
        for key in _OTHER_CONTENT:
            if delta.get(key):
                self.has_content = self.has_other_content = True
                self._timeline.content()
                return
        for key in _REASONING:
            if delta.get(key):
                self.has_content = self.has_other_content = True
                self._timeline.content(answer=False)
                return

    def _after_given(self, content: str) -> str:
        """What of `content` the caller has not seen: a repeated stream first repeats what was given."""
        seen = min(len(self._given), len(content))
        if self._given[:seen] != content[:seen]:
            raise IncompleteStreamError(
                "The stream broke after content was given, and the repeated answer differs from it.",
                partial=self.text,
            )
        self._given = self._given[seen:]
        return content[seen:]

    def end(self) -> dict[str, Any]:
        """The last chunk. Raises IncompleteStreamError where the stream never said that it was over."""
        if not self.complete:
            raise IncompleteStreamError(
                "The stream ended without a finish reason and without [DONE]; the answer may be cut off.",
                partial=self.text,
            )
        held, self._held = self._held, None
        if held is not None:
            return held
        head: dict[str, Any] = {
            key: self._first[key] for key in ("id", "object", "created", "model") if key in self._first
        }
        return {**head, "choices": []}

    def body(self, obj: Any) -> dict[str, Any]:
        """Take a plain answer. Raises the error that it holds, or APIResponseValidationError."""
        self._timeline.frame()
        if not isinstance(obj, dict):
            raise APIResponseValidationError(
                f"The endpoint answered with a JSON {type(obj).__name__}, not an object."
            )
        if error := embedded_error(obj, self.headers):
            raise error
        if not isinstance(obj.get("choices"), list):
            raise APIResponseValidationError("The endpoint's answer has no choices.")
        for choice in obj["choices"]:
            if not isinstance(choice, dict):
                continue
            message = choice.get("message")
            if isinstance(message, dict) and isinstance(message.get("content"), list | dict):
                split_parts(message, message["content"])
            text = message.get("content") if isinstance(message, dict) else choice.get("text")
            if isinstance(text, str) and not choice.get("index"):
                self._pieces.append(text)
            if choice.get("finish_reason"):
                self._finish[_index(choice)] = str(choice["finish_reason"])
        self._reader.event(obj)
        self._first = self._last = obj
        self.done = self.over = True
        shown = self._hide(obj) if self._hide is not None else obj
        return obj if shown is None else shown

    def reading(self) -> Reading:
        """The endpoint's own figures so far."""
        return self._reader.result()

    @property
    def finish_reasons(self) -> tuple[str | None, ...]:
        return tuple(self._finish[index] for index in sorted(self._finish))

    def facts(self, reading: Reading) -> ResponseFacts:
        """What the answer says of itself, for the call's span."""
        merged = {**self._first, **self._last}
        return ResponseFacts.of(
            reading,
            id=_string(merged.get("id")),
            model=_string(merged.get("model")),
            finish_reasons=self.finish_reasons,
            service_tier=_string(merged.get("service_tier")),
            system_fingerprint=_string(merged.get("system_fingerprint")),
            output=({"role": "assistant", "content": self.text},) if self._pieces else (),
        )


def _index(choice: Mapping[str, Any]) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def _choices_wanted(body: Mapping[str, Any]) -> int:
    n = body.get("n")
    return n if isinstance(n, int) and n > 0 else 1


def _string(value: object) -> str | None:
    return None if value is None else str(value)
