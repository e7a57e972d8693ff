"""A wrapper that names the file comes off or is refused; true content that looks like one is never lost."""

from __future__ import annotations

import sys
from itertools import product

import pytest

from specclient.edit.checks import check
from specclient.edit.extract import extract
from specclient.edit.prose import is_prose
from specclient.edit.restore import restore
from specclient.textfile import FileImage

NAMED = [
    "The file {name}:",
    "{name}",
    "**{name}**",
    "`docs/{name}`",
    "{name}:",
    "**docs/{name}:**",
    "### File: `{name}`",
    "File: {name} (updated)",
    "Here is the updated {name}:",
    "Here is {name}, translated to French:",
    "Voici le fichier {name} :",
    "Le fichier `docs/{name}` mis à jour :",
    "Datei {name}：",
    "Sure, here's the translation:\n\n**{name}**",
]
NAMELESS = ["Updated file:", "Sure! Here it is:", "Here is the file in French:"]
UNKNOWN = ["# {name}", "Voici :", "Voici la traduction.", "Le code est."]
"""What a document may begin with as well: refused in one."""
FENCES = [
    ("```", "```"),
    ("```markdown", "```"),
    ("````md", "````"),
    ("~~~", "~~~"),
    ('```md title="{name}"', "```"),
    ("```", "````"),
]
CLOSINGS = ["", "\n\nI hope this helps!", "\n\nI translated it.\n\n- one\n- two"]
FILES = {
    "one line": ("notes.md", "Hello world, this is my note.\n", "Bonjour, c'est ma note.\n"),
    "own fences": (
        "notes.md",
        "# Hi\n\nRun:\n\n```sh\nmake\n```\n\nBye now.\n",
        "# Salut\n\nLancez :\n\n```sh\nmake\n```\n\nAu revoir.\n",
    ),
    "own fence at the end": ("notes.md", "# Hi\n\n```\nx\n```\n", "# Salut\n\n```\nx\n```\n"),
    "own fence alone": ("notes.md", "```sh\nmake\n```\n", "```sh\nmake all\n```\n"),
    "a fence that comes": ("notes.md", "Hello\n", "# Bonjour\n\n```sh\nmake\n```\n"),
    "text": ("hello.txt", "Hello\n", "Bonjour\n"),
    "blank prose": ("blank.md", "\n", "# Titre\n"),
    "blank settings": ("nl.ini", "\n", "port=9000\n"),
    "blanks": ("spaces.txt", "   \n\n", "   \nBonjour\n"),
    "code": ("a.py", "x = 'hello'\n", "y = 'bonjour'\n"),
    "code with fences": (
        "a.py",
        "def f():\n    '''Say.\n\n    ```\n    x\n    ```\n    '''\n    return 1\n",
        "def f():\n    '''Dis.\n\n    ```\n    x\n    ```\n    '''\n    return 2\n",
    ),
}


def outcome(name: str, old: str, answer: str, instruction: str = "Translate this.") -> tuple[str, set[str]]:
    """(the new text, the codes of the warnings that block)"""
    image = FileImage.from_bytes(old.encode(), name=name)
    extracted = extract(answer, image.text, name, instruction)
    restored = restore(image, extracted.text)
    found = check(image, extracted, restored, instruction)
    return restored.text, {warning.code for warning in found if warning.blocks}


def wrapped(new: str, name: str, label: str, fence: tuple[str, str], closing: str) -> str:
    return f"{label}\n{fence[0]}\n{new}{fence[1]}{closing}".replace("{name}", name)


@pytest.mark.parametrize("label", [*NAMED, *NAMELESS])
@pytest.mark.parametrize("file", FILES)
def test_a_label_and_its_fence_come_off(file: str, label: str) -> None:
    name, old, new = FILES[file]
    for fence in FENCES:
        text, blocking = outcome(name, old, wrapped(new.strip() + "\n", name, label, fence, ""))
        assert text.split() == new.split()
        assert not blocking, fence


@pytest.mark.parametrize("file", FILES)
def test_a_wrapper_is_never_written(file: str) -> None:
    name, old, new = FILES[file]
    for label, fence, closing in product([*NAMED, *NAMELESS, *UNKNOWN], FENCES, CLOSINGS):
        text, blocking = outcome(name, old, wrapped(new.strip() + "\n", name, label, fence, closing))
        assert text.split() == new.split() or blocking, (label, fence, closing)


@pytest.mark.parametrize(
    ("name", "old", "answer", "code"),
    [
        pytest.param(
            "nl.ini", "\n", "```\nnl.ini:\n```\nport=9000\n```\n\n```", "doubt", id="fence in a fence"
        ),
        pytest.param("nl.ini", "\n", "nl.ini:\nport=9000", "label", id="a name above settings"),
        pytest.param("a.txt", "Hi\n", "The file a.txt:\nBonjour", "label", id="a label without a fence"),
        pytest.param("a.txt", "Hi\n", "Le fichier a.txt :\nBonjour", "label", id="in another language"),
        pytest.param("a.txt", "Hi\n", "Bonjour\n```", "fences", id="the prompt's closing fence"),
        pytest.param(
            "a.txt", "Hi\n", "The file a.txt: ```\nBonjour\n```", "fences", id="a fence in the label"
        ),
        pytest.param("a.txt", "Hi\n", "```Bonjour```", "quoted", id="a fence in one line"),
        pytest.param(
            "a.txt",
            "a\nb\n",
            "The file a.txt:\n```\na\nb\n```\n\na\nb",
            "fences",
            id="the file behind it again",
        ),
        pytest.param(
            "a.md",
            "Hi\n",
            "```\nBonjour\n```\n\nTo show it:\n```sh\ncat a.md\n```",
            "doubt",
            id="an explanation with a fence",
        ),
        pytest.param(
            "a.txt", "Hi\n", "```Bonjour le monde\nSuite.\n```", "doubt", id="text behind the fence"
        ),
        pytest.param("a.txt", "Hi\n", "Bonjour\n\nI hope this helps!", "afterword", id="a kind word"),
        pytest.param("a.txt", "Hi\n", "<b>a.txt</b>\n```\nBonjour\n```", "wrapped", id="a name in markup"),
        pytest.param("a.md", "Hi\n", "## Translated Note\n\n```\nBonjour\n```", "wrapped", id="a heading"),
        pytest.param(
            "a.md", "\n", "## Translated file\n\n```\nBonjour\n```", "wrapped", id="above a blank one"
        ),
        pytest.param(
            "a.md", "Hi\n", "Before:\n```\nHi\n```\nAfter:\n```\nBonjour\n```", "wrapped", id="old and new"
        ),
        pytest.param("a.txt", "Hi\n", "<answer>\nBonjour\n</answer>", "wrapped", id="tags"),
        pytest.param("a.txt", "Hi\n", "<file>\nBonjour\n</file>\nVoilà.", "wrapped", id="tags and a word"),
        pytest.param("a.txt", "Hi\n", "assistant\nBonjour", "label", id="a role"),
        pytest.param("a.txt", "Hi\n", "Bonjour\n\nThe file a.txt:", "label", id="a label at the end"),
        pytest.param("a.txt", "Hi\n", '{"content": "Bonjour"}', "wrapped", id="an object"),
        pytest.param("a.txt", "Hi\n", '"Bonjour"', "quoted", id="quotes"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(name: str, old: str, answer: str, code: str) -> None:
    assert code in outcome(name, old, answer)[1]


@pytest.mark.parametrize(
    ("name", "old", "new", "instruction"),
    [
        ("notes.md", "# notes.md\n\n```\nmake\n```\n", "# notes.md\n\n```\nmake all\n```\n", "Use make all."),
        ("notes.md", "# Notes\n\n```\nmake\n```\n", "# My notes\n\n```\nmake\n```\n", "Say whose."),
        ("how.md", "Answer so:\n\n```\n{file}\n```\n", "Reply so:\n\n```\n{file}\n```\n", "Say reply."),
        (
            "how.md",
            "Answer:\n\n````\nThe file a.md:\n```\nx\n```\n````\n",
            "Reply:\n\n````\nThe file b.md:\n```\ny\n```\n````\n",
            "Say reply, b and y.",
        ),
        ("a.md", "x\n\n```\na\n```\n", "```\na\n```\n", "Remove x."),
        ("a.md", "# a\n\n```\nx\n```\n\n```\ny\n```\n", "```\nx\n```\n\n```\ny\n```\n", "Remove the title."),
        ("a.md", "```sh\nmake\n```\n", "Build it:\n\n```sh\nmake\n```\n", "Say what it is."),
        ("a.md", "# T\n\n```\nx\n```\n", "```sh\nmake\n```\n\n# T\n\n```\nx\n```\n", "Say make first."),
        ("a.md", "# T\n\n~~~\nx\n~~~\n", "```\ny\n```\n\n~~~\nx\n~~~\n", "Show y for the title."),
        ("a.md", "\n", "# Project\n\nInstall:\n\n```sh\nmake\n```\n", "Write a README for a C project."),
        ("a.md", "\n", "Install:\n\n```sh\nmake\n```\n", "Write how to install it."),
        ("a.md", "Hello.\n", "Hi.\n\n```\nx\n```\n\nBye.\n", "Say hi and bye, and add a code block."),
        ("app.yaml", "a: 1\nb: 2\n", "My app settings:\n  a: 1\n  b: 2\n", "Put it under My app settings."),
    ],
)
def test_content_that_looks_like_a_wrapper_stays(name: str, old: str, new: str, instruction: str) -> None:
    assert outcome(name, old, new, instruction) == (new, set())


@pytest.mark.parametrize(
    ("name", "old", "new", "instruction"),
    [
        ("notes.md", "# Notes\n\n```\nmake\n```\n", "# notes.md\n\n```\nmake\n```", "Call it notes.md."),
        ("notes.md", "make\n", "# notes.md\n\n```\nmake\n```", "Make a proper document."),
        ("notes.md", "make\n", "Build:\n\n```sh\nmake\n```", "Turn it into a README."),
        ("notes.md", "Steps below.\nrun make\n", "Here are the steps:\n\n```sh\nmake\n```", "Improve it."),
        ("notes.md", "make\nRun this.\n", "```\nmake\n```\nRun this to build everything.", "Improve it."),
        ("notes.md", "hello\n", "Here are my notes:\nhello", "Add an introduction."),
        ("notes.md", "hello\n", "notes.md\nhello", "Write notes.md on top."),
        ("notes.md", "hello\n", "# notes.md\n\nhello", "Add the name of the file as a heading."),
        ("a.md", "text\n", "```\ntext\n```", "Wrap everything in a code block."),
        ("a.py", "x = 1\n", "# a.py\nx = 1", "Add a comment with the file's name."),
        ("a.py", "x = 1\n", "```\nx = 2\n```\ndef f(): return 3", "Say 2."),
        ("a.md", "\n", "```sh\nmake\n```\n\nThis builds all of it.", "Say how to build."),
        ("a.md", "make\n", "```sh\nmake\n```\n\nThis builds all of it.", "Say what it does."),
        (
            "README.md",
            "The file README.md:\n\n```\nx\n```\n",
            "Zu README.md:\n\n```\nx\n```",
            "Translate it.",
        ),
    ],
)
def test_content_that_looks_much_like_a_wrapper_is_not_lost(
    name: str, old: str, new: str, instruction: str
) -> None:
    text, blocking = outcome(name, old, new, instruction)
    assert text.split() == new.split() or blocking


def test_yaml_is_not_judged_where_nothing_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert outcome("a.yml", "a:\n  b: 1\n", "a:\n  b: 1\n c: 2", "Add c.")[1] == set()


@pytest.mark.parametrize(
    "instruction",
    [
        "Wrap everything in a code block.",
        "Put the whole text into a fenced block.",
        "Please enclose it in ```",
        "Turn the note into preformatted text.",
    ],
)
@pytest.mark.parametrize("opening", ["```", "~~~~text"])
def test_a_fence_around_everything_is_the_edit_where_it_is_asked_for(instruction: str, opening: str) -> None:
    fenced = f"{opening}\nHello there.\n\nBye.\n{opening.removesuffix('text')}\n"
    assert outcome("a.md", "Hello there.\n\nBye.\n", fenced.strip(), instruction) == (fenced, set())


@pytest.mark.parametrize(
    ("name", "old", "answer", "instruction"),
    [
        ("a.md", "Hi.\n", "```\nHi.\n```", "Shorten the code block."),
        ("a.md", "Hi.\n", "```\nHi you.\n```", "Wrap everything in a code block."),
        ("a.md", "Hi.\n", "Here it is:\n```\nHi.\n```", "Wrap everything in a code block."),
    ],
)
def test_a_fence_that_may_be_the_edit_is_refused(name: str, old: str, answer: str, instruction: str) -> None:
    assert outcome(name, old, answer, instruction)[1] == {"doubt"}


def test_a_fence_that_was_the_whole_difference_is_told() -> None:
    image = FileImage.from_bytes(b"Hello there.\n", name="a.md")
    extracted = extract("```\nHello there.\n```", image.text, image.name, "Make it bigger.")
    found = check(image, extracted, restore(image, extracted.text), "Make it bigger.")
    assert [(warning.code, warning.blocks) for warning in found] == [("fence", False)]


def test_a_blank_file_is_prose_by_its_name_alone() -> None:
    assert not is_prose("nl.ini", "\n \n")
    assert is_prose("nl.md", "\n \n")


@pytest.mark.parametrize(
    ("name", "old", "answer", "instruction", "code"),
    [
        ("a.md", "\n", "Write a title.", "Write a title.", "echo"),
        ("a.md", "\n", "Instruction: Write a title.\n\n# Title", "Write a title.", "echo"),
        ("a.md", "Hi\n", "Hi\nNow write the complete file with this change applied:", "Say hi.", "echo"),
        (".gitignore", "*.pyc\n", "node_modules", "Add node_modules.", "unrelated"),
        ("crontab", "0 5 * * * backup\n", '#bash\n#crontab -c "C:C.crontab"', "Run at 6.", "unrelated"),
        (
            "Makefile",
            "CC = gcc\nCFLAGS = -O2\n\nall: main\n\nmain: main.c\n\t$(CC) $(CFLAGS) -o main main.c\n",
            "CC = gcc\nCFLAGS = -O2\n\nall: main\n\nclean:\n\trm -f main",
            "Add a clean target.",
            "lost",
        ),
        ("a.py", "x = 1\n", "x = 1\ny = 1", "Rename x to y.", "grown"),
        ("a.json", '{"a": 1}\n', '{"a": 1, "b": f(a)}', "Add b.", "syntax"),
        ("a.toml", "a = 1\n", 'a = 1\nb = {\n  "c": 1\n}', "Add b.", "syntax"),
        (
            "a.py",
            "def f():\n    x = 1\n    return x\n",
            "def f():\n    x = 2\nreturn x",
            "Set x to 2.",
            "syntax",
        ),
        ("a.pyi", "x: int\n", "x: int\ny: (int", "Add y.", "syntax"),
        ("a.yml", "a:\n  b: 1\n", "a:\n  b: 1\n c: 2", "Add c.", "syntax"),
        ("a.yaml", "a: &x 1\nb: *x\nc: 2\n", "a: 1\nb: *x\nc: 2", "Drop the anchor.", "syntax"),
    ],
)
def test_what_small_models_wrote_instead_is_refused(
    name: str, old: str, answer: str, instruction: str, code: str
) -> None:
    assert code in outcome(name, old, answer, instruction)[1]


@pytest.mark.parametrize(
    ("name", "old", "new", "instruction"),
    [
        ("a.json", '{"a": 1}\n', '{"a": 2}\n', "Set a to 2."),
        ("a.json", '// no JSON\n{"a": 1}\n', '// no JSON\n{"a": 2}\n', "Set a to 2."),
        ("a.py", "x = 1\nz = x\n", "y = 1\nz = y\n", "Rename x to y."),
        ("a.py", "print 'one'\n", "print 'two'\n", "Say two."),
        ("a.py", "x = 'a'\ny = x\n", "x = '\\d'\ny = x is 'b'\n", "Match a digit."),
        ("a.yaml", "a: !Ref x\n---\nb: 1\n", "a: !Ref y\n---\nb: 1\n", "Refer to y."),
        ("a.yaml", "{{ if x }}\na: 1\n{{ end }}\n", "{{ if x }}\na: 2\n{{ end }}\n", "Set a to 2."),
        (".gitignore", "*.pyc\n", "*.pyc\nnode_modules\n", "Add node_modules."),
        ("a.txt", "Write a poem about cats.\n", "Write a poem about dogs.\n", "Change cats to dogs."),
    ],
)
def test_their_honest_kin_are_not(name: str, old: str, new: str, instruction: str) -> None:
    assert outcome(name, old, new, instruction) == (new, set())
