"""Which self-hosted server answers at an address, by cheap signs and without sending a prompt.

Pure over the answers of an injected `fetch`: nothing here opens a connection. A proxy that hides every
sign gives `unknown`; nothing is guessed from silence.

    found = detect(lambda method, path: (status, headers, body))     # body: decoded JSON, or text
    facts = resolve(found.provider, base_url=url, overrides=found.overrides)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from specclient_providers import signs
from specclient_providers.endpoint import Endpoint, SpeculationRule
from specclient_providers.registry import get
from specclient_providers.signs import Answer, Found

Fetch = Callable[[str, str], Answer | None]
"""(method, path below the server's root) -> (status, headers, body), or None for no answer."""
AsyncFetch = Callable[[str, str], Awaitable[Answer | None]]


@dataclass(frozen=True, slots=True)
class Detected:
    """What was found at an address.

    `provider` is a name of the registry: a server's, or `openai_compatible` when `server` is "unknown".
    `speculating` and `method` are None where the server does not tell. `works` and `switch_on` are
    sentences; `evidence` names the sign behind each finding. `overrides` is for `resolve`.
    """

    server: str
    provider: str
    version: str | None = None
    models: tuple[str, ...] = ()
    speculating: bool | None = None
    method: str | None = None
    works: tuple[str, ...] = ()
    switch_on: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    overrides: Mapping[str, Any] = field(default_factory=dict)


def detect(fetch: Fetch) -> Detected:
    """Ask the signs one after another until the server is known, then what else it tells."""
    asking = steps()
    try:
        method, path = next(asking)
        while True:
            method, path = asking.send(fetch(method, path))
    except StopIteration as end:
        result: Detected = end.value
        return result


async def adetect(fetch: AsyncFetch) -> Detected:
    """`detect` with an asynchronous `fetch`."""
    asking = steps()
    try:
        method, path = next(asking)
        while True:
            method, path = asking.send(await fetch(method, path))
    except StopIteration as end:
        result: Detected = end.value
        return result


class Detections:
    """Findings by server address, kept for `ttl` seconds. Thread-safe."""

    def __init__(self, ttl: float = 600.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._ttl = ttl
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[float, Detected]] = {}

    def recall(self, url: str) -> Detected | None:
        """What was found at `url`, if that is not too long ago."""
        with self._lock:
            kept = self._kept.get(url)
        return kept[1] if kept is not None and kept[0] > self._clock() else None

    def keep(self, url: str, found: Detected) -> None:
        """Remember a finding."""
        with self._lock:
            self._kept[url] = (self._clock() + self._ttl, found)


def steps() -> Generator[tuple[str, str], Answer | None, Detected]:
    """Detection itself: yields (method, path), is sent the answers, returns the finding."""
    found = Found()
    for method, path, read in signs.IDENTITY:
        read(found, (yield method, path))
        if found.server:
            break
    for method, path, read in signs.DETAILS.get(found.server or "", ()):
        read(found, (yield method, path))
    return _conclude(found)


def _conclude(found: Found) -> Detected:
    if not found.server:
        return Detected(
            server="unknown",
            provider="openai_compatible",
            models=tuple(found.models),
            switch_on=("Say provider = … in the configuration if you know what runs behind this address.",),
            evidence=tuple(found.evidence),
        )
    endpoint = get(found.server)
    server = endpoint.speculation
    from_prompt = found.method in server.prompt_methods if found.method else None
    works: list[str] = []
    if endpoint.prediction:
        works.append("prediction is taken and used")
    elif from_prompt:
        works.append(f"known text in the prompt is drafted by {found.method}")
    elif found.method in server.corpus_methods and found.loads_corpora is not False:
        works.append("known text can be loaded as a draft corpus, for all users of the server")
    works += found.works
    return Detected(
        server=endpoint.title,
        provider=endpoint.name,
        version=found.version,
        models=tuple(found.models),
        speculating=found.speculating,
        method=found.method,
        works=tuple(works),
        switch_on=tuple(_advice(found, server)),
        evidence=tuple(found.evidence),
        overrides=_overrides(found, endpoint),
    )


def _overrides(found: Found, endpoint: Endpoint) -> Mapping[str, Any]:
    """What the finding adds to the facts. A server may know a method that its row does not, and may have no
    room for corpora."""
    if found.method is None:
        return {}
    facts: dict[str, Any] = {"method": found.method}
    known = endpoint.speculation.methods
    if found.method.lower() not in (name.lower() for name in known):
        facts["methods"] = (*known, found.method)
    if found.loads_corpora is False:
        facts["corpus_methods"] = ()
    return {"speculation": facts}


def _advice(found: Found, server: SpeculationRule) -> list[str]:
    advice = list(found.advice)
    if not server.switch_on or (
        found.method and found.method in (*server.prompt_methods, *server.corpus_methods)
    ):
        return advice
    if found.speculating and found.method is None:
        advice.append(
            "It speculates, but does not say how: set speculation.method in the target's overrides."
        )
    else:
        where = "in the prompt" if server.prompt_methods else "that is loaded into it"
        advice.append(f"To draft from known text {where}, start it with {server.switch_on}")
    return advice
