"""Predictions through SDKs that have no such parameter, streamed, with the report at the end.

pip install '.[local]' groq                    in a checkout; or cerebras-cloud-sdk, fireworks-ai, …
python examples/wrap_sdks.py --sdk groq                        the embedded engine, no key
python examples/wrap_sdks.py --sdk groq --base-url https://api.groq.com --model llama-3.1-8b-instant
"""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Iterator
from typing import Any

import specclient

KNOWN = "[server]\nhost = 127.0.0.1\nport = 8080\n\n[log]\nlevel = info\nfile = /var/log/app.log\n"
MESSAGES = [{"role": "user", "content": f"Set level to debug. Answer with the file only.\n\n{KNOWN}"}]


def make(sdk: str, base_url: str) -> Any:
    """A client of the SDK, as its own documentation makes one."""
    key = os.environ.get(f"{sdk.upper()}_API_KEY", "unused")
    if sdk == "mistralai":
        from mistralai.client import Mistral

        return Mistral(api_key=key, server_url=base_url)
    module, name = {
        "groq": ("groq", "Groq"),
        "cerebras": ("cerebras.cloud.sdk", "Cerebras"),
        "fireworks": ("fireworks", "Fireworks"),
        "together": ("together", "Together"),
    }[sdk]
    options = {"warm_tcp_connection": False} if sdk == "cerebras" else {}
    return getattr(importlib.import_module(module), name)(api_key=key, base_url=base_url, **options)


def chunks(client: Any, sdk: str, model: str) -> Iterator[Any]:
    if sdk == "mistralai":
        yield from (event.data for event in client.chat.stream(model=model, messages=MESSAGES))
    else:
        yield from client.chat.completions.create(model=model, messages=MESSAGES, stream=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--sdk", default="groq", choices=["groq", "cerebras", "fireworks", "together", "mistralai"]
    )
    parser.add_argument("--base-url", default="local://engine")
    parser.add_argument("--model", default="qwen2.5-coder-0.5b")
    options = parser.parse_args()

    try:
        sdk = make(options.sdk, options.base_url)
    except ModuleNotFoundError as missing:
        raise SystemExit(f"{options.sdk} is not installed: there is no {missing.name}") from None
    client = specclient.wrap(sdk)
    with specclient.predicting(KNOWN):
        for chunk in chunks(client, options.sdk, options.model):
            for choice in chunk.choices or ():
                print(choice.delta.content or "", end="", flush=True)
    print()
    report = specclient.last_report()
    if report is not None:
        print(f"prediction: {report.prediction.outcome}, {report.prediction.effect}")
        for reason in report.prediction.reasons:
            print("because:", reason)


if __name__ == "__main__":
    main()
