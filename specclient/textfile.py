"""A text file as it lies on the disk: its characters, and everything that is not characters.

Models read and write plain lines. Files have an encoding, perhaps a byte order mark, line endings of one
kind or of several, and a last line that may or may not end. `FileImage` keeps the two apart, so that
what the model never saw can be put back.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

from specclient.errors import FileError

MAX_BYTES = 8 * 1024 * 1024
"""Far beyond the context of any model; a guard against reading a disk image by mistake."""

LINE_END = re.compile(r"\r\n|\n|\r")
"""What ends a line. `str.splitlines` also breaks at form feeds and U+2028, which are content here."""

_BOMS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: its mark begins with the shorter one
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

# PEP 263 (first two lines) and the XML declaration: a file that names its own encoding is believed.
_CODING_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.MULTILINE)
_XML_ENCODING = re.compile(rb"""^<\?xml[^>]*\bencoding=["']([-\w.]+)["']""")


def name_in_text(path: str | os.PathLike[str]) -> str:
    """A path for prompts, messages and JSON; what is no UTF-8 in it has become U+FFFD.

    Names are bytes. Python keeps those that it cannot decode as halves of surrogate pairs, which are no text.
    """
    name = os.fspath(path)
    try:
        raw = name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of a pair that stands for no byte: a name on Windows
        raw = name.encode("utf-8", "surrogatepass")
    return raw.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class FileImage:
    """The bytes of a text file, taken apart so that they can be put together again exactly.

    `text` has no byte order mark and ends its lines with LF. `endings` holds the real end of each line
    ("\\n", "\\r\\n", "\\r"; "" for a last line that does not end).
    """

    raw: bytes = field(repr=False)
    text: str = field(repr=False)
    encoding: str
    bom: bytes
    endings: tuple[str, ...] = field(repr=False)
    name: str = ""

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, encoding: str | None = None) -> FileImage:
        """Read a file. Raises FileError if it is missing, not regular, binary, undecodable or empty."""
        return cls.from_bytes(_read(Path(path)), encoding=encoding, name=name_in_text(path))

    @classmethod
    def from_bytes(cls, raw: bytes, *, encoding: str | None = None, name: str = "the file") -> FileImage:
        """As `load`, from bytes in hand. `encoding` overrides what the bytes say of themselves."""
        if not raw:
            raise FileError(f"{name} is empty: there is nothing to regenerate.")
        bom, codec = _codec_of(raw, encoding, name)
        text = _decode(raw, bom, codec, declared=encoding is not None, name=name)
        if not text:
            raise FileError(
                f"{name} holds a byte order mark and nothing else: there is nothing to regenerate."
            )
        endings = [match.group() for match in LINE_END.finditer(text)]
        if not text.endswith(("\n", "\r")):
            endings.append("")
        return cls(raw, LINE_END.sub("\n", text), codec, bom, tuple(endings), name)

    @property
    def lines(self) -> list[str]:
        """The lines without their ends, one for each of `endings`."""
        return self.text.split("\n")[: len(self.endings)]

    @property
    def line_ending(self) -> str:
        """The commonest line ending; LF where the file has a single unended line."""
        ends = [end for end in self.endings if end]
        return max(("\n", "\r\n", "\r"), key=ends.count) if ends else "\n"

    @property
    def mixed_endings(self) -> bool:
        """Whether lines end in more than one way."""
        return len({end for end in self.endings if end}) > 1

    def encode(self, text: str) -> bytes:
        """`text`, line ends and all, in this file's encoding and with its byte order mark."""
        try:
            return self.bom + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            line = text.count("\n", 0, error.start) + 1
            if self.encoding.startswith("utf"):
                raise FileError(f"Line {line} of the answer holds half a character: ask again.") from None
            raise FileError(
                f"{self.name} is {self.encoding}, which cannot hold U+{ord(text[error.start]):04X} "
                f"in line {line} of the answer: convert the file to UTF-8 first."
            ) from None


def _read(path: Path) -> bytes:
    name = name_in_text(path)
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise FileError(f"{name} is a directory: name a file in it.")
        if not stat.S_ISREG(status.st_mode):
            raise FileError(f"{name} is not a regular file.")
        if status.st_size > MAX_BYTES:
            raise FileError(f"{name} has {status.st_size:,} bytes: no model takes more than {MAX_BYTES:,}.")
        return path.read_bytes()
    except FileNotFoundError:
        raise FileError(f"{name} does not exist.") from None
    except OSError as error:
        raise FileError(f"{name} cannot be read: {error.strerror}.") from error


def _codec_of(raw: bytes, encoding: str | None, name: str) -> tuple[bytes, str]:
    """(byte order mark, codec without mark). Without a mark or a declaration it is UTF-8 or refused."""
    bom, marked = next(((mark, codec) for mark, codec in _BOMS if raw.startswith(mark)), (b"", ""))
    if encoding is None:
        return (bom, marked) if bom else (b"", _declared_in(raw) or "utf-8")
    try:
        codec = codecs.lookup(encoding).name
    except LookupError:
        raise FileError(f"{encoding!r} is not an encoding that Python knows (given for {name}).") from None
    if bom and marked.startswith(codec.removesuffix("-sig")):
        return bom, marked
    return b"", codec.removesuffix("-sig")


def _declared_in(raw: bytes) -> str | None:
    head = raw[:1024]
    match = _XML_ENCODING.match(head) or _CODING_COOKIE.search(b"\n".join(head.splitlines()[:2]))
    if match is None:
        return None
    try:
        return codecs.lookup(match.group(1).decode("ascii")).name
    except LookupError:
        return None


def _decode(raw: bytes, bom: bytes, codec: str, *, declared: bool, name: str) -> str:
    body = raw[len(bom) :]
    try:
        text = body.decode(codec)
        if "\0" in text:
            hint = "; if it is UTF-16 without a mark, name its encoding" if _every_other_is_nul(body) else ""
            raise FileError(f"{name} is a binary file (it holds NUL characters){hint}.")
        if text.encode(codec) == body:
            return text
    except UnicodeDecodeError as error:
        if b"\0" in body and not declared and not bom:
            raise FileError(f"{name} is a binary file (it holds NUL bytes).") from None
        hint = "" if declared else "; name its encoding (encoding=…, --encoding …)"
        raise FileError(
            f"{name} is not {codec} text (byte 0x{body[error.start]:02x} at offset "
            f"{len(bom) + error.start}){hint}."
        ) from None
    except (UnicodeError, LookupError, ValueError, TypeError):
        raise FileError(f"{name} cannot be read as {codec}: that codec is not for text files.") from None
    raise FileError(f"{name} does not survive a round trip through {codec}, so it cannot be edited safely.")


def _every_other_is_nul(body: bytes) -> bool:
    """Whether bytes look like UTF-16 of a text in Latin letters."""
    return max(body[::2].count(0), body[1::2].count(0)) > 0.4 * len(body)
