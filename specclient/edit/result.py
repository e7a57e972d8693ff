"""What an edit gives back."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from difflib import unified_diff
from pathlib import Path
from typing import Any

from specclient.edit.checks import EditWarning
from specclient.edit.replace import replace_file
from specclient.errors import EditRefused, FileError, WriteFailed
from specclient.report import Report
from specclient.textfile import FileImage, name_in_text


@dataclass(slots=True)
class FileEdit:
    """A regenerated file. The disk is touched only by `write`."""

    path: Path
    image: FileImage
    bytes: bytes = field(repr=False)
    """The whole new file, in the old one's encoding, with its byte order mark and line endings."""
    answer: str = field(repr=False)
    """What the model wrote, before anything was taken off or put back."""
    warnings: tuple[EditWarning, ...]
    report: Report | None = field(repr=False)
    written: bool = False

    @property
    def text(self) -> str:
        """The new text with the file's own line endings, without the byte order mark."""
        return self.bytes[len(self.image.bom) :].decode(self.image.encoding)

    @property
    def changed(self) -> bool:
        """Whether the new bytes differ from the file's."""
        return self.bytes != self.image.raw

    def diff(self, context: int = 3) -> str:
        """A unified diff that `git apply` and `patch` take, byte order mark included; "" for no change.

        It names the file from the working directory; where the file lies elsewhere, from the root of its
        git repository, or of the file system (`patch -p1 -d /`).
        """
        old, new = self.image.raw.decode(self.image.encoding), self.bytes.decode(self.image.encoding)
        name = _patch_name(self.path)
        lines = unified_diff(_by_newline(old), _by_newline(new), f"a/{name}", f"b/{name}", n=context)
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
        )

    def as_dict(self) -> dict[str, Any]:
        """The edit for JSON: texts, diff, warnings and report."""
        return {
            "path": name_in_text(self.path),
            "changed": self.changed,
            "written": self.written,
            "encoding": self.image.encoding,
            "line_ending": self.image.line_ending,
            "text": self.text,
            "answer": self.answer,
            "diff": name_in_text(self.diff()),
            "warnings": [asdict(warning) for warning in self.warnings],
            "specclient": None if self.report is None else self.report.model_dump(mode="json"),
        }

    def write(self, *, force: bool = False) -> None:
        """Replace the file in one step; once it was written, do nothing.

        Raises EditRefused where a warning blocks and `force` is not given, and WriteFailed where the file
        was changed since it was read or cannot be replaced; it is untouched then.
        """
        if self.written:
            return
        blocking = [warning for warning in self.warnings if warning.blocks]
        if blocking and not force:
            raise EditRefused(
                f"{name_in_text(self.path)} was not written: {blocking[0].text} Look at the diff, then write "
                f"with force (force=True, --force) if it is right.",
                edit=self,
            )
        if self.changed:
            try:
                replace_file(self.path, self.bytes, expected=self.image.raw)
            except FileError as error:
                raise WriteFailed(str(error), edit=self) from error
        self.written = True


def _patch_name(path: Path) -> str:
    here = Path.cwd()
    whole = Path(os.path.abspath(path))
    for each in (whole, whole.parent.resolve() / whole.name):
        if each.is_relative_to(here):
            return each.relative_to(here).as_posix()
    root = next((folder for folder in whole.parents if (folder / ".git").exists()), whole.anchor)
    return whole.relative_to(root).as_posix()


def _by_newline(text: str) -> list[str]:
    """Lines as patch tools count them: LF alone ends one."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1].removesuffix("\n")
    return lines if lines[-1] else lines[:-1]
