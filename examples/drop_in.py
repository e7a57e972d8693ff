"""The official SDK with its own types and errors, and `specclient.wrap` around the client.

pip install '.[local]' openai                                  in a checkout
python examples/drop_in.py                                     the embedded engine, in this process
python examples/drop_in.py --base-url URL --model MODEL        any server, its key in OPENAI_API_KEY
"""

from __future__ import annotations

import argparse
import os

import specclient

try:
    import openai
except ModuleNotFoundError:
    raise SystemExit("this example needs the official SDK: pip install openai") from None

KNOWN = "def greet(name):\n    return f'Hello, {name}!'\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--base-url", default="local://", help="local:// is the embedded engine")
    parser.add_argument("--model", default="qwen2.5-coder-0.5b")
    options = parser.parse_args()

    # The SDK insists on a key, also where nobody asks for one.
    key = os.environ.get("OPENAI_API_KEY", "unused")
    client = specclient.wrap(openai.OpenAI(base_url=options.base_url, api_key=key))
    answer = client.chat.completions.create(
        model=options.model,
        messages=[
            {"role": "user", "content": f"Rename greet to welcome. Answer with the code only.\n\n{KNOWN}"},
        ],
        prediction={"type": "content", "content": KNOWN},
        temperature=0,
    )
    print(answer.choices[0].message.content)
    report = specclient.report_of(answer)
    if report is not None:
        print(f"prediction: {report.prediction.outcome}, {report.prediction.effect}")
        for reason in report.prediction.reasons:
            print("because:", reason)


if __name__ == "__main__":
    main()
