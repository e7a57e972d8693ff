"""The engines of this process: one for each model and set of options, loaded once, shared by all clients."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from specclient.errors import APIConnectionError, BadRequestError, ConfigError

_lock = threading.Lock()
_loading: dict[tuple[Any, ...], threading.Lock] = {}
_engines: dict[tuple[Any, ...], Any] = {}
_process: int | None = None
"""The process whose threads an engine uses: a fork has the libraries' state, but not the threads."""
_progress: Callable[[Any], None] | None = None
LIBRARIES = ("torch", "transformers", "tokenizers", "safetensors", "numpy", "gguf", "jinja2", "filelock")
"""What is imported to fetch, convert and run a model."""


def on_progress(callback: Callable[[Any], None] | None) -> None:
    """Show the progress of downloads, conversions and loading from now on (`specclient_engine.Progress`)."""
    global _progress
    _progress = callback


def shared(model: str, options: Mapping[str, Any]) -> Any:
    """The engine for a model; two callers that need the same one wait for one loading.

    Raises ConfigError when the engine is not installed, or the model cannot be found, read or fitted, and
    in a fork of a process that had an engine.
    """
    used_here()
    key = _key(model, options)
    with _lock:
        if key in _engines:
            return _engines[key]
        gate = _loading.setdefault(key, threading.Lock())
    with gate:
        with _lock:
            if key in _engines:
                return _engines[key]
        engine = _load(model, options)
        with _lock:
            _engines[key] = engine
        return engine


def used_here() -> None:
    """An engine runs in this process, or is about to.

    Raises ConfigError in a fork of a process where one ran: OpenMP would wait for ever for threads that
    only the parent has. Asked before any lock is taken, because a thread of the parent may have held it.
    """
    global _process
    _process = _process or os.getpid()
    if _process != os.getpid():
        raise ConfigError(
            "The embedded engine cannot run in a fork of a process that has used one: start this process "
            "with multiprocessing.get_context('spawn'), or load the engine only after the fork."
        )


def is_loaded(model: str, options: Mapping[str, Any]) -> bool:
    """Whether the next call for the model finds its engine ready."""
    with _lock:
        return _key(model, options) in _engines


def is_known(model: str) -> bool:
    """Whether the engine knows a model by this name; a path or a hub id is no such name."""
    try:
        from specclient_engine.models import known_model
    except ImportError:  # the engine's libraries are not installed
        return False
    return known_model(model) is not None


def close_all() -> None:
    """Close every engine of this process; the next call loads anew."""
    with _lock:
        engines = [engine for key, engine in _engines.items() if key[0] == os.getpid()]
        _engines.clear()
    for engine in engines:
        engine.close()


def _key(model: str, options: Mapping[str, Any]) -> tuple[Any, ...]:
    return (os.getpid(), model, *sorted(options.items()))


def _load(model: str, options: Mapping[str, Any]) -> Any:
    with made_ready():
        from specclient_engine import Engine

        return Engine.load(model, progress=_progress, **options)


@contextmanager
def made_ready() -> Iterator[None]:
    """What stops a model from being fetched, converted or loaded, as a ConfigError in one sentence."""
    try:
        yield
    except ImportError as error:
        raise ConfigError(lacking(error)) from None
    except (OSError, RuntimeError) as error:
        said = unusable(error)
        if said is None:
            raise
        raise ConfigError(said) from error
    except Exception as error:
        # What can be imported without the engine's libraries is asked only where something went wrong.
        from specclient_engine.errors import EngineError

        if not isinstance(error, EngineError):
            raise
        raise ConfigError(str(error)) from error


def check_installed() -> None:
    """Raises ConfigError where a library of the engine is not installed; none of them is imported."""
    for name in LIBRARIES:
        if find_spec(name) is None:
            raise ConfigError(lacking(ModuleNotFoundError(name=name)))


def lacking(error: ImportError) -> str:
    """The sentence for a library of the engine that is not there, or cannot be imported."""
    missing = isinstance(error, ModuleNotFoundError) and error.name
    return (
        f"Provider 'local' needs the embedded engine's libraries "
        f"({f'{error.name} is missing' if missing else str(error).rstrip('.') or 'one cannot be imported'}): "
        f"pip install 'specclient[local]'."
    )


def unusable(error: OSError | RuntimeError) -> str | None:
    """The sentence for a file or folder that cannot be used; None for what is no error of that kind.

    pathlib tells by a RuntimeError that there is no home directory.
    """
    if not isinstance(error, OSError):
        if "home directory" not in str(error):
            return None
        return "There is no home directory where a path begins with one (~): write it whole, or set HOME."
    reason = (error.strerror or type(error).__name__).rstrip(".")
    if error.filename is None:
        return f"The embedded engine cannot be made ready: {reason}."
    place, root = Path(os.fsdecode(error.filename)), _cache()
    if root is not None and (place.is_relative_to(root) or root.is_relative_to(place)):
        return (
            f"The engine's cache {root} cannot be used ({place}: {reason}): make it a folder that you may "
            f"write to, or set SPECCLIENT_CACHE to one."
        )
    return f"{place} cannot be used: {reason}."


def _cache() -> Path | None:
    from specclient_engine.errors import CacheUnusable
    from specclient_engine.models import cache_root

    try:
        return cache_root()
    except (CacheUnusable, RuntimeError):
        return None


@contextmanager
def translated() -> Iterator[None]:
    """The engine's errors as the client's: what cannot be asked is a 400, what broke is a lost connection."""
    from specclient_engine.errors import ContextTooLong, EngineError, NotEnoughMemory, UnsupportedRequest

    try:
        yield
    except ContextTooLong as error:
        raise BadRequestError(str(error), status_code=400, code="context_length_exceeded") from error
    except UnsupportedRequest as error:
        raise BadRequestError(str(error), status_code=400, code="unsupported") from error
    except NotEnoughMemory as error:
        raise BadRequestError(str(error), status_code=400, code="not_enough_memory") from error
    except EngineError as error:
        raise APIConnectionError(f"The embedded engine failed: {error}") from error
