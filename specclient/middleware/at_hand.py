"""A response whose body has been read and parsed on the way, as nearly every SDK is going to do again."""

from __future__ import annotations

from typing import Any


class AtHand:
    """A response of either family that gives its JSON away once; from then on it is a plain one again.

    Made of a plain one by `hold`. A copy, or what comes out of a pickle, is a plain one too.
    """

    __dict__: dict[str, Any]
    _plain: type

    @classmethod
    def hold(cls, response: Any, value: object) -> None:
        """Let `response` have `value` for what its content says."""
        response.__class__ = cls
        response._value_at_hand = value

    def json(self, **options: Any) -> Any:
        """The content as an object: the one at hand, unless `options` ask for another way of reading it."""
        self.__class__ = self._plain
        value = self.__dict__.pop("_value_at_hand")
        return self.json(**options) if options else value

    def __reduce_ex__(self, protocol: Any) -> Any:
        self.json()
        return self.__reduce_ex__(protocol)
