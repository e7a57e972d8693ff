"""Writes `docs/providers.md` from the rows, and checks that it is up to date.

python -m specclient_providers.docs            # write docs/providers.md
python -m specclient_providers.docs --check    # exit 1 if it differs
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from specclient_providers.endpoint import Claim, Conflict, Derive, Endpoint, PredictionRule
from specclient_providers.figures import USAGE
from specclient_providers.registry import get, provider_names

_INTRODUCTION = """# Providers

What each endpoint documents about predictions, speculation, counters and timings. This page is written
from the rows in `providers/specclient_providers/endpoints/`; do not edit it by hand.

`documented` claims have a source and the date it was read. `ignored` means that a prediction is accepted
and never used, `rejected` that the request fails with it. Anything else is not sent. Dates decide: after
its end date a documented prediction counts as unsupported.
"""


def render() -> str:
    """The whole page. It depends on the rows only, not on today's date."""
    endpoints = [get(name) for name in provider_names()]
    lines = [_INTRODUCTION, *_overview(endpoints)]
    for endpoint in endpoints:
        lines += ["", *_section(endpoint)]
    return "\n".join(lines) + "\n"


def _overview(endpoints: list[Endpoint]) -> Iterator[str]:
    yield "| Provider | Name | Prediction | Shapes | Counters | Timings |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for endpoint in endpoints:
        documented = [rule for rule in endpoint.prediction if rule.claim.state == "documented"]
        shapes = documented[0].shapes if documented else ()
        state: str = "documented" if documented else endpoint.no_prediction.state
        ends = sorted({str(rule.claim.until) for rule in documented if rule.claim.until})
        if documented and all(rule.claim.until for rule in documented):
            state += f" until {ends[-1]}"
        name = f"[{endpoint.title}](#{endpoint.name}) | `{endpoint.name}`"
        answer = f"{endpoint.answer.counters.state} | {endpoint.answer.timings.state}"
        yield f"| {name} | {state} | {', '.join(shapes) or '–'} | {answer} |"


def _section(endpoint: Endpoint) -> Iterator[str]:
    yield f'<a id="{endpoint.name}"></a>'
    yield f"## {endpoint.title}"
    yield ""
    yield f"Name `{endpoint.name}`, base URL {_code(endpoint.base_url)}, key {_keys(endpoint)}."
    if not endpoint.speaks_openai:
        yield "It speaks another wire format: the facts are for information."
    yield ""
    for rule in endpoint.prediction:
        yield f"- Prediction, {_scope(rule)}: {_claim(rule.claim)}"
        if rule.claim.state == "documented":
            yield f"    - written as: {', '.join(rule.shapes)}"
        for key, value in rule.forced.items():
            yield f"    - sent with it: `{key}` = {value}"
        if rule.conflicts:
            yield f"    - not beside: {', '.join(_conflict(item) for item in rule.conflicts)}"
    yield f"- Prediction{', otherwise' if endpoint.prediction else ''}: {_claim(endpoint.no_prediction)}"
    yield f"- Counters: {_claim(endpoint.answer.counters)}"
    yield f"- Timings: {_claim(endpoint.answer.timings)}"
    yield f"- Speculation: {_claim(endpoint.speculation.claim)}"
    if endpoint.speculation.methods:
        yield f"    - methods: {', '.join(endpoint.speculation.methods)}"
    if endpoint.speculation.prompt_methods:
        yield f"    - drafts from the prompt with: {', '.join(endpoint.speculation.prompt_methods)}"
    if endpoint.speculation.switch_on:
        yield f"    - to switch that on: `{endpoint.speculation.switch_on}`"
    yield f"- Fields that it does not know: {_claim(endpoint.request.unknown_fields)}"
    if endpoint.request.history.claim.state != "unknown":
        yield f"- Reasoning in earlier messages: {_claim(endpoint.request.history.claim)}"
    for opt in endpoint.request.opt_ins:
        yield f"- Switched on to get figures ({opt.when}): `{opt.field}` ({_source(opt.source)})"
    if (name := endpoint.request.request_id) is not None:
        yield f"- Takes the request's name in: `{name.header}` ({_source(name.source)}, read {name.checked})"
    if endpoint.billing.rejected_charged is not None:
        charged = "charged as output" if endpoint.billing.rejected_charged else "free"
        yield f"- Rejected tokens: {charged}. {endpoint.billing.note} ({_source(endpoint.billing.source)})"
    yield from (f"- {text}" for text in endpoint.restrictions)
    beyond_usage = [figure for figure in endpoint.answer.figures if figure not in USAGE]
    if beyond_usage:
        yield ""
        yield "| Figure | Where | Unit |"
        yield "| --- | --- | --- |"
        yield from (f"| {figure.name} | `{figure.paths[0]}` | {figure.unit} |" for figure in beyond_usage)
        yield from (f"| {rule.name} | {_formula(rule)} | derived |" for rule in endpoint.answer.derived)


def _conflict(conflict: Conflict) -> str:
    target = conflict.remedy.partition(":")[2]
    return f"`{conflict.parameter}`" + (f" (sent as `{target}`)" if target else "")


def _scope(rule: PredictionRule) -> str:
    models = "all models" if rule.models == ("*",) else ", ".join(f"`{name}`" for name in rule.models)
    version = f", api-version from {rule.api_version_from}" if rule.api_version_from else ""
    return f"{models} ({', '.join(rule.apis)}{version})"


def _claim(claim: Claim) -> str:
    words = [f"**{claim.state}**"]
    if claim.since:
        words.append(f"since {claim.since}")
    if claim.until:
        words.append(f"until {claim.until}")
    if claim.certainty != "verified":
        words.append(claim.certainty)
    checked = f", read {claim.checked}" if claim.checked else ""
    ground = f" ({_source(claim.source)}{checked})" if claim.source else ""
    return f"{', '.join(words)}.{' ' + claim.note if claim.note else ''}{ground}"


def _formula(rule: Derive) -> str:
    plus = [*rule.plus, *(f"{name} (if reported)" for name in rule.optional)]
    return " + ".join(plus) + "".join(f" − {name}" for name in rule.minus)


def _source(source: str | None) -> str:
    return f"<{source}>" if source and source.startswith("https://") else str(source)


def _code(value: str | None) -> str:
    return f"`{value}`" if value else "yours to give"


def _keys(endpoint: Endpoint) -> str:
    return " or ".join(f"`{name}`" for name in endpoint.key_env) or "none"


def main(arguments: list[str]) -> int:
    """Write the page, or with --check say whether it is up to date."""
    check = "--check" in arguments
    paths = [argument for argument in arguments if argument != "--check"]
    path = Path(paths[0] if paths else "docs/providers.md")
    page = render()
    if not check:
        path.write_text(page, encoding="utf-8")
        return 0
    if path.exists() and path.read_text(encoding="utf-8") == page:
        return 0
    print(f"{path} is not up to date: run python -m specclient_providers.docs {path}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
