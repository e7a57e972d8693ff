"""A transport that no call needed is not made in order to be closed."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest


@pytest.mark.parametrize(
    "use", ["specclient.Client({0}).close()", "asyncio.run(specclient.AsyncClient({0}).close())"]
)
def test_a_client_that_made_no_call_is_closed_without_its_transport(use: str) -> None:
    arguments = 'provider="openai_compatible", base_url="http://127.0.0.1:9/v1", model="m"'
    code = f"""
        import asyncio, sys, specclient
        {use.format(arguments)}
        assert "httpcore" not in sys.modules, "the transport was imported"
    """
    subprocess.run([sys.executable, "-W", "error", "-c", textwrap.dedent(code)], check=True)
