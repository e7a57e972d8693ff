"""The official SDK, unchanged but for one line: `specclient.wrap`.

pip install 'specclient[local]' openai
python examples/drop_in.py
"""

from __future__ import annotations

import argparse

import openai

import specclient

KNOWN = "def greet(name):\n    return f'Hello, {name}!'\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--base-url", default="local://", help="local:// is the embedded engine")
    parser.add_argument("--model", default="qwen2.5-coder-0.5b")
    options = parser.parse_args()

    client = specclient.wrap(openai.OpenAI(base_url=options.base_url, api_key="unused"))
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


if __name__ == "__main__":
    main()
