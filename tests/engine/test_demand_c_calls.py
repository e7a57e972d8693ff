"""What went wrong elsewhere with speculation, as a caller of the client meets it, over a real engine.

By the numbers of the reports that this project keeps, as in `test_demand_c`.
"""

from __future__ import annotations

from typing import Any

import pytest
from engine_kit import VOCAB, Bench, ByteTokenizer, RecordingRunner, oracle

from specclient import BadRequestError
from specclient_engine.cost import CostCurve
from specclient_engine.draft_length import DraftLengthPolicy
from specclient_engine.proposers import AcceptanceTable, build_proposer
from tests.doors import AsyncDoor, SyncDoor
from tests.server import ScriptedServer

SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
PLAIN_COSTS = CostCurve.linear(0.010, 0.0075, 0.0005)
"""Five rows for the price of one: where a wrong draft is cheap, but not for nothing."""


@pytest.fixture(params=[SyncDoor, AsyncDoor], ids=["sync", "async"])
def door(request: pytest.FixtureRequest, bench: Bench) -> Any:
    with ScriptedServer() as unused:
        opened = request.param(unused)
        opened.make(provider="local", base_url=None, api_key=None, model="tiny", engine=bench.engine)
        yield opened
        opened.close()
        assert unused.requests == []


@pytest.mark.parametrize("form", [SCHEMA, {"type": "json_object"}], ids=["schema", "object"])
@pytest.mark.parametrize("stream", [False, True])
def test_c16_structured_output_beside_a_prediction_is_refused_by_name(
    door: SyncDoor, recording: RecordingRunner, form: dict[str, Any], stream: bool
) -> None:
    """The engine has no grammars: it says so before any pass, rather than writing what is no JSON."""
    with pytest.raises(BadRequestError, match="no structured output yet: leave") as caught:
        door.create(prediction='{"a": 1}', response_format=form, stream=stream)
    assert caught.value.param == "response_format"
    for grammar in ("grammar", "guided_json", "json_schema", "structured_outputs"):
        with pytest.raises(BadRequestError, match=f"does not know the parameter '{grammar}'"):
            door.create(extra_body={grammar: {"type": "object"}}, stream=stream)
    assert recording.passes == []


@pytest.mark.parametrize(
    ("wanted", "param"), [({"n": 2}, "n"), ({"best_of": 3}, "best_of"), ({"prompt": ["a", "b"]}, "prompt")]
)
@pytest.mark.parametrize("stream", [False, True])
def test_c31_several_answers_in_one_call_are_refused_by_name(
    door: SyncDoor, recording: RecordingRunner, wanted: dict[str, Any], param: str, stream: bool
) -> None:
    body = {"prompt": [1, 2, 3], **wanted}
    with pytest.raises(BadRequestError) as caught:
        door.run(door.client.completions.create(model="tiny", stream=stream, **body))
    assert caught.value.param == param
    assert recording.passes == []


def test_c31_as_many_calls_at_once_answer_as_one_by_one(door: SyncDoor, bench: Bench) -> None:
    plain = [bench.plain([number] * 4, max_tokens=12, ignore_eos=True).text for number in range(5)]
    bench.proposer = lambda state: build_proposer(state.prompt, state.request.predictions, ByteTokenizer())
    for number, text in enumerate(plain):
        for _ in range(2):
            answer = door.run(
                door.client.completions.create(
                    model="tiny",
                    prompt=[number] * 4,
                    n=1,
                    max_tokens=12,
                    extra_body={"ignore_eos": True},
                )
            )
            assert [choice.text for choice in answer.choices] == [text]


def test_c32_speculation_is_switched_call_by_call(
    door: SyncDoor, bench: Bench, recording: RecordingRunner
) -> None:
    plain = bench.plain([7], max_tokens=24, ignore_eos=True)
    bench.proposer = lambda _: oracle(plain.token_ids)
    for switch, passes in (("off", 24), ("auto", 2), ("off", 24), ("on", 2), (False, 24), (True, 2)):
        recording.passes.clear()
        body = {"speculation": switch, "ignore_eos": True}
        answer = door.run(
            door.client.completions.create(model="tiny", prompt=[7], max_tokens=24, extra_body=body)
        )
        assert answer.choices[0].text == plain.text
        assert len(recording.passes) == passes
    with pytest.raises(BadRequestError, match='speculation is "auto" or "off"'):
        door.run(door.client.completions.create(prompt=[7], extra_body={"speculation": "always"}))


def test_c19_an_unrelated_prediction_costs_next_to_nothing(recording: RecordingRunner) -> None:
    """Within 3 % of plain decoding by the costs of the passes: drafts stop after a few misses."""
    bench = Bench(recording, lengths=DraftLengthPolicy(PLAIN_COSTS))
    table, tokenizer = AcceptanceTable(), ByteTokenizer()
    bench.proposer = lambda state: build_proposer(
        state.prompt, state.request.predictions, tokenizer, table=table
    )
    known = "The quick brown fox jumps over the lazy dog, again and again and again. " * 20
    spent = plain_cost = 0.0
    for number in range(4):
        prompt = [(31 * number + 7 * at) % VOCAB for at in range(30)]
        costs = []
        for predictions, speculation in (([], "off"), ([known], "auto")):
            recording.passes.clear()
            bench.ask(
                prompt, predictions=predictions, speculation=speculation, max_tokens=200, ignore_eos=True
            )
            decoding = [chunks[0] for chunks in recording.passes if chunks[0][0] >= len(prompt)]
            costs.append(sum(PLAIN_COSTS.seconds(rows, 0) for _, rows, _ in decoding))
        plain_cost, spent = plain_cost + costs[0], spent + costs[1]
    assert spent <= 1.03 * plain_cost
    bench.engine.close()
