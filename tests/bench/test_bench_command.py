"""`specclient bench` against a scripted endpoint: pairs, resuming, the table, JSON and the page."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from specclient.bench.summary import Decision
from tests.server import Answer, Request, ScriptedServer, chunk, error, finish, sse, usage_chunk

DETAILS = {"accepted_prediction_tokens": 8, "rejected_prediction_tokens": 2}


@pytest.fixture
def server(server: ScriptedServer) -> ScriptedServer:
    server.respond = _answer
    return server


def _answer(request: Request) -> Answer:
    known = "prediction" in request.json
    usage = usage_chunk(completion_tokens=12, **({"completion_tokens_details": DETAILS} if known else {}))
    return sse(chunk("Hel"), chunk("lo"), finish(), usage)


@pytest.fixture
def bench(
    server: ScriptedServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Any:
    from specclient.cli.main import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setattr("specclient.cli.surroundings.wait_asleep", lambda: None)

    endpoint = ("-p", "openai", "-m", "gpt-4o", "--base-url", server.url)

    def run(*arguments: object, place: tuple[str, ...] = endpoint) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["specclient", "bench", *place, *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return run


def test_every_case_runs_in_both_arms(bench: Any, server: ScriptedServer) -> None:
    code, out, _ = bench("-w", "summary", "-w", "creative", "--repeats", "2", "--json")
    assert code == 0
    value = json.loads(out)
    assert [(group["workload"], group["pairs"]) for group in value["groups"]] == [
        ("summary", 6),
        ("creative", 6),
    ]
    assert value["groups"][0]["acceptance_rate"] == 0.8
    assert value["groups"][0]["decision"] in get_args(Decision)  # which one, this machine's clock decides
    bodies = [request.json for request in server.requests[1:]]  # the first call only warms up
    assert sum("prediction" in body for body in bodies) == len(bodies) / 2 == 12
    assert "energy and memory" in value["about"]["not_measured"][0]


def test_the_engine_without_a_prediction_is_what_a_caller_gets_who_passes_none(
    server: ScriptedServer, tmp_path: Path
) -> None:
    """Its own drafting is left on: the verdict is about what the prediction adds to it.

    What its cache and its memory of earlier answers give would go to whichever arm comes second.
    """
    from specclient.bench.cases import Case, built_in
    from specclient.bench.runner import Runner
    from specclient.bench.schedule import blocks
    from specclient.bench.store import Store
    from specclient.client import AsyncClient

    store = Store(tmp_path / "r.jsonl", {"fingerprint": "f"})
    request = {"messages": [{"role": "user", "content": "mine"}], "extra_body": {"cache_salt": "own"}}
    salted = Case("own", "creative", request, "known")

    async def measure() -> None:
        async with AsyncClient(provider="openai", model="gpt-4o", base_url=server.url, api_key="k") as client:
            engine: Any = SimpleNamespace(chat=client.chat, target=SimpleNamespace(provider="local"))
            cases = [*built_in(["creative"]), salted]
            await Runner(engine, store).run(blocks(cases, clients=(1,), repeats=1, seed=0))

    asyncio.run(measure())
    store.close()
    bodies = [request.json for request in server.requests]
    assert sum("prediction" not in body for body in bodies[1:]) == 4
    assert not any("speculation" in body for body in bodies)
    salts = [body["cache_salt"] for body in bodies[1:]]
    assert (salts.count("own"), len(set(salts))) == (2, 7)


def test_a_fallback_is_not_measured(bench: Any, server: ScriptedServer, tmp_path: Path) -> None:
    (tmp_path / "specclient.toml").write_text(
        f'[targets.a]\nprovider = "vllm"\nmodel = "a"\nbase_url = "{server.url}"\nfallback = ["b"]\n'
        f'[targets.b]\nprovider = "vllm"\nmodel = "b"\nbase_url = "{server.url}"\n'
    )
    server.respond = lambda _: error(400, "no")
    code, out, _ = bench("-w", "chat", "--repeats", "1", "--json", place=("-t", "a"))
    assert (code, json.loads(out)["groups"][0]["without"]["failed"]) == (0, 3)
    assert {request.json["model"] for request in server.requests} == {"a"}


def test_many_clients_run_at_the_same_moment(bench: Any, server: ScriptedServer) -> None:
    code, out, _ = bench("-w", "chat", "--clients", "1,4", "--repeats", "1", "--json")
    assert code == 0
    assert [group["clients"] for group in json.loads(out)["groups"]] == [1, 4]
    assert len({request.connection for request in server.requests}) >= 4


def test_an_interrupted_measurement_goes_on(bench: Any, server: ScriptedServer, tmp_path: Path) -> None:
    bench("-w", "creative", "--repeats", "3", "--out", "r.jsonl")
    path = tmp_path / "r.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:7]))  # the head and six trials of eighteen
    before = len(server.requests)
    code, _, _ = bench("-w", "creative", "--repeats", "3", "--out", "r.jsonl")
    assert code == 0
    assert len(server.requests) - before == 12 + 1
    assert "lighthouse" not in path.read_text()
    code, _, err = bench("-w", "creative", "--repeats", "4", "--out", "r.jsonl")
    assert code == 2
    assert "another measurement" in err


def test_piped_it_says_a_line_for_each_case_that_is_done(bench: Any) -> None:
    code, out, err = bench("-w", "creative", "--repeats", "1", "--json")
    assert code == 0
    json.loads(out)
    lines = err.splitlines()
    assert [line.partition(":")[0] for line in lines] == [f"{done} of 6 done" for done in range(1, 7)]
    assert sum(": creative, with prediction, 1 at once: " in line for line in lines) == 3


def test_an_interrupt_says_what_is_kept_and_how_it_goes_on(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from specclient.bench.store import Store

    add = Store.add

    def interrupted(store: Store, found: Any) -> None:
        add(store, found)
        if len(store.samples) == 2:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Store, "add", interrupted)
    command = ("-w", "creative", "--repeats", "1", "--out", "r.jsonl")
    code, out, err = bench(*command)
    assert (code, out) == (130, "")
    assert "2 of 6 calls are done and kept in r.jsonl; the same command goes on from there\n" in err
    code, _, err = bench(*command)
    assert code == 0
    assert err.splitlines()[0] == "2 of 6 done before: going on"
    assert "3 of 6 done: " in err.splitlines()[1]


def test_what_was_measured_before_is_told_and_not_measured_again(bench: Any, server: ScriptedServer) -> None:
    command = ("-w", "creative", "--repeats", "1", "--out", "r.jsonl", "--json")
    _, out, _ = bench(*command)
    asked = len(server.requests)
    code, again, err = bench(*command)
    assert (code, again, len(server.requests)) == (0, out, asked)
    assert err == "all 6 calls were done before and are kept in r.jsonl: another --out measures anew\n"


def test_failures_are_counted_and_do_not_end_it(bench: Any, server: ScriptedServer) -> None:
    server.respond = lambda request: error(400, "no") if "prediction" in request.json else _answer(request)
    code, out, _ = bench("-w", "creative", "--repeats", "1", "--json")
    group = json.loads(out)["groups"][0]
    assert code == 0
    assert group["predicted"]["failed"] == 3
    assert group["pairs"] == 0


def test_a_target_out_of_reach_ends_it_at_once(bench: Any, server: ScriptedServer, tmp_path: Path) -> None:
    server.respond = lambda _: error(401, "who are you")
    code, out, err = bench("-w", "creative", "--out", "r.jsonl")
    assert (code, out) == (1, "")
    assert "who are you" in err
    assert len(server.requests) == 1
    assert not (tmp_path / "r.jsonl").exists()
    server.respond = _answer
    assert bench("-w", "creative", "--repeats", "1", "--out", "r.jsonl")[0] == 0


def test_one_request_for_many_clients(bench: Any, tmp_path: Path) -> None:
    request = {"messages": [{"role": "user", "content": "hi"}], "prediction": "Hello"}
    (tmp_path / "one.jsonl").write_text(json.dumps(request))
    code, out, _ = bench("one.jsonl", "--clients", "1,3", "--json")
    assert code == 0
    groups = json.loads(out)["groups"]
    assert [(group["clients"], group["pairs"], group["cases"]) for group in groups] == [(1, 3, 1), (3, 9, 1)]
    assert {group["decision"] for group in groups} == {"not enough evidence"}


def test_requests_without_predictions_prove_nothing(bench: Any, tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_text(json.dumps({"messages": [{"role": "user", "content": "hi"}]}))
    code, out, _ = bench("none.jsonl", "--json")
    assert code == 0
    assert "no request has a prediction" in json.loads(out)["groups"][0]["because"]


def test_the_table_and_the_page_tell_the_same(bench: Any, tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    code, out, _ = bench("-w", "code_edit", "--repeats", "2", "--html", "report.html")
    assert code == 0
    page = (tmp_path / "report.html").read_text()
    decided = next(decision for decision in get_args(Decision) if decision in out)
    for text in ("code_edit, 1 client", decided, "whole call", "same answer"):
        assert text in out
    assert "code_edit, 1 client" in page
    assert decided in page
    assert "Plotly.newPlot" in page
    assert "<script src=" not in page  # nothing is fetched when it is opened


def test_what_would_lose_the_measurement_is_said_first(bench: Any, server: ScriptedServer) -> None:
    for arguments in (("--out", "no/such/r.jsonl"), ("--html", "no/such/r.html")):
        code, _, err = bench("-w", "creative", *arguments)
        assert code == 2
        assert "is not a folder" in err
    assert server.requests == []


def test_a_file_of_requests_is_measured_under_its_own_names(bench: Any, tmp_path: Path) -> None:
    request = {"messages": [{"role": "user", "content": "hi"}], "prediction": "Hello"}
    (tmp_path / "mine.jsonl").write_text(json.dumps(request) + "\n")
    code, out, _ = bench("mine.jsonl", "--json")
    assert code == 0
    assert json.loads(out)["groups"][0]["workload"] == "mine"


@pytest.mark.parametrize(
    "arguments",
    [("-w", "nope"), ("--clients", "0"), ("--clients", "a"), ("none.jsonl",), ("x.jsonl", "-w", "chat")],
)
def test_wrong_arguments_exit_2(bench: Any, arguments: tuple[str, ...]) -> None:
    assert bench(*arguments)[0] == 2
