"""How an error says, in words, that one request field is the matter.

A message counts only if it *begins* by saying so, after whatever the proxies on the way have put before
it. One that merely quotes the request, which may well hold the word, is about something else.
"""

from __future__ import annotations

import re
from functools import lru_cache

PREDICTION_FIELDS = ("prediction", "speculation")

_KIND = r"(?:request\s+)?(?:body\s+)?(?:argument|parameter|param|property|field|option|input|key|name)"
_STRANGE = (
    r"(?:unrecogni[sz]ed|unsupported|not supported|unknown|unexpected|invalid|extra|extraneous|additional|"
    r"disallowed|forbidden|no such)"
)
_NOT = r"(?:not\s+(?:currently\s+|yet\s+)?|can(?:not|'t)\s+be\s+|(?:may|must)\s+not\s+be\s+)"
_NOT_ALLOWED = (
    rf"(?:{_NOT}(?:supported|allowed|permitted|available|enabled|implemented|recogni[sz]ed|accepted|known|used"
    r"|specified|set|given|provided|sent|present|compatible|valid|a valid)"
    r"|(?:currently\s+)?(?:disabled|incompatible)|should not (?:exist|be)"
    r"|(?:may|can|must)\s+only\s+be\s+(?:used|specified|set|given|sent))"
)
_WHERE = (
    r"(?:\s+(?:supplied|passed|received|name|found|provided|specified|given)"
    r"|\s+in (?:the )?(?:request|body|object|payload))*"
)
_WHO = (
    r"(?:(?:this|the)\s+)?(?:selected\s+|requested\s+)?"
    r"(?:model|deployment|endpoint|provider|server|backend|api)(?:\s+['\"`]?[\w./:-]+['\"`]?)?"
)
_DOES_NOT = (
    r"(?:does not|doesn't|do not|cannot|can't)\s+(?:currently\s+|yet\s+)?"
    r"(?:support|accept|allow|take)\s+(?:the\s+)?"
)

_SENTENCE = 4000
"""Characters of a message that are read: it begins with what it is about, and may quote a whole file."""

PREFIX = re.compile(
    r"^(?:[^\w\s'\"`\[({<$]+\s*"
    r"|error code:\s*\d{3}\s*[:\-–]?\s*"
    r"|(?:\w+\.)*\w*(?:error|exception)\b\s*[:,\-–]*\s*"
    r"|(?:\w+\s+){1,2}(?:error|exception)\s*:\s*"
    r"|(?:http\s+)?(?:status\s+(?:code\s+)?)?\d{3}\s*[:,\-–]?\s+"
    r"|(?:value error|bad request|bad input|1 request validation error|"
    r"(?:malformed|invalid)\s+(?:input\s+)?(?:request|input|params|parameters|arguments?)"
    r"|unprocessable entity|(?:schema |request )?validation(?: error| failed)?)\s*[:.,]\s*"
    r"|failed to (?:parse|deserialize|decode)[^:'\"`]*:\s*"
    r")+",
    re.IGNORECASE,
)
"""What stands before the sentence itself: exception names, status codes, "Bad Request:", and so on."""

_SAYS_SO = {
    "a strange argument, then its name": (
        rf"^(?:(?:the\s+)?(?:request|body|payload|input)\s+(?:body\s+)?(?:contains|has|includes)\s+(?:an?\s+)?)?"
        rf"{_STRANGE}\s+(?:{_KIND}|value)s?(?:\(s\))?{_WHERE}\s*:?\s*FIELD"
        r"(?!\s*,|\.?\s*(?:supported|allowed|valid|expected|possible) values)"
    ),
    "an invalid field, and that it is not supported": (
        rf"^invalid\s+FIELD\s*:\s*(?:{_STRANGE}\s+{_KIND}|(?:this\s+)?{_KIND}\s+(?:is\s+)?{_NOT_ALLOWED})"
    ),
    "the name, then that it is not allowed": (
        rf"^(?:FIELD\s*:\s*)?(?:the\s+)?(?:{_KIND})?\s*:?\s*FIELD{_WHERE}\s*:?\s+(?:{_KIND}\s+)?"
        rf"(?:(?:is|are|was)\s+)?(?:{_NOT_ALLOWED}|{_STRANGE}|does not exist)"
    ),
    "that an argument is not allowed, then which": (
        rf"^(?:the\s+following\s+)?{_KIND}s?\s+(?:(?:is|are)\s+)?(?:{_NOT_ALLOWED}|{_STRANGE})[^:'\"`]*:"
        r"\s*\[?FIELD(?!\s*,)"
    ),
    "those that are not allowed, then the one": (
        rf"^(?:the\s+)?following\s+{_KIND}s?\s+(?:is|are)\s+(?:{_NOT_ALLOWED}|{_STRANGE})[^:]*:\s*\[?FIELD(?!\s*,)"
    ),
    "what it must not hold": (
        r"^(?:the\s+)?(?:input|request|body|payload)\s+(?:body\s+)?(?:should|must|may|can) ?not "
        rf"(?:contain|include|have) (?:the\s+)?(?:{_KIND}\s+)?FIELD"
    ),
    "JSON schema": r"^additional propert(?:y|ies)[^()]*\(FIELD\s+(?:was|were) unexpected\)",
    "protobuf JSON (Google)": (
        r"^(?:invalid json payload received\.\s+)?unknown name FIELD(?:\s+at\s+'[^']*')?\s*:\s*cannot find"
    ),
    "Go and serde decoders": r"^(?:json:\s*|[\w.]*:?\s*)?unknown field:?\s+FIELD",
    "Go, of another type": r"^(?:json:\s*)?cannot unmarshal \w+ into go struct field [\w.]*\.FIELD",
    "pydantic, as a report": r"^1 validation error for [\w.]+\s+FIELD\s+extra (?:inputs|fields)",
    "the name, a colon, and that it is strange": (
        rf"^(?:(?:at|in)\s+)?FIELD\s*:\s*(?:{_STRANGE}\s+(?:{_KIND}|inputs|fields)\s*"
        rf"(?:are )?(?:{_NOT_ALLOWED})?"
        rf"|(?:this\s+)?(?:{_KIND}\s+)?(?:is\s+)?{_NOT_ALLOWED})"
    ),
    "pydantic, the name last": (
        rf"^extra (?:inputs|fields) (?:are )?not permitted[,:]?\s*\(?(?:{_KIND}\s*[:=]?\s*)?FIELD"
    ),
    "who does not support it": rf"^{_WHO}\s+{_DOES_NOT}(?:{_KIND}s?\s*:?\s*)?FIELD(?:\s+{_KIND})?(?!\s*,)",
    "the provider does not support parameters": (
        rf"^[\w./:-]+\s+{_DOES_NOT}(?:following\s+)?{_KIND}s?\s*:?\s*[\[{{(]?\s*FIELD(?!\s*,\s*['\"])"
    ),
    "a Python call": r"^[\w.()]*\s*got an unexpected keyword argument FIELD",
}
"""How a message says that a field is the matter; FIELD stands for its name."""

_FEATURE = re.compile(
    rf"^(?:{_WHO}\s+{_DOES_NOT}predict(?:ed outputs?|ions?)\b(?!\s*,)"
    rf"|predict(?:ed outputs?|ions?)\s+(?:{_KIND}\s+)?(?:is|are)\s+{_NOT_ALLOWED})",
    re.IGNORECASE,
)
"""The same about predictions, by the name of the feature."""


def names(text: str, fields: tuple[str, ...]) -> bool:
    """True when a sentence says that one of `fields` is what is wrong with the request."""
    line = PREFIX.sub("", text.strip()[:_SENTENCE], count=1)
    return any(pattern.search(line) for pattern in _patterns(fields))


@lru_cache(maxsize=64)
def _patterns(fields: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    words = "|".join(re.escape(name) for name in fields)
    name = rf"(?:body\.|\$\.|body -> )?(?:{words})(?![\w.]*\w)"
    field = rf"(?:'{name}'|\"{name}\"|`{name}`|\[{name}\]|{name}(?!['\"`\]]))"
    found = [re.compile(said.replace("FIELD", field), re.IGNORECASE) for said in _SAYS_SO.values()]
    return (*found, _FEATURE) if fields == PREDICTION_FIELDS else tuple(found)
