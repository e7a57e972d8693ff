"""One store for all who name the same file."""

from __future__ import annotations

import threading

from specclient.economics.state import MemoryStore, Store

_stores: dict[str | None, Store] = {}
_stores_lock = threading.Lock()


def store_for(state: str | None) -> Store:
    """The store of a file (None: of this process); all targets that name it share it."""
    with _stores_lock:
        if state not in _stores:
            _stores[state] = MemoryStore() if state is None else _file_store(state)
        return _stores[state]


def _file_store(path: str) -> Store:
    from specclient.economics.file_store import FileStore  # SQLite is loaded for those who use it

    return FileStore(path)
