"""What travels beside a call: the known text on the way in, the report on the way out.

Both are context variables. A task started inside `predicting` sees the text; a thread does not, unless
the context is handed over (`asyncio.to_thread` does, a bare `threading.Thread` does not), so that two
threads never see each other's text.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from threading import RLock
from typing import Any

from pydantic import ValidationError

from specclient.middleware.late import LateReport
from specclient.prediction import PredictionLike
from specclient.report import Report

KEY = "specclient"
RECENT = 256
"""Reports kept by answer id, for the SDKs whose objects drop fields that they do not know."""


class Block:
    """An open `predicting` block."""

    def __init__(self, prediction: PredictionLike | None) -> None:
        self.prediction = prediction
        self._reports: deque[LateReport] = deque(maxlen=RECENT)

    @property
    def reports(self) -> list[Report]:
        """Of the calls begun in the block that have ended, in any task or thread: the last 256 at most."""
        return [late.report for late in self._reports]


_block: ContextVar[Block | None] = ContextVar("specclient_predicting", default=None)
current_block = _block.get
"""The innermost `predicting` block."""

_last_report: ContextVar[LateReport | None] = ContextVar("specclient_last_report", default=None)
_recent: OrderedDict[str, LateReport] = OrderedDict()
_recent_lock = RLock()  # the end of a dropped call may come at any allocation


@contextmanager
def predicting(prediction: PredictionLike | None) -> Iterator[Block]:
    """Give the calls inside the block a prediction, for SDKs whose methods have no such parameter.

        with specclient.predicting(known_text) as block:
            groq_client.chat.completions.create(model=…, messages=…)
        block.reports[-1].prediction.outcome

    Takes what `prediction=` takes. A call's own `prediction` wins; `predicting(None)` hides an outer block.
    The block collects its calls' reports, also where a framework makes them in tasks of its own.
    """
    block = Block(prediction)
    token = _block.set(block)
    try:
        yield block
    finally:
        _block.reset(token)


def last_report() -> Report | None:
    """The report of the last call that ended in this thread or task, through a wrapped SDK."""
    late = _last_report.get()
    return None if late is None else late.report


def remember(report: LateReport, answer_id: str | None, block: Block | None) -> None:
    """Make a report findable by `last_report`, by its answer's id, and in the block its call began in."""
    _last_report.set(report)
    if block is not None:
        block._reports.append(report)
    if answer_id:
        with _recent_lock:
            _recent[answer_id] = report
            while len(_recent) > RECENT:
                _recent.popitem(last=False)


def report_of(answer: Any) -> Report | None:
    """The report that belongs to an SDK's response, raw response or stream chunk; None where it has none.

    Looks for the field `specclient` (SDKs that keep unknown fields), then in the HTTP response (raw
    responses and streams), then among the last 256 answers by id (SDKs that drop unknown fields).
    """
    if isinstance(answer, Report):
        return answer
    value = answer.get(KEY) if isinstance(answer, Mapping) else getattr(answer, KEY, None)
    if isinstance(value, Report):
        return value
    if isinstance(value, Mapping):
        try:
            return Report.model_validate(value)
        except ValidationError:
            return None
    for name in ("http_response", "response"):
        extensions = getattr(getattr(answer, name, None), "extensions", None)
        if isinstance(extensions, dict) and isinstance(late := extensions.get(KEY), LateReport):
            return late.report
    answer_id = getattr(getattr(answer, "data", answer), "id", None)
    with _recent_lock:
        recent = _recent.get(answer_id) if isinstance(answer_id, str) else None
    return None if recent is None else recent.report
