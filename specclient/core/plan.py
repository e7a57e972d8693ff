"""The pure decision for one request: what goes on the wire, where the prediction goes, and why.

`build_plan` does no I/O and never changes the caller's request. Only the prediction, which is a hint,
may be withheld; whatever carries meaning (tools, stop, n, schemas, limits) is sent as it was given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from specclient.core import history, opt_ins, route, shaping
from specclient.core.draft import PlanDraft
from specclient.core.learned import Learned
from specclient.errors import ConfigError, PredictionRefusedError
from specclient.prediction import Prediction
from specclient.report import Outcome, Reason
from specclient_providers import EndpointFacts, refuses

OnUnsupported = Literal["withhold", "error", "local"]


@dataclass(frozen=True, slots=True)
class Policy:
    """What the caller wants where the endpoint leaves a choice.

    `on_unsupported` says what happens to a prediction that the endpoint cannot take: `withhold` sends
    the request without it, `error` sends nothing, `local` asks for the embedded engine instead.
    `put_in_prompt` allows adding the known text to the messages of a server that drafts from them.
    `use_corpus` allows loading it into a server's draft corpus, which all its users share.
    `opt_ins` switches on documented reports of usage and timing.
    """

    on_unsupported: OnUnsupported = "withhold"
    put_in_prompt: bool = False
    use_corpus: bool = False
    opt_ins: bool = True


@dataclass(frozen=True, slots=True)
class Plan:
    """The decision. `body`, `headers`, `path` and `query` are the wire request, relative to the
    endpoint's base URL; `path` is empty for an endpoint that speaks another wire format.

    `reasons` say why the prediction went where it went, `notes` what else was mapped or noticed.
    `hidden` are the codes of the reports that were switched on without the caller's asking.
    `reroute_local` is set where policy wants the embedded engine to do the work. `corpus` is the text
    to load before the call and to release after it, when the outcome is `via_corpus`. The repr shows the
    decision and no content.
    """

    body: dict[str, Any] = field(repr=False)
    headers: dict[str, str] = field(repr=False)
    path: str
    query: dict[str, str] = field(repr=False)
    outcome: Outcome
    reasons: tuple[Reason, ...]
    notes: tuple[Reason, ...]
    hidden: frozenset[str]
    facts: EndpointFacts
    prediction: Prediction | None
    policy: Policy
    request: Mapping[str, Any] = field(repr=False)
    """What the caller asked for."""
    reroute_local: bool = False
    corpus: str | None = field(default=None, repr=False)
    learned: Learned | None = field(default=None, repr=False, compare=False)
    asked_headers: frozenset[str] = field(default=frozenset(), repr=False)
    """The caller's own headers that switch a report on here, by lower-case name: those are asked for."""

    @property
    def prediction_tokens(self) -> int | None:
        """Length of a prediction that was given as token ids; a text's is not known without its tokenizer."""
        given = self.request.get("prediction")
        if isinstance(given, list) and all(isinstance(item, int) for item in given):
            return len(given) or None
        return None

    def without_prediction(self, reason: Reason) -> Plan:
        """The same request after the endpoint refused the prediction: planned anew without it."""
        bare = {key: value for key, value in self.request.items() if key != "prediction"}
        plan = build_plan(
            bare,
            facts=self.facts,
            policy=self.policy,
            learned=self.learned,
            headers=self.asked_headers,
        )
        return replace(
            plan,
            outcome="withheld",
            reasons=(reason,),
            prediction=self.prediction,
            request=self.request,
            reroute_local=self.policy.on_unsupported == "local",
        )

    def refused_opt_in(self, status: int, body: object) -> str | None:
        """The code of a report that we switched on and this error refuses; the caller never asked for it."""
        for opt in self.facts.request.opt_ins:
            if opt.code in self.hidden and refuses(status, body, (opt.field.split(".")[0],)):
                return opt.code
        return None

    def without(self, code: str, reason: Reason) -> Plan:
        """The same request without that report, or without that name of the output cap: here, and for as
        long as the refusal is remembered."""
        learned = self.learned if self.learned is not None else Learned()
        learned.remember(self.facts.url, self.facts.model, reason, key=code)
        return build_plan(
            self.request,
            facts=self.facts,
            prediction=self.prediction,
            policy=self.policy,
            learned=learned,
            headers=self.asked_headers,
        )

    def refused_limit(self, status: int, body: object) -> str | None:
        """The output cap's name that this error does not know, where the other name may do."""
        rule, learned = self.facts.request.length, self.learned
        if rule is not None and rule.only:
            return None
        said = {k: v for k, v in body.items() if k != "param"} if isinstance(body, Mapping) else body
        for key, other in zip(shaping.LENGTH_KEYS, reversed(shaping.LENGTH_KEYS), strict=True):
            known = learned is not None and learned.refused(self.facts.url, self.facts.model, key=other)
            if self.body.get(key) is not None and other not in self.body and not known:
                return key if refuses(status, said, (key,)) else None
        return None

    def hide(self, event: dict[str, Any]) -> dict[str, Any] | None:
        """An answer object without the traces of `hidden`; None when the whole chunk is ours."""
        return opt_ins.hide(event, self.hidden, self.facts.request.opt_ins)


def build_plan(
    request: Mapping[str, Any],
    *,
    facts: EndpointFacts,
    prediction: Prediction | None = None,
    policy: Policy = Policy(),
    learned: Learned | None = None,
    api: str | None = None,
    headers: Iterable[str] = (),
) -> Plan:
    """Plan one request of OpenAI's shape, which holds only what the caller set.

    `prediction` wins over the request's own key. `api` must be the one that `facts` are for. `headers` are
    the names of those that the caller sets.
    Raises PredictionRefusedError under `on_unsupported="error"`, and ConfigError for a prediction that
    is none.
    """
    if api is not None and api != facts.api:
        raise ConfigError(f"The facts are for the {facts.api} API, the request is for {api}.")
    draft = PlanDraft(body={key: value for key, value in request.items() if key != "prediction"}, facts=facts)
    raw = request.get("prediction") if prediction is None else None
    known = shaping.known_text(raw, prediction)
    if known is not None:
        refused = None if learned is None else learned.refused(facts.url, facts.model)
        route.decide(draft, known, refused, put_in_prompt=policy.put_in_prompt, use_corpus=policy.use_corpus)
        _obey(policy, draft)
    history.fit(draft)
    shaping.one_length_limit(draft)
    if learned is not None:
        shaping.limit_under_a_known_name(draft, learned)
    shaping.drop_stray_stream_options(draft)
    shaping.caution(draft)
    asked = opt_ins.asked_headers(facts, headers)
    if policy.opt_ins:
        opt_ins.switch_on(draft, learned, asked)
    return Plan(
        body=draft.body,
        headers=draft.headers,
        path=facts.path or "",
        query=dict(facts.query),
        outcome=draft.outcome,
        reasons=tuple(draft.reasons),
        notes=tuple(draft.notes),
        hidden=frozenset(draft.hidden),
        facts=facts,
        prediction=None if known is None else known.prediction,
        policy=policy,
        request=request,
        reroute_local=draft.outcome == "withheld" and policy.on_unsupported == "local",
        corpus=draft.corpus,
        learned=learned,
        asked_headers=asked,
    )


def _obey(policy: Policy, draft: PlanDraft) -> None:
    if draft.outcome == "withheld" and policy.on_unsupported == "error":
        why = " ".join(str(reason) for reason in draft.reasons)
        raise PredictionRefusedError(
            f"The prediction cannot go to {draft.facts.title}: {why} "
            f'Use on_unsupported = "withhold" to send the request without it.'
        )
