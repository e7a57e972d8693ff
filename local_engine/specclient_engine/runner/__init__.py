"""Runs the model: the fused path where the architecture allows it, else any model of transformers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from specclient_engine.api import ProgressCallback
from specclient_engine.errors import UnsupportedRequest
from specclient_engine.runner.base import BYTES, Dtype

if TYPE_CHECKING:
    import torch

    from specclient_engine.runner.base import ModelRunner

__all__ = ["Dtype", "load_runner"]


def load_runner(
    folder: Path,
    *,
    dtype: Dtype = "auto",
    device: str = "auto",
    max_context: int | None = None,
    progress: ProgressCallback | None = None,
    plain: bool = False,
) -> ModelRunner:
    """The fastest runner that supports the model in `folder`, its weights loaded.

    Raises NotEnoughMemory, with the figures and before any work, when the weights do not fit.
    `plain` asks for the plain path, the only one that reveals hidden states.
    `dtype="auto"` is the quicker of bfloat16 and float32 on this machine; int8 is only by request.
    """
    from specclient_engine.runner.fused_loading import load_fused
    from specclient_engine.runner.memory import parameters, require_room_for_weights

    place = _place(device)
    require_room_for_weights(
        folder.name, parameters(folder) * BYTES["bfloat16" if dtype == "auto" else dtype], place
    )
    if not plain:
        fused = load_fused(folder, dtype=dtype, device=place, max_context=max_context, progress=progress)
        if fused is not None:
            return fused
    if dtype == "int8":
        raise UnsupportedRequest(
            f"int8 needs the fused path, which runs neither the architecture in {folder.name} nor a "
            "drafting head; use bfloat16 or float32"
        )
    # transformers takes seconds to import, and the fused path does without it.
    from specclient_engine.runner.plain import PlainRunner

    return PlainRunner.load(folder, dtype=_plain_dtype(dtype, place), device=place, max_context=max_context)


def _place(device: str) -> torch.device:
    """The device named. Raises UnsupportedRequest for one that this machine has not."""
    import torch

    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        place = torch.device(device)
    except RuntimeError:
        place = None
    if place is None or place.type not in ("cpu", "cuda"):
        raise UnsupportedRequest(f"device {device!r} is none that the engine runs on: use auto, cpu or cuda")
    if place.type == "cuda" and (place.index or 0) >= torch.cuda.device_count():
        raise UnsupportedRequest(
            f"device {device!r} is not there: torch {torch.__version__} sees {torch.cuda.device_count()} "
            "CUDA devices here; use auto or cpu"
        )
    return place


def _plain_dtype(dtype: Dtype, device: torch.device) -> torch.dtype:
    import torch

    if dtype == "auto":
        native = device.type == "cuda" or torch.backends.cpu.get_cpu_capability() == "AVX512"
        return torch.bfloat16 if native else torch.float32
    return torch.bfloat16 if dtype == "bfloat16" else torch.float32
