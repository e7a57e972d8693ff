"""A plain GET with the retries of a call: for lists that need no plan and make no tokens."""

from __future__ import annotations

from typing import Any

from specclient.core.destination import CallOptions, Destination
from specclient.core.errors import Scrubber, error_of_status
from specclient.core.ops import Close, Open, Read, Sleep, Steps
from specclient.core.retry import Retries
from specclient.core.timeline import Timeline
from specclient.core.wire import Wire
from specclient.errors import APIError, APIResponseValidationError, ConfigError


class Fetch:
    """Driven like a `Flow`: `steps` until `result` is there. `below` is a path below the API's own."""

    def __init__(self, destination: Destination, api: str, options: CallOptions, below: str = "") -> None:
        self.result: dict[str, Any] | None = None
        self._destination = destination
        self._api = api
        self._options = options
        self._below = below
        self.steps: Steps = self._run()

    def _run(self) -> Steps:
        destination, options = self._destination, self._options
        asked = options.max_retries
        retries = Retries(destination.target.max_retries if asked is None else asked)
        while True:
            try:
                yield from self._once(destination)
                return
            except APIError as error:
                self._scrubber().error(error)
                wait = retries.after(error, None)
                if wait is None:
                    raise
                yield Sleep(wait)

    def _once(self, destination: Destination) -> Steps:
        facts = destination.facts(self._api, destination.target.model)
        if facts.path is None:
            raise ConfigError(f"{facts.title} has no {self._api} API of OpenAI's shape.")
        send = destination.request("GET", facts.path + self._below, query=facts.query, options=self._options)
        timeout = destination.target.timeout if self._options.timeout is None else self._options.timeout
        exchange = yield Open(destination, send, Wire(timeout, Timeline()), None)
        try:
            if not 200 <= exchange.status < 300:
                text = yield Read(exchange, text=True)
                scrub = self._scrubber()
                raise error_of_status(exchange.status, exchange.headers, text, send, scrub, facts.title)
            objects: list[Any] = []
            while not objects:
                objects = yield Read(exchange)
            if not isinstance(objects[0], dict | list):
                raise APIResponseValidationError("The endpoint answered with neither an object nor a list.")
            self.result = objects[0] if isinstance(objects[0], dict) else {"data": objects[0]}
        finally:
            yield Close(exchange)

    def _scrubber(self) -> Scrubber:
        key = self._destination.key
        return Scrubber(None if key is None else key.get_secret_value())
