"""`/metrics`: counted at the end of every request, read back by Prometheus' own parser."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from specclient.config import load_config
from tests import server as scripted
from tests.gateway.conftest import Running
from tests.server import ScriptedServer, Until

KNOWN = "def bar():\n    return 1\n"
UNDER_WAY = ("specclient_requests_running", "specclient_requests_waiting")
SECRET = "a prompt that nobody else may see"


def samples(gateway: Running, **headers: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample by name and labels."""
    answer = gateway.client.get(gateway.url.removesuffix("/v1") + "/metrics", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def settled(gateway: Running) -> dict[Any, float]:
    """The samples once every request is over: an answer is read a moment before it is counted."""
    for _ in range(200):
        found = samples(gateway)
        if not sum(number for (name, _), number in found.items() if name in UNDER_WAY):
            return found
        time.sleep(0.02)
    raise AssertionError("a request is never over")


def value(found: dict[Any, float], name: str, **labels: str) -> float | None:
    return found.get((f"specclient_{name}", tuple(sorted(labels.items()))))


def usage(**details: int) -> dict[str, Any]:
    return {"prompt_tokens": 10, "completion_tokens": 60, "completion_tokens_details": details}


def served(start: Callable[..., Running], path: Path, provider: str, model: str, url: str) -> Running:
    """A gateway with one target, `it`, of a provider."""
    path.write_text(
        f'[targets.it]\nprovider = "{provider}"\nbase_url = "{url}"\nmodel = "{model}"\napi_key = "k"\n'
    )
    return start(config=load_config(path, env={}))


def test_what_a_plain_answer_adds(
    start: Callable[..., Running], upstream: ScriptedServer, tmp_path: Path
) -> None:
    gateway = served(start, tmp_path / "it.toml", "cerebras", "gpt-oss-120b", upstream.url)
    counts = usage(accepted_prediction_tokens=49, rejected_prediction_tokens=7)
    upstream.play(scripted.reply(scripted.completion("Hello", usage=counts)))
    assert gateway.post(model="it", prediction=KNOWN).status_code == 200
    found = settled(gateway)
    done = {"target": "it", "api": "chat", "outcome": "completed", "status": "200"}
    assert value(found, "requests_total", **done) == 1
    assert value(found, "request_duration_seconds_count", target="it", api="chat") == 1
    assert value(found, "attempts_total", target="it", status="200") == 1
    outcome = {"target": "it", "outcome": "forwarded", "effect": "used"}
    assert value(found, "predictions_total", **outcome) == 1
    assert value(found, "prediction_tokens_total", target="it", result="accepted") == 49
    assert value(found, "prediction_tokens_total", target="it", result="rejected") == 7
    assert value(found, "tokens_total", target="it", kind="prompt") == 10
    assert value(found, "tokens_total", target="it", kind="completion") == 60
    assert value(found, "requests_running", target="it") == 0
    assert value(found, "requests_waiting", target="it") == 0


def test_phases_where_the_target_tells(
    start: Callable[..., Running], upstream: ScriptedServer, tmp_path: Path
) -> None:
    gateway = served(start, tmp_path / "it.toml", "groq", "m", upstream.url)
    times = {"queue_time": 0.5, "prompt_time": 0.25, "completion_time": 0.125}
    upstream.play(scripted.reply(scripted.completion("Hello", usage=usage() | times)))
    assert gateway.post(model="it").status_code == 200
    found = settled(gateway)
    for phase, seconds in (("queue", 0.5), ("prefill", 0.25), ("decode", 0.125)):
        labels = {"target": "it", "phase": phase, "source": "server"}
        assert value(found, "phase_duration_seconds_sum", **labels) == seconds
        assert value(found, "phase_duration_seconds_count", **labels) == 1


def test_a_client_that_leaves_is_counted_as_such(gateway: Running, upstream: ScriptedServer) -> None:
    upstream.play(scripted.stream(scripted.data(scripted.chunk("a")), Until(threading.Event())))
    body = {"model": "plain", "messages": [], "stream": True}
    with gateway.client.stream("POST", "/chat/completions", json=body) as answer:
        lines = answer.iter_lines()
        next(lines)
    upstream.wait_for(lambda server: server.left == 1)
    closed = {"target": "plain", "api": "chat", "outcome": "closed", "status": "200"}
    assert value(settled(gateway), "requests_total", **closed) == 1


def test_what_is_not_reported_is_no_zero(gateway: Running, upstream: ScriptedServer) -> None:
    upstream.play(scripted.reply(scripted.completion("Hello")))
    gateway.post(model="plain", prediction=KNOWN)
    found = settled(gateway)
    assert value(found, "predictions_total", target="plain", outcome="withheld", effect="unused") == 1
    names = {name for name, _ in found}
    assert "specclient_prediction_tokens_total" not in names
    assert not any(name.startswith("specclient_phase_duration_seconds_") for name in names)


def test_failures_and_refusals_are_told_apart(gateway: Running, upstream: ScriptedServer) -> None:
    upstream.play(scripted.error(503, "busy"), scripted.sse(scripted.chunk("a"), done=False))
    gateway.post(model="plain")
    gateway.post(model="plain", stream=True)
    gateway.post(model="nobody")
    gateway.client.post("/chat/completions", content=b"x")
    found = settled(gateway)
    chat = {"api": "chat", "outcome": "failed"}
    assert value(found, "requests_total", target="plain", status="503", **chat) == 1
    assert value(found, "requests_total", target="plain", status="200", **chat) == 1
    assert value(found, "requests_total", target="none", status="404", **chat) == 1
    assert value(found, "requests_refused_total", status="415") == 1
    assert value(found, "attempts_total", target="plain", status="503") == 1


def test_a_request_waits_and_then_runs(gateway: Running, upstream: ScriptedServer) -> None:
    prefilled, done = threading.Event(), threading.Event()
    pieces = (
        scripted.data(scripted.role()),
        Until(prefilled),
        scripted.data(scripted.chunk("a")),
        Until(done),
    )
    upstream.play(scripted.stream(*pieces, scripted.data(scripted.finish()), scripted.DONE))
    body = {"model": "plain", "messages": [], "stream": True}
    with gateway.client.stream("POST", "/chat/completions", json=body) as answer:
        upstream.wait_for(lambda server: len(server.requests) == 1)
        found = samples(gateway)
        assert value(found, "requests_waiting", target="plain") == 1
        assert value(found, "requests_running", target="plain") == 0
        prefilled.set()
        lines = answer.iter_lines()
        assert any('"a"' in line for line in lines)
        found = samples(gateway)
        assert value(found, "requests_waiting", target="plain") == 0
        assert value(found, "requests_running", target="plain") == 1
        done.set()
    assert value(settled(gateway), "requests_running", target="plain") == 0


def test_labels_are_bounded_and_tell_nothing(
    start: Callable[..., Running], config: Any, upstream: ScriptedServer, monkeypatch: Any
) -> None:
    gateway = start()
    upstream.respond = lambda _: scripted.reply(scripted.completion(SECRET))
    for model in ("plain/" + SECRET, SECRET, "predicting"):
        gateway.post(
            model=model, messages=[{"role": "user", "content": SECRET}], user=SECRET, prediction=SECRET
        )
    text = gateway.client.get(gateway.url.removesuffix("/v1") + "/metrics").text
    assert SECRET not in text
    assert "sk-upstream" not in text
    targets = {dict(labels)["target"] for name, labels in settled(gateway) if dict(labels).get("target")}
    assert targets == {"plain", "predicting", "local", "none"}


def test_openmetrics_where_it_is_asked_for(gateway: Running) -> None:
    answer = gateway.client.get(
        gateway.url.removesuffix("/v1") + "/metrics",
        headers={"accept": "application/openmetrics-text; version=1.0.0"},
    )
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


def test_the_token_guards_it_and_a_busy_server_answers_it(
    start: Callable[..., Running], upstream: ScriptedServer
) -> None:
    gateway = start(token="t0ken", max_requests=1)
    url = gateway.url.removesuffix("/v1") + "/metrics"
    assert gateway.client.get(url).status_code == 401
    never = threading.Event()
    upstream.play(scripted.stream(scripted.data(scripted.chunk("a")), Until(never)))
    auth = {"authorization": "Bearer t0ken"}
    body = {"model": "plain", "messages": [], "stream": True}
    with gateway.client.stream("POST", "/chat/completions", json=body, headers=auth) as answer:
        lines = answer.iter_lines()  # dropping the iterator would close the response
        next(lines)
        assert gateway.client.post("/chat/completions", json=body, headers=auth).status_code == 429
        assert value(samples(gateway, **auth), "requests_refused_total", status="429") == 1
