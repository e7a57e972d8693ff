"""From a folder to greedy tokens: those of transformers' own `generate`, whoever serves the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from engine_kit import VOCAB, Bench, oracle, tiny_model
from fused_models import FAMILIES, SIZES, save
from test_architectures import GROUPED, LONG_ROPE, PHI3

from specclient_engine.runner import load_runner
from specclient_engine.runner.fused import FusedRunner
from specclient_engine.runner.plain import PlainRunner

PROMPT = [int(token) for token in torch.randint(3, 256, (45,), generator=torch.manual_seed(11))]
NEW = 40
BOTH = {"num_key_value_heads": 2, "max_position_embeddings": 256}
PLAIN: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "gemma": ("gemma", GROUPED, None),
    "gemma2 with windows": ("gemma2", GROUPED | {"sliding_window": 16}, "sliding window of 16"),
    "phi3": ("phi3", BOTH, None),
    "phi3 long": ("phi3", PHI3, "rotary embedding is another for texts beyond 50 tokens"),
    "stablelm, half a rotary": ("stablelm", BOTH | {"partial_rotary_factor": 0.5}, None),
    "starcoder2": ("starcoder2", BOTH | {"sliding_window": None}, None),
    "mistral with windows": ("mistral", BOTH | {"sliding_window": 16}, "sliding window of 16"),
    "mixtral": ("mixtral", BOTH | {"num_local_experts": 4, "sliding_window": None}, None),
    "qwen2 with windows": (
        "qwen2",
        BOTH | {"sliding_window": 16, "use_sliding_window": True, "max_window_layers": 1},
        "sliding window of 16",
    ),
    "llama, another activation": ("llama", BOTH | {"hidden_act": "gelu"}, None),
    "llama, long rotary": (
        "llama",
        BOTH | {"rope_parameters": LONG_ROPE},
        "rotary embedding is another for texts beyond 50 tokens",
    ),
    "mamba": ("mamba", {"state_size": 8}, "recurrent"),
}


def generated(model: Any, prompt: list[int], *, cached: bool = True) -> list[int]:
    ids = torch.tensor([prompt])
    model.generation_config.eos_token_id = None
    out = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        max_new_tokens=NEW,
        min_new_tokens=NEW,
        pad_token_id=0,
        use_cache=cached,
    )
    return out[0, len(prompt) :].tolist()  # type: ignore[no-any-return]


def answers(runner: Any, truth: list[int]) -> None:
    """Plain, with drafts that are right, and with drafts that err."""
    bench = Bench(runner)
    assert bench.plain(PROMPT, max_tokens=NEW, ignore_eos=True).token_ids == truth
    for known in (truth, [*truth[:9], (truth[9] + 1) % VOCAB, *truth[10:]]):
        bench.use(oracle(known))
        answer = bench.ask(PROMPT, max_tokens=NEW, ignore_eos=True)
        assert answer.token_ids == truth
        assert (answer.stats.forward_passes < 5) == runner.can_roll_back
        assert answer.stats.speculation_inactive == runner.rollback_reason
    bench.engine.close()


@pytest.mark.parametrize("family", list(FAMILIES))
def test_the_fused_runners_write_what_transformers_writes(family: str, tmp_path: Path) -> None:
    model_class, config_class, changes = FAMILIES[family]
    model = save(model_class, config_class(**{**SIZES, **changes, "vocab_size": VOCAB}), tmp_path)
    runner = load_runner(tmp_path, dtype="float32", device="cpu")
    assert isinstance(runner, FusedRunner)
    answers(runner, generated(model, PROMPT))


@pytest.mark.parametrize(("kind", "sizes", "reason"), PLAIN.values(), ids=PLAIN)
def test_what_they_do_not_compute_the_plain_runner_does(
    kind: str, sizes: dict[str, Any], reason: str | None, tmp_path: Path
) -> None:
    """With drafts where it can go back; else without, saying why."""
    model = tiny_model(kind, **sizes)
    model.save_pretrained(tmp_path)
    runner = load_runner(tmp_path, dtype="float32", device="cpu")
    assert isinstance(runner, PlainRunner)
    if reason is None:
        assert runner.can_roll_back
    else:
        assert reason in str(runner.rollback_reason)
    # With LongRoPE transformers computes a cache anew for Phi-3 alone; without one, everything is always new.
    answers(runner, generated(model, PROMPT, cached="rope_parameters" not in sizes or kind == "phi3"))
