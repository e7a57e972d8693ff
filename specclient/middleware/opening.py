"""What a request of a wrapped client becomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specclient.core.plan import build_plan
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
from specclient.middleware.steps import plain_headers
from specclient.middleware.weighing import Weighing
from specclient.prediction import Prediction

_RAW_RESPONSE = "x-stainless-raw-response"
"""What the SDKs that count their retries say of a response that their caller reads: "stream"."""


def opened(request: Any, family: Family, settings: Settings) -> WrappedCall | Local | None:
    """What answers a request: a call over the network, the engine, or (None) nobody here."""
    if request.method != "POST":
        return None
    headers = plain_headers(request.headers)
    if not _is_json(headers) or not _is_at_hand(request, family):
        return None
    retries = retry_count(headers)
    resumed = pending.resume(request, retries)
    if resumed is not None:
        call, waited = resumed
        call.resumed(retries, waited)
        return call
    address = address_of(str(request.url))
    if address is None:
        return None
    asked = parsed(request.content)
    if not isinstance(asked, dict):
        return None
    block = current_block()
    beside = block.prediction if block is not None and asked.get("prediction") is None else None
    prediction = Prediction.of(beside, asked)
    if request.url.scheme == LOCAL or settings.options.provider == LOCAL:
        return Local(asked, prediction, address.api, settings, family, _read_limit(request))
    known = settings.known(address, _name(asked.get("model")))
    plan = build_plan(
        asked,
        facts=known.facts,
        prediction=prediction,
        policy=settings.options.policy,
        learned=settings.learned,
        api=address.api,
        headers=headers,
    )
    if plan.reroute_local:
        return Local(
            asked, plan.prediction, address.api, settings, family, _read_limit(request), plan.reasons
        )
    economist, workload = settings.economist(known), current_workload()
    considered = economist.consider(plan, workload)
    return WrappedCall(
        settings,
        known,
        considered.plan,
        asked,
        request,
        retries,
        Weighing(economist, considered.decision, workload),
        is_read_whole=retries is not None and headers.get(_RAW_RESPONSE) != "stream",
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
    return model.encode("utf-8", "replace").decode() if isinstance(model, str) else None


def _read_limit(request: Any) -> float | None:
    limit: float | None = request.extensions.get("timeout", {}).get("read")
    return limit


def _is_json(headers: Mapping[str, str]) -> bool:
    return (
        headers.get("content-type", "").startswith("application/json") and "content-encoding" not in headers
    )
