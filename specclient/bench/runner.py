"""Runs the blocks against a client, one after another, and keeps what each trial told."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from specclient.bench.meters import Meters
from specclient.bench.schedule import Block, Trial
from specclient.bench.store import Sample, Store
from specclient.errors import (
    APIConnectionError,
    APIError,
    AuthenticationError,
    ConfigError,
    NotFoundError,
    PermissionDeniedError,
)

if TYPE_CHECKING:
    from specclient.client import AsyncClient
    from specclient.report import Phase, Report

OnBlock = Callable[[Block], None]
"""Called with the block that begins."""
OnDone = Callable[[int], None]
"""Called at a block's end, with the number of trials that are in the store."""


_HOPELESS = (APIConnectionError, AuthenticationError, PermissionDeniedError, NotFoundError)
"""What the first call may meet that no other call will fare better with."""


@dataclass(slots=True)
class Runner:
    """`client` answers, `store` remembers, `meters` count energy where the model runs on this machine."""

    client: AsyncClient
    store: Store
    meters: Meters | None = None
    on_block: OnBlock = lambda _block: None
    on_done: OnDone = lambda _done: None

    async def run(self, blocks: Sequence[Block]) -> None:
        """Run every block that is not in the store yet. An interruption loses at most one block.

        Raises APIError where the target is out of reach, or lets nobody in, at the first call.
        """
        waiting = [block for block in blocks if not self._done(block)]
        if waiting:
            # What is loaded, compiled or connected at the first call is not what is measured.
            await self._warm_up(waiting[0].trials[0])
        for block in waiting:
            self.on_block(block)
            self.store.add(await self._block(block))
            self.on_done(len(self.store.samples))

    async def _warm_up(self, trial: Trial) -> None:
        try:
            await self._answer(trial, _sample(trial))
        except _HOPELESS:
            raise
        except APIError:
            pass  # it is measured again, and counted then

    def _done(self, block: Block) -> bool:
        return all(trial.key in self.store.samples for trial in block.trials)

    async def _block(self, block: Block) -> list[Sample]:
        before = self.meters.read() if self.meters else {}
        began = time.perf_counter()
        samples = await asyncio.gather(*(self._trial(trial) for trial in block.trials))
        seconds = time.perf_counter() - began
        joules = self.meters.between(before, self.meters.read()) if self.meters else None
        counts = [sample.completion_tokens for sample in samples]
        tokens = sum(count for count in counts if count is not None) if None not in counts else None
        return [
            replace(sample, block=block.name, block_seconds=seconds, block_tokens=tokens, joules=joules)
            for sample in samples
        ]

    async def _trial(self, trial: Trial) -> Sample:
        sample = _sample(trial)
        try:
            return await self._answer(trial, sample)
        except ConfigError:
            raise
        except APIError as error:
            return replace(sample, error=type(error).__name__)

    async def _answer(self, trial: Trial, sample: Sample) -> Sample:
        digest = hashlib.sha256()
        finish: str | None = None
        report: Report | None = None
        began = time.perf_counter()
        async with await self.client.chat.completions.create(**self._request(trial)) as stream:
            async for chunk in stream:
                report = chunk.specclient or report
                for choice in chunk.choices:
                    finish = choice.finish_reason or finish
                    digest.update((choice.delta.content or "").encode())
        total = time.perf_counter() - began
        sample = replace(sample, total=total, finish_reason=finish, digest=digest.hexdigest()[:32])
        return sample if report is None else _with_report(sample, report)

    def _request(self, trial: Trial) -> dict[str, Any]:
        request = {**trial.case.request, "stream": True}
        if trial.arm == "with" and trial.case.prediction:
            request["prediction"] = trial.case.prediction
        if self.client.target.provider == "local":
            # Under a salt of its own a call computes its prompt, and drafts from nothing that its twin wrote.
            request["extra_body"] = {
                "cache_salt": secrets.token_urlsafe(),
                **(request.get("extra_body") or {}),
            }
        return request


def _sample(trial: Trial) -> Sample:
    return Sample(
        key=trial.key,
        workload=trial.case.workload,
        case=trial.case.name,
        arm=trial.arm,
        clients=trial.clients,
        repeat=trial.repeat,
    )


def _with_report(sample: Sample, report: Report) -> Sample:
    prediction, speculation, timing = report.prediction, report.speculation, report.timing
    phases = (timing.queue, timing.prefill, timing.decode)
    return replace(
        sample,
        first_content=timing.client.first_content,
        receive=timing.client.receive,
        phases_by=next((phase.source for phase in phases if phase is not None), None),
        prompt_tokens=report.usage.prompt,
        cached_tokens=report.usage.cached,
        completion_tokens=report.usage.completion,
        accepted=prediction.accepted_tokens,
        rejected=prediction.rejected_tokens,
        extra_billed=prediction.extra_billed_tokens,
        drafted=speculation.draft_tokens if speculation else None,
        accepted_draft=speculation.accepted_draft_tokens if speculation else None,
        forward_passes=speculation.forward_passes if speculation else None,
        acceptance_length=speculation.mean_acceptance_length if speculation else None,
        draft_seconds=speculation.draft_seconds if speculation else None,
        verify_seconds=speculation.verify_seconds if speculation else None,
        outcome=prediction.outcome,
        effect=prediction.effect,
        reasons=tuple(reason.code for reason in prediction.reasons),
        queue=_seconds(timing.queue),
        prefill=_seconds(timing.prefill),
        decode=_seconds(timing.decode),
    )


def _seconds(phase: Phase | None) -> float | None:
    return None if phase is None else phase.seconds
