"""What the documents tell a reader to type is there: targets, commands with their options, modules, files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    path
    for folder in (ROOT, ROOT / "docs", ROOT / "examples", ROOT / "providers", ROOT / "local_engine")
    for path in sorted(folder.glob("*.md"))
    if path.name != "cli.md"  # written from the commands, and compared with them
]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\$?\s*specclient ([a-z].*)$")


def typed(path: Path) -> Iterator[str]:
    """Every line of a block of commands, and every command between backticks."""
    text = path.read_text(encoding="utf-8")
    for language, block in BLOCK.findall(text):
        if language not in ("", "sh", "console", "bash"):
            continue
        yield from (re.split(r"\s{2,}#|\s# ", line)[0].strip() for line in block.splitlines())
    yield from (code.replace("\n", " ") for code in re.findall(r"`([^`]+)`", BLOCK.sub("", text)))


def everything_typed() -> list[tuple[str, str]]:
    return [(path.name, line) for path in DOCUMENTS for line in typed(path)]


def test_every_make_target_is_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    told = {word for _, line in everything_typed() for word in re.findall(r"^make ([a-z-]+)$", line)}
    assert {"demo", "test"} <= told <= targets


def test_every_module_and_example_is_there() -> None:
    modules = {
        word for _, line in everything_typed() for word in re.findall(r"\b(benchmarks[./][a-z_]+)", line)
    }
    assert "benchmarks.regenerate" in modules
    for module in modules - {"benchmarks/data"}:
        assert (ROOT / f"{module.replace('.', '/').removesuffix('/py')}.py").exists(), module
    for name, line in everything_typed():
        for example in re.findall(r"\bexamples/[\w/]+\.\w+", line):
            assert (ROOT / example).exists(), (name, example)


def test_every_command_and_its_options_are_there() -> None:
    from typer.main import get_command

    from specclient.cli.app import app

    checked = 0
    for name, line in everything_typed():
        found = COMMAND.match(line)
        if found is None:
            continue
        command: Any = get_command(app)
        words = shlex.split(found.group(1).replace("…", "x"))
        while getattr(command, "commands", None) and words and not words[0].startswith("-"):
            word = words.pop(0)
            assert word in command.commands, (name, line)
            command = command.commands[word]
        known = {
            option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
        }
        own = words[: words.index("--")] if "--" in words else words
        for word in own if command.name != "launch" else ():
            if word.startswith("-"):
                assert word.partition("=")[0].strip("[]") in {*known, "--help"}, (name, line)
        checked += 1
    assert checked > 10


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(path: Path) -> None:
    for link in re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8")):
        if not link.startswith(("http://", "https://", "mailto:")):
            assert (path.parent / link).exists(), link
