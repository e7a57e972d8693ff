"""The tracing examples run as they are, against a played server and a plain collector."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from collector import Collector, GrpcCollector, HttpCollector

from tests.server import ScriptedServer, chunk, completion, finish, reply, role, sse, usage_chunk

EXAMPLES = Path(__file__).parents[2] / "examples"
USAGE = {"prompt_tokens": 40, "completion_tokens": 9, "total_tokens": 49}


@pytest.fixture
def collector(request: pytest.FixtureRequest) -> Iterator[Collector]:
    with request.param() as collector:
        yield collector


@pytest.mark.parametrize(
    ("collector", "script", "options"),
    [
        (HttpCollector, "tracing_collector.py", ["--endpoint"]),
        (GrpcCollector, "tracing_collector.py", ["--grpc", "--endpoint"]),
        (HttpCollector, "tracing_phoenix.py", ["--phoenix"]),
        (HttpCollector, "tracing_mlflow.py", ["--mlflow"]),
    ],
    indirect=["collector"],
)
def test_an_example_delivers_its_span(
    collector: Collector, tmp_path: Path, script: str, options: list[str]
) -> None:
    with ScriptedServer() as server:
        if script == "tracing_collector.py":
            server.play(sse(role(), chunk("def amount"), finish(), usage_chunk(**USAGE)))
        else:
            server.play(reply(completion("def amount", usage=USAGE)))
        config = tmp_path / "specclient.toml"
        config.write_text(
            f'[targets.played]\nprovider = "vllm"\nmodel = "m"\nbase_url = "{server.url}/v1"\napi_key = "k"\n'
        )
        done = subprocess.run(
            [sys.executable, EXAMPLES / script, *options, collector.base, "--target", "played"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
            capture_output=True,
            text=True,
            timeout=100,
        )
    assert done.returncode == 0, done.stderr
    assert "def amount" in done.stdout
    spans = {span.name: span for span in collector.spans}
    call = spans["chat m"]
    attributes = {pair.key: pair.value for pair in call.attributes}
    assert attributes["gen_ai.provider.name"].string_value == "vllm"
    assert attributes["gen_ai.usage.output_tokens"].int_value == 9
    if script == "tracing_collector.py":
        assert call.parent_span_id == spans["edit"].span_id
    if script == "tracing_mlflow.py":
        assert collector.headers[0]["x-mlflow-experiment-id"] == "0"
