"""The kernels compute the same whichever of the processor's instructions they are compiled for."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from fused_models import save_model
from test_runner_fused import native, reference, some_ids, whole

from specclient_engine.runner import native_build
from specclient_engine.runner.base import Chunk, Kind
from specclient_engine.runner.native_build import DOT, NEEDED, WIDE, instructions, native_library
from specclient_engine.runner.native_kernels import KINDS, PANEL, Matrix, Weights, Workspace, pack, round_up
from specclient_engine.runner.pages import HugePages

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
def test_a_packed_matrix_multiplies_as_the_one_it_was() -> None:
    errors: dict[Kind, float] = {"float32": 1e-6, "bfloat16": 0.01, "int8": 0.02}
    sizes = ((96, torch.float32), (256, torch.bfloat16), (700, torch.float16), (700, torch.bfloat16))
    for (kind, error), (width, stored) in itertools.product(errors.items(), sizes):
        dice = torch.Generator().manual_seed(width)
        weight, x = (torch.randn(rows, width, generator=dice) for rows in (45, 3))
        weight = weight.to(stored)
        got, want = product(Weights(weight), kind, x), x @ weight.float().T
        assert (got - want).norm() / want.norm() < error, (kind, width, stored)


@pytest.mark.usefixtures("only")
def test_rows_that_lie_apart_are_packed_as_one_matrix() -> None:
    library = native_library()
    assert not isinstance(library, str)
    kinds: tuple[Kind, ...] = ("float32", "bfloat16", "int8")
    for kind, second in itertools.product(kinds, (torch.float32, torch.bfloat16)):
        first, last = torch.randn(33, 300).bfloat16(), torch.randn(20, 300).to(second)
        apart = Weights(first, last)
        apart.rows = torch.cat([apart.rows[30:], torch.zeros(2, dtype=torch.int64), apart.rows[:30]])
        joint = torch.cat([first, last])
        whole = Weights(torch.cat([joint[30:], joint.new_zeros(2, 300), joint[:30]]))
        strips, scale = pack(library, apart, kind, HugePages())
        wanted, its_scale = pack(library, whole, kind, HugePages())
        assert torch.equal(strips, wanted), (kind, second)
        assert scale is its_scale is None or torch.equal(scale, its_scale)  # type: ignore[arg-type]


def product(weights: Weights, kind: Kind, x: torch.Tensor) -> torch.Tensor:
    """`x` times the packed weights, by the kernels."""
    library = native_library()
    assert not isinstance(library, str)
    strips, scale = pack(library, weights, kind, HugePages())
    inputs = round_up(weights.width, PANEL)
    padded = torch.nn.functional.pad(x, (0, inputs - weights.width))
    outputs = len(weights.rows)
    matrix = Matrix(strips=strips.data_ptr(), outputs=outputs, inputs=inputs)
    if scale is not None:
        matrix.scale = scale.data_ptr()
    operand, scales, offsets = (torch.zeros(len(x), inputs) for _ in range(3))
    workspace = Workspace(
        operand=operand.data_ptr(), operand_scale=scales.data_ptr(), operand_offset=offsets.data_ptr()
    )
    out, stages = torch.zeros(len(x), outputs), torch.zeros(64)
    from_, to, counters = (ctypes.c_void_p(each.data_ptr()) for each in (padded, out, stages))
    library.multiply(
        ctypes.byref(matrix), KINDS[kind], ctypes.byref(workspace), from_, len(x), to, counters, 1
    )
    return out


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


@pytest.mark.usefixtures("only")
@pytest.mark.parametrize("kind", ["float32", "bfloat16", "int8"])
def test_a_row_has_one_product_whatever_the_number_of_rows(kind: Kind) -> None:
    """Every way to cut rows into tiles, and one row into a second block."""
    dice = torch.Generator().manual_seed(0)
    weights, x = Weights(torch.randn(45, 100, generator=dice)), torch.randn(97, 100, generator=dice)
    alone = torch.cat([product(weights, kind, row) for row in x.split(1)])
    for count in range(2, len(x) + 1):
        assert torch.equal(product(weights, kind, x[-count:]), alone[-count:]), count


def test_a_processor_without_avx2_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_build, "instructions", lambda: frozenset({"sse2", "fma"}))
    native_library.cache_clear()
    assert native_library() == "this processor has no avx2"
    native_library.cache_clear()
