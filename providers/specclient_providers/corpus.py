"""SGLang's external corpora: loading known text into a server's drafter, and taking it out again.

A corpus is global: every request on that server drafts from it, and timing may tell other tenants what
is in it. So this is opt-in, and a text stays loaded only while a call needs it: `Corpora` counts the
users of each text and says which HTTP calls to make; making them is the caller's part.

    step = corpora.acquire(url, text)
    # None:       it is loaded, and counted for you
    # CorpusCall: load it with this call, then say `loaded` or `failed`
    # Loading:    that server is loading, this text or another; wait for `done`, then ask again
    …
    call = corpora.release(url, text)       # CorpusCall that removes it after its last user, or None
"""

from __future__ import annotations

import secrets
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class CorpusCall:
    """One call to the server, with a path below its root. A status other than 200 means: not loaded."""

    method: str
    path: str
    body: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Loading:
    """A load under way. `done` resolves to the server's refusal of this text, or None: ask again."""

    text: str = field(repr=False)
    corpus_id: str
    done: Future[Exception | None] = field(default_factory=Future, repr=False)


@dataclass(slots=True)
class _Loaded:
    corpus_id: str
    users: int = 1


class Corpora:
    """How many calls use each loaded text, by server address. Thread-safe, and it never blocks.

    A server takes one load at a time ("Another corpus load is already in progress"), so there is at most
    one `Loading` a server. Only a text that is loaded has users: who waits or fails has nothing to undo.
    Every load has an id of its own, so that a removal still under way cannot hit the next load of a text.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: dict[tuple[str, str], _Loaded] = {}
        self._loading: dict[str, Loading] = {}

    def acquire(self, url: str, text: str) -> CorpusCall | Loading | None:
        """Ask to use `text`: see the module for the three answers."""
        with self._lock:
            found = self._loaded.get((url, text))
            if found is not None:
                found.users += 1
                return None
            under_way = self._loading.get(url)
            if under_way is not None:
                return under_way
            loading = self._loading[url] = Loading(text, f"specclient-{secrets.token_hex(12)}")
        return CorpusCall(
            "POST", "/add_external_corpus", {"corpus_id": loading.corpus_id, "documents": [text]}
        )

    def loaded(self, url: str, text: str) -> None:
        """The load that `acquire` asked for succeeded: the text has its first user."""
        with self._lock:
            loading = self._loading.pop(url)
            self._loaded[url, text] = _Loaded(loading.corpus_id)
        loading.done.set_result(None)

    def failed(self, url: str, refusal: Exception | None = None) -> CorpusCall | None:
        """The load failed. `refusal` is the server's own answer and goes to those who wait for the same
        text; without one nobody knows what the server did, and the call that removes the text is given."""
        with self._lock:
            loading = self._loading.pop(url)
        loading.done.set_result(refusal)
        return None if refusal is not None else _removal(loading.corpus_id)

    def release(self, url: str, text: str) -> CorpusCall | None:
        """Count one user less; the call that removes the text if that was the last."""
        with self._lock:
            found = self._loaded.get((url, text))
            if found is None:
                return None
            found.users -= 1
            if found.users:
                return None
            del self._loaded[url, text]
        return _removal(found.corpus_id)


def _removal(corpus_id: str) -> CorpusCall:
    return CorpusCall("POST", "/remove_external_corpus", {"corpus_id": corpus_id})
