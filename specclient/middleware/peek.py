"""A body that is called JSON where a stream was asked for. Only its beginning tells which it is: some servers
answer such a request with an error's JSON, and some call their streams so."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from specclient.core.pool_calls import POOL_CALLS

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Peek:
    """Read a body up to its first visible byte: blank blocks keep a connection open, whatever comes then.

    The result is the whole body where it is JSON, else all of its blocks."""

    response: Any
    raw: bool

    def run(self, _transport: Any) -> bytes | Iterator[bytes]:
        stream = self.response.stream
        with POOL_CALLS:
            try:
                blocks = iter(stream) if self.raw else self.response.iter_bytes()
                first = b""
                while _is_blank(first) and (block := next(blocks, None)) is not None:
                    first += block
                if not _begins_as_json(first):
                    return chain((first,), blocks)
                content = b"".join((first, *blocks))
            except BaseException:
                stream.close()
                raise
            stream.close()
            return content

    async def arun(self, _transport: Any) -> bytes | AsyncIterator[bytes]:
        stream = self.response.stream
        try:
            blocks = aiter(stream) if self.raw else self.response.aiter_bytes()
            first = b""
            while _is_blank(first) and (block := await anext(blocks, None)) is not None:
                first += block
            if not _begins_as_json(first):
                return _chained(first, blocks)
            content = b"".join([first, *[block async for block in blocks]])
        except BaseException:
            await stream.aclose()
            raise
        await stream.aclose()
        return content


async def _chained(first: bytes, blocks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for block in blocks:
        yield block


def _is_blank(block: bytes) -> bool:
    return not block.removeprefix(_BOM).lstrip()


def _begins_as_json(block: bytes) -> bool:
    return block.removeprefix(_BOM).lstrip()[:1] in (b"{", b"[", b"")
