"""One call: its tries, its targets, and its one end. No I/O.

`Flow.steps` is a generator that yields operations (`Sleep`, `Open`, `Read`, `Close`) and is sent their
results or thrown their errors; `drive.py` performs them, once for sync and once for async. It returns
when a plain answer is whole, or when a stream has its first content: until then nothing was given to
the caller, so a try may be repeated. `READY` is yielded once, when a stream's headers came.

What goes on and what does not: `retry.py` decides for one target, `_goes_on` for the next one, and
anything that is no APIError (an interrupt, a cancelled task, a bug) passes through at once.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from specclient import tracing
from specclient.core.alike import Piece
from specclient.core.answer import Answer
from specclient.core.breaker import counts_as_failure
from specclient.core.destination import CallOptions, Destination
from specclient.core.detecting import detecting
from specclient.core.errors import Scrubber, error_of_status
from specclient.core.ledger import Ledger
from specclient.core.ops import READY, AnyExchange, Close, Open, Read, Sleep, Steps
from specclient.core.plan import Plan, build_plan
from specclient.core.refused import after_refusal
from specclient.core.retry import Retries
from specclient.core.stamps import NANOSECONDS
from specclient.core.wire import Wire
from specclient.economics.workload import current_workload
from specclient.errors import (
    APIError,
    APITimeoutError,
    ConfigError,
    PredictionRefusedError,
)
from specclient.prediction import Prediction
from specclient.report import Report
from specclient.tracing import Call, CallOutcome, TracingOptions, outcome_of
from specclient_providers.signs import GATEWAY


class Flow:
    """One call over one or more destinations. Make one, then drive it with `drive`.

    `request` is OpenAI's shape and holds only what the caller set. After a plain call `result` is the
    body and `report` its report; during a stream `exchange`, `answer`, `held` and `rest` are for
    the driver.
    """

    def __init__(
        self,
        request: Mapping[str, Any],
        destinations: Sequence[Destination],
        *,
        prediction: Prediction | None = None,
        api: str = "chat",
        options: CallOptions = CallOptions(),  # noqa: B008  frozen
        tracing_options: TracingOptions = tracing.DEFAULT_OPTIONS,
    ) -> None:
        self.request = request
        self.prediction = prediction
        self.api = api
        self.options = options
        self.streamed = request.get("stream") is True
        self.destinations = list(destinations)
        self.result: dict[str, Any] | None = None
        self.exchange: Any = None
        self.answer: Answer | None = None
        self.held: list[dict[str, Any] | Piece] = []
        self.rest: list[Any] = []
        """What came in one block with the first content: an error in it must not cost the content."""
        self.completed = False
        """Whether the answer came whole."""
        self.headers: Mapping[str, str] = {}
        self.status: int | None = None
        self.left_as: CallOutcome = "abandoned"
        """How a stream ends that is left early: its owner says "closed_by_caller" when it closes it."""
        self.given = ""
        """What the caller was given by a stream that broke and is being repeated."""
        self.ledger = Ledger(
            tracing_options,
            targets=len(self.destinations),
            adapter=options.adapter,
            workload=options.workload or current_workload(),
        )
        total = self._timeout(self.destinations[0]).total
        self._deadline = None if total is None else self.ledger.begun + int(total * NANOSECONDS)
        self._ready = False
        self.current = self.destinations[0]
        self._asked: tuple[Destination, Plan, Call, Retries] | None = None
        self.steps: Steps = self._run()

    @property
    def report(self) -> Report | None:
        return self.ledger.report

    @property
    def begun(self) -> tuple[Answer, Any]:
        """The answer and its exchange's `read`, once a stream has its first content."""
        assert self.answer is not None
        return self.answer, self.exchange.read

    # The whole call

    def _run(self) -> Steps:
        told: list[str] = []
        failed: APIError | None = None
        waiting = self._ordered()
        try:
            while True:
                destination = waiting.pop(0)
                if waiting and not destination.breaker.allows():
                    self._pass_over(destination, "circuit_open", "it failed repeatedly.")
                    told.append(f"{destination.name}: passed over, it failed repeatedly")
                    continue
                try:
                    yield from self._at(destination)
                except APIError as error:
                    self._settle(error)
                    failed = error
                    told.append(f"{destination.name}: {error.message}")
                    if not waiting or not self._goes_on(error):
                        raise _combined(error, told) from error.__cause__
                    self._move_on(destination, error)
                except ConfigError as error:  # this target cannot take the request; another may
                    told.append(f"{destination.name}: {error}")
                    if not waiting and failed is None:
                        raise
                    self._settle(error)
                    if not waiting and failed is not None:
                        raise _combined(failed, told) from failed.__cause__
                    self._pass_over(destination, "target_unfit", str(error))
                else:
                    return
        except GeneratorExit:
            raise
        except BaseException as error:
            self._settle(error)
            self.ledger.close(error)
            raise

    def _pass_over(self, destination: Destination, code: str, why: str) -> None:
        self.ledger.note(code, f"Target {destination.name} was passed over: {why}")

    def _move_on(self, destination: Destination, error: APIError) -> None:
        """Keep for the report what the attempts do not show: a policy's no, and what a target refused."""
        if isinstance(error, PredictionRefusedError):
            self._pass_over(destination, "target_unfit", error.message)
        elif self._asked is not None:
            plan = self._asked[1]
            self.ledger.notes += [
                each for each in (*plan.reasons, *plan.notes) if each.code == "refused_live"
            ]

    def _ordered(self) -> list[Destination]:
        """The targets in the order to try; those that can use the prediction first, where that is asked."""
        if len(self.destinations) == 1 or not self.destinations[0].target.prefer_prediction:
            return list(self.destinations)
        if self.prediction is None and self.request.get("prediction") is None:
            return list(self.destinations)
        return sorted(self.destinations, key=lambda destination: not self._can_predict(destination))

    def _can_predict(self, destination: Destination) -> bool:
        try:
            return self._planned(destination).outcome not in ("withheld", "none")
        except (APIError, ConfigError):
            return False

    def _goes_on(self, error: APIError) -> bool:
        """Whether the next target may be tried: not once content was given, nor when the time is up."""
        if error.partial or self.given or (isinstance(error, APITimeoutError) and error.limit == "total"):
            return False
        left = self._left()
        return left is None or left > 0

    # One target

    def _at(self, destination: Destination) -> Steps:
        self.current, self._asked = destination, None
        yield from detecting(destination, self.options)
        plan = self._planned(destination)
        if plan.reroute_local and (local := self._local()) is not None:
            self.ledger.notes += plan.reasons
            destination = self.current = local
            plan = self._planned(local)
        plan = self.ledger.considered(destination, plan)
        call = self.ledger.target(destination, plan, streamed=self.streamed)
        yield from self._until_answered(destination, plan, call, Retries(self._max_retries(destination)))

    def _until_answered(self, destination: Destination, plan: Plan, call: Call, retries: Retries) -> Steps:
        waited = 0.0
        while True:
            self._asked = (destination, plan, call, retries)
            try:
                yield from self._once(destination, plan, call, waited)
            except APIError as error:
                if error.partial:
                    raise
                waited = 0.0
                if (other := after_refusal(destination, plan, error)) is not None:
                    plan = other
                    self.ledger.replanned(plan)
                    continue
                wait = retries.after(error, self._left())
                if wait is None:
                    raise
                self.ledger.timeline.waited(wait)
                yield Sleep(wait)
                waited = wait
            else:
                return

    def _planned(self, destination: Destination) -> Plan:
        """The plan for one target, built anew: shape, key and the limit's name differ by target."""
        asked = self.request.get("model") if destination is self.destinations[0] else None
        model = asked or destination.target.model
        facts = destination.facts(self.api, model)
        has_its_own = facts.in_process or facts.provider == GATEWAY
        if model is None and not has_its_own:
            raise ConfigError(f"No model for target {destination.name!r}: pass model= or configure it.")
        return build_plan(
            {**self.request, "model": model} if model else self.request,
            facts=facts,
            prediction=self.prediction,
            policy=destination.policy,
            learned=destination.learned,
            api=self.api,
            headers=self.options.headers,
        )

    def _local(self) -> Destination | None:
        return next((d for d in self.destinations if d.target.provider == "local"), None)

    # One try

    def _once(self, destination: Destination, plan: Plan, call: Call, waited: float) -> Steps:
        extra: dict[str, str] = {}
        named = plan.facts.request.request_id
        header = None if named is None else named.header
        call.inject(extra, plan.facts.self_hosted, destination.target.propagate, id_header=header)
        send = destination.send(plan, self.options, extra)
        call.request_id = None if header is None else send.headers.get(header)
        self.ledger.try_began(waited)
        self.status, self.headers, self.answer, self.exchange = None, {}, None, None
        wire = Wire(self._timeout(destination), self.ledger.timeline, self._deadline)
        exchange: AnyExchange | None = None
        try:
            exchange = yield Open(destination, send, wire, call)
            assert exchange is not None
            self.ledger.timeline.headers()
            self.status, self.headers = exchange.status, exchange.headers
            destination.heard(exchange.headers)
            if not 200 <= exchange.status < 300:
                text = yield Read(exchange, text=True)
                scrub = self._scrubber(destination)
                raise error_of_status(exchange.status, exchange.headers, text, send, scrub, plan.facts.title)
            answer = Answer(plan, wire, streamed=self.streamed, given=self.given)
            answer.take_headers(exchange.headers)
            self.answer, self.exchange = answer, exchange
            yield from self._until_content(answer) if self.streamed else self._plain(answer)
        except GeneratorExit:
            raise
        except BaseException as error:
            self.ledger.try_ended(self.status, error)
            if exchange is not None:
                yield Close(exchange)
            raise

    def _plain(self, answer: Answer) -> Steps:
        objects: list[Any] = []
        while not objects:
            objects = yield Read(self.exchange)
        self.result = answer.body(objects[0])
        yield Close(self.exchange)
        self.complete()

    def _until_content(self, answer: Answer) -> Steps:
        if not self._ready:
            self._ready = True
            yield READY
        self.held, self.rest = [], []
        while not (answer.has_content or answer.over):
            objects = yield Read(self.exchange)
            if objects is None:
                answer.over = True
                if not answer.complete:
                    answer.end()
                return
            for place, obj in enumerate(objects, start=1):
                if (chunk := answer.event(obj)) is not None:
                    self.held.append(chunk)
                if answer.has_content:
                    self.rest = objects[place:]
                    break

    # The end

    def may_end(self) -> bool:
        """Whether a stream that broke or fell silent has given all of its answer but usage and [DONE]."""
        if self.answer is None or not self.answer.finished:
            return False
        self.ledger.note("no_end", "Every choice had its finish reason, but the stream's end never came.")
        return True

    def complete(self) -> Report:
        """The answer is whole: the tries, the spans and the report are closed."""
        self.completed = True
        self.ledger.try_ended(self.status)
        self.current.breaker.succeeded()
        report = self._finish("completed", None)
        self.ledger.close()
        assert report is not None
        return report

    def interrupted(self, error: BaseException | None, outcome: CallOutcome | None = None) -> None:
        """A stream ended before its time: it broke (`error`), or the caller closed or dropped it.

        An APIError gets the text so far as `.partial`, and the report.
        """
        self.ledger.try_ended(self.status, error)
        self._settle(error, outcome)
        self.ledger.close(error)

    def again(self, error: APIError) -> bool:
        """Whether a stream that broke after content is being repeated: `steps` then are those of the repeat.

        Only where the target allows it. The repeated answer has to begin with what was given.
        """
        answer = self.answer
        if not self.current.target.retry_after_content or self._asked is None or answer is None:
            return False
        destination, plan, call, retries = self._asked
        wait = retries.after(error, self._left())
        if wait is None or not answer.text or answer.has_other_content or self.report is not None:
            return False
        self.ledger.try_ended(self.status, error)
        self.ledger.timeline.waited(wait)
        self.given = answer.text
        self.steps = self._repeat(destination, plan, call, retries, wait)
        return True

    def _repeat(
        self, destination: Destination, plan: Plan, call: Call, retries: Retries, wait: float
    ) -> Steps:
        yield Close(self.exchange)
        yield Sleep(wait)
        yield from self._until_answered(destination, plan, call, retries)

    def _settle(self, error: BaseException | None, outcome: CallOutcome | None = None) -> None:
        """End the current target's part with an error; the error learns what is known of the call.

        An error passes here on each floor that it rises through; only the first time counts.
        """
        if isinstance(error, APIError) and error.report is None:
            if self.streamed:
                error.partial = error.partial or (self.answer.text if self.answer else self.given)
            self._scrubber(self.current).error(error)
        if error is not None and counts_as_failure(error) and self.ledger.under_way:
            self.current.breaker.failed()
        report = self._finish(outcome or outcome_of(error), error)
        if isinstance(error, APIError):
            error.report = report

    def _finish(self, outcome: CallOutcome, error: BaseException | None) -> Report | None:
        stats, first = getattr(self.exchange, "stats", None), getattr(self.exchange, "first_tokens", None)
        return self.ledger.finish(
            self.answer, outcome, error, headers=self.headers, stats=stats, first_tokens=first
        )

    def _scrubber(self, destination: Destination) -> Scrubber:
        key = destination.key
        return Scrubber(None if key is None else key.get_secret_value(), self.request)

    def _timeout(self, destination: Destination) -> Any:
        return destination.target.timeout if self.options.timeout is None else self.options.timeout

    def _max_retries(self, destination: Destination) -> int:
        asked = self.options.max_retries
        return destination.target.max_retries if asked is None else asked

    def _left(self) -> float | None:
        if self._deadline is None:
            return None
        return (self._deadline - time.perf_counter_ns()) / NANOSECONDS


def _combined(error: APIError, told: list[str]) -> APIError:
    """The last error that a target gave; with several targets its message tells of all."""
    if len(told) > 1:
        clauses = (sentence.removesuffix(".") for sentence in told[:-1])
        error.message = f"All {len(told)} targets failed. {'; '.join([*clauses, told[-1]])}"
        error.args = (error.message,)
    return error
