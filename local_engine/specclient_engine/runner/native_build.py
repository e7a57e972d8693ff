"""Compiles the native kernels once, where a C compiler is at hand, and keeps them in the cache."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import logging
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

from ..errors import CacheUnusable, NotEnoughDisk
from ..models.cache import cache_root, locked, write_whole

_log = logging.getLogger(__name__)

SOURCES = Path(__file__).with_name("kernels")
NEEDED = ("avx2", "fma")
"""Instructions that the kernels cannot do without, as Linux names them."""

WIDE = ("avx512f", "avx512bw", "avx512vl", "avx512dq")
"""What vectors of sixteen numbers take: all of these."""

DOT = ("avx512_vnni", "avx512_bf16")
"""What each multiplies and adds several narrow numbers at once."""

FLAGS = ("-O3", "-mtune=native", "-shared", "-fPIC", "-fopenmp", "-Wno-psabi")
SECONDS = 120
_SEAL = hashlib.sha256().digest_size
_NO_COMPILER = "there is no C compiler (cc, gcc or clang) on the PATH"


@functools.cache
def native_library() -> ctypes.CDLL | str:
    """The compiled kernels; where there can be none, why, in half a sentence.

    The first call on a machine compiles for a few seconds and keeps the file, whose name carries the hash of
    the source, the flags and the processor, so that it is never taken for another's; whichever compiler made
    it. Where it cannot be kept, each process compiles its own. That there can be none although the processor
    could run them is warned of, once.
    """
    has = instructions()
    missing = [name for name in NEEDED if name not in has]
    if missing:
        return f"this processor has no {missing[0]}"
    found = _kept_or_built([*FLAGS, *_instruction_flags(has)])
    if isinstance(found, str):
        _log.warning(
            "The engine runs without its compiled kernels, which takes several times as long, because %s: "
            "install a working C compiler (gcc or clang).",
            found,
        )
    return found


def _instruction_flags(has: frozenset[str]) -> list[str]:
    """The compiler's names of what the kernels use of `has`."""
    used = list(NEEDED)
    if has.issuperset(WIDE):
        used += [*WIDE, *(name for name in DOT if name in has)]
    return ["-m" + name.replace("_", "") for name in used]


def _kept_or_built(flags: list[str]) -> ctypes.CDLL | str:
    name = f"fused-{_identity(flags)}.so"
    try:
        library = cache_root() / "native" / name
        # It has its name only once it is whole: where it is, a folder that cannot be written to will do.
        if (kept := _kept(library)) is not None:
            return kept
        if not _compilers():
            return _NO_COMPILER
        with locked(library):
            return _kept(library) or _built(flags, name, library)
    except (CacheUnusable, NotEnoughDisk) as problem:
        found = _built(flags, name)
        if isinstance(found, ctypes.CDLL):
            _not_kept(problem)
        return found


def _identity(flags: list[str]) -> str:
    sources = [path.read_bytes() for path in sorted(SOURCES.iterdir())]
    parts = [*sources, " ".join(flags).encode(), processor_name().encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:20]


def _kept(library: Path) -> ctypes.CDLL | None:
    """The library; None where it is not there, damaged (which could end the process), or not to be loaded."""
    try:
        content = library.read_bytes()
        whole = content[-_SEAL:] == hashlib.sha256(content[:-_SEAL]).digest()
        return ctypes.CDLL(str(library)) if whole else None
    except OSError:
        return None


def _built(flags: list[str], name: str, library: Path | None = None) -> ctypes.CDLL | str:
    """What the first compiler that can makes of the source, kept as `library`; why none could."""
    failed = _NO_COMPILER
    for compiler in _compilers():
        try:
            with tempfile.TemporaryDirectory(prefix="specclient-") as scratch:
                made = Path(scratch) / name
                command = [compiler, *flags, "-o", str(made), str(SOURCES / "pass.c"), "-lm"]
                subprocess.run(
                    command, capture_output=True, text=True, errors="replace", check=True, timeout=SECONDS
                )
                if library is not None:
                    _keep(made, library)
                # Once it is loaded, its file may go.
                return (library and _kept(library)) or ctypes.CDLL(str(made))
        except (OSError, subprocess.SubprocessError) as problem:
            failed = f"{compiler} could not build the kernels ({_reason(problem)})"
    return failed


def _compilers() -> list[str]:
    found = (shutil.which(name) for name in ("cc", "gcc", "clang"))
    return [path for path in found if path is not None]


def _keep(made: Path, library: Path) -> None:
    """Keeps what was built with its hash behind it, where nothing that loads it looks."""
    content = made.read_bytes()
    try:
        write_whole(library, content + hashlib.sha256(content).digest())
    except OSError as problem:
        _not_kept(problem)


def _not_kept(problem: Exception) -> None:
    _log.warning("The compiled kernels are not kept, and each start compiles them for seconds: %s", problem)


def _reason(problem: Exception) -> str:
    """What a compiler or the system said, in a line."""
    if isinstance(problem, subprocess.CalledProcessError):
        lines = [line.strip() for line in str(problem.stderr).splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()]
        return (errors or lines or [f"exit {problem.returncode}"])[0]
    if isinstance(problem, subprocess.TimeoutExpired):
        return f"it took longer than {SECONDS} s"
    return str(problem)


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
