"""Headers are the same whether they are read off a family's own list or by its API."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import httpx
import httpx2
import pytest

from specclient.middleware.steps import headers_reader, raw_headers

FAMILIES = [httpx, httpx2]


@pytest.mark.parametrize("family", FAMILIES)
def test_both_ways_read_the_same(family: Any) -> None:
    read = headers_reader(family)
    assert read is not raw_headers
    for given in ([], [(b"A-b", b"1"), (b"a-B", b"2"), (b"C", b"\xe9"), (b"c", b"")]):
        headers = family.Headers(given)
        assert read(headers) == raw_headers(headers)
        assert len(read(headers)) == min(len(given), 2)


@pytest.mark.parametrize("kept", [None, [], [(b"A", b"b")], [(b"A", b"A", b"b")], [(b"a", b"b", b"A", b"b")]])
def test_a_family_that_keeps_them_otherwise_is_read_by_its_api(kept: object) -> None:
    class Headers(httpx.Headers):
        def __init__(self, given: Any) -> None:
            super().__init__(given)
            self._list = kept  # type: ignore[assignment]

    family = ModuleType("family")
    family.Headers = Headers  # type: ignore[attr-defined]
    assert headers_reader(family) is raw_headers
