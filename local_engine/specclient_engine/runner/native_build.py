"""Compiles the native kernels once, where a C compiler is at hand, and keeps them in the cache."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

from ..models.cache import cache_root, locked

SOURCES = Path(__file__).with_name("kernels")
NEEDED = ("avx2", "fma")
"""Instructions that the kernels cannot do without, as Linux names them."""

WIDE = ("avx512f", "avx512bw", "avx512vl", "avx512dq")
"""What vectors of sixteen numbers take: all of these."""

DOT = ("avx512_vnni", "avx512_bf16")
"""What each multiplies and adds several narrow numbers at once."""

FLAGS = ("-O3", "-mtune=native", "-shared", "-fPIC", "-fopenmp", "-Wno-psabi")
SECONDS = 120


@functools.cache
def native_library() -> ctypes.CDLL | str:
    """The compiled kernels; where there can be none, why, in half a sentence.

    The first call on a machine compiles for a few seconds; the file's name carries the hash of the
    source, the flags and the compiler, so that it is never taken for another's.
    """
    has = instructions()
    missing = [name for name in NEEDED if name not in has]
    if missing:
        return f"this processor has no {missing[0]}"
    compiler = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
    if compiler is None:
        return "there is no C compiler (cc, gcc or clang) on the PATH"
    try:
        return ctypes.CDLL(str(_compiled(compiler, [*FLAGS, *_instruction_flags(has)])))
    except (OSError, subprocess.SubprocessError) as problem:
        return f"{compiler} could not build the kernels ({type(problem).__name__})"


def _instruction_flags(has: frozenset[str]) -> list[str]:
    """The compiler's names of what the kernels use of `has`."""
    used = list(NEEDED)
    if has.issuperset(WIDE):
        used += [*WIDE, *(name for name in DOT if name in has)]
    return ["-m" + name.replace("_", "") for name in used]


def _compiled(compiler: str, flags: list[str]) -> Path:
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True, timeout=SECONDS).stdout
    sources = [path.read_bytes() for path in sorted(SOURCES.iterdir())]
    digest = hashlib.sha256(b"\0".join([*sources, " ".join(flags).encode(), version]))
    library = cache_root() / "native" / f"fused-{digest.hexdigest()[:20]}.so"
    if library.exists():  # it has its name only once it is whole
        return library
    with locked(library):
        if not library.exists():
            with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
                made = Path(scratch) / library.name
                command = [compiler, *flags, "-o", str(made), str(SOURCES / "pass.c"), "-lm"]
                subprocess.run(command, capture_output=True, check=True, timeout=SECONDS)
                os.replace(made, library)
    return library


def instructions() -> frozenset[str]:
    """What the processor can do, as Linux names it; empty where that is not known."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return frozenset()
    return frozenset(_processor().get("flags", "").split())


def processor_name() -> str:
    """The processor's name as Linux gives it; empty where that is not known."""
    return _processor().get("model name", "")


@functools.cache
def _processor() -> dict[str, str]:
    """What Linux says of the first processor."""
    try:
        first, _, _ = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")
    except OSError:
        return {}
    fields = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in fields}
