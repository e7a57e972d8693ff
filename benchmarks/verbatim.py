"""A long file comes back unchanged: our decoding beside the least work that could check it.

    python -m benchmarks.verbatim                        400 lines
    python -m benchmarks.verbatim --lines 400,1000,2000  and how the time grows with the file

The floor is one look of the same engine at the same tokens with all their logits, in passes of at most
256 rows, which is how many it takes at once. The prompt asks for the file as it is; what the model wrote
is then used as its own prediction, so the figure is of verbatim text whatever the model chose to write.
"""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.common import machine, say
from specclient_engine import Engine, GenerationRequest
from specclient_engine.models import DEFAULT_MODEL, locate
from specclient_engine.runner.base import Chunk

PASS_ROWS = 256


def long_file(lines: int) -> str:
    """A settings module of that many lines, short enough for 2,000 of them to fit twice in 32k tokens."""
    made = ["STATIONS = ["]
    entry = 0
    while len(made) < lines - 1:
        entry += 1
        made += ["    Station(", f'        "{entry:03x}",', f"        {entry * 7919 % 97},", "    ),"]
    return "\n".join([*made[: lines - 1], "]"]) + "\n"


def generate(
    engine: Engine, prompt: list[int], known: str, max_tokens: int
) -> tuple[str, tuple[int, ...], Any]:
    request = GenerationRequest(prompt_ids=prompt, predictions=(known,), max_tokens=max_tokens)
    handle = engine.submit(request)
    steps = list(handle)
    tokens = tuple(token for step in steps for token in step.token_ids)
    return "".join(step.text for step in steps), tokens, handle.stats


def floor_seconds(engine: Engine, prompt: list[int], tokens: tuple[int, ...]) -> float:
    """The best of three looks at `tokens`, all their logits wanted, behind a prompt that is not counted."""
    runner = engine.runner
    slot = runner.allocate(len(prompt) + len(tokens))
    try:
        for start in range(0, len(prompt), PASS_ROWS):
            piece = prompt[start : start + PASS_ROWS]
            runner.forward([Chunk(slot, start, piece, len(piece))])
        looks = []
        for _ in range(3):
            started = time.perf_counter()
            for start in range(0, len(tokens), PASS_ROWS):
                piece = tokens[start : start + PASS_ROWS]
                runner.forward([Chunk(slot, len(prompt) + start, piece, 0)])
            looks.append(time.perf_counter() - started)
        return min(looks)
    finally:
        runner.release(slot)


def measure(engine: Engine, lines: int) -> dict[str, Any]:
    text = long_file(lines)
    question = (
        f"{text}\nRepeat the file above exactly as it is, without any change. Answer with the file only."
    )
    prompt = engine.chat_prompt([{"role": "user", "content": question}])
    room = len(engine.tokenizer.encode(text)) + 64
    say(f"{lines} lines: {room - 64} tokens, writing")
    written, tokens, _ = generate(engine, prompt, text, room)
    runs = [generate(engine, prompt, written, room) for _ in range(2)]
    best = min(runs, key=lambda run: run[2].finished - run[2].first_token)
    if any(run[1] != tokens for run in runs):
        raise SystemExit(f"{lines} lines: the output depends on its prediction.")
    decode = (best[2].finished - best[2].first_token) / 1e9
    floor = floor_seconds(engine, prompt, tokens)
    return {
        "lines": lines,
        "tokens": len(tokens),
        "copied": written.strip() == text.strip(),
        "passes": best[2].forward_passes,
        "decode_seconds": decode,
        "floor_seconds": floor,
        "ratio": decode / floor,
    }


def main(
    model: Annotated[str, typer.Option(help="A known name, or a folder of safetensors.")] = DEFAULT_MODEL,
    lines: Annotated[str, typer.Option(help="Lengths of the file.")] = "400",
    dtype: Annotated[str, typer.Option(help="auto, bfloat16, float32 or int8.")] = "auto",
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    with Engine.load(locate(model).path, dtype=dtype) as engine:  # type: ignore[arg-type]
        rows = [measure(engine, int(count)) for count in lines.split(",")]
    if json_:
        print(json.dumps({"machine": machine(), "rows": rows}, indent=2))
        return
    table = Table(title="a file that comes back as it is", title_justify="left")
    for column in ("lines", "tokens", "passes", "decode", "one look", "ratio", "tok/s", "a copy"):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(
            str(row["lines"]),
            str(row["tokens"]),
            str(row["passes"]),
            f"{row['decode_seconds']:.2f} s",
            f"{row['floor_seconds']:.2f} s",
            f"{row['ratio']:.2f}×",
            f"{row['tokens'] / row['decode_seconds']:.0f}",
            "yes" if row["copied"] else "no",
        )
    Console().print(table)
    say(json.dumps(machine()))


if __name__ == "__main__":
    typer.run(main)
