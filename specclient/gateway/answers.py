"""Answers in OpenAI's shape: errors, bodies and events."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from specclient.errors import (
    APIConnectionError,
    APIError,
    APIStatusError,
    APITimeoutError,
    ConfigError,
    PredictionRefusedError,
    SpecclientError,
)
from specclient.report import Report

KEY = "specclient"


@dataclass(frozen=True, slots=True)
class Problem:
    """An error that the client of this server gets. `retry_after` is in seconds."""

    status: int
    message: str
    kind: str = "invalid_request_error"
    code: str | None = None
    param: str | None = None
    retry_after: float | None = None
    report: Report | None = None

    @property
    def body(self) -> dict[str, Any]:
        error = {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}
        return with_report({"error": error}, self.report)


def with_report(value: Mapping[str, Any], report: Report | None) -> dict[str, Any]:
    """An answer with the report as one more key; one that another gateway put there is replaced."""
    if report is None:
        return dict(value)
    return {**value, KEY: report.model_dump(mode="json", exclude_none=True)}


def encoded(value: Mapping[str, Any]) -> bytes:
    """As JSON that every reader takes: half a surrogate pair is escaped, and what is no number is null."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:
        return json.dumps(_finite(value), separators=(",", ":")).encode()
    except ValueError:
        return encoded(_finite(value))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def event(value: Mapping[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + encoded(value) + b"\n\n"


def json_response(
    value: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(encoded(value), status, dict(headers or {}), media_type="application/json")


def problem_response(problem: Problem) -> Response:
    headers = {}
    if problem.retry_after is not None:
        headers["retry-after"] = f"{problem.retry_after:g}"
    return json_response(problem.body, problem.status, headers)


def problem_of(error: SpecclientError) -> Problem:
    """What went wrong at the target, as this server's own error.

    A key that the target refuses is not the client's: a 401 would send its owner looking in the wrong place.
    """
    report = error.report
    if isinstance(error, PredictionRefusedError):
        return Problem(400, str(error), code="prediction_refused", param="prediction", report=report)
    if isinstance(error, APIStatusError):
        status = error.status_code
        if status in (401, 403):
            return Problem(
                502, f"The target refused its key: {error.message}", "upstream_error", report=report
            )
        if not 400 <= status <= 599:  # a redirect, or no status at all: nothing that a client can act upon
            return Problem(502, error.message, "upstream_error", error.code, report=report)
        return Problem(
            status,
            error.message,
            error.type or ("server_error" if status >= 500 else "invalid_request_error"),
            error.code,
            error.param,
            error.retry_after,
            report,
        )
    if isinstance(error, APITimeoutError):
        return Problem(504, error.message, "timeout_error", error.limit, report=report)
    if isinstance(error, APIConnectionError | APIError):
        return Problem(502, error.message, "upstream_error", error.code, report=report)
    if isinstance(error, ConfigError):
        return Problem(400, str(error), code="configuration")
    return Problem(500, f"The request failed: {type(error).__name__}.", "server_error")
