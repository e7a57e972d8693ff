"""Cases that users of such clients reported in public, each through the public surface. A letter is a kind of
trouble, and a test's id begins with the number of its report."""

from __future__ import annotations

from tests.client.conftest import door, waits

__all__ = ["door", "waits"]
