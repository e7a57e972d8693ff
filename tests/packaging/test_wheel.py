"""The built wheel, in an empty environment: exactly three packages, and an import that stays light."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {"specclient", "specclient_engine", "specclient_providers"}


def run(*command: object, cwd: Path | None = None) -> str:
    done = subprocess.run([str(c) for c in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, and the wheel built *from the sdist*, so that both are proven whole."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT)
    return out


@pytest.fixture(scope="module")
def empty_environment(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of its own that holds the wheel; its dependencies are lent by the running one."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder, with_pip=False)
    (wheel,) = dist.glob("*.whl")
    site = next((folder / "lib").glob("python*")) / "site-packages"
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site, wheel)
    lent = next(p for p in map(Path, sys.path) if p.name == "site-packages")
    # Appended behind the wheel, and without the editable install's own path file.
    (site / "lent.pth").write_text(f"import sys; sys.path.append({str(lent)!r})\n")
    return folder


def test_wheel_holds_exactly_the_three_packages(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {n.split("/")[0] for n in names if not n.split("/")[0].endswith(".dist-info")}
    assert tops == PACKAGES
    for package in PACKAGES:
        assert f"{package}/py.typed" in names
    assert any(n.endswith("licenses/LICENSE") for n in names)


def test_sdist_holds_what_its_tests_and_docs_need(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {n.partition("/")[2] for n in archive.getnames()}
    assert {"README.md", "LICENSE", "Makefile", "constraints.txt", "tests/conftest.py"} <= names


def test_import_beside_an_application_folder_named_providers(empty_environment: Path, tmp_path: Path) -> None:
    """An application's own `providers/` and `local_engine/` neither break us nor are broken by us."""
    for name in ("providers", "local_engine"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"mine = {name!r}\n")
    (tmp_path / "main.py").write_text(
        "import sys, providers, local_engine, specclient, specclient_providers, specclient_engine\n"
        "heavy = {'torch', 'transformers', 'tiktoken'} & set(sys.modules)\n"
        "print(providers.mine, local_engine.mine, sorted(heavy), specclient.__file__)\n"
    )
    printed = run(empty_environment / "bin" / "python", "main.py", cwd=tmp_path)
    assert printed.startswith("providers local_engine []")
    assert str(empty_environment) in printed


def test_using_a_client_loads_nothing_heavy(empty_environment: Path, tmp_path: Path) -> None:
    script = (
        "import sys, specclient\n"
        "specclient.Client(provider='fireworks', model='m', api_key='k')\n"
        "specclient.plan({'model': 'm', 'messages': []}, provider='fireworks')\n"
        "print(sorted({'torch', 'transformers', 'tiktoken'} & set(sys.modules)))\n"
    )
    assert run(empty_environment / "bin" / "python", "-c", script, cwd=tmp_path).strip() == "[]"
