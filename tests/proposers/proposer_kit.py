"""Synthetic files and edits, and the loop that replays them: nothing here was written by a person."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from benchmarks.oracle import Outcome, PieceTokenizer, replay
from benchmarks.replay import CPU
from specclient_engine.proposers import AcceptanceTable, build_proposer

WORDS = [
    *("value", "total", "index", "buffer", "count", "result", "name", "path", "item", "parser", "token"),
    *("stream", "cache", "handler", "option", "state", "config", "reader", "writer", "node", "child"),
    *("parent", "limit", "offset", "window", "table", "column", "record", "field", "entry", "queue"),
]


def source(seed: int, functions: int = 12) -> str:
    """A file of plausible functions, the same for the same seed."""
    draw = random.Random(seed)
    names = [f"{draw.choice(WORDS)}_{draw.choice(WORDS)}_{number}" for number in range(functions)]
    blocks = []
    for name in names:
        one, two, three = draw.sample(WORDS, 3)
        lines = [f"def {name}({one}, {two}):"]
        for _ in range(draw.randint(2, 7)):
            other = draw.choice(names)
            lines.append(
                draw.choice(
                    (
                        f"    {three} = {other}({one}, {draw.randint(0, 99)})",
                        f"    {two}.{draw.choice(WORDS)}({three}[{draw.randint(0, 9)}])",
                        f"    if {one} > {draw.randint(0, 99)}:\n        return {draw.choice(WORDS)}({two})",
                        f"    for {three} in range({one}):\n        print({three}, {two})",
                    )
                )
            )
        lines.append(f"    return {draw.choice((one, two))}")
        blocks.append("\n".join(lines))
    return "\n\n\n".join(blocks) + "\n"


def inserted(text: str) -> str:
    """Four new lines before the middle function."""
    lines = text.split("\n")
    at = next(i for i in range(len(lines) // 2, len(lines)) if lines[i].startswith("def "))
    new = ["def wholly_unforeseen(zebra):", "    quilt = zebra ** 7", "    return quilt", ""]
    return "\n".join(lines[:at] + new + lines[at:])


def deleted(text: str) -> str:
    """Without six lines of the middle."""
    lines = text.split("\n")
    return "\n".join(lines[: len(lines) // 2] + lines[len(lines) // 2 + 6 :])


def renamed(text: str) -> str:
    """The most frequent word renamed throughout, to something that was not there."""
    word = max(WORDS, key=lambda w: text.count(f" {w}") + text.count(f"({w}"))
    pieces = PieceTokenizer()
    ids = pieces.encode(text)
    texts = [pieces.decode([token]) for token in ids]
    return "".join(t.replace(word, "brandnew") if t.strip() == word else t for t in texts)


def indented(text: str) -> str:
    """The second half put one level deeper, under a new condition."""
    lines = text.split("\n")
    half = next(i for i in range(len(lines) // 2, len(lines)) if lines[i].startswith("def "))
    deeper = [f"    {line}" if line else line for line in lines[half:]]
    return "\n".join([*lines[:half], "if enabled:", *deeper])


EDITS: dict[str, Callable[[str], str]] = {
    "verbatim": lambda text: text,
    "inserted": inserted,
    "deleted": deleted,
    "renamed": renamed,
    "indented": indented,
    "to CRLF": lambda text: text.replace("\n", "\r\n"),
    "fenced": lambda text: f"```python\n{text}```",
}


def run(
    before: str,
    after: str,
    *,
    table: AcceptanceTable | None = None,
    tokenizer: PieceTokenizer | None = None,
    salt: str | None = None,
) -> Outcome:
    """Replay one edit with the file as the prediction and the reference CPU curve."""
    ids = tokenizer or PieceTokenizer()
    proposer = build_proposer(ids.encode("Edit this file.\n"), [before], ids, table=table, salt=salt)
    return replay(proposer, ids.encode(after), CPU)


def written_by(proposer_tokens: Sequence[int], target: Sequence[int]) -> int:
    """How many draft tokens a target that writes `target` accepts."""
    count = 0
    for drafted, wanted in zip(proposer_tokens, target, strict=False):
        if drafted != wanted:
            break
        count += 1
    return count
