"""The choice between the fused runners."""

from __future__ import annotations

import logging
from pathlib import Path

import torch

from ..api import ProgressCallback
from ..errors import UnsupportedRequest
from .base import BYTES, Dtype, Kind
from .choice import choose
from .cuda import CudaRunner
from .fused import FusedRunner
from .fused_aten import AtenRunner
from .fused_native import NativeRunner, kernels_fit
from .memory import require_room_for_weights
from .native_build import native_library
from .threads import choose_threads
from .weights import ModelShape, WeightFiles, read_shape

_log = logging.getLogger(__name__)


def load_fused(
    folder: Path,
    *,
    dtype: Dtype = "auto",
    device: torch.device | str = "cpu",
    max_context: int | None = None,
    progress: ProgressCallback | None = None,
) -> FusedRunner | None:
    """The quickest fused runner for the model in `folder`; None when its architecture is another.

    `read_shape` says why it is another. `dtype="auto"` is measured (`choice.choose`); the runner's
    `kind` says what it became. Raises UnsupportedRequest for int8 where the compiled kernels cannot run:
    torch operators would round other numbers, to other tokens, and take longer than bfloat16 does.
    """
    shape = read_shape(folder)
    if isinstance(shape, str):
        return None
    place = torch.device(device)
    if place.type == "cuda":
        _require_room(folder, shape, "float32" if dtype == "float32" else "bfloat16", place)
        return CudaRunner(folder, shape, dtype, place, max_context, progress)
    found = (
        native_library() if kernels_fit(shape) else "its heads are too wide or share too much for the kernels"
    )
    library = None if isinstance(found, str) else found
    if library is None and dtype == "int8":
        raise UnsupportedRequest(
            f"int8 needs the compiled kernels, and {found}: use bfloat16 or float32, or install a C compiler "
            "on a processor with AVX2"
        )
    choice = choose(dtype, library)
    if choice.native:
        require_room_for_weights(folder.name, shape.packed_bytes(BYTES[choice.kind]), place)
    else:
        _require_room(folder, shape, choice.kind, place)
    why = found if library is None else "quicker here"
    kernels = "compiled kernels" if choice.native else f"torch operators ({why})"
    _log.info("%s runs as %s in %s.", folder.name, choice.kind, kernels)
    if library is not None and choice.native:
        native = NativeRunner(library, folder, shape, choice.kind, max_context, progress)
        _log.info("%s is computed by %d threads.", folder.name, choose_threads(native))
        return native
    return AtenRunner(folder, shape, choice.kind, place, max_context, progress)


def _require_room(folder: Path, shape: ModelShape, kind: Kind, device: torch.device) -> None:
    """Raises NotEnoughMemory where the weights do not fit as `kind`: "auto" may have become the wider one."""
    with WeightFiles(folder) as files:
        stored = files.embedding.dtype
    require_room_for_weights(folder.name, shape.weight_bytes(BYTES[kind], stored), device)
