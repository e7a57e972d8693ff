"""Samples on disk, one line each, only ever appended: an interrupted measurement goes on where it was."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TextIO

from specclient.bench.cases import Case
from specclient.errors import ConfigError, FileError

_VERSION = 2
"""In files of version 1 the embedded engine decoded plainly in the arm without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One trial's figures. Times are seconds, None is "not reported", `digest` is the answer's SHA-256.

    `joules` and `block_seconds` belong to the whole block that the trial ran in, `block_tokens` being the
    tokens that all its trials made.
    """

    key: str
    workload: str
    case: str
    arm: str
    clients: int
    repeat: int
    block: str | None = None
    """The same for all trials that ran at the same moment, and for their twins of the other arm."""
    error: str | None = None
    total: float | None = None
    first_content: float | None = None
    queue: float | None = None
    prefill: float | None = None
    decode: float | None = None
    receive: float | None = None
    phases_by: str | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    accepted: int | None = None
    rejected: int | None = None
    drafted: int | None = None
    accepted_draft: int | None = None
    forward_passes: int | None = None
    acceptance_length: float | None = None
    draft_seconds: float | None = None
    verify_seconds: float | None = None
    extra_billed: int | None = None
    outcome: str | None = None
    effect: str | None = None
    reasons: tuple[str, ...] = ()
    finish_reason: str | None = None
    digest: str | None = None
    block_seconds: float | None = None
    block_tokens: int | None = None
    joules: float | None = None


_FIELDS = {field.name for field in fields(Sample)}


class Store:
    """A results file. Its first line says what was measured; a file of something else is refused."""

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        self.path = path
        self.about = dict(about)
        self.samples: dict[str, Sample] = {}
        self._file: TextIO | None = None
        if path.exists():
            self._read()

    def _read(self) -> None:
        try:
            text = self.path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"{self.path} cannot be read ({type(error).__name__}): name another file."
            ) from None
        if not text:
            return  # it was interrupted before it had measured anything
        first, *lines = text.split("\n")
        about = self._about(first)
        if about["fingerprint"] != self.about["fingerprint"]:
            raise ConfigError(
                f"{self.path} holds another measurement (requests, target, clients, repeats or seed differ): "
                f"name another file (--out)."
            )
        self.about = about
        for sample in filter(None, map(_sample, lines)):
            self.samples[sample.key] = sample
        # What failed is tried again: the reason may be gone.
        self.samples = {key: sample for key, sample in self.samples.items() if sample.error is None}

    def _about(self, line: str) -> dict[str, Any]:
        try:
            head = json.loads(line)
            about, version = head["about"], head["specclient_bench"]
            _ = about["fingerprint"]
        except (ValueError, KeyError, TypeError):
            raise ConfigError(f"{self.path} is not a results file: name another one (--out).") from None
        if version != _VERSION:
            raise ConfigError(f"{self.path} is not a results file of this version: name another one (--out).")
        return dict(about)

    def add(self, samples: Sequence[Sample]) -> None:
        """Append samples and have them on the disk before returning."""
        try:
            file = self._open()
            for sample in samples:
                file.write(json.dumps(asdict(sample)) + "\n")
                self.samples[sample.key] = sample
            file.flush()
            os.fsync(file.fileno())
        except OSError as error:
            raise FileError(f"{self.path} cannot be written: {error.strerror}.") from error

    def _open(self) -> TextIO:
        if self._file is None:
            fresh = not self.path.exists() or self.path.stat().st_size == 0
            self._file = self.path.open("a", encoding="utf-8")
            if fresh:
                self._file.write(json.dumps({"specclient_bench": _VERSION, "about": self.about}) + "\n")
                self._file.flush()
            else:
                self._file.write("\n")  # ends a line that an interruption cut off
        return self._file

    def close(self) -> None:
        """Close the file; the samples stay."""
        if self._file is not None:
            self._file.close()
        self._file = None


def _sample(line: str) -> Sample | None:
    """The sample of a line; None for a line that an interruption cut off."""
    try:
        value = json.loads(line)
        value["reasons"] = tuple(value.get("reasons") or ())
        return Sample(**{name: value[name] for name in _FIELDS & value.keys()})
    except (ValueError, TypeError, AttributeError):
        return None


def fingerprint(cases: Sequence[Case], settings: Mapping[str, Any]) -> str:
    """What makes two measurements the same one. Holds no content: it is a hash."""
    value = [[case.name, case.workload, dict(case.request), case.prediction] for case in cases]
    text = json.dumps([value, dict(settings)], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
