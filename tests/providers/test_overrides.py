"""A user can correct every fact, and a wrong correction is refused by file and key."""

from __future__ import annotations

import re
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from specclient_providers import AnswerReader, OverrideError, resolve
from specclient_providers.overrides import Overrides

README = Path(__file__).parents[2] / "providers" / "README.md"
ON = date(2026, 11, 29)
FILE = "specclient.toml [targets.prod]"


def corrected(provider: str, **overrides: Any) -> Any:
    return resolve(provider, model="m", on=ON, overrides=overrides, origin=FILE)


def test_a_correction_carries_its_file_as_source() -> None:
    claim = corrected("groq", prediction=True).prediction.claim
    assert (claim.state, claim.source, claim.checked, claim.certainty) == ("documented", FILE, ON, "user")


def test_a_part_of_a_rule_can_be_corrected() -> None:
    found = resolve(
        "openai", model="gpt-4o", on=ON, overrides={"prediction": {"until": date(2027, 6, 1)}}, origin=FILE
    ).prediction
    assert found.supported
    assert found.until == date(2027, 6, 1)
    assert found.shapes == ("object", "parts")
    assert found.claim.certainty == "user"


def test_every_field_reaches_the_facts() -> None:
    facts = corrected(
        "openai_compatible",
        title="Ours",
        key_env=("OUR_KEY",),
        auth_header="X-Key",
        auth_prefix="",
        paths={"chat": "/talk"},
        telemetry_name="ours",
        self_hosted=True,
        prediction={
            "state": "documented",
            "shapes": ["string"],
            "conflicts": ["n>1"],
            "length_default": 100,
            "preview": True,
            "forced": {"a.b": 1},
            "source": "https://wiki.example/llm",
        },
        unknown_fields="rejected",
        length_key="max_tokens",
        opt_ins=[{"code": "t", "field": "report", "value": True, "traces": ["t"], "when": "plain"}],
        cautions={"seed": "Seeds are refused here"},
        reasoning_history=["reasoning"],
        figures={"queue": {"paths": ["t.wait"], "unit": "ms"}},
        ttft_includes_queue=True,
        speculation={"method": "ngram", "prompt_methods": ["ngram"]},
        rejected_charged=False,
        restrictions=("Ours.",),
    )
    assert facts.title == "Ours"
    assert facts.key_env == ("OUR_KEY",)
    assert (facts.auth.header, facts.auth.value("k")) == ("X-Key", "k")
    assert facts.path == "/talk"
    assert facts.telemetry_name == "ours"
    assert facts.self_hosted
    assert facts.prediction.shapes == ("string",)
    assert [conflict.parameter for conflict in facts.prediction.conflicts] == ["n>1"]
    assert facts.prediction.length_default == 100
    assert facts.prediction.preview
    assert facts.prediction.forced == {"a.b": 1}
    assert facts.prediction.claim.source == "https://wiki.example/llm"
    assert facts.request.unknown_fields.state == "rejected"
    assert (facts.request.length.key, facts.request.length.only) == ("max_tokens", True)
    assert facts.request.opt_ins[0].field == "report"
    assert facts.request.cautions[0].parameter == "seed"
    assert (facts.request.history.claim.state, facts.request.history.takes) == ("rejected", ("reasoning",))
    assert facts.answer.ttft_includes_queue
    assert facts.speculation.method == "ngram"
    assert facts.billing.rejected_charged is False
    assert facts.restrictions == ("Ours.",)
    reader = AnswerReader(facts)
    reader.event({"t": {"wait": 250}})
    assert reader.result().queue.seconds == 0.25  # type: ignore[union-attr]


def test_a_figure_may_stand_in_any_choice() -> None:
    facts = corrected("vllm", figures={"queue": {"paths": ["choices.1.wait"], "unit": "s"}})
    reader = AnswerReader(facts)
    reader.event({"choices": [{}, {"wait": 0.5}]})
    assert reader.result().queue.seconds == 0.5  # type: ignore[union-attr]


def test_no_field_is_missing_from_this_test() -> None:
    """A new field of Overrides has to be added to the test above."""
    assert set(Overrides.model_fields) == {
        *(
            "base_model",
            "title",
            "key_env",
            "auth_header",
            "auth_prefix",
            "paths",
            "telemetry_name",
            "self_hosted",
        ),
        *(
            "prediction",
            "unknown_fields",
            "length_key",
            "opt_ins",
            "cautions",
            "reasoning_history",
            "figures",
            "ttft_includes_queue",
        ),
        *("speculation", "rejected_charged", "restrictions", "origin", "on"),
    }


@pytest.mark.parametrize(
    ("overrides", "key"),
    [
        ({"predicton": True}, "predicton"),
        ({"prediction": {"state": "maybe"}}, "prediction.state"),
        ({"prediction": {"shapes": []}}, "prediction.shapes"),
        ({"prediction": {"shapes": ["yaml"]}}, "prediction.shapes.0"),
        ({"prediction": {"until": "soon"}}, "prediction.until"),
        ({"prediction": {"length_default": 0}}, "prediction.length_default"),
        ({"prediction": 3}, "prediction"),
        ({"speculation": {"mode": "x"}}, "speculation.mode"),
        ({"length_key": "max_output"}, "length_key"),
        ({"figures": {"queue": {"paths": ["a"], "unit": "hours"}}}, "figures.queue.unit"),
        ({"opt_ins": ["nothing_of_this_name"]}, "opt_ins"),
        ({"origin": "x"}, "origin"),
        ("a text", ""),
        ({"base_model": ""}, "base_model"),
        ({"key_env": "MY_KEY"}, "key_env"),
        ({"key_env": ["MY KEY"]}, "key_env.0"),
        ({"auth_header": "X Key"}, "auth_header"),
        ({"paths": {"chats": "/talk"}}, "paths.chats"),
        ({"paths": {"chat": "talk"}}, "paths.chat"),
        ({"self_hosted": "perhaps"}, "self_hosted"),
        ({"unknown_fields": "strict"}, "unknown_fields"),
        ({"opt_ins": "include_usage"}, "opt_ins"),
        ({"opt_ins": [{"code": "x", "value": 1}]}, "opt_ins.0.field"),
        ({"cautions": ["x"]}, "cautions"),
        ({"reasoning_history": "reasoning"}, "reasoning_history"),
        ({"reasoning_history": ["reasonings"]}, "reasoning_history.0"),
        ({"figures": {"quue": {"paths": ["a"], "unit": "s"}}}, "figures.quue"),
        ({"figures": {"queue": {"paths": ["a"], "unit": "tokens"}}}, "figures.queue.unit"),
        ({"figures": {"queue": {"paths": ["a"], "units": "s"}}}, "figures.queue.unit"),
        ({"ttft_includes_queue": "si"}, "ttft_includes_queue"),
        ({"speculation": "ngram"}, "speculation"),
        ({"rejected_charged": "free"}, "rejected_charged"),
        ({"restrictions": "one"}, "restrictions"),
        ({"prediction": {"conflicts": ["toolz"]}}, "prediction.conflicts.0"),
        ({"prediction": {"conflicts": ["n > 1"]}}, "prediction.conflicts.0"),
        ({"prediction": {"apis": ["chats"]}}, "prediction.apis.0"),
        ({"prediction": {"models": []}}, "prediction.models"),
        ({"prediction": {"length_default": True}}, "prediction.length_default"),
        ({"prediction": {"since": date(2027, 1, 2), "until": date(2027, 1, 1)}}, "prediction"),
    ],
)
def test_a_wrong_correction_names_file_and_key(overrides: dict[str, Any], key: str) -> None:
    with pytest.raises(OverrideError) as caught:
        resolve("openai", overrides=overrides, origin=FILE)
    assert caught.value.key == key
    assert str(caught.value).startswith(f"{FILE}: overrides{'.' if key else ''}{key}: ")
    assert "pydantic" not in str(caught.value).lower()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"predicton": True}, "did you mean 'prediction'"),
        ({"prediction": "yes"}, "should be true, false, one of 'documented'"),
        ({"prediction": {"shapes": "object"}}, "should be a list"),
        ({"prediction": {"until": "soon"}}, "should be a date like 2027-04-14"),
        ({"speculation": {"metod": "x"}}, "did you mean 'method' or 'methods'?"),
        ({"figures": {"quue": {"paths": ["a"], "unit": "s"}}}, "did you mean 'queue'?"),
        ({"figures": {"queue": {"paths": ["a"], "unit": "ratio"}}}, "should be 's' or 'ms' or 'us' or 'ns'"),
    ],
)
def test_a_wrong_correction_says_what_would_be_right(overrides: dict[str, Any], words: str) -> None:
    with pytest.raises(OverrideError) as caught:
        resolve("openai", overrides=overrides, origin=FILE)
    assert words in str(caught.value)


def test_a_method_is_known_in_any_case_and_a_misspelt_one_is_refused() -> None:
    assert corrected("sglang", speculation={"method": "ngram"}).speculation.method == "NGRAM"
    assert corrected("tensorrt_llm", speculation={"method": "ngram"}).speculation.method == "NGram"
    with pytest.raises(OverrideError, match=r"overrides\.speculation\.method: .* did you mean 'ngram'"):
        corrected("vllm", speculation={"method": "nggram"})
    newer = corrected("vllm", speculation={"method": "ngram3", "methods": ["ngram3"]})
    assert newer.speculation.method == "ngram3"


def test_an_unknown_opt_in_is_answered_with_the_known_ones() -> None:
    with pytest.raises(OverrideError, match="known here: perf_metrics"):
        corrected("fireworks", opt_ins=["perf"])


def test_base_model_decides_but_is_not_sent() -> None:
    facts = resolve("azure", model="prod", on=ON, overrides={"base_model": "gpt-4o"})
    assert facts.prediction.supported
    assert facts.model == "prod"


def test_the_readmes_example_is_valid() -> None:
    text = README.read_text(encoding="utf-8")
    document = tomllib.loads(re.findall(r"```toml\n(.*?)```", text, re.DOTALL)[0])
    prod = resolve("openai", model="m", on=ON, overrides=document["targets"]["prod"]["overrides"])
    assert prod.prediction.supported
    assert prod.prediction.until == date(2027, 4, 14)
    server = resolve("vllm", model="m", on=ON, overrides=document["targets"]["server"]["overrides"])
    assert server.speculation.method == "ngram"
