"""One edit from the file to the new file: the part that is the same for a sync and an async client.

`EditRun` is pure but for reading the file: it makes the request, takes the answer's chunks and makes the
`FileEdit`. The two drivers at the end only move chunks.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

from specclient.client.params import NOT_GIVEN, EditParams, NotGiven
from specclient.edit import prompt
from specclient.edit.checks import check
from specclient.edit.extract import extract
from specclient.edit.replace import check_replaceable
from specclient.edit.restore import restore
from specclient.edit.result import FileEdit
from specclient.edit.room import check_room
from specclient.errors import BadRequestError, ConfigError, IncompleteOutput
from specclient.prediction import Prediction
from specclient.report import Report
from specclient.textfile import FileImage, name_in_text
from specclient_providers import refuses

_WHOLE = frozenset({"stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete", "completed"})
_CUT_OFF = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
"""Finish reasons as compatible servers write them; any other is not taken for a whole answer."""

_OWN = {
    "messages": "",
    "n": "",
    "prediction": "predict=False sends none",
    "stream": "on_text gets the pieces of the answer",
}
"""What an edit sets itself, and what to give in its place."""

OnText = Callable[[str], None]
"""Called with each piece of the answer as it arrives."""


@dataclass(slots=True)
class EditRun:
    """The state of one edit. `start` reads the file; `feed` takes chunks; `finish` ends it."""

    path: Path
    image: FileImage
    request: dict[str, Any] = field(repr=False)
    instruction: str = field(repr=False)
    exact: bool = False
    on_text: OnText | None = None
    pieces: list[str] = field(default_factory=list, repr=False)
    length: int = 0
    finish_reason: str | None = None
    report: Report | None = None
    own_temperature: bool = False
    """The temperature was chosen here and not by the caller."""

    @classmethod
    def start(
        cls,
        path: str | os.PathLike[str],
        instruction: str,
        *,
        write: bool = False,
        predict: bool = True,
        exact: bool = False,
        encoding: str | None = None,
        on_text: OnText | None = None,
        temperature: float | NotGiven | None = NOT_GIVEN,
        **request: Unpack[EditParams],
    ) -> EditRun:
        """Read the file and make the request; raises FileError or ConfigError before anything is sent."""
        instruction = _decoded(instruction)
        if not instruction.strip():
            raise ConfigError("The instruction is empty: say what should change in the file.")
        taken = _OWN.keys() & request.keys()
        if taken:
            hints = "".join(f"; {_OWN[name]}" for name in sorted(taken) if _OWN[name])
            raise ConfigError(f"edit() sets {', '.join(sorted(taken))} itself{hints}.")
        image = FileImage.load(path, encoding=encoding)
        if write:
            check_replaceable(path)
        body = {"messages": prompt.messages(image, instruction), "stream": True, **request}
        own = isinstance(temperature, NotGiven)
        if temperature is not None:
            body["temperature"] = 0 if own else temperature
        if predict:
            body["prediction"] = Prediction(image.text, image)
        return cls(Path(path), image, body, instruction, exact, on_text, own_temperature=own)

    def leave_temperature(self, error: BadRequestError) -> None:
        """Take back the temperature that was chosen here, if that is what the endpoint refuses.

        Reasoning models of several endpoints take no other than their own. Raises any other error.
        """
        if not self.own_temperature or not refuses(error.status_code, error.body, ("temperature",)):
            raise error
        self.own_temperature = False
        del self.request["temperature"]

    def feed(self, chunk: Any) -> None:
        """Take one chunk of the stream. Reasoning is another channel and is not looked at."""
        self.report = getattr(chunk, "specclient", None) or self.report
        for choice in chunk.choices or ():
            text = choice.delta.content if choice.delta is not None else None
            self.finish_reason = choice.finish_reason or self.finish_reason
            if text:
                self._take(text)

    def _take(self, text: str) -> None:
        self.pieces.append(text)
        self.length += len(text)
        if self.on_text is not None:
            self.on_text(text)
        if self.length > 4 * len(self.image.text) + 16_384:
            raise self._incomplete("the answer grew to four times the file's length and was stopped")

    def finish(self, *, write: bool, force: bool) -> FileEdit:
        """The edit, written if asked. Raises IncompleteOutput or EditRefused with the file untouched."""
        ended = str(self.finish_reason or "").lower()
        if ended in _CUT_OFF:
            raise self._incomplete(
                "the answer was cut off at the length limit (max_tokens, or the model's context)"
            )
        if ended not in _WHOLE:
            raise self._incomplete(f"the answer ended with {self.finish_reason or 'no finish reason'}")
        answer = "".join(self.pieces)
        extracted = extract(answer, self.image.text, self.image.name, self.instruction)
        restored = restore(self.image, extracted.text, exact=self.exact)
        edit = FileEdit(
            path=self.path,
            image=self.image,
            bytes=restored.data,
            answer=answer,
            warnings=check(self.image, extracted, restored, self.instruction),
            report=self.report,
        )
        if write:
            edit.write(force=force)
        return edit

    def _incomplete(self, what: str) -> IncompleteOutput:
        partial = "".join(self.pieces)
        lines = partial.count("\n") + 1
        error = IncompleteOutput(
            f"{name_in_text(self.path)} is untouched: {what}, after {lines} line{'' if lines == 1 else 's'}, "
            f"and the file has {len(self.image.endings)}.",
            partial=partial,
        )
        error.report = self.report
        return error


def _decoded(instruction: str) -> str:
    """An instruction from the command line of a system whose encoding is not UTF-8, as it was typed."""
    try:
        return instruction.encode("utf-8", "surrogateescape").decode()
    except UnicodeError:
        raise ConfigError("The instruction is no UTF-8 text: convert it first.") from None


def edit_file(
    client: Any,
    path: str | os.PathLike[str],
    instruction: str,
    *,
    write: bool = False,
    force: bool = False,
    predict: bool = True,
    exact: bool = False,
    encoding: str | None = None,
    on_text: OnText | None = None,
    temperature: float | NotGiven | None = NOT_GIVEN,
    **request: Unpack[EditParams],
) -> FileEdit:
    """Regenerate a file through `client`: see `specclient.edit`."""
    run = EditRun.start(
        path,
        instruction,
        write=write,
        predict=predict,
        exact=exact,
        encoding=encoding,
        on_text=on_text,
        temperature=temperature,
        **request,
    )
    check_room(client, run.image, run.request)
    create = client.chat.completions.create
    try:
        opened = create(**run.request)
    except BadRequestError as error:
        run.leave_temperature(error)
        opened = create(**run.request)
    with opened as stream:
        for chunk in stream:
            run.feed(chunk)
    return run.finish(write=write, force=force)


async def edit_file_async(
    client: Any,
    path: str | os.PathLike[str],
    instruction: str,
    *,
    write: bool = False,
    force: bool = False,
    predict: bool = True,
    exact: bool = False,
    encoding: str | None = None,
    on_text: OnText | None = None,
    temperature: float | NotGiven | None = NOT_GIVEN,
    **request: Unpack[EditParams],
) -> FileEdit:
    """As `edit_file`, through an async client."""
    run = EditRun.start(
        path,
        instruction,
        write=write,
        predict=predict,
        exact=exact,
        encoding=encoding,
        on_text=on_text,
        temperature=temperature,
        **request,
    )
    await asyncio.to_thread(check_room, client, run.image, run.request)
    create = client.chat.completions.create
    try:
        opened = await create(**run.request)
    except BadRequestError as error:
        run.leave_temperature(error)
        opened = await create(**run.request)
    async with opened as stream:
        async for chunk in stream:
            run.feed(chunk)
    return run.finish(write=write, force=force)
