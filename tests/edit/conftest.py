"""One edit through a client that answers from a script."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from specclient.edit import edit_file, edit_file_async
from tests.edit.fakes import AsyncFakeClient, FakeClient


@pytest.fixture(params=["sync", "async"])
def run_edit(request: pytest.FixtureRequest) -> Any:
    """`run_edit(script, path, instruction, **options)` -> (FileEdit, client), on both doors."""

    def run(script: str | list[Any], *args: Any, finish: str = "stop", **options: Any) -> Any:
        if request.param == "sync":
            client = FakeClient(script, finish=finish)
            run.client = client  # type: ignore[attr-defined]
            return edit_file(client, *args, **options), client
        client = AsyncFakeClient(script, finish=finish)
        run.client = client  # type: ignore[attr-defined]
        return asyncio.run(edit_file_async(client, *args, **options)), client

    return run
