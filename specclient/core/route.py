"""Where the prediction goes: on the wire, to the engine, into the prompt or a corpus, or nowhere."""

from __future__ import annotations

from specclient.core import prompt
from specclient.core.draft import PlanDraft
from specclient.core.shaping import KnownText, make_room, present, write_prediction
from specclient.report import Reason
from specclient_providers import PredictionFacts


def decide(
    draft: PlanDraft, known: KnownText, refused: Reason | None, *, put_in_prompt: bool, use_corpus: bool
) -> None:
    """Choose the prediction's route and write it into the body."""
    facts = draft.facts.prediction
    if not facts.supported:
        server = draft.facts.speculation
        if known.text and (server.prompt_methods or server.corpus_methods):
            if server.method in server.corpus_methods:
                return _into_corpus(draft, known, refused, allowed=use_corpus)
            return _through_the_prompt(draft, known, put_in_prompt=put_in_prompt)
        return _withhold_unsupported(draft)
    if refused is not None:
        return _withhold_refused(draft, refused)
    if facts.shapes == ("tags",):
        return _into_tags(draft, known)
    if _conflicting(draft):
        return None
    if not write_prediction(draft, known):
        return draft.decide(
            "withheld", "token_ids", f"{draft.facts.title} takes text, not token ids.", facts.claim.source
        )
    _rename_conflicting_limit(draft)
    make_room(draft, known)
    _add_what_has_to_go_with_it(draft)
    if draft.facts.in_process:
        return draft.decide("local", "engine", "The embedded engine verifies the known text itself.")
    draft.decide("forwarded", "documented", _support(draft, facts), facts.claim.source)
    return _mention_doubts(draft, facts)


def _support(draft: PlanDraft, facts: PredictionFacts) -> str:
    checked = f" (checked {facts.claim.checked})" if facts.claim.checked else ""
    return f"{draft.facts.title} documents predictions for this request{checked}."


def _mention_doubts(draft: PlanDraft, facts: PredictionFacts) -> None:
    if facts.ends_soon:
        draft.note(
            "ends_soon",
            f"{draft.facts.title} ends predictions for this model on {facts.until}.",
            facts.claim.source,
        )
    if facts.claim.certainty == "disputed":
        draft.note("disputed", f"Sources differ: {facts.claim.note}", facts.claim.source)


def _withhold_unsupported(draft: PlanDraft) -> None:
    facts = draft.facts.prediction
    draft.decide("withheld", facts.code, why_unsupported(draft), facts.claim.source)


def why_unsupported(draft: PlanDraft) -> str:
    """One sentence for the code that says why a prediction is not supported; a second if that is hearsay."""
    whole = draft.facts
    facts = whole.prediction
    code = "no_model" if facts.code == "model" and whole.model is None else facts.code
    if code == "rejected" and facts.of_model:
        code = "model_rejected"
    said = (
        _UNSUPPORTED[code]
        .format(
            title=whole.title,
            model=whole.model or "this model",
            until=facts.until,
            since=facts.since,
            api=whole.api,
            api_version=whole.api_version,
            note=facts.claim.note,
        )
        .rstrip()
    )
    third_party = facts.claim.certainty == "secondary" and facts.claim.source is not None
    return f"{said} The source is secondary: a third party says so." if third_party else said


_UNSUPPORTED = {
    "expired": "{title} ended predictions for {model} on {until}.",
    "not_yet": "{title} starts predictions for {model} on {since}.",
    "api": "{title} documents predictions for other APIs, not for {api}.",
    "api_version": "{title} documents predictions for later api-versions than {api_version}.",
    "model": "{title} documents predictions for other models, not for {model}; if the name is an alias, "
    "base_model in the target's overrides says what it is.",
    "no_model": "{title} documents predictions for some of its models, and none is named.",
    "model_rejected": "{title} is known to refuse requests for {model} that hold a prediction.",
    "rejected": "{title} is known to refuse requests that hold a prediction.",
    "ignored": "{title} accepts a prediction and ignores it.",
    "undocumented": "{title} documents no predictions. {note}",
    "unknown": "It is not known whether {title} takes predictions. {note}",
}


def _conflicting(draft: PlanDraft) -> bool:
    """Withhold the prediction beside parameters that it cannot go with; those are the caller's will."""
    rule = draft.facts.request.length
    for conflict in draft.facts.prediction.conflicts:
        if not present(draft.body, conflict.parameter):
            continue
        target = conflict.remedy.partition(":")[2]
        if target and not (rule is not None and rule.only and rule.key != target):
            continue
        draft.decide(
            "withheld",
            f"conflict:{conflict.parameter}",
            f"{draft.facts.title} takes no prediction together with {conflict.parameter}, which is kept.",
            conflict.source,
        )
    return draft.outcome == "withheld"


def _rename_conflicting_limit(draft: PlanDraft) -> None:
    for conflict in draft.facts.prediction.conflicts:
        if not present(draft.body, conflict.parameter):
            continue
        target = conflict.remedy.partition(":")[2]
        if not target:
            continue
        value = draft.body.pop(conflict.parameter)
        if draft.body.get(target) is None:
            draft.body[target] = value
            text = (
                f"{conflict.parameter}={value} is sent as {target}, the only cap allowed beside a prediction."
            )
        else:
            text = (
                f"{conflict.parameter}={value} is not sent: beside a prediction only "
                f"{target}={draft.body[target]} is allowed."
            )
        draft.note("length_renamed", text, conflict.source)


def _add_what_has_to_go_with_it(draft: PlanDraft) -> None:
    source = draft.facts.prediction.claim.source
    for key, value in draft.facts.prediction.forced.items():
        given = draft.at(key)
        if given is None and draft.put(key, value):
            draft.note(
                f"forced:{key}", f"{key} was set, so that the prediction cannot vanish on the way.", source
            )
        elif given != value:
            draft.note(
                f"forced_kept:{key}",
                f"{key} is kept as given, so an upstream without predictions may drop it unseen.",
                source,
            )


def _into_tags(draft: PlanDraft, known: KnownText) -> None:
    """Morph and Relace: the known text is part of the prompt by design."""
    source = draft.facts.prediction.claim.source
    if not known.text:
        return draft.decide(
            "withheld", "token_ids", f"{draft.facts.title} takes text, not token ids.", source
        )
    if not prompt.holds(draft.body, known.text) and not prompt.wrap_in_tags(draft.body, known.text):
        return draft.decide(
            "withheld", "no_user_message", "There is no user message of text to hold the known text.", source
        )
    return draft.decide(
        "via_prompt",
        "tags",
        f"{draft.facts.title} reads the known text from the prompt's <code> tag.",
        source,
    )


def _withhold_refused(draft: PlanDraft, refused: Reason) -> None:
    draft.decide("withheld", "refused_before", refused.text, refused.source)


def _into_corpus(draft: PlanDraft, known: KnownText, refused: Reason | None, *, allowed: bool) -> None:
    """SGLang's n-gram drafter reads corpora that are loaded at run time, and all users share."""
    title, source = draft.facts.title, draft.facts.speculation.claim.source
    if not allowed:
        return draft.decide(
            "withheld",
            "corpus_not_allowed",
            f"{title} could draft from the text as a corpus that all its users share; use_corpus = true "
            f"would allow it.",
            source,
        )
    if refused is not None:
        return _withhold_refused(draft, refused)
    draft.corpus = known.text
    draft.note(
        "corpus_is_global",
        f"Every request on this {title} server drafts from the loaded text until it is removed.",
        source,
    )
    return draft.decide("via_corpus", "corpus", f"{title} drafts from the loaded corpus.", source)


def _through_the_prompt(draft: PlanDraft, known: KnownText, *, put_in_prompt: bool) -> None:
    """A server without `prediction` may still draft from its own prompt."""
    server = draft.facts.speculation
    title, source = draft.facts.title, server.claim.source
    if server.method is None:
        return _withhold_unknown_speculation(draft)
    if server.method not in server.prompt_methods:
        return draft.decide(
            "withheld",
            "drafts_elsewhere",
            f"{why_unsupported(draft)} It speculates with {server.method}, which does not read the prompt.",
            source,
        )
    if prompt.holds(draft.body, known.text):
        return draft.decide(
            "via_prompt", "in_prompt", f"{title} drafts from the prompt, which holds the known text.", source
        )
    if put_in_prompt and prompt.append(draft.body, known.text):
        return draft.decide(
            "via_prompt",
            "put_in_prompt",
            f"{title} drafts from the prompt; the known text was added.",
            source,
        )
    return draft.decide(
        "withheld",
        "not_in_prompt",
        f"{title} drafts from the prompt, but the known text is not in it; put_in_prompt = true adds it.",
        source,
    )


def _withhold_unknown_speculation(draft: PlanDraft) -> None:
    switch_on = draft.facts.speculation.switch_on
    tell = (
        f" Probe it, or set speculation.method in the target's overrides; to draft from the prompt, "
        f"start it with {switch_on}."
        if switch_on
        else ""
    )
    draft.decide(
        "withheld",
        "speculation_unknown",
        f"{why_unsupported(draft)} Whether it drafts from the prompt is not known.{tell}",
        draft.facts.prediction.claim.source,
    )
