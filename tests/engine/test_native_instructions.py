"""The kernels compute the same whichever of the processor's instructions they are compiled for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from fused_models import save_model
from test_runner_fused import native, reference, some_ids, whole

from specclient_engine.runner import native_build
from specclient_engine.runner.base import Chunk, Kind
from specclient_engine.runner.native_build import DOT, NEEDED, WIDE, instructions, native_library

SETS = {
    "avx2": NEEDED,
    "avx512": (*NEEDED, *WIDE),
    "avx512 and vnni": (*NEEDED, *WIDE, DOT[0]),
    "avx512 with vnni and bfloat16": (*NEEDED, *WIDE, *DOT),
}


@pytest.fixture(params=list(SETS))
def only(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A processor that has these instructions and no others."""
    wanted = frozenset(SETS[request.param])
    if not wanted <= instructions():
        pytest.skip(f"this processor has no {min(wanted - instructions())}")
    monkeypatch.setattr(native_build, "instructions", lambda: wanted)
    native_library.cache_clear()
    yield
    native_library.cache_clear()


@pytest.mark.usefixtures("only")
@pytest.mark.parametrize(("kind", "error"), [("float32", 1e-4), ("bfloat16", 0.05), ("int8", 0.1)])
@pytest.mark.parametrize("family", ["llama-odd-sizes", "qwen2", "qwen3"])
def test_logits_are_the_models(family: str, kind: Kind, error: float, tmp_path: Path) -> None:
    model = save_model(family, tmp_path)
    ids = some_ids(150)
    got, want = whole(native(tmp_path, kind), ids), reference(model, ids)
    assert (got - want).norm() / want.norm() < error


@pytest.mark.usefixtures("only")
@pytest.mark.parametrize("kind", ["float32", "bfloat16", "int8"])
def test_a_row_does_not_depend_on_the_rows_beside_it(kind: Kind, tmp_path: Path) -> None:
    save_model("qwen2", tmp_path)
    runner = native(tmp_path, kind)
    ids = some_ids(220)
    want = whole(runner, ids)
    for size in (1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 40):
        slot = runner.allocate(len(ids))
        runner.forward([Chunk(slot, 0, ids[:90], 90)])
        for start in range(90, 90 + 2 * size, size):
            got = runner.forward([Chunk(slot, start, ids[start : start + size])])
            assert torch.equal(got, want[start : start + size]), (size, start)
        runner.release(slot)


def test_a_processor_without_avx2_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_build, "instructions", lambda: frozenset({"sse2", "fma"}))
    native_library.cache_clear()
    assert native_library() == "this processor has no avx2"
    native_library.cache_clear()
