"""What the model is asked when a file is regenerated."""

from __future__ import annotations

import re
from pathlib import PurePath

from specclient.textfile import FileImage

SYSTEM = (
    "You rewrite files. Answer with the complete new text of the file and nothing else. "
    "Change only what the instruction asks for and copy everything else exactly."
)
_INSTRUCTION, _FILE, _NOW = (
    "Instruction:",
    "The file",
    "Now write the complete file with this change applied:",
)


def messages(image: FileImage, instruction: str) -> list[dict[str, str]]:
    """The conversation for one edit, with the file in it once: a server that drafts from the prompt finds it.

    The instruction stands before the file and again after it. Small models forget the one and start to
    copy without the other.
    """
    wanted = instruction.strip()
    name = PurePath(image.name).name
    fence = "`" * (longest_fence(image.text) + 1)
    end = "" if image.text.endswith("\n") else "\n"
    user = f"{_INSTRUCTION} {wanted}\n\n{_FILE} {name}:\n{fence}\n{image.text}{end}{fence}\n\n{_NOW} {wanted}"
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": user}]


def echoed(line: str, instruction: str) -> bool:
    """Whether a line is the question's and not the answer's."""
    wanted = _plain(instruction.strip().split("\n")[0])
    line = _plain(line)
    if " " in wanted and line == wanted:
        return True
    return line.startswith((_plain(_NOW), _plain(f"{_INSTRUCTION} {wanted}")))


def _plain(text: str) -> str:
    return text.strip(" *_`#:.!").casefold()


def longest_fence(text: str) -> int:
    """Length of the longest run of backticks that begins a line, at least 2."""
    return max((len(run) for run in re.findall(r"^ {0,3}(`{3,})", text, re.MULTILINE)), default=2)
