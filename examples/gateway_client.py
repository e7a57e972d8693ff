"""The server and an unmodified client of it: what an editor or a program in another language sees.

pip install '.[local,serve]' openai            in a checkout
python examples/gateway_client.py

The server runs in a thread here; usually it is `specclient serve` in a terminal of its own.
"""

from __future__ import annotations

import argparse
import queue
import threading

try:
    import openai

    from specclient.gateway.run import make_server
except ModuleNotFoundError as missing:
    raise SystemExit(
        f"this example needs {missing.name}: in a checkout, pip install '.[local,serve]' openai"
    ) from None

FILE = "[server]\nhost = 127.0.0.1\nport = 8080\n\n[log]\nlevel = info\nfile = /var/log/app.log\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", default="local", help="a target, or TARGET/MODEL")
    options = parser.parse_args()

    addresses: queue.Queue[str] = queue.Queue()
    server = make_server(port=0, on_ready=addresses.put)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        with openai.OpenAI(base_url=addresses.get(timeout=30), api_key="unused") as client:
            print("served:", ", ".join(model.id for model in client.models.list()))
            stream = client.chat.completions.create(
                model=options.model,
                messages=[
                    {"role": "user", "content": f"Set level to debug. Answer with the file only.\n\n{FILE}"}
                ],
                prediction={"type": "content", "content": FILE},
                temperature=0,
                stream=True,
            )
            for chunk in stream:
                for choice in chunk.choices:
                    print(choice.delta.content or "", end="", flush=True)
            print("\nreport:", chunk.model_extra["specclient"]["prediction"])
    finally:
        server.should_exit = True
        thread.join()


if __name__ == "__main__":
    main()
