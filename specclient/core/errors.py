"""Errors out of what a server answered, with nothing secret in them."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from specclient.config.masking import MASK
from specclient.core.http import safe_request
from specclient.core.retry import retry_after
from specclient.core.send import Send
from specclient.errors import APIError, APIStatusError, status_error

_SHOWN = 500
_CUT_FROM = 12
_TEXT_SCRUBBED_FROM = 24
"""Texts of the request of at least this length are taken out of a server's message that quotes them."""

REQUEST_ID_HEADERS = ("x-request-id", "request-id", "apim-request-id", "x-ms-request-id")
_MARKUP = re.compile(r"\s*<")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0e-\x1f]")
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)


class Scrubber:
    """Takes a key, and texts of the request, out of what a server says."""

    def __init__(self, key: str | None, request: Mapping[str, Any] | None = None) -> None:
        self._secrets = _spellings(key) if key and len(key) >= 4 else []
        self._request = request

    def _masked(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return _without_beginning(text, self._secrets[0]) if self._secrets else text

    def message(self, text: str) -> str:
        """A server's sentence, fit to be shown."""
        text = self._masked(text)
        for content in sorted(set(_texts(self._request)), key=len, reverse=True):
            if len(content) >= _TEXT_SCRUBBED_FROM and content in text:
                text = text.replace(content, "[…]")
        return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"

    def value(self, value: Any) -> Any:
        """A JSON value without the key."""
        if isinstance(value, str):
            return self._masked(value)
        if isinstance(value, dict):
            return {self.value(k): self.value(v) for k, v in value.items()}
        return [self.value(item) for item in value] if isinstance(value, list) else value

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {name: self.value(value) for name, value in headers.items()}

    def error(self, error: APIError) -> None:
        """Clean an error that was made from what a server said."""
        error.message = self.message(error.message)
        error.args = (error.message,)
        error.body = self.value(error.body)
        error.code, error.param, error.type = map(self.value, (error.code, error.param, error.type))
        if isinstance(error, APIStatusError):
            error.headers = self.headers(error.headers)


def _spellings(key: str) -> list[str]:
    """The key, and how it looks in a URL, in base64 and in JSON that was put into a string."""
    as_url, as_json = quote(key, safe=""), json.dumps(key)[1:-1]
    encoded = b64encode(key.encode("utf-8", "replace")).decode()
    return list(dict.fromkeys((key, as_url, encoded, as_json, as_json.replace("/", "\\/"))))


def _without_beginning(text: str, key: str) -> str:
    """`text` without the beginning of a key that was cut. The few letters that name its kind stay."""
    shortest = max(_CUT_FROM, len(key) // 2)
    begin = text.find(key[:shortest]) if len(key) > shortest else -1
    while begin >= 0:
        end = begin + shortest
        while end < len(text) and end - begin < len(key) and text[end] == key[end - begin]:
            end += 1
        text = text[:begin] + MASK + text[end:]
        begin = text.find(key[:shortest], begin + len(MASK))
    return text


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def request_id(headers: Mapping[str, str]) -> str | None:
    """The id under which the provider knows the request."""
    return next((headers[name] for name in REQUEST_ID_HEADERS if name in headers), None)


def error_of_status(
    status: int, headers: Mapping[str, str], text: str, send: Send, scrub: Scrubber, provider: str
) -> APIStatusError:
    """The error for a response of status 400 or above (or a redirect that was not followed)."""
    try:
        body: Any = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        body = text
    said = _said(body)
    if isinstance(body, str):
        said = _page(text) if _MARKUP.match(text) else text.strip()
        if _UNPRINTABLE.search(said):
            said = f"{len(text)} characters that are no text"
    if 300 <= status < 400:
        said = f"a redirect to {headers.get('location') or 'nowhere'} that is not followed; correct base_url"
    detail = _detail(body)
    return _status_error(
        status,
        f"{provider} answered {status}: {scrub.message(said) or 'no reason given'}",
        headers=scrub.headers(headers),
        detail=scrub.value(detail),
        body=scrub.value(detail if detail is not None else body),
        response=_response(status, headers, text, send, scrub),
    )


_WORDS = ("message", "msg", "error_msg")
_CODES = ("code", "status", "status_code", "error_code")
_ALL_IS_WELL = (0, 200, "0", "200", "ok", "success")


def error_in(obj: Mapping[str, Any]) -> Any:
    """What an answer's object says of an error, in the forms that servers use inside a 200; else None.

    `{"error": …}`, the same inside a choice (OpenRouter), vLLM's older `{"object": "error", …}`, FastAPI's
    `{"detail": …}`, and a bare message with a code.
    """
    if obj.get("error"):
        return obj["error"]
    choices = obj.get("choices")
    if choices and isinstance(choices, list):
        for choice in choices:
            if (type(choice) is dict or isinstance(choice, Mapping)) and choice.get("error"):
                return choice["error"]
        return None
    if obj.get("object") == "error":
        return obj
    if obj.get("usage") is not None:
        return None
    if obj.get("detail") and isinstance(obj["detail"], str | list):
        return obj
    code = next((obj[name] for name in _CODES if obj.get(name) is not None), 0)
    words = any(obj.get(name) and isinstance(obj[name], str) for name in _WORDS)
    return obj if words and code not in _ALL_IS_WELL else None


def embedded_error(obj: Mapping[str, Any], headers: Mapping[str, str]) -> APIError | None:
    """The error inside a 200 (see `error_in`), else None."""
    detail = error_in(obj)
    if detail is None:
        return None
    said = _said({"error": detail})
    fields = detail if isinstance(detail, dict) else {}
    code = next(
        (
            c
            for c in map(_as_status, (fields.get("code"), fields.get("status"), fields.get("status_code")))
            if c
        ),
        None,
    )
    if code is not None:
        return _status_error(
            code,
            f"The answer holds an error {code}: {said}",
            headers=dict(headers),
            detail=fields,
            body=detail,
        )
    return APIError(f"The answer holds an error: {said}", body=detail, **_names(fields))


def _status_error(
    status: int, message: str, *, headers: Mapping[str, str], detail: Any, body: Any, response: Any = None
) -> APIStatusError:
    fields = detail if isinstance(detail, dict) else {}
    return status_error(status)(
        message,
        status_code=status,
        headers=headers,
        request_id=request_id(headers),
        retry_after=retry_after(headers),
        response=response,
        request=None if response is None else response.request,
        body=body,
        **_names(fields),
    )


def _names(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: None if fields.get(name) is None else str(fields[name]) for name in ("code", "param", "type")
    }


def _as_status(value: Any) -> int | None:
    try:
        number = int(value)
    except (TypeError, ValueError):
        return None
    return number if 400 <= number < 600 else None


def _detail(body: Any) -> Any:
    if isinstance(body, dict):
        return body.get("error", body)
    return None


def _said(body: Any) -> str:
    """The sentence in an error body, from the forms that servers use."""
    if isinstance(body, list):
        return "; ".join(filter(None, map(_said, body)))
    if not isinstance(body, dict):
        return str(body)
    for key in ("error", "message", "detail", "msg", "error_msg"):
        inner = body.get(key)
        if inner:
            where = ".".join(map(str, body["loc"])) + ": " if isinstance(body.get("loc"), list) else ""
            return where + (inner if isinstance(inner, str) else _said(inner))
    return str(body.get("code") or body.get("type") or "")


def _page(text: str) -> str:
    title = _TITLE.search(text)
    name = f" titled {' '.join(title.group(1).split())!r}" if title else ""
    return f"an HTML page{name} instead of JSON; check base_url, or the proxy in between"


def _response(status: int, headers: Mapping[str, str], text: str, send: Send, scrub: Scrubber) -> Any:
    import httpx

    kept = {
        k: v
        for k, v in headers.items()
        if k not in ("content-encoding", "content-length", "transfer-encoding")
    }
    return httpx.Response(
        status, headers=scrub.headers(kept), content=scrub.value(text).encode(), request=safe_request(send)
    )
