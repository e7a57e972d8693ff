"""Errors, with the names and attributes that users of the OpenAI SDK already catch.

SpecclientError (alias OpenAIError)
├─ ConfigError                        the configuration or the arguments are wrong; nothing was sent
├─ FileError                          a file cannot be edited, read or written
│  ├─ IncompleteOutput                the answer was cut off; the file is untouched, `.partial` has the text
│  ├─ EditRefused                     the answer does not look like the file; it is untouched, `.edit` has all
│  └─ WriteFailed                     the file could not be replaced and is as it was; `.edit` has all
└─ APIError
   ├─ APIConnectionError              no answer came
   │  ├─ APITimeoutError              a limit ran out: `.limit` says which
   │  └─ IncompleteStreamError        the stream ended without saying so; `.partial` has the text
   ├─ APIResponseValidationError      an answer came that is none
   ├─ PredictionRefusedError          policy says error, and the endpoint cannot take the prediction
   └─ APIStatusError                  `.status_code`, `.request_id`, `.response`, `.body`
      ├─ BadRequestError 400  AuthenticationError 401  PermissionDeniedError 403  NotFoundError 404
      ├─ ConflictError 409  UnprocessableEntityError 422  RateLimitError 429
      └─ InternalServerError 5xx

A message is one sentence: what happened, where it came from, how to mend it. No message, repr or
attribute that is printed by default holds a key, a prompt or a prediction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from specclient.edit.result import FileEdit
    from specclient.report import Report


class SpecclientError(Exception):
    """Base of everything specclient raises on purpose. `report` is set where a call had begun."""

    report: Report | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and pickled with all attributes: most errors take more than their message."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(
    kind: type[SpecclientError], args: tuple[Any, ...], attributes: dict[str, Any]
) -> SpecclientError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(attributes)
    return error


OpenAIError = SpecclientError


class ConfigError(SpecclientError):
    """The configuration or the arguments are wrong; nothing was sent."""


class FileError(SpecclientError):
    """A file cannot be edited, read or written."""


class IncompleteOutput(FileError):
    """The answer was cut off, so the file was left alone. `partial` holds what came."""

    def __init__(self, message: str, *, partial: str) -> None:
        super().__init__(message)
        self.partial = partial


class EditRefused(FileError):
    """The answer does not look like the whole file, so the file was left alone. `edit` is the FileEdit."""

    def __init__(self, message: str, *, edit: FileEdit) -> None:
        super().__init__(message)
        self.edit = edit


class WriteFailed(FileError):
    """A file could not be written and is as it was. `edit` is the FileEdit that was to be written."""

    def __init__(self, message: str, *, edit: FileEdit) -> None:
        super().__init__(message)
        self.edit = edit


class APIError(SpecclientError):
    """The endpoint answered with an error, or did not answer.

    `partial` is the text received before the fault ("" when none), `body` the decoded error body.
    """

    def __init__(
        self,
        message: str,
        *,
        body: object | None = None,
        code: str | None = None,
        param: str | None = None,
        type: str | None = None,
        partial: str = "",
        request: Any = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.body = body
        self.code = code
        self.param = param
        self.type = type
        self.partial = partial
        self.request = request


class APIConnectionError(APIError):
    """No answer came: the connection failed, or broke."""


class APITimeoutError(APIConnectionError):
    """A limit ran out: `limit` is connect, write, pool, first_byte, first_content, content_idle or total."""

    def __init__(self, message: str, *, limit: str | None = None, **rest: Any) -> None:
        super().__init__(message, **rest)
        self.limit = limit


class IncompleteStreamError(APIConnectionError):
    """The stream ended without a terminal event; `partial` holds the text that came."""


class APIResponseValidationError(APIError):
    """An answer came that cannot be read as one."""


class PredictionRefusedError(APIError):
    """`on_unsupported="error"`, and the endpoint cannot take the prediction."""


class APIStatusError(APIError):
    """The endpoint answered with a status of 400 or above."""

    def __init__(
        self,
        message: str,
        *,
        status_code: int,
        headers: Mapping[str, str] | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        response: Any = None,
        **rest: Any,
    ) -> None:
        super().__init__(message, **rest)
        self.status_code = status_code
        self.headers = dict(headers or {})
        self.request_id = request_id
        self.retry_after = retry_after
        self.response = response


class BadRequestError(APIStatusError):
    """400."""


class AuthenticationError(APIStatusError):
    """401."""


class PermissionDeniedError(APIStatusError):
    """403."""


class NotFoundError(APIStatusError):
    """404."""


class ConflictError(APIStatusError):
    """409."""


class UnprocessableEntityError(APIStatusError):
    """422."""


class RateLimitError(APIStatusError):
    """429."""


class InternalServerError(APIStatusError):
    """500 and above."""


STATUS_ERRORS: dict[int, type[APIStatusError]] = {
    400: BadRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    422: UnprocessableEntityError,
    429: RateLimitError,
}


def status_error(status: int) -> type[APIStatusError]:
    """The most specific class for a status."""
    return STATUS_ERRORS.get(status, InternalServerError if status >= 500 else APIStatusError)
