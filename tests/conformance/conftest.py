"""Every door, one after the other, to the same server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.all_doors import DOORS, Door
from tests.server import ScriptedServer


@pytest.fixture(params=list(DOORS))
def door(request: pytest.FixtureRequest, server: ScriptedServer, tmp_path: Path) -> Iterator[Door]:
    opened: Door = DOORS[request.param](server, tmp_path)
    yield opened
    opened.close()
