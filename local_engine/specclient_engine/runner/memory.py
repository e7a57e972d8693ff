"""How much memory is left, as far as the system tells."""

from __future__ import annotations

import ctypes
import json
import mmap
import sys
from collections.abc import Iterator
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from specclient_engine.errors import NotEnoughMemory

if TYPE_CHECKING:
    import torch

WORKSPACE_BYTES = 400 << 20
"""Kept free for activations and logits when the cache's room is worked out."""

_UNKNOWN = 1 << 40


def available_bytes(device: torch.device) -> int:
    """Bytes that may still be taken on `device`: the least of what the system and its limits leave."""
    if device.type == "cuda":
        import torch

        return int(torch.cuda.mem_get_info(device)[0])
    return min(_linux_available(), _cgroup_available())


def require_room_for_weights(name: str, needed: int, device: torch.device) -> None:
    """Raises NotEnoughMemory, with the figures, when `needed` bytes of weights cannot fit on `device`."""
    left = available_bytes(device)
    if needed > left:
        raise NotEnoughMemory(
            f"the weights of {name} take {gibibytes(needed)} and {gibibytes(left)} are free on {device}: "
            "close other programs, or use int8, a smaller model or another device"
        )


def return_freed_memory() -> None:
    """Gives back to the system what was freed: loading leaves hundreds of megabytes that glibc would keep."""
    if sys.platform == "linux":
        # Other C libraries have no such call, and need none.
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).malloc_trim(0)


def return_library_pages() -> None:
    """Lets go of what loading touched of the libraries' own files: torch brings 80 MB and serving needs 20.

    Only pages that are the file's, to the byte, and cannot be written to: what is needed again is mapped
    again, mostly from the system's cache.
    """
    if sys.platform != "linux":
        return
    with suppress(AttributeError, OSError):
        give_back = ctypes.CDLL(None).madvise
        give_back.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        for start, end in _library_pages(
            Path("/proc/self/smaps").read_text(encoding="utf-8", errors="replace")
        ):
            give_back(start, end - start, mmap.MADV_DONTNEED)


def _library_pages(smaps: str) -> Iterator[tuple[int, int]]:
    """[start, end) of the mappings of shared libraries that nobody wrote to nor can."""
    start = end = 0
    wanted = False
    for line in smaps.splitlines():
        name, _, rest = line.partition(" ")
        if not name.endswith(":"):
            start, end = (int(address, 16) for address in name.split("-"))
            access, _, path = rest.partition(" ")
            wanted = access in ("r-xp", "r--p") and ".so" in path
        elif wanted and name == "Anonymous:" and int(rest.split()[0]) == 0:
            # Relocated tables look alike, but hold pages of this process's own.
            yield start, end


def parameters(folder: Path) -> int:
    """Parameters in the safetensors files of `folder`, from their headers alone."""
    count = 0
    for path in folder.glob("*.safetensors"):
        with path.open("rb") as file:
            try:
                header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
            except (ValueError, MemoryError, OverflowError):
                # Not a safetensors file: whoever loads it says so better.
                continue
        count += sum(prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__")
    return count


def gibibytes(count: float) -> str:
    """`count` bytes as people read them in a message."""
    return f"{count / (1 << 30):.2f} GiB"


def _linux_available() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return _UNKNOWN
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    figure = fields.get("MemAvailable", "").split()
    return int(figure[0]) * 1024 if figure else _UNKNOWN


def _cgroup_available() -> int:
    """What a container's limit (cgroup v2) leaves."""
    root = Path("/sys/fs/cgroup")
    try:
        limit = (root / "memory.max").read_text().strip()
        used = int((root / "memory.current").read_text())
    except (OSError, ValueError):
        return _UNKNOWN
    return _UNKNOWN if limit == "max" else max(0, int(limit) - used)
