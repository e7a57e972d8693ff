"""The plain path is right for any causal model of transformers, with or without a way back."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import torch
from engine_kit import Bench, RecordingRunner, oracle, tiny_model

from specclient_engine import SamplingParams
from specclient_engine.runner.base import Chunk
from specclient_engine.runner.plain import PlainRunner

GROUPED = {"num_key_value_heads": 2, "head_dim": 8}
LONG_ROPE = {
    "rope_type": "longrope",
    "rope_theta": 1e4,
    "short_factor": [1.0] * 4,
    "long_factor": [4.0] * 4,
    "original_max_position_embeddings": 50,
}
PHI3 = {"num_key_value_heads": 2, "original_max_position_embeddings": 50, "rope_parameters": LONG_ROPE}
GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256}
ROLLING: dict[str, dict[str, Any]] = {
    "llama": GROUPED,
    "qwen2": {"num_key_value_heads": 2},
    "qwen3": GROUPED,
    "gpt2": GPT,
    "gptj": GPT | {"rotary_dim": 4},
    "gpt_neox": {},
    "gpt_bigcode": GPT,
    "gemma": GROUPED,
    "phi": {},
    "phi3": {"num_key_value_heads": 2},
    "stablelm": {"num_key_value_heads": 2, "partial_rotary_factor": 0.5},
    "starcoder2": {"num_key_value_heads": 2, "sliding_window": None},
    "granite": GROUPED,
    "smollm3": GROUPED,
    "seed_oss": GROUPED,
    "opt": {"ffn_dim": 64, "word_embed_proj_dim": 32},
    "bloom": {"n_layer": 2, "n_head": 4},
    "falcon": {},
    "mixtral": {"num_key_value_heads": 2, "num_local_experts": 4, "sliding_window": None},
    "olmo2": GROUPED,
    "deepseek_v3": {
        "num_key_value_heads": 4,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "q_lora_rank": 16,
        "kv_lora_rank": 16,
        "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 8,
        "v_head_dim": 8,
        "n_group": 1,
        "topk_group": 1,
        "moe_intermediate_size": 16,
    },
    "mistral": {"num_key_value_heads": 2, "sliding_window": 256},
}
STAYING: dict[str, tuple[dict[str, Any], str]] = {
    "mistral": ({"num_key_value_heads": 2, "sliding_window": 16}, "sliding window of 16"),
    "gemma2": (GROUPED | {"sliding_window": 16}, "sliding window of 16"),
    "phi3": (PHI3, "rotary embedding is another for texts beyond 50 tokens"),
    "gpt_oss": (GROUPED | {"num_local_experts": 4, "sliding_window": 16}, "sliding window of 16"),
    "electra": ({"embedding_size": 32}, "depend on the tokens behind them"),
    "mamba": ({"state_size": 8}, "recurrent"),
    "mamba2": ({"state_size": 8, "num_heads": 8, "head_dim": 8, "n_groups": 1}, "recurrent"),
    "rwkv": ({"attention_hidden_size": 32, "context_length": 256}, "recurrent"),
    "lfm2": ({"num_key_value_heads": 2, "layer_types": ["conv", "full_attention"]}, "convolution"),
    "falcon_h1": (
        {
            "num_key_value_heads": 2,
            "mamba_d_ssm": 32,
            "mamba_n_heads": 4,
            "mamba_d_head": 8,
            "mamba_d_state": 8,
            "mamba_n_groups": 1,
        },
        "recurrent",
    ),
}
PROMPT = [int(number) for number in torch.randint(0, 256, (40,), generator=torch.manual_seed(3))]


@pytest.fixture(autouse=True)
def quiet() -> None:
    """Slow reference kernels announce themselves."""
    logging.getLogger("transformers").setLevel(logging.ERROR)


def reference(model: Any, prompt: list[int], count: int) -> list[int]:
    """Greedy decoding by the book: the whole text through the model for every token."""
    ids = list(prompt)
    with torch.inference_mode():
        for _ in range(count):
            ids.append(int(model(torch.tensor([ids]), use_cache=False).logits[0, -1].argmax()))
    return ids[len(prompt) :]


@pytest.mark.parametrize("kind", ROLLING)
def test_speculation_on_any_architecture_changes_nothing(kind: str) -> None:
    model = tiny_model(kind, **ROLLING[kind])
    truth = reference(model, PROMPT, 24)
    bench = Bench(PlainRunner(model))
    assert bench.engine.runner.can_roll_back
    wrong_in_the_middle = [*truth[:10], 0, *truth[11:]]
    for known in (truth, wrong_in_the_middle):
        bench.use(oracle(known))
        answer = bench.ask(PROMPT, max_tokens=24, ignore_eos=True)
        assert answer.token_ids == truth
        assert answer.stats.forward_passes < 24
    sampling = SamplingParams(temperature=1.2, seed=4)
    plain = bench.plain(PROMPT, max_tokens=24, ignore_eos=True, sampling=sampling)
    bench.use(oracle(plain.token_ids))
    assert bench.ask(PROMPT, max_tokens=24, ignore_eos=True, sampling=sampling).token_ids == plain.token_ids
    bench.engine.close()


@pytest.mark.parametrize("kind", STAYING)
def test_a_model_that_cannot_go_back_runs_without_speculation_and_says_so(kind: str) -> None:
    sizes, reason = STAYING[kind]
    model = tiny_model(kind, **sizes)
    truth = reference(model, PROMPT, 24)
    recording = RecordingRunner(PlainRunner(model))
    bench = Bench(recording)
    bench.use(oracle(truth))
    answer = bench.ask(PROMPT, max_tokens=24, ignore_eos=True)
    assert answer.token_ids == truth
    # A recurrent state takes a prompt quickly only as a whole.
    assert recording.passes[0] == ((0, len(PROMPT), 1),)
    assert answer.stats.by_source == {}
    assert reason in str(answer.stats.speculation_inactive)
    bench.engine.close()


def test_the_long_frequencies_come_for_the_whole_text_at_once() -> None:
    """At the token that makes a text long, what was cached of it is computed anew."""
    model = tiny_model("phi3", **PHI3)
    bench = Bench(PlainRunner(model))
    for prompt in (PROMPT, PROMPT[:3], (PROMPT * 2)[:50], (PROMPT * 2)[:51], PROMPT * 2):
        count = min(60, 256 - len(prompt))
        answer = bench.ask(prompt, max_tokens=count, ignore_eos=True)
        assert answer.token_ids == reference(model, prompt, count)
    bench.engine.close()


def test_short_of_the_long_frequencies_drafts_are_used() -> None:
    model = tiny_model("phi3", **PHI3)
    runner = PlainRunner(model, max_context=50)
    assert runner.can_roll_back
    bench, prompt = Bench(runner), PROMPT[:10]
    truth = reference(model, prompt, 40)
    bench.use(oracle(truth))
    answer = bench.ask(prompt, ignore_eos=True)
    assert answer.token_ids == truth
    assert answer.stats.forward_passes == 1
    bench.engine.close()


def test_going_back_where_that_is_impossible_is_refused_by_the_runner() -> None:
    runner = PlainRunner(tiny_model("mamba", state_size=8))
    slot = runner.allocate(20)
    runner.forward([Chunk(slot, 0, [1, 2, 3])])
    with pytest.raises(Exception, match="cannot go back"):
        runner.forward([Chunk(slot, 2, [4])])


def test_the_cache_of_the_plain_path_is_written_in_place() -> None:
    runner = PlainRunner(tiny_model())
    slot = runner.allocate(50)
    runner.forward([Chunk(slot, 0, [1, 2, 3])])
    cache = runner._slots[slot].cache
    assert cache is not None
    before = [layer.keys.data_ptr() for layer in cache.layers]
    for at in range(3, 50):
        runner.forward([Chunk(slot, at, [at])])
    assert [layer.keys.data_ptr() for layer in cache.layers] == before


def test_a_window_that_the_context_never_outgrows_is_no_obstacle() -> None:
    model = tiny_model("mistral", num_key_value_heads=2, sliding_window=64)
    assert not PlainRunner(model).can_roll_back
    assert PlainRunner(model, max_context=64).can_roll_back
