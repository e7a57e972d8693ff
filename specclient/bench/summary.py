"""What the samples say, per workload and number of clients, with a verdict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from specclient.bench.stats import Estimate, crossed, estimate
from specclient.bench.store import Sample

Decision = Literal["use it", "do not", "not enough evidence"]
FEWEST_PAIRS = 5
FEWEST_CASES = 3
"""Of one or two cases little follows for the next one."""


@dataclass(frozen=True, slots=True)
class ArmFigures:
    """One arm's medians, in seconds unless told otherwise; None where nothing was reported.

    `per_token` is seconds of decoding for each token of the answer (a round's cost per validated token),
    and `draft`, `verify` and `overhead` are its parts where the engine tells them. `throughput` is tokens
    a second over all clients.
    """

    calls: int
    failed: int
    total: Estimate | None
    first_content: Estimate | None
    queue: Estimate | None
    prefill: Estimate | None
    cached: Estimate | None
    decode: Estimate | None
    tokens: Estimate | None
    per_token: Estimate | None
    draft: Estimate | None
    verify: Estimate | None
    overhead: Estimate | None
    throughput: Estimate | None
    joules_per_token: Estimate | None
    phases_by: str | None


@dataclass(frozen=True, slots=True)
class Group:
    """One workload at one number of clients.

    The three gains are medians over pairs of what the arm without took over what the arm with took: above
    1 the prediction won. `acceptance_rate` and `extra_billed` are of the prediction; `acceptance_length`
    is tokens a verification pass, whatever drafted them.
    """

    workload: str
    clients: int
    pairs: int
    cases: int
    without: ArmFigures
    predicted: ArmFigures
    gain: Estimate | None
    """Whole calls."""
    decode_gain: Estimate | None
    """Seconds a token of decoding: the criterion of the round. Above 1, a validated token is cheaper."""
    acceptance_rate: float | None
    draft_acceptance: float | None
    """Of the tokens that the endpoint drafted from whatever it drafts from."""
    acceptance_length: Estimate | None
    extra_billed: Estimate | None
    identical: float | None
    """Share of the pairs whose answers are the same."""
    prompts_differ: bool
    """The known text was added to the prompts of one arm."""
    outcomes: tuple[str, ...]
    decision: Decision
    because: str
    not_measured: tuple[str, ...] = field(default=())


def summarise(samples: Iterable[Sample], *, seed: int = 0) -> list[Group]:
    """A group for each workload and number of clients, few clients first."""
    grouped: dict[tuple[str, int], list[Sample]] = defaultdict(list)
    for sample in samples:
        grouped[sample.workload, sample.clients].append(sample)
    order = sorted(grouped, key=lambda key: key[1])  # the workloads stay as they were run
    return [_group(*key, grouped[key], seed) for key in order]


def _group(workload: str, clients: int, samples: Sequence[Sample], seed: int) -> Group:
    pairs = _pairs(samples)
    predicted = [sample for sample in samples if sample.arm == "with"]
    gain = _ratio(pairs, lambda sample: sample.total, seed)
    outcomes = tuple(sorted({sample.outcome for sample in predicted if sample.outcome}))
    cases = len({one.case for one, _ in pairs})
    reasons = [sample.reasons for _, sample in pairs]
    decision, because = _decide(
        gain,
        pairs=len(pairs),
        cases=cases,
        outcomes=outcomes,
        blocks=len({_block(one) for one, _ in pairs}),
        same=bool(reasons) and all("in_prompt" in codes for codes in reasons),
    )
    figures = _figures([s for s in samples if s.arm == "without"], seed), _figures(predicted, seed)
    same = [one.digest == two.digest for one, two in pairs]
    group = Group(
        workload=workload,
        clients=clients,
        pairs=len(pairs),
        cases=cases,
        without=figures[0],
        predicted=figures[1],
        gain=gain,
        decode_gain=_ratio(pairs, per_token, seed),
        acceptance_rate=_acceptance(predicted),
        draft_acceptance=_draft_acceptance(predicted),
        acceptance_length=_estimate(predicted, _acceptance_length, seed),
        extra_billed=_estimate(predicted, lambda sample: sample.extra_billed, seed),
        identical=sum(same) / len(same) if same else None,
        prompts_differ=any("put_in_prompt" in codes for codes in reasons),
        outcomes=outcomes,
        decision=decision,
        because=because,
    )
    return _with_gaps(group, drafts_always=any(one.drafted for one, _ in pairs))


def _pairs(samples: Sequence[Sample]) -> list[tuple[Sample, Sample]]:
    """(without, with) of every trial that came to its end in both arms."""
    ended = {sample.key: sample for sample in samples if sample.error is None and sample.total}
    pairs = []
    for key, sample in ended.items():
        if sample.arm == "without":
            twin = ended.get(key.removesuffix("without") + "with")
            if twin is not None:
                pairs.append((sample, twin))
    return pairs


def per_token(sample: Sample) -> float | None:
    """Seconds of decoding for each token after the first, which the prefill makes.

    Where the endpoint does not time it, receiving stands for it, unless the answer came in one piece.
    """
    return _per_token(sample, sample.decode if sample.decode is not None else sample.receive or None)


def _per_token(sample: Sample, seconds: float | None) -> float | None:
    if seconds is None or sample.completion_tokens is None or sample.completion_tokens < 2:
        return None
    return seconds / (sample.completion_tokens - 1)


def _overhead(sample: Sample) -> float | None:
    """What of the decoding was neither drafting nor a pass: choosing, committing, text, waiting."""
    if sample.decode is None or sample.draft_seconds is None or sample.verify_seconds is None:
        return None
    return max(0.0, sample.decode - sample.draft_seconds - sample.verify_seconds)


def _acceptance_length(sample: Sample) -> float | None:
    """Tokens a decoding pass (the first token is the prefill's), else as the endpoint reckons it."""
    if not sample.forward_passes or not sample.completion_tokens:
        return sample.acceptance_length
    return (sample.completion_tokens - 1) / sample.forward_passes


def _acceptance(samples: Sequence[Sample]) -> float | None:
    told = [(s.accepted, s.rejected) for s in samples if s.accepted is not None and s.rejected is not None]
    total = sum(accepted + rejected for accepted, rejected in told)
    return sum(accepted for accepted, _ in told) / total if total else None


def _draft_acceptance(samples: Sequence[Sample]) -> float | None:
    told = [(s.accepted_draft, s.drafted) for s in samples if s.accepted_draft is not None and s.drafted]
    total = sum(drafted for _, drafted in told)
    return sum(accepted for accepted, _ in told) / total if total else None


def _figures(samples: Sequence[Sample], seed: int) -> ArmFigures:
    ended = [sample for sample in samples if sample.error is None]
    return ArmFigures(
        calls=len(samples),
        failed=len(samples) - len(ended),
        total=_estimate(ended, lambda sample: sample.total, seed),
        first_content=_estimate(ended, lambda sample: sample.first_content, seed),
        queue=_estimate(ended, lambda sample: sample.queue, seed),
        prefill=_estimate(ended, lambda sample: sample.prefill, seed),
        cached=_estimate(ended, lambda sample: sample.cached_tokens, seed),
        decode=_estimate(ended, lambda sample: sample.decode, seed),
        tokens=_estimate(ended, lambda sample: sample.completion_tokens, seed),
        per_token=_estimate(ended, per_token, seed),
        draft=_estimate(ended, lambda s: _per_token(s, s.draft_seconds), seed),
        verify=_estimate(ended, lambda s: _per_token(s, s.verify_seconds), seed),
        overhead=_estimate(ended, lambda s: _per_token(s, _overhead(s)), seed),
        throughput=_of_blocks(ended, lambda s: _over(s.block_tokens, s.block_seconds), seed),
        joules_per_token=_of_blocks(ended, lambda s: _over(s.joules, s.block_tokens), seed),
        phases_by=next((sample.phases_by for sample in ended if sample.phases_by), None),
    )


def _over(amount: float | None, base: float | None) -> float | None:
    return None if amount is None or not base else amount / base


def _estimate(
    samples: Sequence[Sample], read: Callable[[Sample], float | None], seed: int
) -> Estimate | None:
    told = ((sample, read(sample)) for sample in samples)
    return crossed([(s.case, _block(s), value) for s, value in told if value is not None], seed=seed)


def _block(sample: Sample) -> str:
    return sample.block or sample.key


def _of_blocks(
    samples: Sequence[Sample], read: Callable[[Sample], float | None], seed: int
) -> Estimate | None:
    """The same for what is told of a block, and stands in all of its samples."""
    values = {_block(sample): value for sample in samples if (value := read(sample)) is not None}
    return estimate(list(values.values()), seed=seed)


def _ratio(
    pairs: Sequence[tuple[Sample, Sample]], read: Callable[[Sample], float | None], seed: int
) -> Estimate | None:
    values = []
    for without, predicted in pairs:
        one, two = read(without), read(predicted)
        if one and two:
            values.append((without.case, _block(without), one / two))
    return crossed(values, seed=seed)


def _decide(
    gain: Estimate | None, *, pairs: int, cases: int, blocks: int, outcomes: Sequence[str], same: bool
) -> tuple[Decision, str]:
    if gain is None:
        return "not enough evidence", "no pair of calls came to its end"
    if outcomes == ("none",):
        return "not enough evidence", "no request has a prediction: both arms were the same"
    if outcomes == ("withheld",):
        return "not enough evidence", "the endpoint cannot take the prediction: both arms were the same"
    if same:
        return (
            "not enough evidence",
            "the prompts hold the known text already, which is where this server drafts from: both arms were "
            "the same",
        )
    if gain.low is None or gain.high is None or pairs < FEWEST_PAIRS or cases < FEWEST_CASES:
        return "not enough evidence", f"{pairs} pairs of {cases} cases are too few"
    if blocks < FEWEST_PAIRS:
        return "not enough evidence", f"{pairs} pairs that ran in {blocks} rounds are too few"
    interval = f"{gain.low:.2f} to {gain.high:.2f} times as fast, with 95 % confidence"
    if gain.low > 1:
        return "use it", interval
    if gain.high < 1:
        return "do not", interval
    return "not enough evidence", interval


def _with_gaps(group: Group, *, drafts_always: bool) -> Group:
    """The group with what could not be measured in it, in words."""
    missing = [
        name
        for name in ("queue", "prefill", "decode")
        if getattr(group.predicted, name) is None or getattr(group.without, name) is None
    ]
    gaps = [f"{name}: the endpoint does not report it" for name in missing]
    if drafts_always and group.without.phases_by == "engine":
        gaps.append("plain decoding: without a prediction the engine drafts from the prompt and its answer")
    elif drafts_always:
        gaps.append("plain decoding: the endpoint drafts in both arms, and no request can turn that off")
    if group.acceptance_rate is None:
        gaps.append("acceptance rate: no counters of the prediction were reported")
    if group.acceptance_length is None:
        gaps.append("acceptance length: the endpoint does not report its passes")
    if group.decode_gain is not None and "decode" in missing:
        gaps.append("seconds a token are taken from the time of receiving, as the client saw it")
    if group.extra_billed is None:
        gaps.append("extra billed tokens: not reported")
    if group.predicted.verify is None:
        gaps.append("draft, verification and overhead apart: the endpoint times a round as a whole")
    return replace(group, not_measured=tuple(gaps))
