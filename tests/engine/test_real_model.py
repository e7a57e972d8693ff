"""SmolLM2 in float32, from its files: good, bad and no prediction give the plain output."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from engine_kit import Answer

from specclient_engine import Engine, GenerationRequest, SamplingParams

pytestmark = pytest.mark.model
CODE = "def area(w, h):\n    return w * h\n\n\ndef volume(w, h, d):\n    return area(w, h) * d\n"


@pytest.fixture(scope="module")
def engine(smollm2_path: Path) -> Iterator[Engine]:
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    with Engine.load(smollm2_path, dtype="float32", max_context=1024) as engine:
        yield engine
    torch.set_num_threads(threads)


@pytest.mark.parametrize(
    "sampling",
    [SamplingParams(), SamplingParams(temperature=0.8, top_p=0.9, seed=11, frequency_penalty=0.2)],
    ids=["greedy", "sampled"],
)
def test_every_prediction_gives_the_plain_output(engine: Engine, sampling: SamplingParams) -> None:
    prompt = engine.chat_prompt([{"role": "user", "content": f"Repeat this code exactly:\n\n{CODE}"}])

    def ask(*predictions: str, speculation: str = "auto") -> Answer:
        request = GenerationRequest(
            prompt_ids=prompt,
            predictions=predictions,
            max_tokens=40,
            sampling=sampling,
            speculation=speculation,  # type: ignore[arg-type]
        )
        return Answer.read(engine.submit(request))

    plain = ask(speculation="off")
    assert plain.text
    for predictions in ((plain.text,), (CODE,), ("Nothing that anybody would write here.",), ()):
        answer = ask(*predictions)
        assert (answer.token_ids, answer.text) == (plain.token_ids, plain.text)
    known = ask(plain.text)
    assert known.stats.by_source["prediction"][1] > 0
    assert sum(accepted for _, accepted in known.stats.by_source.values()) > 20
    assert known.stats.forward_passes < plain.stats.forward_passes / 2


def test_importing_the_engine_is_light() -> None:
    code = (
        "import sys, specclient_engine; heavy = {'torch', 'transformers', 'tokenizers', 'jinja2', 'numpy'};"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
