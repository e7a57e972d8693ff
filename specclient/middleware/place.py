"""One endpoint and model as one wrapped client calls it, and the memory of what was decided there.

A plan follows from the facts, the policy, and which parameters a request has; its texts seldom matter. So
the decision for one request is kept for those that are alike, and only a request in which a rule could find
something to look at is planned by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specclient.core import history, opt_ins
from specclient.core.learned import Learned
from specclient.core.plan import Policy, build_plan
from specclient.core.shaping import LENGTH_KEYS, read_for
from specclient.economics.account import Economist
from specclient.middleware.decided import Decided
from specclient.middleware.known import Known
from specclient.prediction import Prediction
from specclient_providers import EndpointFacts

KEPT = 64
"""Decisions kept; a client seldom makes requests of more kinds."""

_TEXTS = frozenset({"model", "messages", "prediction"})
_SCALARS = (bool, int, float, type(None))
_OBJECT = {"type", "content"}

Alike = tuple[Any, ...]


class Place:
    """Plans requests to one endpoint and model."""

    def __init__(
        self, known: Known, policy: Policy, learned: Learned, economist: Economist, target: str
    ) -> None:
        facts = known.facts
        self.known = known
        self.economist = economist
        self.target = target
        self.keeps_account = not economist.keeps_no_account
        self._policy = policy
        self._learned = learned
        self._is_decided = economist.is_decided
        self._kept: dict[Alike, Decided] = {}
        self._read = _parameters_read(facts)
        self._reads_parts = "audio" in self._read
        self._reads_text = _reads_text(facts)
        self._switches = opt_ins.header_names(facts)

    def decided(
        self,
        asked: Mapping[str, Any],
        headers: Mapping[bytes, bytes],
        given: Prediction | None,
        workload: str | None,
    ) -> tuple[Decided, Any]:
        """What becomes of a request: the decision, and its plan where it was made for this request alone.

        `given` is a prediction from beside the request. Raises what `build_plan` raises.
        """
        alike = None if given is not None else self._alike(asked, headers)
        if alike is not None and (kept := self._kept.get(alike)) is not None:
            return kept, None
        plan = build_plan(
            asked,
            facts=self.known.facts,
            prediction=given,
            policy=self._policy,
            learned=self._learned,
            api=self.known.facts.api,
            headers=[name.decode("latin-1") for name in headers] if self._switches else (),
        )
        if plan.reroute_local:
            return Decided(plan, asked, self.known, self.target, None), plan
        considered = self.economist.consider(plan, workload)
        decided = Decided(considered.plan, asked, self.known, self.target, considered.decision)
        if alike is not None and not (decided.changed.keys() & _TEXTS):
            if len(self._kept) >= KEPT:
                self._kept.clear()
            self._kept[alike] = decided
        return decided, considered.plan

    def _alike(self, asked: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> Alike | None:
        """What the decision follows from; None where it follows from more than can be told at a glance."""
        if not self._learned.is_empty:
            return None
        stream = asked.get("stream")
        if stream is not None and type(stream) is not bool:
            return None
        prediction = asked.get("prediction")
        kind: object = None
        if prediction is not None:
            kind = "text"
            if not _is_plain(prediction) or self._reads_text or not self._is_decided:
                return None
        elif "prediction" in asked:
            kind = "null"
        if (messages := asked.get("messages")) is not None and not self._are_plain(messages):
            return None
        if self._switches and any(name in headers for name in self._switches):
            return None
        if self._read.isdisjoint(asked):
            return stream, kind
        found = [(key, type(value), value) for key, value in asked.items() if key in self._read]
        if any(kind not in _SCALARS for _, kind, _ in found):
            return None
        return (stream, kind, *found)

    def _are_plain(self, messages: object) -> bool:
        """Whether no rule has anything to look at in the messages."""
        if type(messages) is not list:
            return False
        for message in messages:
            if type(message) is not dict:
                return False
            if message.get("role") == "assistant" and not history.READ.isdisjoint(message):
                return False
            if self._reads_parts and type(message.get("content")) is list:
                return False
        return True


def _is_plain(prediction: object) -> bool:
    """Whether it is written as OpenAI documents it, with a text."""
    if type(prediction) is not dict or prediction.keys() != _OBJECT or prediction["type"] != "content":
        return False
    content = prediction["content"]
    return type(content) is str and content != ""


def _parameters_read(facts: EndpointFacts) -> frozenset[str]:
    """The parameters of a request that some rule of the endpoint, or of the planner, looks at."""
    names = {*LENGTH_KEYS, "stream_options", "speculation"}
    for conflict in facts.prediction.conflicts:
        names |= read_for(conflict.parameter)
        names.add(conflict.remedy.partition(":")[2])
    for caution in facts.request.cautions:
        names |= read_for(caution.parameter)
    for opt in facts.request.opt_ins:
        names.add(opt.field.partition(".")[0])
    for key in facts.prediction.forced:
        names.add(key.partition(".")[0])
    return frozenset(names)


def _reads_text(facts: EndpointFacts) -> bool:
    """Whether the known text itself decides: it is looked for in the prompt, or measured against a cap."""
    prediction, server = facts.prediction, facts.speculation
    if prediction.supported:
        return prediction.shapes == ("tags",) or prediction.length_default is not None
    return server.method is not None and bool(server.prompt_methods or server.corpus_methods)
