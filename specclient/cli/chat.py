"""`specclient chat`: one question, or a conversation."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specclient.cli import options
from specclient.cli.terminal import as_typed, guarded, read_stdin, stderr, write_json

if TYPE_CHECKING:
    from specclient.report import Report


@guarded
def chat(
    prompt: Annotated[
        str | None, typer.Argument(help="The question; '-' reads stdin; none starts a conversation.")
    ] = None,
    system: Annotated[str | None, typer.Option("--system", "-s", help="The system message.")] = None,
    prediction: Annotated[
        str | None, typer.Option("--prediction", help="Text expected in the answer.")
    ] = None,
    prediction_file: Annotated[
        Path | None, typer.Option("--prediction-file", help="A file whose text is expected in the answer.")
    ] = None,
    temperature: Annotated[
        float | None, typer.Option("--temperature", min=0, help="Sampling temperature.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the sampling.")] = None,
    account: Annotated[bool, typer.Option("--account", help="Show where the time went, on stderr.")] = False,
    target: options.TargetName = None,
    provider: options.Provider = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    max_tokens: options.MaxTokens = None,
    config: options.ConfigPath = None,
    as_json: options.Json = False,
) -> None:
    """Ask a model. The answer streams to stdout; reasoning and figures go to stderr."""
    from specclient.cli.clients import client_of, pick_target

    prompt, system = as_typed("PROMPT", prompt), as_typed("--system", system)
    known = _known_text(as_typed("--prediction", prediction), prediction_file)
    settings = options.chosen(prediction=known, temperature=temperature, seed=seed, max_tokens=max_tokens)
    messages = [{"role": "system", "content": system}] if system else []
    question = _question(prompt)
    picked, loaded = pick_target(target, provider, model, base_url=base_url, config=config)
    if picked.provider == "local":
        _check_temperature(temperature)
    with client_of(picked, loaded) as client:
        if question is None:
            _converse(client, messages, settings, account=account)
            return
        messages.append({"role": "user", "content": question})
        answer = _Answer(silent=as_json)
        answer.read(client, messages, settings)
        if as_json:
            write_json(answer.as_dict())
        elif account and answer.report is not None:
            _print_account(answer.report)


class _Answer:
    """One answer, written to stdout as it comes unless `silent`."""

    def __init__(self, *, silent: bool = False) -> None:
        self.silent = silent
        self.text = ""
        self.finish_reason: str | None = None
        self.report: Report | None = None

    def read(self, client: Any, messages: list[dict[str, Any]], settings: dict[str, Any]) -> None:
        with client.chat.completions.create(messages=messages, stream=True, **settings) as stream:
            for chunk in stream:
                self.report = getattr(chunk, "specclient", None) or self.report
                for choice in chunk.choices or ():
                    self.finish_reason = choice.finish_reason or self.finish_reason
                    self._say(choice.delta)
        if not self.silent and not self.text.endswith("\n"):
            print(flush=True)

    def _say(self, delta: Any) -> None:
        thought = getattr(delta, "reasoning_content", None) or getattr(delta, "reasoning", None)
        if thought and not self.silent:
            stderr().print(thought, style="dim", end="", markup=False, soft_wrap=True)
        if delta is not None and delta.content:
            self.text += delta.content
            if not self.silent:
                sys.stdout.write(delta.content)
                sys.stdout.flush()

    def as_dict(self) -> dict[str, Any]:
        return {"content": self.text, "finish_reason": self.finish_reason, "specclient": self.report}


def _converse(
    client: Any, messages: list[dict[str, Any]], settings: dict[str, Any], *, account: bool
) -> None:
    """Questions from the terminal until its end (Ctrl-D); the conversation is kept."""
    from specclient.errors import ConfigError

    while True:
        try:
            question = input("> " if sys.stdin.isatty() else "")
        except EOFError:
            print(file=sys.stderr)
            return
        except UnicodeDecodeError as error:
            raise ConfigError(f"What was typed is no {error.encoding} text: convert it first.") from None
        if not question.strip():
            continue
        messages.append({"role": "user", "content": as_typed("What was typed", question)})
        answer = _Answer()
        answer.read(client, messages, settings)
        messages.append({"role": "assistant", "content": answer.text})
        if account and answer.report is not None:
            _print_account(answer.report)


def _question(prompt: str | None) -> str | None:
    from specclient.errors import ConfigError

    if prompt is None and sys.stdin.isatty():
        return None
    text = read_stdin() if prompt in (None, "-") else prompt or ""
    if not text.strip():
        raise ConfigError("There is no question: give one as the argument or on stdin.")
    return text


def _check_temperature(temperature: float | None) -> None:
    """What the engine would refuse is said before it is loaded."""
    from specclient.core.local_request import RANGES
    from specclient.errors import ConfigError

    low, high = RANGES["temperature"]
    if temperature is not None and not low <= temperature <= high:
        raise ConfigError(f"--temperature is a number from {low} to {high}, not {temperature:g}.")


def _known_text(text: str | None, file: Path | None) -> Any:
    from specclient.errors import ConfigError
    from specclient.prediction import Prediction

    if text is not None and file is not None:
        raise ConfigError("Give either --prediction or --prediction-file.")
    return Prediction.from_file(file) if file is not None else text


def _print_account(report: Report) -> None:
    from specclient.cli.account import print_account

    print_account(report, stderr())
