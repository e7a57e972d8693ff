"""One call of a wrapped SDK, from its first try to its one end."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping, MutableMapping
from typing import Any

from specclient import tracing
from specclient.core.errors import error_in
from specclient.core.plan import Plan
from specclient.core.shaping import LENGTH_KEYS
from specclient.core.stamps import NANOSECONDS
from specclient.core.timeline import Timeline
from specclient.middleware import context, pending
from specclient.middleware.account import (
    Answer,
    IncompleteStream,
    NoAnswer,
    NotJson,
    StatusError,
    Tried,
    report_on,
)
from specclient.middleware.family import Family
from specclient.middleware.gateway_report import set_aside
from specclient.middleware.known import Known
from specclient.middleware.late import LateReport
from specclient.middleware.relay import AskAgain, compact, parsed, spliced
from specclient.middleware.sdk_retries import LONGEST_BACKOFF, is_redirect, will_retry
from specclient.middleware.settings import Settings
from specclient.middleware.steps import plain_headers
from specclient.middleware.weighing import Weighing
from specclient.report import Reason

log = logging.getLogger("specclient.middleware")


class WrappedCall:
    """What is known of a call, and the listener of its stream. `end` is its one way out."""

    def __init__(
        self,
        settings: Settings,
        known: Known,
        plan: Plan,
        asked: dict[str, Any],
        request: Any,
        retries: int | None,
        weighing: Weighing,
        is_read_whole: bool,
    ) -> None:
        self.settings = settings
        self.known = known
        self.plan = plan
        self.streamed = bool(asked.get("stream"))
        self.end = tracing.Finaliser(self._settle)
        self.extensions: MutableMapping[str, Any] | None = None
        """Those of the response that the SDK holds: the report is put there for objects without room."""
        self.report: LateReport | None = None
        self.is_read_whole = is_read_whole
        """Whether the SDK is known to read an answer that is not streamed as a whole, and at once."""
        self._weighing = weighing
        self._asked = asked
        self._request = request
        self._block = context.current_block()
        self._downgraded = False
        self._begun = False
        """Whether anything of an answer's body has been looked at: from then on the SDK cannot try again."""
        self._retries = retries
        self._tried: list[Tried] = []
        self.timeline = Timeline()
        self._answer = Answer(known.reader())
        self._notable = known.notable(plan.hidden)
        self._hides_usage = "include_usage" in plan.hidden
        self._settled = False
        self._unreadable = False
        self.trace = tracing.start_call(
            settings.call_start(
                known, plan, asked, self.timeline, weighing.economist.workload(weighing.workload)
            ),
            settings.tracing,
        )

    # The way out ---------------------------------------------------------------------------------

    def attempt_started(self) -> None:
        self.timeline.attempt_started()
        self._tried.append(Tried())

    def resumed(self, retries: int | None, waited: float) -> None:
        """The SDK tries again."""
        self.timeline.waited(waited)
        self._retries = retries

    def wire_request(self, request: Any, family: Family) -> Any:
        """The SDK's own request when nothing has to change, else a copy with the planned body and headers."""
        extra = dict(self.plan.headers)
        target = self.settings.options.target
        named = self.plan.facts.request.request_id
        header = None if named is None else named.header
        policy = "auto" if target is None else target.propagate
        self.trace.inject(extra, self.plan.facts.self_hosted, policy, id_header=header)
        same_body = self.plan.body == self._asked
        if same_body and not extra:
            self.trace.request_id = None if header is None else request.headers.get(header)
            return request
        # A copy by hand: the constructor would take every header apart again, at a tenth of the call's cost.
        copy = object.__new__(type(request))
        copy.__dict__.update(request.__dict__)
        copy.headers = headers = request.headers.copy()
        for name, value in extra.items():
            headers.setdefault(name, value)
        self.trace.request_id = None if header is None else headers.get(header)
        if not same_body:
            copy._content = compact(self.plan.body)
            copy.stream = family.module.ByteStream(copy._content)
            headers["content-length"] = str(len(copy._content))
        return copy

    # The way back --------------------------------------------------------------------------------

    def headers(self, status: int, headers: Any) -> Mapping[str, str]:
        """Take note of an answer's head; its headers by lower-case name."""
        self.timeline.headers()
        self._tried[-1].status = status
        told = plain_headers(headers)
        self._answer.headers(told)
        self.settings.heard(self.known, told)
        return told

    @property
    def may_downgrade(self) -> bool:
        """Whether an error could be about what specclient added or may rename, and none was before."""
        if self._downgraded:
            return False
        capped = any(key in self.plan.body for key in LENGTH_KEYS)
        return self.plan.outcome == "forwarded" or bool(self.plan.hidden) or capped

    def downgraded(self, status: int, body: bytes) -> bool:
        """True when the endpoint refused the prediction, or a report; the plan is then one without it."""
        error = parsed(body)
        return self._refused(status, body.decode("utf-8", "replace") if error is None else error)

    def _refused(self, status: int, error: Any) -> bool:
        plan = self.settings.plan_after_refusal(self.plan, status, error)
        if plan is None:
            return False
        self._downgraded = True
        refused = "PredictionRefused" if plan.outcome != self.plan.outcome else "ReportRefused"
        if plan.hidden == self.plan.hidden and refused == "ReportRefused":
            refused = "LimitRefused"
        self.plan = plan
        self._notable = self.known.notable(plan.hidden)
        self._hides_usage = "include_usage" in plan.hidden
        self._tried[-1].error = refused
        self.timeline.attempt_ended()
        return True

    def answered_with_error(self, status: int, told: Mapping[str, str]) -> None:
        """The answer is an error, which the SDK gets; it may try again."""
        self._tried[-1].error = f"HTTP {status}"
        self.timeline.attempt_ended()
        if not self._left_open(status, told):
            self.end("error", StatusError(status))

    def attempt_failed(self, error: BaseException) -> None:
        """No answer came, or its body broke off before the SDK got any of it."""
        self._tried[-1].error = type(error).__name__
        self.timeline.attempt_ended()
        if not (isinstance(error, Exception) and self._left_open(error, {})):
            self.end.failed(error)

    def _left_open(self, failed: int | BaseException, headers: Mapping[str, str]) -> bool:
        """Whether the SDK is going to try again; the call is then left open for it."""
        if self._begun:
            return False
        by_time = self.settings.by_time
        if is_redirect(failed, headers):
            pending.park(self, self._request, headers, 0.0, counted=False)
        elif by_time is None:
            status = failed if isinstance(failed, int) else None
            if not will_retry(self._retries, self.settings.max_retries, status, headers):
                return False
            pending.park(self, self._request, headers, LONGEST_BACKOFF, counted=True)
        else:
            elapsed = (time.perf_counter_ns() - self.timeline.started) / NANOSECONDS
            if not by_time.will_retry(failed, elapsed):
                return False
            pending.park(self, self._request, headers, by_time.longest_wait, counted=False)
        return True

    def give_up(self) -> None:
        """The SDK did not try again: the last try's failure was the call's."""
        tried = self._tried[-1]
        self.end("error", NoAnswer(tried.error) if tried.status is None else StatusError(tried.status))

    def plain(self, content: bytes) -> bytes:
        """A whole body: taken note of, and given back with the report in it. Raises AskAgain."""
        value = parsed(content)
        if not isinstance(value, dict):
            self.timeline.frame()
            self._note("not_json", "The answer's body is not a JSON object; it was passed on as it came.")
            self.end("error", NotJson())
            return content
        try:
            shown = self.event(value)
        except AskAgain:
            self._begun = False  # the SDK has seen nothing of it
            raise
        if shown is not value and shown is not None:
            content = compact(shown)
        report = self.completed()
        # SDKs quote what is no answer in their errors; into UTF-16, nothing can be put as bytes.
        if report is None or self._answer.error or b"\0" in content:
            return content
        if shown is not None and context.KEY in shown:
            content = set_aside(content, shown, compact)
        return spliced(content, report)

    # The stream (relay.Listener) -----------------------------------------------------------------

    def plain_content(self, raw: bytes) -> bytes | None:
        if not self._settled or self._notable.search(raw) is not None:
            return None
        self.timeline.content()
        return _NULL_USAGE.sub(b"", raw) if self._hides_usage else raw

    def event(self, data: dict[str, Any]) -> dict[str, Any] | None:
        first, self._begun = not self._begun, True
        try:
            if first and self.may_downgrade and error_in(data) is not None and self._refused(400, data):
                raise AskAgain
            self.timeline.frame()
            content = self._answer.event(data)
            if content is not None:
                self.timeline.content(answer=content == "answer")
                self._settled = content == "answer" and not self.trace.wants_content
            return self.plan.hide(data) if self.plan.hidden else data
        except AskAgain:
            raise
        except Exception:
            log.debug("an event passed through unread", exc_info=True)
            return data

    def unreadable(self) -> None:
        if not self._unreadable:
            self._note("not_json", "An event is not a JSON object; it was passed on as it came.")
        self._unreadable = True

    def completed(self) -> bytes | None:
        self.end("error" if self._answer.error else "completed")
        return self._report_to_add()

    def ran_out(self) -> bytes | None:
        if self._answer.finish_reasons or self._answer.error:
            return self.completed()
        self._note(
            "incomplete_stream",
            "The stream ended without a finish reason and without [DONE]: the text may be cut off.",
        )
        self.end("error", IncompleteStream())
        return self._report_to_add()

    def failed(self, error: BaseException) -> None:
        self._tried[-1].error = type(error).__name__
        self.end.failed(error)

    def closed(self) -> None:
        if self._answer.error:
            self.end("error")
        elif self._answer.finish_reasons:
            self.end.completed()
        elif self._unreadable:
            self.end("error", NotJson())
        else:
            self.end.closed()

    # The end -------------------------------------------------------------------------------------

    def _note(self, code: str, text: str) -> None:
        self._answer.notes.append(Reason(code=code, text=text))

    def _report_to_add(self) -> bytes | None:
        """The report as JSON; None where there is none."""
        return None if self.report is None else self.report.json()

    def _settle(self, outcome: tracing.CallOutcome, error: BaseException | None) -> None:
        self.timeline.done()
        answer = self._answer
        facts, told = tracing.ResponseFacts(), None
        try:
            elapsed = self.timeline.seconds(self.timeline.ended or self.timeline.started)
            reading = answer.reading(elapsed)
            if self.trace.listening:
                facts = answer.facts(reading)
            name = self.settings.target_name(self.known)
            answer.request_id = answer.request_id or self.trace.request_id
            report = report_on(name, self.plan, self.timeline, self._tried, answer, reading, self.streamed)
            report = self._weighing.account(report, self.plan, completed=outcome == "completed")
            self.report = report
            if report.changed:
                log.info("%s: changed: %s", name, ", ".join(report.changed))
            context.remember(self.report, answer.id, self._block)
            if self.extensions is not None:
                self.extensions[context.KEY] = self.report
            if self.trace.listening:
                told = self.report.report
        except Exception:
            log.warning("a call ended without a report: a fault in specclient")
            log.debug("the fault", exc_info=True)
        self.trace.finish(told, facts, outcome, error or answer.failure)


_NULL_USAGE = re.compile(rb',\s*"usage"\s*:\s*null')
"""What switching on the usage adds to every chunk. Quotes inside a text are escaped, so it is never text."""
