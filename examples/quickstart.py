"""One call with a prediction, and what it bought.

python examples/quickstart.py                  the embedded engine
python examples/quickstart.py --target prod    a target of your specclient.toml
"""

from __future__ import annotations

import argparse

import specclient

KNOWN = """[server]
host = 127.0.0.1
port = 8080
workers = 4

[log]
level = info
file = /var/log/app.log

[cache]
size = 512
ttl = 300
"""
QUESTION = f"Set port to 9000. Answer with the file only.\n\n{KNOWN}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--target", help="a target of your configuration (default: the embedded engine)")
    parser.add_argument("--model", help="another model of the target")
    options = parser.parse_args()

    where = {"target": options.target} if options.target else {"provider": "local"}
    with specclient.Client(**where, model=options.model) as client:
        answer = client.chat.completions.create(
            messages=[{"role": "user", "content": QUESTION}],
            prediction=KNOWN,
            temperature=0,
            max_tokens=200,
        )
    print(answer.choices[0].message.content)

    report = answer.specclient
    print(f"\nprediction: {report.prediction.outcome}, {report.prediction.effect}")
    print(f"accepted {report.prediction.accepted_tokens}, rejected {report.prediction.rejected_tokens}")
    for name in ("queue", "prefill", "decode"):
        phase = getattr(report.timing, name)
        print(f"{name:<8}", "not reported" if phase is None else f"{phase.seconds:.3f} s, {phase.source}")
    for reason in report.prediction.reasons:
        print("because:", reason)


if __name__ == "__main__":
    main()
