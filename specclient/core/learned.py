"""What live answers taught: which endpoint said no to what, for a bounded time, and which is a gateway."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from specclient.report import Reason


@dataclass(frozen=True, slots=True)
class Refusal:
    """One remembered refusal: `key` is the request field, `until` a reading of the memory's clock."""

    url: str
    model: str
    key: str
    reason: Reason
    until: float


class Learned:
    """Refusals by (endpoint url, model, request field). Thread-safe, bounded in time and in number.

    `ttl` is in seconds; after it the field is tried again, since endpoints do gain features. When
    `limit` entries are held, the one that ends first makes room. Also knows the addresses (scheme, host and
    port) whose last answer was signed by a specclient gateway.
    """

    def __init__(
        self, ttl: float = 3600.0, *, limit: int = 1024, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ttl = ttl
        self._limit = limit
        self._clock = clock
        self._lock = threading.RLock()  # the end of a dropped call may come at any allocation
        self._refusals: dict[tuple[str, str, str], Refusal] = {}
        self._gateways: dict[str, None] = {}

    def heard(self, url: str, *, gateway: bool) -> None:
        """Keep whether the server at `url` signs its answers as a specclient gateway."""
        origin = _origin(url)
        with self._lock:
            self._gateways.pop(origin, None)
            if gateway:
                if len(self._gateways) >= self._limit:
                    del self._gateways[next(iter(self._gateways))]
                self._gateways[origin] = None

    def is_gateway(self, url: str) -> bool:
        """Whether the last answer from `url` was signed so."""
        return bool(self._gateways) and _origin(url) in self._gateways

    @property
    def is_empty(self) -> bool:
        """Whether no refusal at all is held, also none that is too old."""
        return not self._refusals

    def remember(self, url: str, model: str | None, reason: Reason, *, key: str = "prediction") -> None:
        """Keep `reason` for the time to live; a repeated refusal starts it anew."""
        refusal = Refusal(url, model or "", key, reason, self._clock() + self._ttl)
        with self._lock:
            self._refusals.pop((refusal.url, refusal.model, key), None)
            if len(self._refusals) >= self._limit:
                first = min(self._refusals.values(), key=lambda held: held.until)
                del self._refusals[first.url, first.model, first.key]
            self._refusals[refusal.url, refusal.model, key] = refusal

    def refused(self, url: str, model: str | None, *, key: str = "prediction") -> Reason | None:
        """Why the field was refused there, if that is remembered and not too old."""
        if not self._refusals:  # nearly always, and every call asks
            return None
        place = (url, model or "", key)
        with self._lock:
            refusal = self._refusals.get(place)
            if refusal is None:
                return None
            if refusal.until <= self._clock():
                del self._refusals[place]
                return None
            return refusal.reason

    def entries(self) -> tuple[Refusal, ...]:
        """What is remembered now, oldest first."""
        now = self._clock()
        with self._lock:
            return tuple(held for held in self._refusals.values() if held.until > now)

    def clear(self, url: str | None = None, model: str | None = None) -> int:
        """Forget everything, or what one url refused, or one model there; says how many refusals."""
        with self._lock:
            gone = [
                place
                for place in self._refusals
                if url in (None, place[0]) and (model is None or model == place[1])
            ]
            for place in gone:
                del self._refusals[place]
            if url is None:
                self._gateways.clear()
            return len(gone)


def _origin(url: str) -> str:
    return url[: url.find("/", url.find("://") + 3)] if url.count("/") > 2 else url
