"""With `[cli]` alone installed, a command that needs more says in one sentence what to install."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from specclient_engine.models import KNOWN_MODELS

MAIN = "from specclient.cli.main import main; main()"
ENGINE, SERVE, BENCH = (f"pip install 'specclient[{extra}]'" for extra in ("local", "serve", "bench"))
KNOWN = KNOWN_MODELS[0].name


def required(name: str, extra: str = "") -> set[str]:
    """The distributions that `pip install name[extra]` brings."""
    found, waiting = set(), [(name, extra)]
    while waiting:
        name, extra = waiting.pop()
        try:
            needs = importlib.metadata.requires(name) or ()
        except importlib.metadata.PackageNotFoundError:  # for another system or Python than this one
            continue
        found.add(re.sub(r"[-_.]+", "-", name).lower())
        for need in needs:
            word, _, condition = need.partition(";")
            wanted = re.findall(r"extra == ['\"]([^'\"]+)", condition)
            next_name = re.match(r"[\w.-]+", word.strip())
            assert next_name is not None
            if (not wanted or extra in wanted) and next_name[0].lower() not in found:
                waiting.append((next_name[0], ""))
    return found


@pytest.fixture(scope="module")
def others() -> list[str]:
    """What can be imported here and could not be there."""
    there = required("specclient", "cli")
    owners = importlib.metadata.packages_distributions()
    names = [
        module
        for module, owned in owners.items()
        if not there & {re.sub(r"[-_.]+", "-", owner).lower() for owner in owned}
    ]
    assert {"torch", "numpy", "filelock", "starlette", "plotly"} <= {*names}
    assert not {"typer", "rich", "httpx", "pydantic"} & {*names}
    return [*names, "opentelemetry.sdk"]


@pytest.mark.parametrize(
    ("arguments", "install"),
    [
        (("chat", "hi", "-p", "local"), ENGINE),
        (("edit", "a.py", "-i", "x", "-p", "local"), ENGINE),
        (("bench", "-p", "local", "--repeats", "1"), ENGINE),
        (("models", "fetch", KNOWN), ENGINE),
        (("models", "fetch", "Qwen/Qwen2.5-0.5B"), ENGINE),
        (("plan", "--target-model", "model", "--measure"), ENGINE),
        (("plan", "--target-model", "model.gguf"), ENGINE),
        (("serve",), SERVE),
        (("launch", "true"), SERVE),
        (("bench", "--html", "page.html"), BENCH),
        (("models", "list"), None),
        (("models", "remove", KNOWN), None),
        (("config", "check"), None),
        (("explain",), None),
        (("providers",), None),
    ],
    ids=lambda value: " ".join(value[:3]) if isinstance(value, tuple) else "",
)
def test_what_is_missing_is_one_sentence(
    others: list[str], tmp_path: Path, arguments: tuple[str, ...], install: str | None
) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    model = tmp_path / "model"
    model.mkdir()
    header = json.dumps({"w": {"shape": [2, 2]}}).encode()
    (model / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    shape = {"num_attention_heads": 1, "num_hidden_layers": 1, "hidden_size": 2}
    (model / "config.json").write_text(json.dumps(shape))
    (model / "tokenizer.json").write_text("{}")
    code = f"import sys; sys.modules.update(dict.fromkeys({others!r})); {MAIN}"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    if install is None:
        assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
        return
    assert done.returncode == 2, done.stderr
    (said,) = [line for line in done.stderr.splitlines() if not line.startswith("no target")]
    assert said.startswith("error: ")
    assert said.endswith(f"{install}.")
    assert "None" not in said


def test_the_section_of_the_server_is_checked_where_it_cannot_be_served(
    others: list[str], tmp_path: Path
) -> None:
    (tmp_path / "specclient.toml").write_text('[serve]\nport = "x"\nfoo = 1\n')
    code = f"import sys; sys.modules.update(dict.fromkeys({others!r})); {MAIN}"
    done = subprocess.run(
        [sys.executable, "-c", code, "config", "check"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "serve.port: input should be" in done.stdout
    assert "serve.foo: extra inputs" in done.stdout
