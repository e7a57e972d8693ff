"""What can be wrong with a question to the registry."""

from __future__ import annotations


class UnknownProvider(ValueError):
    """No endpoint has this name; the message names those that are close."""


class OverrideError(ValueError):
    """A correction of the facts is not valid. `key` is the dotted key that is wrong."""

    def __init__(self, message: str, *, key: str) -> None:
        super().__init__(message)
        self.key = key
