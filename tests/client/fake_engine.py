"""An engine that plays a script: the seam of `specclient_engine.Engine` without a model."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from specclient_engine import GenerationRequest, GenerationStats, Step


class FakeHandle:
    def __init__(self, steps: Sequence[Step], stats: GenerationStats, hang: bool) -> None:
        self._steps = list(steps)
        self._stats = stats
        self._hang = hang
        self.stats: GenerationStats | None = None
        self.cancelled = threading.Event()

    def cancel(self) -> None:
        self.cancelled.set()

    def next(self, timeout: float | None = None) -> Step | None:
        if not self._steps:
            if self._hang and not self.cancelled.wait(timeout):
                raise TimeoutError
            return None
        step = self._steps.pop(0)
        if step.finish_reason is not None:
            self.stats = self._stats
        return step

    def __iter__(self) -> Iterator[Step]:
        return self

    def __next__(self) -> Step:
        step = self.next()
        if step is None:
            raise StopIteration
        return step

    def __aiter__(self) -> AsyncIterator[Step]:
        return self

    async def __anext__(self) -> Step:
        while self._hang and not self._steps and not self.cancelled.is_set():
            await asyncio.sleep(0.01)
        step = self.next()
        if step is None:
            raise StopAsyncIteration
        return step


class FakeTokenizer:
    def token_bytes(self, token_id: int) -> bytes:
        return bytes([token_id])


class FakeEngine:
    """`pieces` are the steps' texts. With `hang` the last step never comes."""

    def __init__(
        self, *pieces: str, finish: str = "stop", hang: bool = False, fail: Exception | None = None
    ) -> None:
        self.pieces = pieces
        self.finish: Any = finish
        self.hang = hang
        self.fail = fail
        self.requests: list[GenerationRequest] = []
        self.messages: list[Any] = []
        self.handles: list[FakeHandle] = []
        self.tokenizer = FakeTokenizer()

    def chat_prompt(self, messages: Sequence[Any], tools: Any = None) -> list[int]:
        self.messages.append((list(messages), tools))
        return [1, 2, 3]

    def text_prompt(self, text: str) -> list[int]:
        return list(text.encode())

    def submit(self, request: GenerationRequest) -> FakeHandle:
        if self.fail is not None:
            raise self.fail
        self.requests.append(request)
        now = time.perf_counter_ns()
        steps = [Step(text=piece, token_ids=tuple(piece.encode())) for piece in self.pieces]
        if not self.hang:
            steps.append(Step(text="", token_ids=(), finish_reason=self.finish))
        stats = GenerationStats(
            prompt_tokens=3,
            completion_tokens=sum(map(len, self.pieces)),
            forward_passes=len(self.pieces),
            by_source={"prediction": (10, 7)} if request.predictions else {},
            acceptance_histogram=(),
            submitted=now,
            scheduled=now + 1_000_000,
            first_token=now + 3_000_000,
            finished=now + 9_000_000,
            finish_reason=self.finish,
        )
        handle = FakeHandle(steps, stats, self.hang)
        self.handles.append(handle)
        return handle
