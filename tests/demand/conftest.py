"""The cases that users reported, each through the public surface. The files go by letter, a case's name is
its item's."""

from __future__ import annotations

from tests.client.conftest import door, server, waits

__all__ = ["door", "server", "waits"]
