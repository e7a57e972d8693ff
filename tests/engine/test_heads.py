"""Heads on the target's hidden states: right about positions and caches, and unable to change a token."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from engine_kit import VOCAB, Bench, tiny_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from specclient_engine import SamplingParams
from specclient_engine.cost import CostCurve
from specclient_engine.drafters.eagle import EagleHead
from specclient_engine.drafters.economy import Economy
from specclient_engine.drafters.hidden import HeadDrafter
from specclient_engine.drafters.mtp import MtpHead
from specclient_engine.errors import ModelCorrupt, UnsupportedRequest
from specclient_engine.runner.plain import PlainRunner
from specclient_engine.runner.plain_cache import RollbackLayer

LAYERS = 6
LLAMA = {"num_hidden_layers": LAYERS, "num_key_value_heads": 2, "head_dim": 8}
EAGLE = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": VOCAB,
    "draft_vocab_size": 200,
    "max_position_embeddings": 256,
    "num_hidden_layers": 1,
}
DEEPSEEK = {
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
    "first_k_dense_replace": 1,
    "num_mtp_layers": 3,
}
PROMPT = [(7 * number) % 250 for number in range(20)]


class Eager(Economy):
    """Always worth a draft."""

    def pays(self, chance: float, drafted: int, context: int) -> bool:
        return drafted < 5


def bench_with(model: Any, head: Any) -> Bench:
    runner = PlainRunner(model)
    runner.reveal(head.states)
    drafter = HeadDrafter(head, Eager(head.source, CostCurve([1], [1.0])))
    bench = Bench(runner, on_hidden=drafter.on_hidden)
    bench.proposer, bench.release = drafter.proposer_for, drafter.release
    return bench


def eagle(model: Any, **config: Any) -> EagleHead:
    embeddings = model.get_input_embeddings()
    head = EagleHead(EAGLE | config, target_layers=LAYERS, target_hidden=32, embeddings=embeddings)
    with torch.no_grad():
        for name, parameter in head.named_parameters():
            if parameter.dim() >= 2 and "embed" not in name:
                parameter.normal_(std=0.3, generator=torch.manual_seed(len(name)))
        head.d2t.copy_(torch.arange(200) % 60)
        head.d2t.copy_(torch.cummax(head.d2t, 0).values)
    return head.eval()


@pytest.fixture(scope="module")
def llama() -> Any:
    return tiny_model(**LLAMA)


@pytest.fixture(scope="module")
def deepseek() -> Any:
    return tiny_model("deepseek_v3", num_hidden_layers=3, **DEEPSEEK)


def mtp(model: Any) -> MtpHead:
    from transformers.modeling_layers import MtpModel

    layers = MtpModel(model, DEEPSEEK["num_mtp_layers"])
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in layers.layers.parameters():
            if parameter.dim() >= 2:
                parameter.normal_(std=0.3)
    return MtpHead(model, layers)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("kind", ["eagle", "mtp"])
def test_the_output_is_the_targets(kind: str, temperature: float, llama: Any, deepseek: Any) -> None:
    model = llama if kind == "eagle" else deepseek
    bench = bench_with(model, eagle(model) if kind == "eagle" else mtp(model))
    wanted = {
        "max_tokens": 50,
        "ignore_eos": True,
        "sampling": SamplingParams(temperature=temperature, seed=3),
    }
    for prompt in ([5], PROMPT, PROMPT * 4):
        plain = bench.plain(prompt, **wanted)
        answer = bench.ask(prompt, **wanted)
        assert answer.token_ids == plain.token_ids
        assert answer.stats.speculation_inactive is None
        assert sum(drafted for drafted, _ in answer.stats.by_source.values()) > 40
    bench.engine.close()


def hidden_of(model: Any, ids: Sequence[int], states: Sequence[int]) -> torch.Tensor:
    with torch.inference_mode():
        all_states = model(torch.tensor([list(ids)]), output_hidden_states=True).hidden_states
        return torch.cat([all_states[state][0] for state in states], dim=-1)


@pytest.mark.parametrize("kind", ["eagle", "mtp"])
def test_drafts_do_not_depend_on_how_the_text_came_about(kind: str, llama: Any, deepseek: Any) -> None:
    """A cache that went through rejected drafts drafts as a new one that reads the text at once."""
    model = llama if kind == "eagle" else deepseek
    head = eagle(model) if kind == "eagle" else mtp(model)
    text = [(11 * number + number**2) % 250 for number in range(40)]
    states = hidden_of(model, text, head.states)

    def draft(cache: Any, end: int, read: int, count: int) -> tuple[list[int], int]:
        drafted: list[int] = []

        def choose(row: torch.Tensor) -> int | None:
            drafted.append(int(row.argmax()))
            return drafted[-1] if len(drafted) < count else None

        with torch.inference_mode():
            read = cache.draft(text[:end], states[read : end - 1], choose)
        return drafted, read

    old, read = head.open(80), 0
    for end, count in ((2, 3), (3, 1), (9, 3), (10, 3), (11, 2), (12, 3), (30, 1), (31, 3), (40, 3)):
        drafted, read = draft(old, end, read, count)
        assert drafted == draft(head.open(80), end, 0, count)[0], end
        assert len(drafted) == count or end < 4


def test_an_eagle_head_by_the_book(llama: Any) -> None:
    """The head's own states feed it behind the confirmed text: as one pass without any cache."""
    head = eagle(llama)
    text = PROMPT
    states = hidden_of(llama, text, head.states)
    drafted: list[int] = []

    def choose(row: torch.Tensor) -> int | None:
        drafted.append(int(row.argmax()))
        return drafted[-1] if len(drafted) < 3 else None

    with torch.inference_mode():
        head.open(80).draft(text, states[:-1], choose)
        fed = head.combine(states[:-1])
        tokens = list(text[1:])
        for number in range(3):
            made = head.step(torch.tensor(tokens), fed, RollbackLayer(80))
            row = head.lm_head(head.norm(made[-1]))
            best = int(row.argmax())
            assert drafted[number] == best + int(head.d2t[best])
            fed = torch.cat([fed, made[-1:]])
            tokens.append(drafted[number])


@pytest.mark.parametrize("layout", ["eagle", "speculators", "own embeddings"])
def test_an_eagle_checkpoint_survives_the_round_trip(layout: str, llama: Any, tmp_path: Path) -> None:
    head = eagle(llama)
    weights = {name: value.clone() for name, value in head.state_dict().items()}
    config: dict[str, Any] = dict(EAGLE)
    if layout != "own embeddings":
        del weights["embed_tokens.weight"]
    if layout == "speculators":
        weights = {name.replace("midlayer.", "layers.0."): value for name, value in weights.items()}
        config = {
            "speculators_model_type": "eagle3",
            "draft_vocab_size": 200,
            "transformer_layer_config": {k: v for k, v in EAGLE.items() if k != "draft_vocab_size"},
        }
    weights["t2d"] = torch.zeros(VOCAB, dtype=torch.bool)
    save_file(weights, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(config))
    loaded = EagleHead.load(tmp_path, target_layers=LAYERS, embeddings=llama.get_input_embeddings())
    for name, value in head.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value), name
    assert loaded.states == (2, 3, 3)
    plain = bench_with(llama, head)
    again = bench_with(llama, loaded)
    first = plain.ask(PROMPT, max_tokens=20, ignore_eos=True)
    second = again.ask(PROMPT, max_tokens=20, ignore_eos=True)
    assert first.stats.by_source == second.stats.by_source
    plain.engine.close()
    again.engine.close()


def test_a_broken_or_unknown_eagle_checkpoint_is_said(llama: Any, tmp_path: Path) -> None:
    weights = {name: value.clone() for name, value in eagle(llama).state_dict().items()}
    del weights["fc.weight"]
    save_file(weights, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(EAGLE))
    with pytest.raises(ModelCorrupt, match=r"fc\.weight"):
        EagleHead.load(tmp_path, target_layers=LAYERS, embeddings=llama.get_input_embeddings())
    with pytest.raises(UnsupportedRequest, match="norm_before_fc"):
        eagle(llama, norm_before_fc=True)


def test_a_model_without_mtp_layers_is_refused(llama: Any) -> None:
    with pytest.raises(UnsupportedRequest, match="no MTP layers"):
        MtpHead(llama)


def test_mtp_layers_draft_what_transformers_drafts_with_them(deepseek: Any) -> None:
    from transformers.cache_utils import MtpCache

    head = mtp(deepseek)
    states = hidden_of(deepseek, PROMPT, head.states)
    drafted: list[int] = []

    def choose(row: torch.Tensor) -> int:
        drafted.append(int(row.argmax()))
        return drafted[-1]

    with torch.inference_mode():
        head.open(80).draft(PROMPT, states[:-1], choose)
        expected, _, _ = head.model(
            input_ids=torch.tensor([PROMPT[1:]]),
            last_hidden_states=states[None, :-1],
            attention_mask=None,
            position_ids=torch.arange(1, len(PROMPT))[None],
            mtp_cache=MtpCache(config=head.model.config),
        )
    assert drafted == expected[0].tolist()


def test_mtp_layers_are_read_from_the_models_own_checkpoint(tmp_path: Path) -> None:
    # DeepSeek-V3's layer 61, behind its last, is the MTP layer.
    sizes = DEEPSEEK | {"num_mtp_layers": 1, "n_routed_experts": 2}
    whole = tiny_model("deepseek_v3", num_hidden_layers=62, **sizes)
    whole.save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    shapes = {"enorm": (32,), "hnorm": (32,), "eh_proj": (32, 64), "shared_head.norm": (32,)}
    for name, shape in shapes.items():
        weights[f"model.layers.61.{name}.weight"] = torch.rand(shape)
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {"num_hidden_layers": 61, "num_nextn_predict_layers": 1}
    (tmp_path / "config.json").write_text(json.dumps(config))
    model = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    head = MtpHead(model)
    (layer,) = head.model.layers
    assert torch.equal(layer.eh_proj.weight, weights["model.layers.61.eh_proj.weight"])
    assert torch.equal(layer.post_norm.weight, weights["model.layers.61.shared_head.norm.weight"])
    block = dict(layer.mtp_block.named_parameters())
    for name, value in whole.model.layers[61].named_parameters():
        assert torch.equal(block[name], value), name
    bench = bench_with(model, head)
    plain = bench.plain(PROMPT, max_tokens=6, ignore_eos=True)
    answer = bench.ask(PROMPT, max_tokens=6, ignore_eos=True)
    assert answer.token_ids == plain.token_ids
    assert answer.stats.by_source["mtp"][0] > 3
    bench.engine.close()
