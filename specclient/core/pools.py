"""Connection pools: made at first use, none shared by a fork, and small enough to be quick.

httpcore's pool looks at every connection for every request, and for every idle one at every other: with a
thousand streams that is most of the time spent. An origin therefore has several pools of at most
`SHARD` connections. A request takes the first that has room, so that few streams share few connections,
and a pool that stood empty for a while is closed.
"""

from __future__ import annotations

import os
import ssl
import threading
import time
import urllib.request
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any
from urllib.parse import unquote, urlsplit

import httpcore

from specclient.core.send import Connect
from specclient.errors import ConfigError

SHARD = 16
KEEPALIVE_SECONDS = 5.0
_PROXY_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


def proxy_for(url: str, configured: str | None) -> str | None:
    """The proxy for an address: the configured one, else the environment's, with its exceptions."""
    if configured is not None:
        return configured
    parts = urlsplit(url)
    host = parts.hostname or ""
    if urllib.request.proxy_bypass(host):
        return None
    proxies = urllib.request.getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


@dataclass(slots=True)
class Shard:
    """One pool, and how many requests are on their way in it."""

    pool: Any
    size: int
    in_use: int = 0
    empty_since: float = 0.0


_everywhere: weakref.WeakSet[Pools] = weakref.WeakSet()


def _unlock_in_child() -> None:
    """A thread that the fork did not bring along may have held a lock, and will never give it back."""
    for pools in _everywhere:
        pools.unlock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_in_child)


class Pools:
    """The pools of one transport, by origin. Safe from several threads."""

    def __init__(self, connect: Connect, make: Callable[..., Any]) -> None:
        self._connect = connect
        self._make = make
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._origins: dict[tuple[str, str], list[Shard]] = {}
        self._ssl: ssl.SSLContext | None = None
        _everywhere.add(self)

    def unlock(self) -> None:
        """In a new process: nobody but its one thread is at work here."""
        self._lock = threading.Lock()

    def acquire(self, url: str) -> tuple[Shard, list[Any]]:
        """A place for one request, to be released; and the pools to close, which stood empty too long.

        After a fork the parent's sockets are left alone and new ones opened.
        """
        parts = urlsplit(url)
        with self._lock:
            if self._pid != os.getpid():
                self._pid = os.getpid()
                self._origins = {}
            shards = self._origins.setdefault((parts.scheme, parts.netloc), [])
            if len(shards) == 1 and shards[0].in_use < shards[0].size:
                shards[0].in_use += 1
                return shards[0], []
            gone = _outdated(shards)
            shard = next((shard for shard in shards if shard.in_use < shard.size), None)
            if shard is None:
                room = self._connect.max_connections - sum(shard.size for shard in shards)
                if room > 0:
                    size = min(SHARD, room)
                    shard = Shard(self._make(**self._options(url, size)), size)
                    shards.append(shard)
                else:  # all are full: wait where the queue is shortest
                    shard = min(shards, key=lambda shard: shard.in_use / shard.size)
            shard.in_use += 1
            return shard, gone

    def release(self, shard: Shard) -> None:
        """The request is over."""
        with self._lock:
            shard.in_use -= 1
            if not shard.in_use:
                shard.empty_since = time.monotonic()

    def take(self) -> list[Any]:
        """All pools, for closing; the next use makes new ones."""
        with self._lock:
            pools = [shard.pool for shards in self._origins.values() for shard in shards]
            self._origins = {}
            return pools if self._pid == os.getpid() else []

    def _options(self, url: str, size: int) -> dict[str, Any]:
        options: dict[str, Any] = {
            "max_connections": size,
            "max_keepalive_connections": size,
            "keepalive_expiry": KEEPALIVE_SECONDS,
        }
        proxy = proxy_for(url, self._connect.proxy)
        if url.startswith("https:") or (proxy or "").startswith("https:"):
            self._ssl = self._ssl or self._connect.ssl_context()
            options["ssl_context"] = self._ssl
        if proxy:
            options["proxy"] = _through(proxy, self._ssl)
        return options


def _through(proxy: str, secured: ssl.SSLContext | None) -> httpcore.Proxy:
    """A proxy by its address, which may hold a user and a password. Raises ConfigError."""
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    if parts.scheme not in _PROXY_PORTS:
        raise ConfigError(f"A proxy of the kind {parts.scheme}:// cannot be used; see proxy, HTTPS_PROXY.")
    if parts.scheme.startswith("socks") and find_spec("socksio") is None:
        raise ConfigError("A SOCKS proxy needs one more package: pip install 'httpcore[socks]'.")
    host = parts.netloc.rpartition("@")[2].rstrip(":")
    if parts.port is None:
        host = f"{host}:{_PROXY_PORTS[parts.scheme]}"
    return httpcore.Proxy(
        f"{parts.scheme}://{host}",
        auth=(unquote(parts.username), unquote(parts.password or "")) if parts.username else None,
        ssl_context=secured if parts.scheme == "https" else None,
    )


def _outdated(shards: list[Shard]) -> list[Any]:
    """Take out the pools, but for the first, that have been empty for longer than connections are kept."""
    before = time.monotonic() - KEEPALIVE_SECONDS
    old = [shard for shard in shards[1:] if not shard.in_use and shard.empty_since < before]
    for shard in old:
        shards.remove(shard)
    return [shard.pool for shard in old]
