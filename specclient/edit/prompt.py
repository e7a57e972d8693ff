"""What the model is asked when a file is regenerated."""

from __future__ import annotations

import re
from pathlib import PurePath

from specclient.textfile import FileImage

SYSTEM = (
    "You rewrite files. Answer with the complete new text of the file and nothing else. "
    "Change only what the instruction asks for and copy everything else exactly."
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
    user = (
        f"Instruction: {wanted}\n\n"
        f"The file {name}:\n{fence}\n{image.text}{end}{fence}\n\n"
        f"Now write the complete file with this change applied: {wanted}"
    )
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": user}]


def longest_fence(text: str) -> int:
    """Length of the longest run of backticks that begins a line, at least 2."""
    return max((len(run) for run in re.findall(r"^ {0,3}(`{3,})", text, re.MULTILINE)), default=2)
