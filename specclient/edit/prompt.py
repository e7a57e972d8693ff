"""What the model is asked when a file is regenerated."""

from __future__ import annotations

from pathlib import PurePath

from specclient.textfile import FileImage

SYSTEM = (
    "You rewrite files. You are given a file and an instruction. Answer with the complete text of the file "
    "after the change, from its first line to its last. Change only what the instruction asks for and copy "
    "everything else exactly, character by character. Write nothing before or after the file's text: no "
    "explanation, no code fence, no placeholder for parts that stay the same."
)


def messages(image: FileImage, instruction: str) -> list[dict[str, str]]:
    """The conversation for one edit. The file stands in it once, before the instruction.

    A server that drafts from the prompt finds the known text there, and a second instruction on the same
    file shares its prefix.
    """
    end = "" if image.text.endswith("\n") else "\n"
    user = (
        f'<file name="{PurePath(image.name).name}">\n{image.text}{end}</file>\n\n'
        f"Instruction: {instruction.strip()}\n\n"
        "Answer with the complete changed file only."
    )
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": user}]
