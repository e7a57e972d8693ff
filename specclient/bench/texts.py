"""The built-in workloads. Each text comes with what one would send as its prediction.

In `code_edit` and `extraction` most of the answer is known, in `summary` some phrases are, in `chat` an
earlier answer is, and in `creative` next to nothing. A prediction that is of no use is part of the
question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_SERVICE = '''"""Retry a call with growing pauses."""

import random
import time


class RetryError(Exception):
    """The last attempt failed too."""


class Retrier:
    """Calls a function until it succeeds or the attempts are used up."""

    def __init__(self, attempts=4, base=0.5, limit=8.0):
        self.attempts = attempts
        self.base = base
        self.limit = limit

    def pause(self, attempt):
        """Seconds to wait after an attempt, with jitter."""
        return min(self.limit, self.base * 2**attempt) * random.uniform(0.75, 1.0)

    def call(self, function, *arguments):
        """The function's result; RetryError when no attempt succeeds."""
        for attempt in range(self.attempts):
            try:
                return function(*arguments)
            except OSError as error:
                last = error
                time.sleep(self.pause(attempt))
        raise RetryError(str(last))
'''

_SETTINGS = """[server]
host = 0.0.0.0
port = 8080
workers = 4
timeout = 30
keep_alive = 75

[database]
url = postgres://db.internal/orders
pool_size = 10
pool_recycle = 1800

[logging]
level = info
format = json
file = /var/log/orders/service.log
rotate = daily
keep = 14

[features]
new_checkout = false
price_cache = true
"""

_PAGE = """<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <title>Opening hours</title>
  <link rel="stylesheet" href="/style.css">
</head>
<body>
  <h1>Opening hours</h1>
  <table>
    <tr><th>Day</th><th>Hours</th></tr>
    <tr><td>Monday</td><td>9 to 17</td></tr>
    <tr><td>Tuesday</td><td>9 to 17</td></tr>
    <tr><td>Wednesday</td><td>9 to 17</td></tr>
    <tr><td>Thursday</td><td>9 to 19</td></tr>
    <tr><td>Friday</td><td>9 to 15</td></tr>
  </table>
  <p>Closed on public holidays.</p>
</body>
</html>
"""

_REPORT = (
    "The harbour office opened the new quay on Monday. Work had begun in the spring of last year and was to "
    "take eleven months, but a storm in November damaged the sheet piling, so that it took sixteen. The quay "
    "is 240 metres long and has a depth of 9 metres at low water, enough for the ferries that so far had to "
    "wait for the tide. Two cranes with a capacity of 40 tonnes each stand on rails. The cost of 31 million "
    "was 4 million above the estimate; the insurance pays 2.5 million of the difference. The harbour master "
    "expects a third more calls next year, and the fishing fleet keeps its berths at the old quay."
)

_MINUTES = (
    "The meeting began at ten. Mara reported that the import job had failed twice, both times because the "
    "disk was full; she has moved the temporary files and added an alert at 80 percent. Jonas showed the "
    "new search page. It answers in 120 milliseconds on average, down from 900, and the old page goes away "
    "at the end of the month. The group agreed to freeze the schema from the 12th on. Ines asks for two "
    "testers for the release; Mara and Theo will do it. The next meeting is on the 15th."
)

_LETTER = (
    "Order 48213 of 3 March was delivered to Anna Holm, Kirkegata 5, Bergen. She paid 1,249 kroner by card. "
    "The parcel held two lamps (article L-220) and one shade (article S-104). One lamp arrived broken and "
    "she asks for a replacement, not for her money. Her telephone number is 55 01 02 03."
)

_TICKET = (
    "Ticket 9917, opened by Pavel Novak on 14 May, priority high. The printer in room 3.12 (serial "
    "QX-77120) prints blank pages since the update to firmware 4.2. Going back to 4.1 helped on a second "
    "printer. He needs it before Friday."
)

_NOTICE = (
    "From Monday the library opens at nine and closes at eight, on Saturdays at two. The reading room on the "
    "second floor stays closed until the heating is mended. Books that were due in the week of the flood may "
    "be returned until the end of the month without a fee. The children's hour moves from Wednesday to "
    "Thursday and now begins at four. Whoever wants to help with drying maps should ask for Mrs Lund."
)

_INVOICE = (
    "Invoice 2207 of 9 April from Brandt Tools to Nordlys Boatyard: six clamps at 14.50 and one belt sander "
    "at 189.00, together 276.00, payable within 30 days to account 7712 04 55310. Contact: Elin Brandt."
)


def _say(*turns: str) -> list[Mapping[str, str]]:
    """A conversation of alternating turns that begins with the user."""
    return [
        {"role": "user" if number % 2 == 0 else "assistant", "content": text}
        for number, text in enumerate(turns)
    ]


_STEPS = (
    "1. Stop the service.\n2. Copy the data directory to the new disk.\n3. Compare the two copies.\n"
    "4. Change the path in the settings.\n5. Start the service and read its log.\n"
    "6. Keep the old directory for a week."
)
_COMPARE = (
    "A list keeps its order, may hold the same value twice and is found by position. A set has no order, "
    "holds every value once and answers whether a value is in it without looking at the others."
)

_TEA = (
    "Boil 250 ml of water. Warm the pot. Put in one teaspoon of leaves, pour the water over them and wait "
    "four minutes. Pour through a sieve."
)

BUILT_IN: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "code_edit": [
        {"file": "retry.py", "instruction": "Rename the class Retrier to Backoff.", "known": _SERVICE},
        {"file": "service.ini", "instruction": "Set port to 9090.", "known": _SETTINGS},
        {"file": "hours.html", "instruction": "Change Friday to 9 to 16.", "known": _PAGE},
    ],
    "chat": [
        {
            "messages": _say("How do I move a service's data to a new disk?", _STEPS, "Shorter, please."),
            "known": _STEPS,
        },
        {
            "messages": _say("List or set: what is the difference?", _COMPARE, "And a tuple?"),
            "known": _COMPARE,
        },
        {
            "messages": _say("How do I make tea?", _TEA, "The same for four cups."),
            "known": _TEA,
        },
    ],
    "summary": [
        {"messages": _say(f"Summarise in three sentences:\n\n{_REPORT}"), "known": _REPORT},
        {"messages": _say(f"Summarise in three sentences:\n\n{_MINUTES}"), "known": _MINUTES},
        {"messages": _say(f"Summarise in three sentences:\n\n{_NOTICE}"), "known": _NOTICE},
    ],
    "extraction": [
        {
            "messages": _say(
                "Answer with a JSON object with the keys order, name, city, amount, payment, wish, "
                f"telephone, from this text:\n\n{_LETTER}"
            ),
            "known": '{\n  "order": "",\n  "name": "",\n  "city": "",\n  "amount": "",\n  "payment": "",\n'
            '  "wish": "",\n  "telephone": ""\n}',
        },
        {
            "messages": _say(
                "Answer with a JSON object with the keys ticket, opened_by, date, priority, room, serial, "
                f"firmware, deadline, from this text:\n\n{_TICKET}"
            ),
            "known": '{\n  "ticket": "",\n  "opened_by": "",\n  "date": "",\n  "priority": "",\n'
            '  "room": "",\n  "serial": "",\n  "firmware": "",\n  "deadline": ""\n}',
        },
        {
            "messages": _say(
                "Answer with a JSON object with the keys invoice, date, seller, buyer, total, due, account, "
                f"contact, from this text:\n\n{_INVOICE}"
            ),
            "known": '{\n  "invoice": "",\n  "date": "",\n  "seller": "",\n  "buyer": "",\n  "total": "",\n'
            '  "due": "",\n  "account": "",\n  "contact": ""\n}',
        },
    ],
    "creative": [
        {
            "messages": _say("Write eight lines about a lighthouse in winter."),
            "known": "The lamp turns slowly over frozen stone,\nand no ship answers from the dark alone.",
        },
        {
            "messages": _say("Begin a story about a clockmaker who cannot tell the time."),
            "known": "Once upon a time there was a clockmaker in a small town at the foot of the mountains.",
        },
        {
            "messages": _say("Describe a market square at dawn in one paragraph."),
            "known": "The square is still empty, and the first carts roll over the wet stones.",
        },
    ],
}
