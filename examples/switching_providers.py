"""The same call for several providers: what would be sent where, and why. No network, no key.

python examples/switching_providers.py
"""

from __future__ import annotations

from datetime import date

import specclient

KNOWN = "timeout = 30\nretries = 2\n"
REQUEST = {
    "messages": [{"role": "user", "content": f"Set retries to 5.\n\n{KNOWN}"}],
    "prediction": {"type": "content", "content": KNOWN},
    "max_tokens": 100,
}
PLACES = [
    {"provider": "openai", "model": "gpt-4o"},
    {"provider": "openai", "model": "gpt-4o", "on": date(2027, 2, 1)},
    {"provider": "fireworks", "model": "accounts/fireworks/models/qwen2p5-coder-32b-instruct"},
    {"provider": "cerebras", "model": "gpt-oss-120b"},
    {"provider": "groq", "model": "openai/gpt-oss-120b"},
    {"provider": "vllm", "model": "qwen", "base_url": "http://127.0.0.1:8000/v1"},
    {"provider": "local"},
]


def main() -> None:
    for place in PLACES:
        plan = specclient.plan(REQUEST, **place)
        day = f" on {place['on']}" if "on" in place else ""
        print(f"{place['provider']}{day}: {plan.outcome}")
        print(f"  sends {', '.join(plan.body)}")
        for reason in (*plan.reasons, *plan.notes):
            print(f"  {reason}")


if __name__ == "__main__":
    main()
