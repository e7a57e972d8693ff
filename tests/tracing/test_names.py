"""Our tables against the conventions as they were read."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest

from specclient.tracing import names
from specclient.tracing.metrics import DURATION, TIME_PER_TOKEN, TIME_TO_FIRST, TOKENS

# open-telemetry/semantic-conventions-genai, docs/gen-ai/client-inference.md @024a4f94 and @ac48b1f9,
# docs/gen-ai/openai.md; core conventions v1.44.0 for error, server and http.
CONVENTIONS = {
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.request.model",
    "gen_ai.request.stream",
    "gen_ai.request.seed",
    "gen_ai.request.choice.count",
    "gen_ai.request.top_k",
    "gen_ai.request.max_tokens",
    "gen_ai.request.temperature",
    "gen_ai.request.top_p",
    "gen_ai.request.frequency_penalty",
    "gen_ai.request.presence_penalty",
    "gen_ai.request.stop_sequences",
    "gen_ai.request.reasoning.level",
    "gen_ai.output.type",
    "gen_ai.response.id",
    "gen_ai.response.model",
    "gen_ai.response.finish_reasons",
    "gen_ai.response.time_to_first_chunk",
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_write.input_tokens",
    "gen_ai.usage.reasoning.output_tokens",
    "openai.request.service_tier",
    "openai.response.service_tier",
    "openai.response.system_fingerprint",
    "server.address",
    "server.port",
    "error.type",
}
TABLES = (names.REQUEST, names.RESPONSE, names.PREDICTION, names.ECONOMICS, names.TIMING)


def test_standard_names_are_the_conventions_own() -> None:
    ours = {row[0] for row in chain(*TABLES)}
    standard = {name for name in ours if not name.startswith("specclient.")}
    assert standard <= CONVENTIONS
    for name in (names.OPERATION, names.PROVIDER, names.REQUEST_MODEL, names.ERROR_TYPE):
        assert name in CONVENTIONS


def test_every_standard_name_that_we_can_know_is_in_a_table() -> None:
    creation = {
        names.OPERATION,
        names.PROVIDER,
        names.REQUEST_MODEL,
        names.SERVER_ADDRESS,
        names.SERVER_PORT,
        names.ERROR_TYPE,
    }
    assert CONVENTIONS - creation == {row[0] for row in chain(*TABLES) if row[0] in CONVENTIONS}


def test_no_name_is_in_two_rows() -> None:
    rows = [row[0] for row in chain(*TABLES)]
    assert len(rows) == len(set(rows))


def test_buckets_are_the_conventions_own() -> None:
    # docs/gen-ai/gen-ai-metrics.md @004902b8
    assert tuple(0.01 * 2**power for power in range(14)) == DURATION
    assert TOKENS[-1] == 67108864
    assert (TIME_TO_FIRST[0], TIME_TO_FIRST[-1], len(TIME_TO_FIRST)) == (0.001, 10.0, 16)
    assert (TIME_PER_TOKEN[0], TIME_PER_TOKEN[-1], len(TIME_PER_TOKEN)) == (0.01, 2.5, 13)


class Thing:
    inner = {"deep": 3}  # noqa: RUF012


@pytest.mark.parametrize(
    ("path", "value"),
    [("a.b", 1), ("a.c", None), ("a.b.c", None), ("thing.inner.deep", 3), ("none.x", None), ("x", None)],
)
def test_dig(path: str, value: Any) -> None:
    assert names.dig({"a": {"b": 1}, "thing": Thing(), "none": None}, path) == value


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        ("string", "a", "a"),
        ("string", "", None),
        ("string", 1, None),
        ("bool", False, False),
        ("bool", 0, None),
        ("int", 0, 0),
        ("int", 3.0, 3),
        ("int", 3.5, None),
        ("int", True, None),
        ("int", "3", None),
        ("double", 1, 1.0),
        ("double", float("inf"), None),
        ("strings", "a", ("a",)),
        ("strings", ["a", "b"], ("a", "b")),
        ("strings", ["a", 1], None),
        ("strings", (), None),
        ("strings", None, None),
    ],
)
def test_attribute_value(kind: Any, value: Any, wanted: Any) -> None:
    found = names.attribute_value(kind, value)
    assert found == wanted
    assert type(found) is type(wanted)


@pytest.mark.parametrize(
    ("model", "in_process", "name"),
    [
        ("/home/me/models/coder.gguf", True, "coder.gguf"),
        ("~/models/coder/", True, "coder"),
        ("./coder", True, "coder"),
        ("org/name", True, "org/name"),
        ("/deployments/x", False, "/deployments/x"),
        ("/", True, "/"),
        (None, True, None),
    ],
)
def test_a_path_on_this_machine_is_not_told(model: str | None, in_process: bool, name: str | None) -> None:
    assert names.model_name(model, in_process=in_process) == name
