"""The runner of padded passes: on a GPU with graphs where there is one, and the same code without."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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


class Graphs:
    """torch's graphs, played on a processor: a replay computes what was captured again, where it was."""

    def __init__(self, runner: CudaRunner, monkeypatch: pytest.MonkeyPatch) -> None:
        self.runner, self.log, self.pools = runner, [], []  # type: ignore[var-annotated]
        runner._captures = True
        compute = runner._pass

        def noted(bucket: Any, seen: int) -> torch.Tensor:
            self.log.append("pass")
            self.latest = (bucket, seen)
            return compute(bucket, seen)

        monkeypatch.setattr(runner, "_pass", noted)
        graphs = self

        class Graph:
            def pool(self) -> str:
                return "the pool"

            def replay(self) -> None:
                graphs.log.append("replay")
                bucket, seen = self.captured
                bucket.hidden.copy_(compute(bucket, seen))

        @contextmanager
        def graph(captured: Any, pool: Any) -> Iterator[None]:
            graphs.pools.append(pool)
            graphs.log.append("capture")
            yield
            captured.captured = graphs.latest

        stream = SimpleNamespace(wait_stream=lambda _: graphs.log.append("wait"))
        monkeypatch.setattr(torch.cuda, "Stream", lambda _: stream)
        monkeypatch.setattr(torch.cuda, "current_stream", lambda: stream)
        monkeypatch.setattr(torch.cuda, "stream", lambda _: nullcontext())
        monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
        monkeypatch.setattr(torch.cuda, "graph", graph)


def test_a_graph_is_captured_once_a_shape_and_replayed_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = save_model("qwen2", tmp_path)
    runner = load(tmp_path, torch.device("cpu"))
    graphs = Graphs(runner, monkeypatch)
    ids = some_ids(400)
    with torch.no_grad():
        want = model(torch.tensor([ids])).logits[0]
    slot = runner.allocate(len(ids))
    runner.forward([Chunk(slot, 0, ids[:200], 200)])
    assert graphs.log == ["pass"], "a prompt is computed without a graph"
    start = 200
    # Shapes of one row, of five in the bucket of eight, and of one row beyond 256 positions.
    for count, new in (
        (1, True),
        (1, False),
        (5, True),
        (7, False),
        (1, False),
        (50, True),
        (1, True),
        (1, False),
    ):
        graphs.log.clear()
        close(runner.forward([Chunk(slot, start, ids[start : start + count])]), want[start : start + count])
        # Warmed up beside the stream, captured, and replayed at once: a capture computes nothing.
        warm = ["wait", "pass", "wait", "capture", "pass"] if new else []
        assert graphs.log == [*warm, "replay"]
        start += count
    assert graphs.pools == [None, *["the pool"] * 3], "all graphs share the memory of the first"


def test_attention_never_repeats_heads_nor_asks_a_kernel_for_groups(
    device: torch.device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels with a mask and grouped heads at once are the slow ones: groups are folded into rows."""
    save_model("qwen2", tmp_path)
    runner = load(tmp_path, device)
    seen = []
    attend = torch.nn.functional.scaled_dot_product_attention

    def noted(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, **more: Any) -> torch.Tensor:
        seen.append((query.shape, key.shape, more["attn_mask"].shape, set(more)))
        return attend(query, key, value, **more)

    monkeypatch.setattr("specclient_engine.runner.cuda.F.scaled_dot_product_attention", noted)
    slot = runner.allocate(30)
    runner.forward([Chunk(slot, 0, some_ids(5))])
    shape = runner.shape
    query, key, mask, arguments = seen[0]
    assert query == (1, shape.kv_heads, shape.group * 8, shape.head_dim)
    assert key == (1, shape.kv_heads, 256, shape.head_dim)
    assert mask == (1, 1, shape.group * 8, 256)
    assert arguments == {"attn_mask"}


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
    # Whatever the padding, which reaches behind the end.
    for start in (239, 250, 253, 236, 190, 255):
        close(runner.forward([Chunk(slot, start, ids[start:])]), want[start:])


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
