"""Replay of known edits without a model: the target writes the edited file, drafts are judged by it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time

from benchmarks.common import at_hand
from specclient_engine.api import CostModel, Draft, Proposer, Tokenizer
from specclient_engine.draft_length import DraftLengthPolicy
from specclient_engine.models import cached
from specclient_engine.models.known import KNOWN_MODELS
from specclient_engine.request_state import MAX_DRAFT


@dataclass(frozen=True, slots=True)
class Case:
    """One edit: what stands in the prompt, the predicted text, and what the target will write."""

    name: str
    instruction: str
    before: str
    after: str

    @property
    def prompt(self) -> str:
        """The instruction and the file: what a chat template would wrap."""
        return f"{self.instruction}\n{self.before}\n"


@dataclass(slots=True)
class Outcome:
    """What a replay took. `seconds` is by the cost curve, `thinking` is the drafting's own CPU time."""

    tokens: int = 0
    passes: int = 0
    seconds: float = 0.0
    plain_seconds: float = 0.0
    drafted: int = 0
    accepted: int = 0
    thinking: float = 0.0

    def __iadd__(self, other: Outcome) -> Outcome:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    @property
    def per_pass(self) -> float:
        """Tokens for each forward pass."""
        return self.tokens / self.passes

    @property
    def gain(self) -> float:
        """Times faster than one token a pass, by the cost curve."""
        return self.plain_seconds / self.seconds


class PieceTokenizer:
    """Words, runs of spaces and single characters, numbered as they come: for when no model is at hand."""

    eos_ids: frozenset[int] = frozenset()
    vocab_size = 1 << 20
    _PIECES = re.compile(r"\n[ ]*(?= )|\n+| ?[A-Za-z]+| ?[0-9]| +(?= )|\s|.", re.DOTALL)

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._texts: list[str] = []

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """As `api.Tokenizer`."""
        ids, offsets = [], []
        for match in self._PIECES.finditer(text):
            piece = match.group()
            if piece not in self._ids:
                self._ids[piece] = len(self._texts)
                self._texts.append(piece)
            ids.append(self._ids[piece])
            offsets.append(match.span())
        return ids, offsets

    def encode(self, text: str) -> list[int]:
        """As `api.Tokenizer`."""
        return self.encode_with_offsets(text)[0]

    def decode(self, ids: Sequence[int]) -> str:
        """As `api.Tokenizer`."""
        return "".join(self._texts[token] for token in ids)

    def token_bytes(self, token_id: int) -> bytes:
        """As `api.Tokenizer`."""
        return self._texts[token_id].encode()


def model_at_hand() -> Path | None:
    """The folder of a known model that was fetched before, SmolLM2 first; None when there is none."""
    known = sorted(KNOWN_MODELS, key=lambda row: row.name, reverse=True)
    return next((path for row in known if (path := cached(row)) is not None), None)


def load_tokenizer(folder: Path | None) -> tuple[Tokenizer, str]:
    """The tokenizer in `folder`, else that of a model at hand, else a stand-in; and its label."""
    folder = folder or model_at_hand()
    if folder is None:
        return PieceTokenizer(), "words and characters (no model at hand: figures are not comparable)"
    # Only here: the engine's tokenizer needs the `local` extra.
    from specclient_engine.tokenizer import FolderTokenizer

    folder = folder.parent if folder.name == "tokenizer.json" else folder
    return FolderTokenizer(folder), folder.name


def load_cases(path: Path) -> list[Case]:
    """One edit a line: name, path or id; before; after; an instruction or a subject."""
    cases = []
    for line in at_hand(path).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        name = str(row.get("name") or row.get("id") or row.get("path"))
        instruction = (
            row.get("instruction_lazy") or row.get("subject") or row.get("instruction_descriptive", "")
        )
        cases.append(Case(name, instruction, row["before"], row["after"]))
    return cases


def longer(cases: Sequence[Case], *, every_copy: bool) -> list[Case]:
    """Each file five times in a row; the edit is made in every copy, or only in the middle one."""
    return [
        Case(
            case.name,
            case.instruction,
            case.before * 5,
            case.after * 5 if every_copy else case.before * 2 + case.after + case.before * 2,
        )
        for case in cases
    ]


def replay(
    proposer: Proposer,
    target: Sequence[int],
    cost: CostModel,
    *,
    cached: int = 0,
    length: Callable[[Draft], int] | None = None,
) -> Outcome:
    """Let the target write `target` behind `cached` tokens of prompt, drafting all the way.

    `length` None is the engine's own policy.
    """
    policy = DraftLengthPolicy(cost)
    outcome = Outcome(tokens=len(target))
    outcome.plain_seconds = sum(cost.seconds(1, cached + done) for done in range(len(target)))
    done = 0
    while done < len(target):
        began = process_time()
        draft = proposer.propose(min(MAX_DRAFT, len(target) - done))
        outcome.thinking += process_time() - began
        size = length(draft) if length is not None else policy.choose([(draft, cached + done)])[0]
        accepted = 0
        while accepted < min(size, len(target) - done) and draft.tokens[accepted] == target[done + accepted]:
            accepted += 1
        written = target[done : done + accepted + 1]
        kept = Draft(draft.tokens[:size], draft.sources[:size], draft.confidence[:size])
        began = process_time()
        proposer.commit(written, kept, accepted)
        outcome.thinking += process_time() - began
        outcome.passes += 1
        seconds = cost.seconds(size + 1, cached + done)
        cost.observe(size + 1, cached + done, seconds)  # as in serving: only row counts out of use are tried
        outcome.seconds += seconds
        outcome.drafted += size
        outcome.accepted += accepted
        done += len(written)
    return outcome
