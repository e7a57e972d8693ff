"""The response of a whole answer gives its JSON once as it was parsed on the way, and is a plain one."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import httpx
import httpx2
import pytest

from specclient.middleware import wrap
from specclient.middleware.at_hand import AtHand
from specclient.middleware.families import family_named
from tests import server as scripted
from tests.server import ScriptedServer
from tests.wrap.sdks import Sdk

CONTENT = b'{"a":1.50,"specclient":{"usage":{}}}'
VALUE: dict[str, Any] = {"a": 1.5, "specclient": {"usage": {}}}


@pytest.fixture(params=[httpx, httpx2], ids=["httpx", "httpx2"])
def response(request: pytest.FixtureRequest) -> Any:
    module = request.param
    made = module.Response(200, content=CONTENT, request=module.Request("POST", "http://local"))
    family_named(module.__name__).at_hand.hold(made, copy.deepcopy(VALUE))
    return made


def test_the_value_is_given_away_once(response: Any) -> None:
    first = response.json()
    first["mine"] = True
    assert not isinstance(response, AtHand)
    assert response.json() == VALUE


def test_options_are_obeyed(response: Any) -> None:
    assert response.json(parse_float=Decimal)["a"] == Decimal("1.50")


@pytest.mark.parametrize("copied", [copy.copy, lambda whole: pickle.loads(pickle.dumps(whole))])
def test_a_copy_is_a_plain_response(response: Any, copied: Any) -> None:
    other = copied(response)
    assert not isinstance(other, AtHand)
    assert other.json() == VALUE
    assert other.content == CONTENT


def test_content_and_object_say_the_same(
    server: ScriptedServer, open_sdk: Callable[..., Sdk], is_async: bool
) -> None:
    server.respond = lambda _: scripted.reply(scripted.completion("Hé 🙂"))
    sdk = open_sdk("openai", is_async=is_async)
    wrap(sdk.client)
    raw = sdk.run(
        lambda: sdk.client.chat.completions.with_raw_response.create(
            model="m", messages=[{"role": "user", "content": "hi"}]
        )
    )
    assert AtHand in type(raw.http_response).__mro__
    dumped = raw.parse().model_dump(exclude_unset=True)
    assert dumped == json.loads(raw.http_response.content)
    assert dumped["specclient"]["attempts"][0]["status"] == 200
