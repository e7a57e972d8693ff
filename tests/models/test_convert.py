"""The converted folder holds exactly the numbers that the GGUF file holds."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")


@pytest.mark.model
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore")
def test_tensors_equal_those_of_transformers_own_loader(
    smollm2_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gguf
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM, GgufConfig

    cache = smollm2_path.parents[1]
    file = cache / "downloads" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if not file.exists():
        pytest.skip("only the converted folder is cached")
    # It reads the file anew at each step, and makes the same table of names for each module of the model.
    for made_often in ("GGUFReader", "get_tensor_name_map"):
        monkeypatch.setattr(gguf, made_often, functools.cache(getattr(gguf, made_often)))
    reference = AutoModelForCausalLM.from_pretrained(
        file.parent,
        gguf_file=file.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
    ).state_dict()
    converted = load_file(smollm2_path / "model.safetensors")
    assert set(reference) - set(converted) == {"lm_head.weight"}  # tied to the embeddings
    for name, tensor in converted.items():
        assert torch.equal(tensor, reference[name]), name


@pytest.mark.model
def test_the_folder_has_what_the_engine_reads(smollm2_path: Path) -> None:
    files = set(os.listdir(smollm2_path))
    assert {"config.json", "tokenizer.json", "generation_config.json", "model.safetensors"} <= files
    assert "<|im_end|>" in (smollm2_path / "tokenizer.json").read_text()
