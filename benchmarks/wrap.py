"""What wrapping an official SDK costs, and what it saves.

    python -m benchmarks.wrap [--sdk openai] [--rounds 100] [--chunks 200] [--json]

A server in a process of its own answers at once. The bare and the wrapped SDK take turns, so that both see
the same machine; the figures are CPU time of the client's process, the least of all rounds. Connections
are counted by the server over five streamed calls.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import specclient

SDKS = {
    "openai": ("openai", "OpenAI", "/v1"),
    "groq": ("groq", "Groq", ""),
    "fireworks": ("fireworks", "Fireworks", ""),
    "together": ("together", "Together", ""),
}
DISTRIBUTIONS = {"fireworks": "fireworks-ai"}
MESSAGES = [{"role": "user", "content": "word " * 2000}]
KNOWN = {"type": "content", "content": "word " * 2000}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sdk", choices=SDKS, default="openai")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--calls", type=int, default=5, help="plain calls a round")
    parser.add_argument("--chunks", type=int, default=200, help="chunks of a streamed answer")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(Server(arguments.chunks).run())
        return
    command = [sys.executable, "-m", "benchmarks.wrap", "--serve", "--chunks", str(arguments.chunks)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            result = measure(arguments, int(server.stdout.readline()))
        finally:
            server.terminate()
    print(json.dumps(result) if arguments.json else table(result))


def measure(arguments: argparse.Namespace, port: int) -> dict[str, Any]:
    """The least CPU time of a plain call and of a streamed chunk, bare and wrapped, in microseconds."""
    bare, wrapped = make(arguments.sdk, port), specclient.wrap(make(arguments.sdk, port), provider="openai")
    least: dict[str, float] = {}
    for _ in range(arguments.rounds):
        for name, client in (("bare", bare), ("wrapped", wrapped)):
            for kind, run in (("plain", plain), ("stream", stream)):
                spent = timed(lambda run=run, client=client: run(client, arguments.calls))
                key = f"{kind}_{name}"
                least[key] = min(least.get(key, spent), spent)
    per = {"plain": arguments.calls, "stream": arguments.chunks * STREAMS}
    result: dict[str, Any] = {
        "sdk": f"{arguments.sdk} {version(DISTRIBUTIONS.get(arguments.sdk, arguments.sdk))}"
    }
    for kind, count in per.items():
        for name in ("bare", "wrapped"):
            result[f"{kind}_{name}_us"] = least[f"{kind}_{name}"] / count * 1e6
        result[f"{kind}_ratio"] = least[f"{kind}_wrapped"] / least[f"{kind}_bare"]
    for name in ("bare", "wrapped"):
        client = make(arguments.sdk, port)
        if name == "wrapped":
            specclient.wrap(client, provider="openai")
        result[f"connections_{name}"] = connections(client, port)
    return result


STREAMS = 1
"""Streamed answers a round."""


def make(sdk: str, port: int) -> Any:
    module, name, path = SDKS[sdk]
    made = getattr(__import__(module), name)
    return made(api_key="none", base_url=f"http://127.0.0.1:{port}{path}", max_retries=0)


def plain(client: Any, calls: int) -> None:
    for _ in range(calls):
        client.chat.completions.create(model="m", messages=MESSAGES, extra_body={"prediction": KNOWN})


def stream(client: Any, _calls: int) -> None:
    for _ in range(STREAMS):
        for _chunk in client.chat.completions.create(model="m", messages=MESSAGES, stream=True):
            pass


def timed(run: Callable[[], None]) -> float:
    begun = time.process_time()
    run()
    return time.process_time() - begun


def connections(client: Any, port: int) -> int:
    """How many connections five streamed calls open."""
    import urllib.request

    address = f"http://127.0.0.1:{port}/count"
    with urllib.request.urlopen(address) as answer:
        before = int(answer.read())
    for _ in range(5):
        for _chunk in client.chat.completions.create(model="m", messages=MESSAGES, stream=True):
            pass
    with urllib.request.urlopen(address) as answer:
        return int(answer.read()) - before - 1  # the second question's own


class Server:
    """Answers every POST at once, in prepared bytes; counts connections."""

    def __init__(self, chunks: int) -> None:
        self.connections = 0
        choice = {"index": 0, "delta": {"content": "word"}, "logprobs": None, "finish_reason": None}
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_790_000_000, "model": "m"}
        events = [head | {"choices": [choice], "usage": None}] * chunks
        events.append(head | {"choices": [choice | {"delta": {}, "finish_reason": "stop"}], "usage": None})
        events.append(head | {"choices": [], "usage": USAGE})
        pieces = [b"data: " + json.dumps(event, separators=(",", ":")).encode() + b"\n\n" for event in events]
        pieces.append(b"data: [DONE]\n\n")
        framed = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
        self.stream = _head("text/event-stream", "transfer-encoding: chunked") + framed
        message = {"role": "assistant", "content": "word " * 500}
        body = head | {"object": "chat.completion", "usage": USAGE}
        body["choices"] = [{"index": 0, "message": message, "finish_reason": "stop"}]
        self.plain = _whole(json.dumps(body, separators=(",", ":")).encode())

    async def run(self) -> None:
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    (line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")),
                    b":0",
                )
                body = await reader.readexactly(int(length.partition(b":")[2]))
                if b'"stream":true' in body:
                    writer.write(self.stream)
                    await writer.drain()
                    await asyncio.sleep(0.005)  # the end of the body in a packet of its own, as servers do
                    writer.write(b"0\r\n\r\n")
                else:
                    writer.write(self.plain if body else _whole(str(self.connections).encode()))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


USAGE = {"prompt_tokens": 2000, "completion_tokens": 200, "total_tokens": 2200}


def _head(kind: str, framing: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{framing}\r\n\r\n".encode()


def _whole(body: bytes) -> bytes:
    return _head("application/json", f"content-length: {len(body)}") + body


def table(result: dict[str, Any]) -> str:
    """The result for people."""
    return "\n".join(
        [
            f"{result['sdk']}, CPU time of the client, least of all rounds",
            f"{'':24}{'bare':>10}{'wrapped':>10}{'ratio':>8}",
            *(
                f"{title:24}{result[f'{kind}_bare_us']:>7.1f} µs{result[f'{kind}_wrapped_us']:>7.1f} µs"
                f"{result[f'{kind}_ratio']:>8.2f}"
                for kind, title in (("plain", "a plain call"), ("stream", "a streamed chunk"))
            ),
            f"{'connections, 5 calls':24}{result['connections_bare']:>10}{result['connections_wrapped']:>10}",
        ]
    )


if __name__ == "__main__":
    main()
