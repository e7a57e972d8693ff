"""The model's chat template, as its author meant it, and no more than it may do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specclient_engine.chat import ChatTemplate
from specclient_engine.errors import UnsupportedRequest

SIMPLE = (
    "{{ bos_token }}{% for message in messages %}\n"
    "    {{- '[' + message['role'] + ']' + message['content'] }}\n"
    "{%- endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
)
USER = [{"role": "user", "content": "é"}]


def template(folder: Path, source: Any, **config: Any) -> ChatTemplate:
    spec = {"chat_template": source, "bos_token": {"content": "<s>"}, **config}
    (folder / "tokenizer_config.json").write_text(json.dumps(spec))
    return ChatTemplate(folder)


def test_messages_become_the_prompt_of_the_next_turn(tmp_path: Path) -> None:
    assert template(tmp_path, SIMPLE).render(USER) == "<s>[user]é[assistant]"


def test_a_template_file_wins_over_the_config(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text("{{ messages[0].content }}!")
    assert template(tmp_path, SIMPLE).render(USER) == "é!"


def test_text_parts_are_joined_and_other_parts_refused(tmp_path: Path) -> None:
    chat = template(tmp_path, SIMPLE)
    parts: list[dict[str, Any]] = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert chat.render([{"role": "user", "content": parts}]) == "<s>[user]ab[assistant]"
    with pytest.raises(UnsupportedRequest, match="image_url"):
        chat.render([{"role": "user", "content": [*parts, {"type": "image_url"}]}])


def test_tools_and_calls_reach_the_template_as_objects(tmp_path: Path) -> None:
    chat = template(
        tmp_path,
        [
            {"name": "default", "template": "plain"},
            {
                "name": "tool_use",
                "template": "{{ tools | tojson }} {{ messages[0].tool_calls[0].function.arguments.path }}",
            },
        ],
    )
    call = {"type": "function", "function": {"name": "read", "arguments": '{"path": "a<b"}'}}
    messages = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    assert chat.render(messages) == "plain"
    assert chat.render(messages, [{"name": "é<"}]) == '[{"name": "é<"}] a<b'


def test_tools_that_the_template_would_drop_are_refused(tmp_path: Path) -> None:
    chat = template(tmp_path, SIMPLE)
    assert chat.render(USER, []) == chat.render(USER)
    with pytest.raises(UnsupportedRequest, match="no place for tools"):
        chat.render(USER, [{"type": "function"}])


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ ''.__class__.__mro__ }}", "sandbox"),
        ("{{ messages.append(1) }}", "sandbox"),
        ("{% for %}", "refuses"),
    ],
)
def test_a_template_that_refuses_or_misbehaves_is_one_clear_sentence(
    tmp_path: Path, source: str, words: str
) -> None:
    with pytest.raises(UnsupportedRequest, match=words):
        template(tmp_path, source).render(USER)


def test_no_template_is_said(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedRequest, match="no chat template"):
        template(tmp_path, None).render(USER)


def test_training_marks_and_loop_controls_are_understood(tmp_path: Path) -> None:
    source = "{% for m in messages %}{% generation %}x{% endgeneration %}{% break %}{% endfor %}"
    assert template(tmp_path, source).render([*USER, *USER]) == "x"


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([], "^messages is empty: a chat has at least one message"),
        ([*USER, {"content": "x"}], r"^messages\[1\].role is missing: it is one of system, developer, user,"),
        ([{"role": "usr", "content": "x"}], r"^messages\[0\].role is unknown to the embedded engine: it is"),
        ([{"role": ["user"], "content": "x"}], r"^messages\[0\].role is unknown"),
    ],
)
def test_messages_that_a_template_would_leave_out_are_refused(
    tmp_path: Path, messages: list[dict[str, Any]], said: str
) -> None:
    with pytest.raises(UnsupportedRequest, match=said):
        template(tmp_path, SIMPLE).render(messages)


def test_a_developer_is_the_system_where_the_template_knows_none(tmp_path: Path) -> None:
    messages = [{"role": "developer", "content": "be brief"}]
    assert template(tmp_path, SIMPLE).render(messages) == "<s>[system]be brief[assistant]"
    knowing = SIMPLE + "{# developer #}"
    assert template(tmp_path, knowing).render(messages) == "<s>[developer]be brief[assistant]"


def test_no_refusal_names_a_path(tmp_path: Path) -> None:
    for source in (
        None,
        "{{ messages[7].content }}",
        "{{ ().__class__.__bases__ }}",
        "{{ raise_exception('no') }}",
    ):
        with pytest.raises(UnsupportedRequest) as refused:
            template(tmp_path, source).render(USER)
        assert str(tmp_path) not in str(refused.value)
