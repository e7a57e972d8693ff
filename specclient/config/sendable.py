"""What can go out: addresses and values of headers, which no sentence quotes, for they may hold secrets."""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

_BLANK = re.compile(r"[\x00-\x20\x7f]")
_UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def fault_in_address(address: str) -> str | None:
    """What is wrong with an address as such, or None. Its port is looked at by whoever connects to it."""
    address = address.strip()
    if _BLANK.search(address):
        return "holds a blank or a control character, which no address can"
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:
        return "is no address: its host cannot be read; an IPv6 address stands in [brackets]"
    if address.isascii():
        return None
    if host.isascii():
        return f"holds characters that no address can: write them as {quote('é')} is written for é"
    as_sent = _in_ascii(host)
    if as_sent is None:
        return "is no address: its host has characters that no host's name can"
    return f"has a host whose name is not ASCII: write it as it is looked up, {as_sent}"


def _in_ascii(host: str) -> str | None:
    """A host's name in the letters of DNS (RFC 5891), as httpx writes it; None for what is no name."""
    import idna

    try:
        return idna.encode(host.lower(), uts46=True).decode("ascii")
    except idna.IDNAError:
        return None


def fault_in_header_value(value: str) -> str | None:
    """What is wrong with the value of a header, or None."""
    if _UNSENDABLE.search(value) or value != value.strip():
        return "holds a line break, or blanks at its ends"
    try:
        value.encode("latin-1")
    except UnicodeEncodeError:
        return "holds a character that no header can"
    return None
