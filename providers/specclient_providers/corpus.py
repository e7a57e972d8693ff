"""SGLang's external corpora: loading known text into a server's drafter, and taking it out again.

A corpus is global: every request on that server drafts from it, and timing may tell other tenants what
is in it. So this is opt-in, and a text stays loaded only while a call needs it: `Corpora` counts the
users of each text and says which HTTP calls to make; making them is the caller's part.

    call = corpora.acquire(url, text)       # CorpusCall, or None when it is loaded already
    …
    call = corpora.release(url, text)       # CorpusCall that removes it after its last user, or None
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class CorpusCall:
    """One call to the server, with a path below its root. A status other than 200 means: not loaded."""

    method: str
    path: str
    body: dict[str, Any] = field(repr=False)


class Corpora:
    """How many calls use each loaded text, by server address. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users: dict[tuple[str, str], int] = {}
        self._salt = secrets.token_bytes(16)

    def acquire(self, url: str, text: str) -> CorpusCall | None:
        """Count one more user of `text`; the call that loads it if this is the first."""
        place = (url, self._name(text))
        with self._lock:
            self._users[place] = self._users.get(place, 0) + 1
            if self._users[place] > 1:
                return None
        return CorpusCall("POST", "/add_external_corpus", {"corpus_id": place[1], "documents": [text]})

    def release(self, url: str, text: str) -> CorpusCall | None:
        """Count one user less; the call that removes the text if that was the last."""
        place = (url, self._name(text))
        with self._lock:
            left = self._users.get(place, 0) - 1
            if left < 0:
                return None
            if left:
                self._users[place] = left
                return None
            del self._users[place]
        return CorpusCall("POST", "/remove_external_corpus", {"corpus_id": place[1]})

    def _name(self, text: str) -> str:
        """A corpus id that is this process's own, and from which nobody can tell what the text is."""
        digest = hashlib.blake2b(text.encode(), key=self._salt, digest_size=12)
        return f"specclient-{digest.hexdigest()}"
