"""What a request of a wrapped client becomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specclient.economics.workload import current_workload
from specclient.middleware import pending
from specclient.middleware.call import WrappedCall
from specclient.middleware.context import current_block
from specclient.middleware.endpoints import LOCAL, address_of
from specclient.middleware.family import Family
from specclient.middleware.local import Local
from specclient.middleware.relay import parsed
from specclient.middleware.sdk_retries import retry_count
from specclient.middleware.settings import Settings
from specclient.middleware.tries import Asked
from specclient.prediction import Prediction

_RAW_RESPONSE = b"x-stainless-raw-response"
"""What the SDKs that count their retries say of a response that their caller reads: "stream"."""


def opened(request: Any, family: Family, settings: Settings) -> WrappedCall | Local | None:
    """What answers a request: a call over the network, the engine, or (None) nobody here."""
    if request.method != "POST":
        return None
    headers = family.headers(request.headers)
    if not _is_json(headers) or not _is_at_hand(request, family):
        return None
    retries = retry_count(headers)
    if pending.parked() is not None and (resumed := pending.resume(request, retries)) is not None:
        call, waited = resumed
        assert isinstance(call, WrappedCall)
        call.resumed(retries, waited)
        return call
    url = str(request.url)
    address = address_of(url)
    if address is None:
        return None
    content: bytes = request.content
    asked = parsed(content)
    if not isinstance(asked, dict):
        return None
    block = current_block()
    given = block.prediction if block is not None and asked.get("prediction") is None else None
    beside = None if given is None else Prediction.of(given, asked)
    if address.is_local or settings.options.provider == LOCAL:
        return Local(asked, beside, address.api, settings, family, _read_limit(request))
    place = settings.place_of(url, address, _name(asked.get("model")))
    workload = current_workload()
    decided, plan = place.decided(asked, headers, beside, workload)
    if plan is not None and plan.reroute_local:
        return Local(
            asked, plan.prediction, address.api, settings, family, _read_limit(request), plan.reasons
        )
    return WrappedCall(
        settings,
        place,
        Asked(request, asked, content, block, workload),
        decided,
        plan,
        retries,
        is_read_whole=retries is not None and headers.get(_RAW_RESPONSE) != b"stream",
    )


def _is_at_hand(request: Any, family: Family) -> bool:
    """Whether the request's body is there as a whole: one that is uploaded piece by piece is left alone.

    The client's own copy for a redirect has the body, but has not been told so.
    """
    if not hasattr(request, "_content"):
        if not isinstance(request.stream, family.module.ByteStream):
            return False
        request.read()
    return True


def _name(model: object) -> str | None:
    """The model's name as reports and telemetry can show it: without halves of characters."""
    if not isinstance(model, str):
        return None
    return model if model.isascii() else model.encode("utf-8", "replace").decode()


def _read_limit(request: Any) -> float | None:
    limit: float | None = request.extensions.get("timeout", {}).get("read")
    return limit


def _is_json(headers: Mapping[bytes, bytes]) -> bool:
    kind = headers.get(b"content-type", b"")
    return kind.startswith(b"application/json") and b"content-encoding" not in headers
