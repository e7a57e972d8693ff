"""No head, middle or tail of a file goes unless the instruction asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.common import OWN_EDITS, Edit, load_edits
from specclient.edit.losses import asks_for_less, lost
from specclient.errors import EditRefused

DEMO = Path(__file__).parents[2] / "examples/demo/inventory.py"
RENAME = "Rename the class Inventory to Store."


def text_of_demo() -> str:
    return DEMO.read_text()


def without(text: str, begin: str, end: str | None) -> str:
    at = text.index(begin)
    return text[:at] + ("" if end is None else text[text.index(end, at) :])


LEFT_OUT = {
    "the last function": ("def load(", None, r"lines 60 to 67 \(load\)"),
    "its last lines": ("            inventory.add(item)", None, "lines 66 to 67"),
    "the last line": ("    return inventory", None, "line 67"),
    "the head": ('"""A small', "import csv", "lines 1 to 3"),
    "a class in the middle": ("@dataclass\n", "class Store", r"lines 10 to 26 \(Item, is_low\)"),
    "a method": (
        "    def low_items",
        '    def total(self) -> int:\n        """Value of the whole',
        r"low_items",
    ),
    "a line that a rename leaves alone": ("        low = [", "        return sorted", "line 52"),
}


@pytest.mark.parametrize("what", LEFT_OUT)
@pytest.mark.parametrize("fenced", [False, True])
def test_a_rename_that_lost_a_part_is_refused_with_what_was_lost(
    run_edit: Any, tmp_path: Path, what: str, fenced: bool
) -> None:
    path = tmp_path / "store.py"
    path.write_text(text_of_demo())
    begin, end, told = LEFT_OUT[what]
    answer = without(text_of_demo().replace("Inventory", "Store"), begin, end)
    with pytest.raises(EditRefused, match=told) as caught:
        run_edit(f"```python\n{answer}```" if fenced else answer, path, RENAME, write=True)
    assert path.read_text() == text_of_demo()
    assert [warning.code for warning in caught.value.edit.warnings if warning.blocks] == ["lost"]


@pytest.mark.parametrize("what", LEFT_OUT)
def test_the_same_answer_passes_where_the_instruction_asks_for_less(
    run_edit: Any, tmp_path: Path, what: str
) -> None:
    path = tmp_path / "store.py"
    path.write_text(text_of_demo())
    begin, end, _ = LEFT_OUT[what]
    answer = without(text_of_demo().replace("Inventory", "Store"), begin, end)
    edit, _ = run_edit(answer, path, "Rename Inventory to Store and remove what I do not need.", write=True)
    assert path.read_text() == edit.text != text_of_demo()


@pytest.mark.parametrize("edit", load_edits(OWN_EDITS), ids=lambda edit: edit.name)
def test_an_answer_that_begins_late_or_ends_early_is_noticed_wherever(edit: Edit) -> None:
    assert [loss for loss in lost(edit.before, edit.after) if loss.grave] == []
    lines = edit.before.rstrip("\n").split("\n")
    changed = [*lines]
    changed[len(lines) // 2] += "  changed"
    for at in range(1, len(lines) // 3):
        if any(line.strip() for line in lines[:at]):
            assert any(loss.grave for loss in lost(edit.before, "\n".join(changed[at:]))), at
        assert any(loss.grave for loss in lost(edit.before, "\n".join(changed[:-at]))), at


def test_new_text_in_place_of_the_last_definition_is_no_addition(run_edit: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(
        "class A:\n    def one(self):\n        return 1\n\n    def two(self):\n        return 2\n"
    )
    answer = "class A:\n    def one(self):\n        return 1\n\n    def three(self):\n        return 3\n"
    with pytest.raises(EditRefused, match=r"line 5 \(two\)"):
        run_edit(answer, path, "Add a method three before two.", write=True)
    run_edit(answer, path, "Rename two to three and let it return 3.", write=True)


SOURCES = {
    "a.go": ("func Load(p string) int {\n\treturn 1\n}\n", "Load"),
    "a.rs": ("pub(crate) async fn load(p: &str) -> u8 {\n    1\n}\n", "load"),
    "a.js": ("export default async function load(p) {\n  return 1;\n}\n", "load"),
    "a.sql": ("CREATE TABLE load (\n  id INT\n);\n", "load"),
    "a.ini": ("[load]\npath = 1\n", "load"),
    "a.ts": ("export interface Load {\n  id: number;\n}\n", "Load"),
}


@pytest.mark.parametrize("name", SOURCES)
def test_two_lines_in_the_middle_that_define_something_are_a_loss(name: str) -> None:
    part, defined = SOURCES[name]
    head = "".join(f"value_{number} = {number}\n" for number in range(9))
    tail = "".join(f"other_{number} = {number}\n" for number in range(9))
    (loss,) = lost(head + part + tail, (head + tail).replace("other", "another"))
    assert (loss.names, loss.grave) == ((defined,), True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("import a\n\nf()\na.g()\n", "f()\nh()\n", id="an import that nothing uses"),
        pytest.param("def f():\n    x = 1\n    return x\n", "def f():\n    return 1\n", id="simpler"),
        pytest.param("def f():\n  a()\ndef g():\n  b()\n", "def g():\n  b()\ndef f():\n  a()\n", id="order"),
        pytest.param("def f():\n  a()\n  b()\n  c()\n", "def g(x):\n  for y in x:\n    d(y)\n", id="new"),
        pytest.param("c()\nif x:\n    a()\n    b()\n", "c()\na()\nb()\n", id="a block let out"),
    ],
)
def test_what_was_changed_moved_or_replaced_is_not_lost(old: str, new: str) -> None:
    assert [loss for loss in lost(old, new) if loss.grave] == []


@pytest.mark.parametrize(
    "instruction",
    [
        "Remove the function load.",
        "delete everything after line 20",
        "Drop support for CSV",
        "Simplify.",
        "change it",
        "Please improve this file.",
        "Refactor low_items",
        "Replace load by a call of csv2items.load",
        "Get rid of the comments",
        "Entferne die Funktion load",
        "Supprime la fonction load",
        "Elimina la función load",
        "удали функцию load",
        "删除 load 函数",
    ],
)
def test_instructions_that_ask_for_less(instruction: str) -> None:
    assert asks_for_less(instruction)


@pytest.mark.parametrize(
    "instruction",
    [
        RENAME,
        "Rename the method remove to take.",
        "Rename `remove` to `take`",
        "Give the remove method a docstring",
        'Say "removed" in the message',
        "Add types; do not remove anything",
        "Add a method clear() without removing anything",
        "Don't delete comments, fix the typo",
        "Call self.delete(x) at the end",
        "Add a column email",
        "Change the default of low to 3",
        "Fix the typo in this file",
    ],
)
def test_instructions_that_do_not(instruction: str) -> None:
    assert not asks_for_less(instruction)
