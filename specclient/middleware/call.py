"""One call of a wrapped SDK, from its first try to its one end."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, MutableMapping
from typing import Any

from specclient import tracing
from specclient.core import account
from specclient.core.errors import error_in
from specclient.core.plan import Plan
from specclient.core.stamps import NANOSECONDS
from specclient.middleware import context, wire
from specclient.middleware.account import (
    Answer,
    IncompleteStream,
    NotJson,
    report_on,
)
from specclient.middleware.alike import Alike
from specclient.middleware.decided import Decided
from specclient.middleware.family import Family
from specclient.middleware.gateway_report import set_aside
from specclient.middleware.late import LateReport
from specclient.middleware.place import Place
from specclient.middleware.relay import AskAgain, compact, parsed, spliced
from specclient.middleware.settings import Settings
from specclient.middleware.steps import as_text
from specclient.middleware.tries import Asked, Tries
from specclient.middleware.weighing import weighed
from specclient.report import Reason
from specclient_providers import Reading

log = logging.getLogger("specclient.middleware")


class WrappedCall(Tries):
    """What is known of a call, and the listener of its stream. `end` is its one way out."""

    def __init__(
        self,
        settings: Settings,
        place: Place,
        asked: Asked,
        decided: Decided,
        plan: Plan | None,
        retries: int | None,
        *,
        is_read_whole: bool,
    ) -> None:
        super().__init__(settings, asked, retries)
        self.end = tracing.Finaliser(self._settle)
        self.streamed = bool(asked.body.get("stream"))
        self.extensions: MutableMapping[str, Any] | None = None
        """Those of the response that the SDK holds: the report is put there for objects without room."""
        self.report: LateReport | None = None
        self.value: dict[str, Any] | None = None
        """What a whole body says with the report in it, where nothing else was changed."""
        self.is_read_whole = is_read_whole
        """Whether the SDK is known to read an answer that is not streamed as a whole, and at once."""
        self._place = place
        self._known = place.known
        self._decided = decided
        self._plan = plan
        self._downgraded = False
        self._answer = Answer(self._known.reader())
        self._settled = False
        self._unreadable = False
        self.trace: tracing.Call | tracing.Unheard = (
            settings.trace(self._known, self.plan, self.timeline, place.economist.workload(asked.workload))
            if settings.tracing.heard
            else tracing.Unheard(settings.tracing)
        )

    @property
    def plan(self) -> Plan:
        """The whole plan, made where it is asked for."""
        if self._plan is None:
            self._plan = self._decided.plan_for(self._asked.body)
        return self._plan

    # The way out ---------------------------------------------------------------------------------

    def wire_request(self, request: Any, family: Family) -> Any:
        """The SDK's own request when nothing has to change, else a copy with the planned body and headers."""
        decided, facts, target = self._decided, self._known.facts, self.settings.options.target
        extra = dict(decided.headers)
        named = facts.request.request_id
        header = None if named is None else named.header
        policy = "auto" if target is None else target.propagate
        self.trace.inject(extra, facts.self_hosted, policy, id_header=header)
        content = None
        if decided.removed or decided.changed:
            asked = self._asked
            content = wire.rewritten(asked.content, asked.body, decided.removed, decided.changed)
        if extra or content is not None:
            request = wire.changed(request, family, extra, content)
        if header is not None:
            self.trace.request_id = request.headers.get(header)
        return request

    # The way back --------------------------------------------------------------------------------

    def headers(self, status: int, headers: Mapping[bytes, bytes]) -> None:
        """Take note of an answer's head, its headers by lower-case name."""
        self.timeline.headers()
        self._tried[-1].status = status
        self._answer.headers(headers)
        if not self._known.figure_headers.isdisjoint(headers):
            self._answer.reader.headers(as_text(headers))
        if self._known.signed:
            self.settings.heard(self._known, headers)

    @property
    def may_downgrade(self) -> bool:
        """Whether an error could be about what specclient added or may rename, and none was before."""
        return self._decided.may_be_refused and not self._downgraded

    def downgraded(self, status: int, body: bytes) -> bool:
        """True when the endpoint refused the prediction, or a report; the plan is then one without it."""
        error = parsed(body)
        return self._refused(status, body.decode("utf-8", "replace") if error is None else error)

    def _refused(self, status: int, error: Any) -> bool:
        before, asked = self._decided, self._asked.body
        plan = self.settings.plan_after_refusal(self.plan, status, error)
        if plan is None:
            return False
        self._downgraded = True
        refused = "PredictionRefused" if plan.outcome != before.outcome else "ReportRefused"
        if plan.hidden == before.hidden and refused == "ReportRefused":
            refused = "LimitRefused"
        self._plan = plan
        self._decided = Decided(plan, asked, self._known, before.target, before.decision)
        self._tried[-1].error = refused
        self.timeline.attempt_ended()
        return True

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
        if report is None or self._answer.error or 0 in content:
            return content
        if shown is not None and context.KEY in shown:
            content = set_aside(content, shown, compact)
        elif shown is value and self.report is not None:
            self.value = value
            value[context.KEY] = self.report.given_away()
        return spliced(content, report)

    # The stream (relay.Listener) -----------------------------------------------------------------

    def listen(self) -> None:
        """A stream begins: know what to look for in it."""
        hidden = self._decided.hidden
        self._notable = self._known.notable(hidden)
        self._hides_usage = "include_usage" in hidden
        self._alike = Alike()

    def plain_content(self, raw: bytes) -> bytes | None:
        if not self._settled:
            return None
        shown = self._alike.shown(raw)
        if shown is None:
            if self._notable.search(raw) is not None:
                return None
            shown = _NULL_USAGE.sub(b"", raw) if self._hides_usage else raw
            self._alike.learn(raw, shown)
        self.timeline.text()
        return shown

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
            return self._decided.plan.hide(data) if self._decided.hidden else data
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
        return None if self.report is None else self.report.written()

    def _settle(self, outcome: tracing.CallOutcome, error: BaseException | None) -> None:
        self.timeline.done()
        answer, trace = self._answer, self.trace
        facts, told = None, None
        try:
            ended = self.timeline.ended or self.timeline.started
            reading = answer.reader.result((ended - self.timeline.started) / NANOSECONDS)
            if trace.listening:
                facts = answer.facts(reading)
            answer.request_id = answer.request_id or trace.request_id
            self.report = self._reported(reading, completed=outcome == "completed")
            context.remember(self.report, answer.id, self._asked.block)
            if self.extensions is not None:
                self.extensions[context.KEY] = self.report
            if trace.listening:
                told = self.report.report
        except Exception:
            log.warning("a call ended without a report: a fault in specclient")
            log.debug("the fault", exc_info=True)
        if not isinstance(trace, tracing.Unheard):
            trace.finish(told, facts or tracing.ResponseFacts(), outcome, error or answer.failure)

    def _reported(self, reading: Reading, *, completed: bool) -> LateReport:
        decided = self._decided
        if decided.changes:
            log.info("%s: changed: %s", decided.target, ", ".join(decided.changes))
        speculation = account.speculation_data(reading)
        data = report_on(
            decided, self.timeline, self._tried, self._answer, reading, speculation, streamed=self.streamed
        )
        return weighed(
            data,
            self._place,
            decided,
            self._asked.workload,
            passes=speculation is not None,
            completed=completed,
        )


_NULL_USAGE = re.compile(rb',\s*"usage"\s*:\s*null')
"""What switching on the usage adds to every chunk. Quotes inside a text are escaped, so it is never text."""
