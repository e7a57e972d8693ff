"""One `prediction` argument for every LLM endpoint, and the truth about what it did.

client = specclient.Client(target="prod")        # or provider=, model=, base_url=, api_key=
answer = client.chat.completions.create(messages=[…], prediction=known_text)
answer.specclient.prediction.outcome             # forwarded, local, via_prompt, withheld, …
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from specclient._version import __version__

if TYPE_CHECKING:
    from specclient import gateway as gateway
    from specclient.client import DEFAULT_MAX_RETRIES as DEFAULT_MAX_RETRIES
    from specclient.client import DEFAULT_TIMEOUT as DEFAULT_TIMEOUT
    from specclient.client import NOT_GIVEN as NOT_GIVEN
    from specclient.client import AsyncClient as AsyncClient
    from specclient.client import AsyncOpenAI as AsyncOpenAI
    from specclient.client import AsyncStream as AsyncStream
    from specclient.client import Client as Client
    from specclient.client import NotGiven as NotGiven
    from specclient.client import Omit as Omit
    from specclient.client import OpenAI as OpenAI
    from specclient.client import Stream as Stream
    from specclient.client import not_given as not_given
    from specclient.client import omit as omit
    from specclient.config import Target as Target
    from specclient.config import Timeout as Timeout
    from specclient.config import load_config as load_config
    from specclient.dry_run import plan as plan
    from specclient.economics import workload as workload
    from specclient.edit import FileEdit as FileEdit
    from specclient.errors import APIConnectionError as APIConnectionError
    from specclient.errors import APIError as APIError
    from specclient.errors import APIResponseValidationError as APIResponseValidationError
    from specclient.errors import APIStatusError as APIStatusError
    from specclient.errors import APITimeoutError as APITimeoutError
    from specclient.errors import AuthenticationError as AuthenticationError
    from specclient.errors import BadRequestError as BadRequestError
    from specclient.errors import ConfigError as ConfigError
    from specclient.errors import ConflictError as ConflictError
    from specclient.errors import EditRefused as EditRefused
    from specclient.errors import FileError as FileError
    from specclient.errors import IncompleteOutput as IncompleteOutput
    from specclient.errors import IncompleteStreamError as IncompleteStreamError
    from specclient.errors import InternalServerError as InternalServerError
    from specclient.errors import NotFoundError as NotFoundError
    from specclient.errors import OpenAIError as OpenAIError
    from specclient.errors import PermissionDeniedError as PermissionDeniedError
    from specclient.errors import PredictionRefusedError as PredictionRefusedError
    from specclient.errors import RateLimitError as RateLimitError
    from specclient.errors import SpecclientError as SpecclientError
    from specclient.errors import UnprocessableEntityError as UnprocessableEntityError
    from specclient.errors import WriteFailed as WriteFailed
    from specclient.facts import capabilities as capabilities
    from specclient.middleware import last_report as last_report
    from specclient.middleware import predicting as predicting
    from specclient.middleware import report_of as report_of
    from specclient.middleware import unwrap as unwrap
    from specclient.middleware import wrap as wrap
    from specclient.prediction import Prediction as Prediction
    from specclient.report import Report as Report
    from specclient.tracing import TracingOptions as TracingOptions

_ROOMS = {
    "facts": "capabilities",
    "client": "DEFAULT_MAX_RETRIES DEFAULT_TIMEOUT NOT_GIVEN AsyncClient AsyncOpenAI AsyncStream Client "
    "NotGiven Omit OpenAI Stream not_given omit",
    "config": "Target Timeout load_config",
    "dry_run": "plan",
    "economics": "workload",
    "edit": "FileEdit",
    "errors": "APIConnectionError APIError APIResponseValidationError APIStatusError APITimeoutError "
    "AuthenticationError BadRequestError ConfigError ConflictError EditRefused FileError IncompleteOutput "
    "IncompleteStreamError InternalServerError NotFoundError OpenAIError PermissionDeniedError "
    "PredictionRefusedError RateLimitError SpecclientError UnprocessableEntityError WriteFailed",
    "middleware": "last_report predicting report_of unwrap wrap",
    "prediction": "Prediction",
    "report": "Report",
    "tracing": "TracingOptions",
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names.split()}
_MODULES = (*_ROOMS, "gateway")
"""Rooms whose names are reached with the room's too, as `specclient.gateway.create_app`."""

__all__ = ["__version__", *sorted(_HOME)]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    """A public name or a room, at first use: `import specclient` itself loads next to nothing."""
    if name in _MODULES and name not in _HOME:
        return importlib.import_module(f"specclient.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'specclient' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"specclient.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_HOME]
