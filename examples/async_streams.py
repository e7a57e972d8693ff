"""Several streams at once over one client, each with its own report.

python examples/async_streams.py --streams 4
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

import specclient

KNOWN = "[server]\nhost = 127.0.0.1\nport = 8080\nworkers = 4\n"


async def change_port(client: specclient.AsyncClient, port: int) -> tuple[str, Any]:
    """One configuration file with another port."""
    stream = await client.chat.completions.create(
        messages=[
            {"role": "user", "content": f"Set port to {port}. Answer with the file only.\n\n{KNOWN}"},
        ],
        prediction=KNOWN,
        temperature=0,
        max_tokens=200,
        stream=True,
    )
    text, report = "", None
    async with stream:
        async for chunk in stream:
            report = chunk.specclient or report
            for choice in chunk.choices:
                text += choice.delta.content or ""
    return text, report


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--target", help="a target of your configuration (default: the embedded engine)")
    parser.add_argument("--model", help="another model of the target")
    parser.add_argument("--streams", type=int, default=3)
    options = parser.parse_args()

    where = {"target": options.target} if options.target else {"provider": "local"}
    async with specclient.AsyncClient(**where, model=options.model) as client:
        answers = await asyncio.gather(
            *(change_port(client, 9000 + number) for number in range(options.streams))
        )
    for text, report in answers:
        print(text)
        if report is not None and report.timing.total is not None:
            loading, total = report.timing.client.load or 0.0, report.timing.total.seconds
            waited = f", after {loading:.2f} s of loading the engine" if loading else ""
            accepted = report.prediction.accepted_tokens
            print(f"-- {total - loading:.2f} s{waited}, {accepted} predicted tokens accepted\n")


if __name__ == "__main__":
    asyncio.run(main())
