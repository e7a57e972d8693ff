"""Whether a file fits into the embedded engine's context twice: as the question and as the answer."""

from __future__ import annotations

from typing import Any

from specclient.errors import FileError
from specclient.textfile import FileImage

_SHORTEST_ANSWER = 0.9
"""Share of the file that an answer needs at least, if it is the whole file after a usual edit."""


def check_room(client: Any, image: FileImage, request: dict[str, Any]) -> None:
    """Raise FileError, with the figures, before minutes go by on an answer that must be cut off.

    Only the engine in this process can be asked. A hosted model cuts the answer off, and that is noticed.
    """
    first = next(iter(getattr(client, "destinations", ())), None)
    if first is None or first.target.provider != "local":
        return
    engine = first.transport.engine(request.get("model") or first.target.model)
    prompt = len(engine.chat_prompt(request["messages"]))
    answer = len(engine.tokenizer.encode(image.text))
    if prompt + _SHORTEST_ANSWER * answer > engine.max_context:
        raise FileError(
            f"{image.name} is too long for the model: it has {answer:,} tokens, stands in the prompt of "
            f"{prompt:,} and would have to fit into the answer once more, and the context has "
            f"{engine.max_context:,}. Split the file, or use a model with a longer context."
        )
