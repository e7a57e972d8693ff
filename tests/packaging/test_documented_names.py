"""Every dotted name that a document gives leads somewhere, as the first thing a program asks for."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.packaging.test_documents import BLOCK, DOCUMENTS, ROOT

PACKAGE = r"specclient(?:_providers|_engine)?"
DOTTED = re.compile(rf"(?<![\w./-]){PACKAGE}(?:\.[A-Za-z_]\w*)+")
IMPORTED = re.compile(rf"^ *from ({PACKAGE}[\w.]*) import (?:\(([^)]*)\)|([^\n(]*))", re.MULTILINE)
RUN = re.compile(rf"python -m ({PACKAGE}[\w.]*)")
FILE = "specclient.toml"

RESOLVE = """
import importlib, os, sys

def import_module(name):
    importlib.import_module(name)

def attribute(name):
    package, *path = name.split(".")
    value = importlib.import_module(package)
    for step in path:
        value = getattr(value, step)

def from_import(name):
    module, _, member = name.rpartition(":")
    getattr(importlib.import_module(module), member)

for line in sys.stdin.read().splitlines():
    way, name = line.split()
    child = os.fork()  # for each name an interpreter in which nothing was imported before
    if not child:
        try:
            globals()[way](name)
        except BaseException as error:
            print(f"{way} {name}: {type(error).__name__}: {error}", flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def unresolved(names: set[str]) -> list[str]:
    """Those of "WAY NAME" that lead nowhere in a fresh interpreter, each with why."""
    done = subprocess.run(
        [sys.executable, "-c", RESOLVE],
        input="\n".join(sorted(names)),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def named(text: str) -> set[str]:
    """All names in a document's code, as "WAY NAME"."""
    code = "\n".join(
        [*(block for _, block in BLOCK.findall(text)), *re.findall(r"`([^`]+)`", BLOCK.sub("", text))]
    )
    found = {f"import_module {name}" for name in RUN.findall(code)}
    for module, several, one in IMPORTED.findall(code):
        members = [member.strip() for member in (several or one).split(",")]
        found |= {f"from_import {module}:{member.split(' as ')[0]}" for member in members if member}
    rest = RUN.sub("", IMPORTED.sub("", code))
    return found | {f"attribute {name}" for name in DOTTED.findall(rest) if not name.startswith(FILE)}


def telemetry() -> set[str]:
    """Names of attributes, spans, events and metrics: spelt like Python's, but no names of Python's."""
    sources = (ROOT / "specclient" / "tracing").glob("*.py")
    return {name for path in sources for name in re.findall(r'"(specclient\.[\w.]+)"', path.read_text())}


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_every_dotted_name_of_the_documents_is_there() -> None:
    documents = [path for path in DOCUMENTS if path.name != "providers.md"]  # its names are places in answers
    names = set().union(*(named(path.read_text(encoding="utf-8")) for path in documents))
    names -= {f"attribute {name}" for name in telemetry()}
    assert "attribute specclient.gateway.create_app" in names
    assert "from_import specclient.tracing.export:JsonlSpanExporter" in names
    assert len(names) > 25
    assert unresolved(names) == []


def test_rooms_are_reached_by_their_names() -> None:
    told = (
        "gateway.ServeSettings",
        "tracing.export.JsonlSpanExporter",
        "errors.APIError",
        "config.load_config",
    )
    assert unresolved({f"attribute specclient.{name}" for name in told}) == []


def test_a_name_that_is_nowhere_is_told() -> None:
    (said,) = unresolved({"attribute specclient.Clint"})
    assert "has no attribute 'Clint'" in said
