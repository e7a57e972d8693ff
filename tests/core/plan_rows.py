"""The reader of `plan_table.txt`: one planned request a line.

    provider model | parameters | outcome reasons | notes | body

`parameters` are JSON pairs separated by spaces (`n=2 stop=["x"]`); a name that begins with @ sets up the
case instead: @on, @api, @version, @url, @overrides, @policy, @learned, @prompt, @text, @characters,
@headers.
The prediction is the text KNOWN unless `prediction` or @text says otherwise. In the body, "P" stands for
the known text as an object, "PP" for it in parts, "PS" for the bare string; `model`, `messages` and
`prompt` are left out unless the plan changed them. Reasons and notes are codes, `-` is none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from specclient.core.learned import Learned
from specclient.core.plan import Plan, Policy, build_plan
from specclient.prediction import Prediction
from specclient.report import Reason
from specclient_providers import resolve

KNOWN = "def foo():\n    return 1\n"
TODAY = date(2026, 11, 29)
MESSAGES = [{"role": "user", "content": "Rename foo to bar."}]
MESSAGES_WITH_TEXT = [{"role": "user", "content": f"Rename foo to bar.\r\n{KNOWN}"}]
SHORT: dict[str, Any] = {
    "P": {"type": "content", "content": KNOWN},
    "PP": {"type": "content", "content": [{"type": "text", "text": KNOWN}]},
    "PS": KNOWN,
    "T": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
}
TABLE = Path(__file__).with_name("plan_table.txt")


@dataclass(frozen=True)
class Row:
    line: int
    provider: str
    model: str
    parameters: str
    decision: str
    notes: str
    body: str

    def __str__(self) -> str:
        return f"{self.line}: {self.provider} {self.model} {self.parameters}"


def rows() -> Iterator[Row]:
    for number, line in enumerate(TABLE.read_text(encoding="utf-8").splitlines(), start=1):
        if line and not line.startswith("#"):
            target, parameters, decision, notes, body = (cell.strip() for cell in line.split(" | "))
            provider, _, model = target.partition(" ")
            yield Row(number, provider, model, parameters, decision, notes, body)


def planned(provider: str, model: str, parameters: str) -> tuple[Plan, dict[str, Any]]:
    """The plan for a row, and the request it was made from."""
    given = dict(_pairs(parameters))
    setup = {name[1:]: given.pop(name) for name in list(given) if name.startswith("@")}
    api = setup.get("api", "chat")
    text = "MESSAGES_WITH_TEXT" if setup.get("prompt") == "holds" else "MESSAGES"
    content: dict[str, Any] = {"messages": globals()[text]}
    if api == "completions":
        content = {"prompt": globals()[text][0]["content"]}
    if api == "responses":
        content = {"input": "Rename foo to bar."}
    request = {"model": model, **content, **given}
    facts = resolve(
        provider,
        model=model,
        api=api,
        api_version=setup.get("version"),
        base_url=setup.get("url", "https://r.openai.azure.com" if provider == "azure" else None),
        on=date.fromisoformat(setup["on"]) if "on" in setup else TODAY,
        overrides=setup.get("overrides"),
    )
    learned = Learned()
    if setup.get("learned"):
        learned.remember(facts.url, model, Reason(code="refused", text="It was refused before."))
    known = setup.get("text", "x" * setup["characters"] if "characters" in setup else KNOWN)
    prediction = None if "prediction" in given or known is None else Prediction(known)
    policy = Policy(**setup.get("policy", {}))
    headers = setup.get("headers", ())
    plan = build_plan(
        request, facts=facts, prediction=prediction, policy=policy, learned=learned, headers=headers
    )
    return plan, request


def shown(plan: Plan, request: Mapping[str, Any]) -> tuple[str, str, str]:
    """The plan in the words of the table: decision, notes, body."""
    decision = " ".join([plan.outcome, *(reason.code for reason in plan.reasons)])
    notes = " ".join(note.code for note in plan.notes) or "-"
    body = {
        key: _shorten(value)
        for key, value in plan.body.items()
        if key not in ("model", "messages", "prompt", "input") or value != request.get(key)
    }
    headers = {f"@{name}": value for name, value in plan.headers.items()}
    pairs = {**body, **headers}
    return decision, notes, " ".join(f"{key}={_json(value)}" for key, value in pairs.items()) or "-"


def _pairs(parameters: str) -> Iterator[tuple[str, Any]]:
    decoder = json.JSONDecoder()
    rest = "" if parameters == "-" else parameters
    while rest:
        name, _, rest = rest.partition("=")
        if rest[:1].isupper():
            word, _, rest = rest.partition(" ")
            yield name, SHORT[word]
            continue
        value, end = decoder.raw_decode(rest)
        rest = rest[end:].lstrip()
        yield name, value


def _shorten(value: Any) -> Any:
    if isinstance(value, dict) and str(value.get("content", "")).startswith("xxx"):
        return f"P of {len(value['content'])}"
    return next((name for name, long in SHORT.items() if long == value), value)


def _json(value: Any) -> str:
    if isinstance(value, str) and value in SHORT:
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
