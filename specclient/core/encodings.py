"""Content encodings of a response, unpacked as its blocks come in."""

from __future__ import annotations

import zlib
from typing import Any

from specclient.errors import APIResponseValidationError


def decoder(encoding: str) -> Any:
    """A function (block, max_bytes) -> bytes for a content-encoding; None for identity."""
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return None
    if name in ("gzip", "x-gzip"):
        return _Inflate(31)
    if name == "deflate":
        return _Inflate(15)
    raise APIResponseValidationError(
        f"The endpoint answered in content-encoding {name}, which was not asked for."
    )


class _Inflate:
    """Streaming gzip or zlib, never more than asked for at once: a small body may unpack to gigabytes."""

    def __init__(self, wbits: int) -> None:
        self._wbits = wbits
        self._unpack = zlib.decompressobj(wbits)
        self._first = True

    @property
    def complete(self) -> bool:
        """Whether the end of the compressed body was seen."""
        return self._unpack.eof

    def __call__(self, block: bytes, limit: int) -> bytes:
        if not block:
            return b""
        if self._unpack.eof and block.startswith(b"\x1f"):  # another member, as RFC 1952 allows
            self._unpack = zlib.decompressobj(self._wbits)
        try:
            out = self._unpack.decompress(block, limit)
        except zlib.error:
            if self._first and self._wbits == 15:  # "deflate" without its zlib header, as some servers send
                self._unpack = zlib.decompressobj(-15)
                self._wbits = -15
                return self(block, limit)
            raise APIResponseValidationError("The answer's compressed body is damaged.") from None
        self._first = False
        following = self._unpack.unused_data if self._unpack.eof else b""
        return out + self(following, limit - len(out)) if following.startswith(b"\x1f") else out
