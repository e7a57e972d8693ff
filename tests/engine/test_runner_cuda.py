"""The runner of padded passes: on a GPU with graphs where there is one, and the same code without."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from fused_models import SIZES, save_model

from specclient_engine.errors import NotEnoughMemory, UnsupportedRequest
from specclient_engine.runner.base import Chunk
from specclient_engine.runner.cuda import CudaRunner
from specclient_engine.runner.weights import read_shape

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> torch.device:
    return torch.device(request.param)


def load(folder: Path, device: torch.device, max_context: int = 800) -> CudaRunner:
    shape = read_shape(folder)
    assert not isinstance(shape, str)
    return CudaRunner(folder, shape, "float32", device, max_context, None)


def some_ids(count: int, seed: int = 0) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, SIZES["vocab_size"], (count,), generator=generator).tolist()


def close(got: torch.Tensor, want: torch.Tensor) -> None:
    torch.testing.assert_close(got.cpu(), want, atol=2e-3, rtol=1e-3)


@pytest.mark.parametrize("family", ["llama", "llama-biases", "qwen2", "qwen3", "llama-odd-sizes"])
def test_every_bucket_computes_what_transformers_computes(
    family: str, device: torch.device, tmp_path: Path
) -> None:
    model = save_model(family, tmp_path)
    ids = some_ids(1039)
    with torch.no_grad():
        want = model(torch.tensor([ids])).logits[0]
    runner = load(tmp_path, device, max_context=1100)
    slot = runner.allocate(len(ids))
    start = 0
    for count in (200, 1, 2, 3, 5, 9, 17, 18, 33, 40, 65, 66, 129, 130, 1, 300, 20):
        close(runner.forward([Chunk(slot, start, ids[start : start + count])]), want[start : start + count])
        start += count
    assert start == len(ids)


def test_ragged_requests_share_padded_passes(device: torch.device, tmp_path: Path) -> None:
    model = save_model("qwen2", tmp_path)
    runner = load(tmp_path, device)
    texts = [some_ids(count, seed) for seed, count in enumerate((300, 41, 7, 520, 90))]
    tails = (1, 20, 7, 65, 80)
    with torch.no_grad():
        want = [model(torch.tensor([ids])).logits[0] for ids in texts]
    slots = [runner.allocate(len(ids)) for ids in texts]
    pairs = list(zip(slots, texts, tails, strict=True))
    runner.forward(
        [Chunk(slot, 0, ids[:-tail], len(ids) - tail) for slot, ids, tail in pairs if len(ids) > tail]
    )
    for _ in range(2):
        chunks = [Chunk(slot, len(ids) - tail, ids[-tail:], tail // 2) for slot, ids, tail in pairs]
        got = runner.forward(chunks).split([chunk.rows_wanted for chunk in chunks])
        for logits, whole, tail in zip(got, want, tails, strict=True):
            close(logits, whole[len(whole) - tail + tail // 2 :])


def test_a_smaller_start_rolls_back(device: torch.device, tmp_path: Path) -> None:
    model = save_model("qwen2", tmp_path)
    runner = load(tmp_path, device)
    ids, wrong = some_ids(300), some_ids(60, 1)
    with torch.no_grad():
        want = model(torch.tensor([ids])).logits[0]
    slot = runner.allocate(400)
    runner.forward([Chunk(slot, 0, ids[:200], 200)])
    runner.forward([Chunk(slot, 200, wrong)])
    close(runner.forward([Chunk(slot, 200, ids[200:])]), want[200:])


def test_the_last_position_can_be_reached(device: torch.device, tmp_path: Path) -> None:
    model = save_model("llama", tmp_path)
    runner = load(tmp_path, device, max_context=256)
    ids = some_ids(256)
    with torch.no_grad():
        want = model(torch.tensor([ids])).logits[0]
    slot = runner.allocate(256)
    runner.forward([Chunk(slot, 0, ids[:239], 239)])
    close(runner.forward([Chunk(slot, 239, ids[239:])]), want[239:])


def test_slots_run_out_with_the_figures(device: torch.device, tmp_path: Path) -> None:
    save_model("llama", tmp_path)
    runner = load(tmp_path, device)
    slots = [runner.allocate(10) for _ in range(8)]
    with pytest.raises(NotEnoughMemory, match="0 of the cache's 8 slots are free, each for 800"):
        runner.allocate(10)
    runner.release(slots[3])
    assert runner.allocate(800) == slots[3]


def test_int8_is_refused(device: torch.device, tmp_path: Path) -> None:
    save_model("llama", tmp_path)
    shape = read_shape(tmp_path)
    assert not isinstance(shape, str)
    with pytest.raises(UnsupportedRequest, match="int8 is computed on CPUs only"):
        CudaRunner(tmp_path, shape, "int8", device, None, None)
