"""The request that goes out: the SDK's own, or a copy of it with what was planned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specclient.middleware.family import Family
from specclient.middleware.relay import compact, parsed


def changed(request: Any, family: Family, extra: Mapping[str, str], content: bytes | None) -> Any:
    """A copy with `extra` headers, where the caller has not set them, and with another body (None: its own).

    Made by hand: the constructor would take every header apart again, at a tenth of the call's cost.
    """
    copy = object.__new__(type(request))
    copy.__dict__.update(request.__dict__)
    copy.headers = headers = request.headers.copy()
    for name, value in extra.items():
        headers.setdefault(name, value)
    if content is not None:
        copy._content = content
        copy.stream = family.module.ByteStream(content)
        headers["content-length"] = str(len(content))
    return copy


def rewritten(
    content: bytes, asked: Mapping[str, Any], removed: tuple[str, ...], added: dict[str, Any]
) -> bytes:
    """The JSON of a request with other keys at its first level: every other byte stays where that is sure,
    which costs a fraction of writing all of it anew."""
    left, kept = dict(asked), content
    for key in removed:
        kept = _without(kept, list(left), key)
        del left[key]
    # Read back: what was cut is known by its first letters only.
    if not left or not added.keys().isdisjoint(left) or (removed and parsed(kept) != left):
        return compact(left | added)
    if not added:
        return kept
    end = kept.rindex(b"}")
    return b"%b,%b%b" % (kept[:end], compact(added)[1:-1], kept[end:])


def _without(content: bytes, keys: list[str], key: str) -> bytes:
    """The JSON of an object of these keys without one of them, or nothing where it is not written as SDKs
    write it. What looks like a key may be one further inside."""
    if key == keys[-1]:  # searched from behind, which takes half the time
        begin, end = content.rfind(_name(key)), content.rfind(b"}")
    else:
        begin = content.find(_name(key))
        end = content.find(_name(keys[keys.index(key) + 1]), begin + 1)
    return b"" if begin < 0 or end < 0 else content[:begin] + content[end:]


def _name(key: str) -> bytes:
    return b',"%b":' % key.encode("utf-8", "replace")
