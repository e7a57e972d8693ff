"""The results file of a measurement: interrupted, strange, of another measurement."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bench_samples import samples

from specclient.bench.cases import Case
from specclient.bench.store import Store, fingerprint
from specclient.errors import ConfigError

CASES = [Case(f"{work}{number}", work, {"messages": []}, "x") for work in "ab" for number in range(3)]


def test_an_interrupted_file_goes_on_and_a_strange_one_is_refused(tmp_path: Path) -> None:
    about = {"fingerprint": fingerprint(CASES, {"seed": 0})}
    path = tmp_path / "r.jsonl"
    one, two, *_ = samples(2.0)
    store = Store(path, about)
    store.add([one])
    store.close()
    path.write_bytes(path.read_bytes() + b'{"key": "cut o')
    again = Store(path, about)
    assert again.samples == {one.key: one}
    again.add([two])
    again.close()
    assert set(Store(path, about).samples) == {one.key, two.key}
    with pytest.raises(ConfigError, match="holds another measurement"):
        Store(path, {"fingerprint": fingerprint(CASES, {"seed": 1})})
    path.write_text("hello\n")
    with pytest.raises(ConfigError, match="not a results file"):
        Store(path, about)


def test_no_content_is_in_the_file(tmp_path: Path) -> None:
    case = Case("c", "w", {"messages": [{"role": "user", "content": "SECRET"}]}, "SECRET")
    assert "SECRET" not in fingerprint([case], {}) + repr(case)


def test_what_failed_is_tried_again(tmp_path: Path) -> None:
    about = {"fingerprint": "f"}
    path = tmp_path / "r.jsonl"
    one, two, *_ = samples(2.0)
    store = Store(path, about)
    store.add([one, replace(two, error="RateLimitError")])
    store.close()
    assert set(Store(path, about).samples) == {one.key}


@pytest.mark.parametrize(
    "text", ["null", "[]", "{}", '{"specclient_bench": 1}', '{"specclient_bench": 1, "about": 3}', "{"]
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(text + "\n")
    with pytest.raises(ConfigError, match="not a results file"):
        Store(path, {"fingerprint": "f"})


@pytest.mark.parametrize("line", ["3", "[1]", '{"key": "k"}', '{"key": 1, "reasons": 4}', '"', "null"])
def test_a_bad_line_costs_one_trial(tmp_path: Path, line: str) -> None:
    path = tmp_path / "r.jsonl"
    store = Store(path, {"fingerprint": "f"})
    first, second, *_ = samples(2.0)
    store.add([first])
    store.close()
    with path.open("a") as file:
        file.write(line + "\n")
    again = Store(path, {"fingerprint": "f"})
    again.add([second])
    again.close()
    assert set(Store(path, {"fingerprint": "f"}).samples) == {first.key, second.key}


def test_a_file_that_was_made_and_never_written_is_begun(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.touch()
    store = Store(path, {"fingerprint": "f"})
    store.add(samples(2.0)[:1])
    store.close()
    assert len(Store(path, {"fingerprint": "f"}).samples) == 1
