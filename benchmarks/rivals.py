"""The engines that a user could pick instead, each asked for the same tokens from the same weights.

transformers runs in this process. llama.cpp and vLLM run from environments of their own, named by their
interpreter, as the servers that they are; each is ended by its process id.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks.common import say

_LLAMA_SERVER = """
import sys, time, xllamacpp as x
p = x.CommonParams()
p.model.path, p.n_ctx, p.n_parallel, p.port = sys.argv[1], int(sys.argv[3]), 1, int(sys.argv[4])
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = int(sys.argv[5])
if sys.argv[2] != "none":
    p.speculative.types = [getattr(x.common_speculative_type, "COMMON_SPECULATIVE_TYPE_" + sys.argv[2])]
server = x.Server(p)
print("listening", server.listening_address, flush=True)
while True:
    time.sleep(1)
"""


@dataclass(frozen=True, slots=True)
class Run:
    """One generation: its tokens, and the seconds between its first token and its last."""

    tokens: tuple[int, ...]
    decode_seconds: float
    prefill_seconds: float | None = None

    @property
    def decoded(self) -> int:
        """Tokens that fall into the decode time: the first one belongs to prefill."""
        return len(self.tokens) - 1


class Transformers:
    """`generate`, greedy, in bf16; with `lookup` its own prompt lookup drafts that many tokens."""

    def __init__(self, folder: Path) -> None:
        import torch
        from transformers import AutoModelForCausalLM

        self._torch = torch
        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()

    def run(self, prompt: Sequence[int], max_tokens: int, *, lookup: int | None = None) -> Run:
        stamps: list[float] = []

        def stamp(*_: Any, **__: Any) -> Any:
            stamps.append(time.perf_counter())
            return self._torch.zeros(1, dtype=self._torch.bool)

        ids = self._torch.tensor([list(prompt)])
        options: dict[str, Any] = {} if lookup is None else {"prompt_lookup_num_tokens": lookup}
        started = time.perf_counter()
        with self._torch.inference_mode():
            out = self._model.generate(
                ids,
                attention_mask=self._torch.ones_like(ids),
                max_new_tokens=max_tokens,
                do_sample=False,
                stopping_criteria=[stamp],
                **options,
            )
        tokens = tuple(out[0, len(prompt) :].tolist())
        return Run(tokens, stamps[-1] - stamps[0], stamps[0] - started)


@contextmanager
def llama_cpp(python: Path, model: Path, speculation: str, threads: int) -> Iterator[str]:
    """A llama.cpp server with `speculation` "none" or a name such as "NGRAM_SIMPLE"; yields its address."""
    port = _free_port()
    arguments = [str(model), speculation, "8192", str(port), str(threads)]
    with _process([str(python), "-c", _LLAMA_SERVER, *arguments]) as _:
        address = f"http://127.0.0.1:{port}"
        _wait_until(f"{address}/health", 120)
        yield address


def run_llama_cpp(address: str, prompt: Sequence[int], max_tokens: int) -> Run:
    body = {
        "prompt": list(prompt),
        "n_predict": max_tokens,
        "temperature": 0,
        "cache_prompt": False,
        "return_tokens": True,
    }
    answer = httpx.post(f"{address}/completion", json=body, timeout=600).raise_for_status().json()
    timings = answer["timings"]
    return Run(
        tuple(answer["tokens"]) or (0,) * timings["predicted_n"],
        timings["predicted_ms"] / 1000,
        timings["prompt_ms"] / 1000,
    )


@contextmanager
def vllm(python: Path, model: Path, draft_length: int | None) -> Iterator[str]:
    """A vLLM CPU server in bf16 on all cores, drafting `draft_length` tokens from n-grams; its address."""
    port = _free_port()
    command = [str(python.with_name("vllm")), "serve", str(model), "--dtype", "bfloat16"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--max-model-len", "8192", "--max-num-seqs", "1"]
    command += ["--served-model-name", "model", "--enable-per-request-metrics"]
    command += ["--per-request-spec-decode-metrics", "summary", "--no-enable-prefix-caching"]
    if draft_length is not None:
        speculation = {
            "method": "ngram",
            "num_speculative_tokens": draft_length,
            "prompt_lookup_max": 4,
            "prompt_lookup_min": 2,
        }
        command += ["--speculative-config", json.dumps(speculation)]
    environment = {
        "VLLM_TARGET_DEVICE": "cpu",
        "VLLM_CPU_KVCACHE_SPACE": "2",
        "VLLM_CPU_NUM_OF_RESERVED_CPU": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    with _process(command, environment):
        address = f"http://127.0.0.1:{port}"
        _wait_until(f"{address}/health", 400)
        yield address


def run_vllm(address: str, prompt: Sequence[int], max_tokens: int) -> Run:
    body = {
        "model": "model",
        "prompt": list(prompt),
        "max_tokens": max_tokens,
        "temperature": 0,
        "return_token_ids": True,
    }
    answer = httpx.post(f"{address}/v1/completions", json=body, timeout=600).raise_for_status().json()
    metrics = answer["metrics"]
    tokens = answer["choices"][0].get("token_ids") or [0] * answer["usage"]["completion_tokens"]
    return Run(tuple(tokens), metrics["generation_time_ms"] / 1000, metrics["time_to_first_token_ms"] / 1000)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _process(
    command: list[str], environment: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A child in a process group of its own, so that its workers end with it."""
    process = subprocess.Popen(
        command,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait_until(url: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if httpx.get(url, timeout=2).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.5)
    say(f"{url} did not answer within {seconds:.0f} s")
    raise SystemExit(1)
