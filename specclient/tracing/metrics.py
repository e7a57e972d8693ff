"""Metrics of a call, recorded once at its end.

By default under the names that dashboards read today; under the newer `gen_ai.client.inference.` names
instead when OTEL_SEMCONV_STABILITY_OPT_IN asks for them; never both. `gen_ai.server.` metrics are for
who hosts a model, so only the embedded engine records them. A sample costs about 14 µs with an SDK, so
the gaps between chunks are recorded after the stream, from at most 512 stored ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from opentelemetry import metrics
from opentelemetry.metrics import Counter, Histogram, MeterProvider, NoOpHistogram, UpDownCounter

from specclient._version import __version__
from specclient.tracing import names

if TYPE_CHECKING:
    from specclient.core.stamps import AttemptStamps
    from specclient.report import Economics, Report

DURATION = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
PHASE_DURATION = (0.001, 0.0025, 0.005, *DURATION)
TOKENS = tuple(4**power for power in range(14))
TIME_TO_FIRST = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
TIME_PER_TOKEN = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)
CLIENT_TIME_PER_TOKEN = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)

Attributes = dict[str, str | bool | int | float]
STANDARD = (names.OPERATION, names.PROVIDER, names.REQUEST_MODEL, names.SERVER_ADDRESS, names.SERVER_PORT)


class Instruments:
    """The instruments of one meter, each made at its first use."""

    def __init__(self, provider: MeterProvider | None, *, latest: bool) -> None:
        self.base = "gen_ai.client.inference" if latest else "gen_ai.client.operation"
        self.latest = latest
        self._meter = metrics.get_meter("specclient", __version__, provider)
        self._made: dict[str, Any] = {}
        self._duration = self.histogram(f"{self.base}.duration", "s", DURATION)

    @property
    def active(self) -> bool:
        """Whether anybody listens.

        Until the application sets a provider the API hands out instruments that stand for a real one they
        do not have yet; asking them costs a tenth of asking for the provider.
        """
        real = getattr(self._duration, "_real_instrument", self._duration)
        return real is not None and not isinstance(real, NoOpHistogram)

    def histogram(self, name: str, unit: str, buckets: tuple[float, ...]) -> Histogram:
        made: Histogram | None = self._made.get(name)
        if made is None:
            made = self._meter.create_histogram(name, unit=unit, explicit_bucket_boundaries_advisory=buckets)
            self._made[name] = made
        return made

    def counter(self, name: str, unit: str) -> Counter:
        made: Counter | None = self._made.get(name)
        if made is None:
            made = self._made[name] = self._meter.create_counter(name, unit=unit)
        return made

    def balance(self, name: str, unit: str) -> UpDownCounter:
        """A sum that may fall: what was saved may also be lost."""
        made: UpDownCounter | None = self._made.get(name)
        if made is None:
            made = self._made[name] = self._meter.create_up_down_counter(name, unit=unit)
        return made


def record(
    instruments: Instruments,
    identity: Mapping[str, Any],
    *,
    report: Report | None,
    stamps: AttemptStamps,
    facts: Any,
    derived: Mapping[str, Any],
    duration: float,
    error_type: str | None,
    in_process: bool,
    owned: bool = True,
) -> None:
    """Every metric of one finished call. `identity` holds the span's creation attributes.

    Of a call that another instrumentation owns, the conventions' client metrics are that one's to record:
    twice they would count double.
    """
    standard: Attributes = {name: identity[name] for name in STANDARD if name in identity}
    if isinstance(derived["response_model"], str):
        standard[names.RESPONSE_MODEL] = derived["response_model"]
    if owned:
        failed = standard if error_type is None else {**standard, names.ERROR_TYPE: error_type}
        instruments.histogram(f"{instruments.base}.duration", "s", DURATION).record(duration, failed)
        _chunks(instruments, standard, report, stamps)
        _usage(instruments, standard, facts)
    _stream(instruments, standard, report, derived)
    if report is None:
        return
    _phases(instruments, standard, report)
    _prediction(instruments, standard, report)
    if report.economics is not None:
        _economics(instruments, standard, report.economics)
    if in_process:
        _hosted(instruments, standard, report, facts)


def _chunks(
    instruments: Instruments,
    standard: Attributes,
    report: Report | None,
    stamps: AttemptStamps,
) -> None:
    base = instruments.base
    client = report.timing.client if report is not None else None
    if client is not None and client.first_frame is not None:
        instruments.histogram(f"{base}.time_to_first_chunk", "s", DURATION).record(
            client.first_frame, standard
        )
        gaps = instruments.histogram(f"{base}.time_per_output_chunk", "s", DURATION)
        for gap in stamps.gaps:
            gaps.record(gap / 1e9, standard)


def _stream(
    instruments: Instruments, standard: Attributes, report: Report | None, derived: Mapping[str, Any]
) -> None:
    client = report.timing.client if report is not None else None
    if client is not None and client.first_content is not None:
        first = instruments.histogram("specclient.client.time_to_first_content", "s", DURATION)
        first.record(client.first_content, standard)
    if derived.get("tpot") is not None:
        dimensions = {**_pick(standard, names.PROVIDER, names.REQUEST_MODEL), "basis": derived["tpot_basis"]}
        per_token = instruments.histogram(
            "specclient.client.time_per_output_token", "s", CLIENT_TIME_PER_TOKEN
        )
        per_token.record(derived["tpot"], dimensions)


def _usage(instruments: Instruments, standard: Attributes, facts: Any) -> None:
    counts = {
        "input_tokens": facts.input_tokens,
        "output_tokens": facts.output_tokens,
        "cache_read.input_tokens": facts.cached_tokens,
        "cache_write.input_tokens": facts.cache_write_tokens,
        "reasoning.output_tokens": facts.reasoning_tokens,
    }
    known = {name: count for name, count in counts.items() if names.attribute_value("int", count) is not None}
    if not instruments.latest:
        usage = "gen_ai.client.token.usage"
        for kind in ("input", "output"):
            if f"{kind}_tokens" in known:
                attributes = {**standard, "gen_ai.token.type": kind}
                instruments.histogram(usage, "{token}", TOKENS).record(known[f"{kind}_tokens"], attributes)
        return
    for name, count in known.items():
        counter = instruments.counter(f"gen_ai.client.inference.usage.{name}", "{token}")
        counter.add(count, {**standard, "gen_ai.token.modality": "unknown"})
    for kind in ("input", "output"):
        if f"{kind}_tokens" in known:
            name = f"gen_ai.client.inference.operation.{kind}_tokens"
            instruments.histogram(name, "{token}", TOKENS).record(known[f"{kind}_tokens"], standard)


def _phases(instruments: Instruments, standard: Attributes, report: Report) -> None:
    for name in ("queue", "prefill", "decode"):
        phase = getattr(report.timing, name)
        if phase is not None:
            dimensions = _pick(standard, names.PROVIDER, names.REQUEST_MODEL)
            dimensions[names.TIMING_SOURCE] = phase.source
            histogram = instruments.histogram(f"specclient.server.{name}.duration", "s", PHASE_DURATION)
            histogram.record(phase.seconds, dimensions)


def _prediction(instruments: Instruments, standard: Attributes, report: Report) -> None:
    prediction = report.prediction
    if prediction.outcome == "none":
        return
    provider = _pick(standard, names.PROVIDER)
    refused = any(reason.code.startswith("refused") for reason in prediction.reasons)
    sent = "refused" if refused else "withheld" if prediction.outcome == "withheld" else "sent"
    instruments.counter("specclient.prediction.requests", "{request}").add(1, {**provider, "outcome": sent})
    tokens = instruments.counter("specclient.prediction.tokens", "{token}")
    dimensions = _pick(standard, names.PROVIDER, names.REQUEST_MODEL)
    for outcome, count in (
        ("accepted", prediction.accepted_tokens),
        ("rejected", prediction.rejected_tokens),
    ):
        if count is not None:
            tokens.add(count, {**dimensions, "outcome": outcome})


def _economics(instruments: Instruments, standard: Attributes, economics: Economics) -> None:
    """Sums over calls of what was saved and added.

    The bounds are those of single calls: the interval of a sum is narrower than the sum of the intervals.
    """
    dimensions = _pick(standard, names.PROVIDER, names.REQUEST_MODEL)
    saved = economics.seconds_saved
    if saved is not None and economics.baseline is not None:
        seconds = instruments.balance("specclient.economics.seconds_saved", "s")
        for bound in ("mean", "low", "high"):
            value = getattr(saved, bound)
            if value is not None:
                seconds.add(value, {**dimensions, "baseline": economics.baseline, "bound": bound})
    if economics.money_added is not None:
        instruments.counter("specclient.economics.money_added", "1").add(economics.money_added, dimensions)


def _hosted(instruments: Instruments, standard: Attributes, report: Report, facts: Any) -> None:
    timing = report.timing
    if timing.server_total is not None:
        duration = instruments.histogram("gen_ai.server.request.duration", "s", DURATION)
        duration.record(timing.server_total.seconds, standard)
    first = timing.time_to_first_token
    if first is not None and first.source == "engine":
        instruments.histogram("gen_ai.server.time_to_first_token", "s", TIME_TO_FIRST).record(
            first.seconds, standard
        )
    tokens = names.attribute_value("int", facts.output_tokens)
    if timing.decode is not None and isinstance(tokens, int) and tokens > 1:
        per_token = instruments.histogram("gen_ai.server.time_per_output_token", "s", TIME_PER_TOKEN)
        per_token.record(timing.decode.seconds / (tokens - 1), standard)


def _pick(attributes: Attributes, *wanted: str) -> Attributes:
    return {name: attributes[name] for name in wanted if name in attributes}
