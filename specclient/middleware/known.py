"""What is the same for all calls to one endpoint and model, worked out once a day."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import urlsplit

from specclient.core.ledger import capability
from specclient.middleware.context import KEY
from specclient_providers import AnswerReader, EndpointFacts
from specclient_providers.signs import GATEWAY, UNNAMED


class Known:
    """The facts about an endpoint, and what follows from them for every call."""

    def __init__(self, facts: EndpointFacts) -> None:
        parts = urlsplit(facts.base_url or "")
        self.facts = facts
        self.host = parts.hostname
        self.port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
        self.capability = capability(facts)
        self.figure_headers = frozenset(
            path.removeprefix("header:").lower().encode()
            for figure in facts.answer.figures
            for path in figure.paths
            if path.startswith("header:")
        )
        """The headers that hold figures, by lower-case name."""
        self.signed = facts.provider in (UNNAMED, GATEWAY)
        """Whether it matters who signs an answer."""
        reader = AnswerReader(facts)
        self.reader = reader.fresh
        """Makes an empty reader of this endpoint's answers."""
        self.silence = reader.result()
        """What an answer without a figure says."""
        self._notable: dict[frozenset[str], re.Pattern[bytes]] = {}

    def notable(self, hidden: frozenset[str]) -> re.Pattern[bytes]:
        """Finds an event that holds more than content: a finish reason, an error, a figure, or one of the
        reports that were switched on without the caller's asking (`hidden`)."""
        pattern = self._notable.get(hidden)
        if pattern is None:
            pattern = self._notable[hidden] = _any_of(self._names(hidden))
        return pattern

    def _names(self, hidden: frozenset[str]) -> frozenset[str]:
        names = {"finish_reason", "error", "usage", KEY}
        paths = [path for figure in self.facts.answer.figures for path in figure.paths]
        paths += [path for opt in self.facts.request.opt_ins if opt.code in hidden for path in opt.traces]
        for path in paths:
            if not path.startswith("header:"):
                first, *rest = path.split(".")
                names.add(rest[-1] if first == "choices" and rest else first)
        return frozenset(names)


@lru_cache(maxsize=128)
def _any_of(names: frozenset[str]) -> re.Pattern[bytes]:
    joined = b"|".join(re.escape(name.encode()) for name in sorted(names))
    # Possessive blanks: else the look-ahead could be satisfied by a blank before the null.
    return re.compile(rb'"(?:%b)"\s*+:\s*+(?!null)' % joined)
