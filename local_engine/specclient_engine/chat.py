"""The model's own chat template, run in a sandbox."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from jinja2 import TemplateError
from jinja2 import nodes as jinja_nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from specclient_engine.errors import UnsupportedRequest
from specclient_engine.tokenizer import read_json

Message = Mapping[str, Any]

ROLES = ("system", "developer", "user", "assistant", "tool")


class ChatTemplate:
    """`chat_template.jinja`, or the template in `tokenizer_config.json`, of a model folder.

    Templates come with the weights, from strangers: they run in jinja2's immutable sandbox.
    """

    def __init__(self, folder: Path) -> None:
        config = read_json(folder / "tokenizer_config.json")
        self._sources = _sources(folder, config)
        self._special = {
            name: _content(value) for name, value in config.items() if name.endswith("_token") and value
        }

    def render(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None) -> str:
        """The prompt for the assistant's next turn. Raises UnsupportedRequest when the template refuses."""
        if not self._sources:
            raise UnsupportedRequest("the model has no chat template; use a chat model, or plain completion")
        _check(messages)
        kind = "tool_use" if tools and "tool_use" in self._sources else "default"
        source = self._sources.get(kind) or next(iter(self._sources.values()))
        if tools and "tools" not in source:
            raise UnsupportedRequest(
                "the model's chat template has no place for tools: leave them out, or use another model"
            )
        try:
            return (
                _environment()
                .from_string(source)
                .render(
                    messages=[_plain(message, source) for message in messages],
                    tools=list(tools) if tools else None,
                    add_generation_prompt=True,
                    **self._special,
                )
            )
        except SecurityError as error:
            raise UnsupportedRequest("the model's chat template tries what the sandbox forbids") from error
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise UnsupportedRequest(f"the model's chat template refuses: {error}") from error


def _sources(folder: Path, config: Mapping[str, Any]) -> dict[str, str]:
    own_file = folder / "chat_template.jinja"
    if own_file.exists():
        return {"default": own_file.read_text(encoding="utf-8")}
    template = config.get("chat_template")
    if isinstance(template, str):
        return {"default": template}
    return {entry["name"]: entry["template"] for entry in template or ()}


def _content(token: Any) -> str:
    return str(token["content"]) if isinstance(token, Mapping) else str(token)


def _check(messages: Sequence[Message]) -> None:
    """Refuse what most templates leave out without a word, or stumble over."""
    if not messages:
        raise UnsupportedRequest("messages is empty: a chat has at least one message, with role and content")
    for place, message in enumerate(messages):
        if message.get("role") not in ROLES:
            said = "is missing" if message.get("role") is None else "is unknown to the embedded engine"
            raise UnsupportedRequest(f"messages[{place}].role {said}: it is one of {', '.join(ROLES)}")


def _plain(message: Message, template: str) -> dict[str, Any]:
    """The message as templates expect it: text parts joined, tool arguments as an object.

    "developer" is OpenAI's newer name for the system's role, which most templates do not know.
    """
    plain = dict(message)
    if plain["role"] == "developer" and "developer" not in template:
        plain["role"] = "system"
    if isinstance(plain.get("content"), Iterable) and not isinstance(plain["content"], str):
        plain["content"] = "".join(_text_of(part) for part in plain["content"])
    if plain.get("tool_calls"):
        plain["tool_calls"] = [_plain_call(call) for call in plain["tool_calls"]]
    return plain


def _text_of(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping) and part.get("type") in ("text", "input_text", "output_text"):
        return str(part["text"])
    kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
    raise UnsupportedRequest(f"the embedded engine reads text, not message parts of type {kind!r}")


def _plain_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = dict(call.get("function") or {})
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            function["arguments"] = json.loads(arguments)
        except ValueError:
            function["arguments"] = arguments
    return {**call, "function": function}


class _GenerationMark(Extension):
    """`{% generation %}…{% endgeneration %}` marks the assistant's words for training; here: its body."""

    tags = {"generation"}  # noqa: RUF012  (jinja2 declares it so)

    def parse(self, parser: Parser) -> list[jinja_nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _GenerationMark]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda pattern: datetime.now().strftime(pattern)
    return environment


def _to_json(value: Any, ensure_ascii: bool = False, **options: Any) -> str:
    """`json.dumps`, as templates expect it: jinja2's own filter escapes for HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, **options)


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)
