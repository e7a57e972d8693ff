"""Errors of the engine.

EngineError
├─ ModelNotFound        no source has the model, or the path is not one
│  └─ ModelUnreachable  a source that may have it could not be reached, or broke off
├─ ModelCorrupt         the bytes are not the publisher's, or the file cannot be read as a model
├─ NotEnoughDisk        the download or the conversion does not fit
├─ CacheUnusable        the cache of models has no folder, or one that cannot be written to
├─ NotEnoughMemory      weights, cache or workspace do not fit; carries the figures
├─ ContextTooLong       the prompt leaves no room for an answer; carries the figures
├─ UnsupportedRequest   the engine cannot do what was asked, and will not pretend
└─ EngineClosed         the engine was closed while the request was waiting or running

Each message is one sentence that says what happened, where, and how to mend it.
"""

from __future__ import annotations


class EngineError(Exception):
    """Base of everything the engine raises on purpose."""


class ModelNotFound(EngineError):
    """No source has the model, or the path does not lead to one."""


class ModelUnreachable(ModelNotFound):
    """A source that may have the model could not be reached, or broke off: it may be had another time."""


class ModelCorrupt(EngineError):
    """The bytes are not those the publisher signed for, or are not a model at all."""


class NotEnoughDisk(EngineError):
    """The download or the conversion does not fit on the disk."""


class CacheUnusable(EngineError):
    """The cache of models has no folder, or one that cannot be written to."""


class NotEnoughMemory(EngineError):
    """Weights, cache or workspace do not fit into memory."""


class ContextTooLong(EngineError):
    """The prompt does not leave room for an answer in the model's context."""


class UnsupportedRequest(EngineError):
    """The engine cannot do what was asked."""


class EngineClosed(EngineError):
    """The engine was closed while the request was waiting or running."""
