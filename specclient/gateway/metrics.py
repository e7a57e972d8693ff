"""`/metrics`: what this server did, in Prometheus' text format (or OpenMetrics, where that is asked for).

Labels are names of configured targets and words of a fixed list, so their number is bounded, and no
prompt, key or model that a client names is ever among them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder

from specclient.core.flow import Flow
from specclient.report import Report
from specclient.tracing.metrics import DURATION, PHASE_DURATION

OTHER = "other"
"""Stands for a target that is none of the configured ones."""
NONE = "none"
"""Stands for the target of a request that was refused before one was chosen."""


class Counted:
    """One request on its way. `outcome` is completed, failed or closed (the client left)."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.flow: Flow | None = None
        self.status: int | None = None
        self.closed = False
        self.begun = time.perf_counter()

    @property
    def outcome(self) -> str:
        if self.flow is not None and self.flow.completed:
            return "completed"
        return "closed" if self.closed else "failed"

    @property
    def answering(self) -> bool:
        """Whether any of the answer has come from the target."""
        if self.flow is None:
            return False
        stamps = self.flow.ledger.timeline.attempt
        engine = getattr(self.flow.exchange, "first_tokens", None)
        return stamps.first_content is not None or engine is not None


class Metrics:
    """The metrics of one application, in a registry of their own."""

    def __init__(self, targets: Iterable[str]) -> None:
        self._targets = frozenset(targets)
        self._serving: set[Counted] = set()
        registry = self._registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(self)  # see `collect`
        self._requests = Counter(
            "specclient_requests",
            "Requests that are over. outcome: completed, failed, closed (the client left).",
            ["target", "api", "outcome", "status"],
            registry=registry,
        )
        self._refused = Counter(
            "specclient_requests_refused",
            "Requests that were refused unread, by status.",
            ["status"],
            registry=registry,
        )
        self._duration = Histogram(
            "specclient_request_duration_seconds",
            "From a request's arrival to the end of its answer.",
            ["target", "api"],
            buckets=DURATION,
            registry=registry,
        )
        self._attempts = Counter(
            "specclient_attempts",
            "Tries at targets, retries and fallbacks included; status none: no answer came.",
            ["target", "status"],
            registry=registry,
        )
        self._predictions = Counter(
            "specclient_predictions",
            "What became of requests' predictions, and whether they were used.",
            ["target", "outcome", "effect"],
            registry=registry,
        )
        self._prediction_tokens = Counter(
            "specclient_prediction_tokens",
            "Tokens of predictions as the target counted them. result: accepted, rejected.",
            ["target", "result"],
            registry=registry,
        )
        self._draft_tokens = Counter(
            "specclient_draft_tokens",
            "Draft tokens from every source, where the target tells. result: accepted, rejected.",
            ["target", "result"],
            registry=registry,
        )
        self._tokens = Counter(
            "specclient_tokens",
            "Tokens as the target counted them. kind: prompt, completion.",
            ["target", "kind"],
            registry=registry,
        )
        self._phases = Histogram(
            "specclient_phase_duration_seconds",
            "Where the time went, where the target or the engine tells. phase: queue, prefill, decode.",
            ["target", "phase", "source"],
            buckets=PHASE_DURATION,
            registry=registry,
        )
        self._first = Histogram(
            "specclient_time_to_first_content_seconds",
            "From the successful try's start to the first content of a stream.",
            ["target"],
            buckets=PHASE_DURATION,
            registry=registry,
        )

    def collect(self) -> Iterator[Any]:
        """The requests under way, counted when they are asked for."""
        running = GaugeMetricFamily(
            "specclient_requests_running", "Requests whose answer has begun to come.", labels=["target"]
        )
        waiting = GaugeMetricFamily(
            "specclient_requests_waiting",
            "Requests of whose answer nothing has come: queued, in prefill, or not streamed by the target.",
            labels=["target"],
        )
        counts = dict.fromkeys(sorted(self._targets), (0, 0))
        for served in self._serving:
            answering, not_yet = counts.get(served.target, (0, 0))
            begun = served.answering
            counts[served.target] = (answering + begun, not_yet + (not begun))
        for target, (answering, not_yet) in counts.items():
            running.add_metric([target], answering)
            waiting.add_metric([target], not_yet)
        yield running
        yield waiting

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """The text for a scraper that accepts `accept`, and its content type."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type

    def refused(self, status: int) -> None:
        self._refused.labels(str(status)).inc()

    @contextmanager
    def serving(self, api: str) -> Iterator[Counted]:
        """One request, counted when it is over, whichever way."""
        served = Counted(NONE)
        self._serving.add(served)
        try:
            yield served
        finally:
            self._serving.discard(served)
            target = self._bounded(served.target)
            status = NONE if served.status is None else str(served.status)
            self._requests.labels(target, api, served.outcome, status).inc()
            self._duration.labels(target, api).observe(time.perf_counter() - served.begun)
            if served.flow is not None and served.flow.report is not None:
                self._record(served.flow.report)

    def _bounded(self, target: str) -> str:
        return target if target in self._targets or target == NONE else OTHER

    def _record(self, report: Report) -> None:
        target = self._bounded(report.target)
        for attempt in report.attempts:
            status = NONE if attempt.status is None else str(attempt.status)
            self._attempts.labels(self._bounded(attempt.target), status).inc()
        prediction, speculation = report.prediction, report.speculation
        if prediction.outcome != "none":
            self._predictions.labels(target, prediction.outcome, prediction.effect).inc()
        _add(self._prediction_tokens, target, "accepted", prediction.accepted_tokens)
        _add(self._prediction_tokens, target, "rejected", prediction.rejected_tokens)
        if speculation is not None and speculation.draft_tokens is not None:
            accepted = speculation.accepted_draft_tokens
            _add(self._draft_tokens, target, "accepted", accepted)
            if accepted is not None:
                _add(self._draft_tokens, target, "rejected", speculation.draft_tokens - accepted)
        _add(self._tokens, target, "prompt", report.usage.prompt)
        _add(self._tokens, target, "completion", report.usage.completion)
        for name in ("queue", "prefill", "decode"):
            phase = getattr(report.timing, name)
            if phase is not None:
                self._phases.labels(target, name, phase.source).observe(phase.seconds)
        if report.timing.client.first_content is not None:
            self._first.labels(target).observe(report.timing.client.first_content)


def _add(counter: Counter, target: str, kind: str, amount: int | None) -> None:
    """None is not reported, and no zero: a series appears with the first figure."""
    if amount is not None and amount >= 0:
        counter.labels(target, kind).inc(amount)
