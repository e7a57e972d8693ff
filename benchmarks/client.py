"""What the client costs, beside the openai SDK, in one run against a server on this machine.

    python benchmarks/client.py [--calls 200] [--chunks 200] [--streams 1000] [--json]

Prints CPU time (of this process; the server is another) of a plain call and of a streamed chunk, wall time
of an import alone and with a first client, and what becomes of many concurrent streams. Every figure is the
least of several repeats: the machine may be busy, and interference only adds.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

MESSAGES = [{"role": "user", "content": "Rename foo to bar in the following file. " * 20}]
PLAIN = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "word " * 100}, "finish_reason": "stop"}
    ],
    "usage": {"prompt_tokens": 200, "completion_tokens": 100, "total_tokens": 300},
}


def event(number: int, finish: str | None = None) -> bytes:
    """One chunk as an event in an HTTP chunk of its own."""
    delta = {} if finish else {"content": f"{number:04d} "}
    value = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "system_fingerprint": "fp_1",
        "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
    }
    return _framed(b"data: " + json.dumps(value).encode() + b"\n\n")


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


# The server


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, chunks: int) -> None:
    body = json.dumps(PLAIN).encode()
    plain = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
    plain += b"content-length: %d\r\n\r\n" % len(body) + body
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    events = [event(number) for number in range(chunks)] + [event(0, "stop")]
    tail = _framed(b"data: [DONE]\n\n") + b"0\r\n\r\n"
    together = head + b"".join(events) + tail
    try:
        while True:
            request = await reader.readuntil(b"\r\n\r\n")
            length = int(request.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            asked = await reader.readexactly(length)
            if b'"stream":true' not in asked.replace(b" ", b""):
                writer.write(plain)
            elif b"one-by-one" in asked:
                writer.write(head)
                for part in (*events, tail):
                    writer.write(part)
                    await asyncio.sleep(0.0005)
            else:
                writer.write(together)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _serve(chunks: int) -> None:
    server = await asyncio.start_server(lambda r, w: _answer(r, w, chunks), "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# The measures


def cpu(run: Callable[[], Any], repeats: int = 5) -> float:
    """CPU seconds of this process, the least of several runs."""
    run()
    found = []
    for _ in range(repeats):
        gc.collect()
        before = time.process_time()
        run()
        found.append(time.process_time() - before)
    return min(found)


def sync_rows(url: str, make: Callable[[str], Any], calls: int, chunks: int) -> dict[str, float]:
    """Microseconds of CPU: a plain call, a streamed chunk that comes with others, one that comes alone."""
    with closing(make(url)) as client:

        def plain() -> None:
            for _ in range(calls):
                client.chat.completions.create(model="m", messages=MESSAGES)

        def streamed(user: str, times: int) -> None:
            for _ in range(times):
                text = "".join(
                    chunk.choices[0].delta.content or ""
                    for chunk in client.chat.completions.create(
                        model="m", messages=MESSAGES, stream=True, user=user
                    )
                )
                assert len(text) == 5 * chunks

        times = max(1, 4000 // chunks)
        return {
            "plain call": cpu(plain) / calls * 1e6,
            "chunk, many together": cpu(lambda: streamed("together", times)) / (times * chunks) * 1e6,
            "chunk, one by one": cpu(lambda: streamed("one-by-one", 2), 3) / (2 * chunks) * 1e6,
        }


async def _many(client: Any, streams: int, chunks: int) -> int:
    expected = "".join(f"{number:04d} " for number in range(chunks))

    async def one() -> bool:
        parts = [
            chunk.choices[0].delta.content or ""
            async for chunk in await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        ]
        return "".join(parts) == expected

    return sum(await asyncio.gather(*[one() for _ in range(streams)]))


def concurrent_row(url: str, make: Callable[[str], Any], streams: int, chunks: int) -> dict[str, float]:
    """Many async streams at once, twice: whole texts, CPU a chunk, growth of memory in the second round."""

    async def rounds() -> dict[str, float]:
        client = make(url)
        first = await _many(client, streams, chunks)
        gc.collect()
        resident = _resident()
        before = time.process_time()
        second = await _many(client, streams, chunks)
        spent = time.process_time() - before
        gc.collect()
        await client.close()
        return {
            "whole": first + second,
            "asked": 2 * streams,
            "chunk, concurrent": spent / (streams * chunks) * 1e6,
            "growth MiB": (_resident() - resident) / 2**20,
        }

    return asyncio.run(rounds())


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def import_rows(package: str, first_client: str, repeats: int = 5) -> dict[str, float]:
    """Wall milliseconds of a fresh interpreter that imports, and that makes a client, less an empty one's.

    Everything is compiled before, as installers leave a package: a checkout need not be.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def once(what: str) -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", what], check=True, env=environment)
        return time.perf_counter() - started

    with tempfile.TemporaryDirectory() as compiled:
        environment |= {"OPENAI_API_KEY": "k", "PYTHONPYCACHEPREFIX": compiled}
        once(first_client)
        empty = min(once("pass") for _ in range(repeats))
        return {
            name: (min(once(code) for _ in range(repeats)) - empty) * 1e3
            for name, code in (("import", f"import {package}"), ("import and a client", first_client))
        }


def main() -> None:
    """Run everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--chunks", type=int, default=200)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(_serve(options.chunks))
        return
    import openai

    import specclient

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 8192)), hard))
    command = [sys.executable, __file__, "--serve", "--chunks", str(options.chunks)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
            ours: dict[str, Any] = {"provider": "openai_compatible", "model": "m", "api_key": "k"}
            rows: dict[str, dict[str, float]] = {"specclient": {}, "openai": {}}
            for name, make, amake, code in (
                (
                    "specclient",
                    lambda url: specclient.Client(base_url=url, **ours),
                    lambda url: specclient.AsyncClient(base_url=url, **ours),
                    "from specclient import Client; Client(provider='openai', model='m').chat.completions",
                ),
                (
                    "openai",
                    lambda url: openai.OpenAI(base_url=url, api_key="k"),
                    # As long as it takes: a thousand streams at once fill a busy machine.
                    lambda url: openai.AsyncOpenAI(base_url=url, api_key="k", timeout=600),
                    "from openai import OpenAI; OpenAI().chat.completions",
                ),
            ):
                rows[name] |= import_rows(name, code)
                rows[name] |= sync_rows(url, make, options.calls, options.chunks)
                rows[name] |= concurrent_row(url, amake, options.streams, options.chunks)
        finally:
            server.terminate()
    if options.json:
        print(json.dumps({"openai version": openai.__version__, **rows}, indent=2))
    else:
        _print(rows, openai.__version__)


def _print(rows: dict[str, dict[str, float]], version: str) -> None:
    units = {"import": "ms", "import and a client": "ms", "growth MiB": "MiB", "whole": "", "asked": ""}
    print(f"{'':24}{'specclient':>14}{'openai ' + version:>16}{'ratio':>10}")
    for name, value in rows["specclient"].items():
        other, unit = rows["openai"][name], units.get(name, "µs")
        ratio = f"1/{other / value:.1f}" if unit in ("ms", "µs") and value > 0 else ""
        print(f"{name:24}{value:11.1f} {unit:3}{other:12.1f} {unit:3}{ratio:>10}")


if __name__ == "__main__":
    main()
