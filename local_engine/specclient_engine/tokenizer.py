"""The tokenizer of a model folder, over the `tokenizers` library alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from tokenizers import Tokenizer as RawTokenizer

from specclient_engine.errors import ModelCorrupt, ModelNotFound, UnsupportedRequest


class FolderTokenizer:
    """Reads `tokenizer.json`, and the end-of-text ids from the model's other files.

    `encode` and `encode_with_offsets` treat their text as the middle of something: no BOS, no special
    token read out of it, no space put before it. `encode_prompt` is for text that the model's template
    made: special tokens in it are special.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / "tokenizer.json"
        try:
            self._raw = RawTokenizer.from_str(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise ModelNotFound(
                f"{folder} has no tokenizer.json; save the model with its fast tokenizer"
            ) from error
        except Exception as error:  # the library raises bare Exception for what it cannot read
            raise ModelCorrupt(f"{path} cannot be read as a tokenizer ({error}); fetch it again") from error
        self._raw.no_truncation()
        self._raw.no_padding()
        parts = _parts(self._raw)
        continuation = as_continuation(parts)
        self._middle = self._raw if continuation == parts else _sharing(self._raw, continuation)
        self._lock = Lock()
        decoders = set(_types(parts["decoder"]))
        self._byte_level = "ByteLevel" in decoders
        self._metaspace = bool({"Metaspace", "ByteFallback"} & decoders)
        added = self._raw.get_added_tokens_decoder()
        self._special = frozenset(number for number, token in added.items() if token.special)
        self._literal: dict[int, str] = {number: token.content for number, token in added.items()}
        self._bytes: dict[int, bytes] = {}
        self.eos_ids = frozenset(self._end_ids(folder))

    @cached_property
    def vocab_size(self) -> int:
        """One more than the highest id; worked out when it is asked for, as 150,000 tokens take a while."""
        return 1 + max(self._raw.get_vocab(with_added_tokens=True).values(), default=-1)

    def encode(self, text: str) -> list[int]:
        """Ids of `text` as a continuation."""
        return self._encode_middle(text).ids  # type: ignore[no-any-return]

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """As `encode`, with the [start, end) characters of each token."""
        encoding = self._encode_middle(text)
        return encoding.ids, encoding.offsets

    def encode_prompt(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        """Ids of a whole prompt; `add_special_tokens` adds what the tokenizer puts around a text (BOS)."""
        with self._lock:
            self._raw.encode_special_tokens = False
            try:
                return self._raw.encode(text, add_special_tokens=add_special_tokens).ids
            except TypeError as error:
                raise UnsupportedRequest(
                    "the prompt is no text: it holds half a surrogate pair, or is no string; decode it anew"
                ) from error

    def decode(self, ids: Sequence[int]) -> str:
        """Text of `ids`; incomplete characters become U+FFFD, special tokens vanish."""
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", errors="replace")

    def token_bytes(self, token_id: int) -> bytes:
        """The raw bytes a token stands for; empty for special tokens and ids without a token."""
        known = self._bytes.get(token_id)
        if known is None:
            known = self._bytes[token_id] = self._find_bytes(token_id)
        return known

    def same_vocabulary(self, other: FolderTokenizer) -> bool:
        """Whether every token of the smaller vocabulary has the same id in the other."""
        own, others = self._raw.get_vocab(), other._raw.get_vocab()
        smaller, larger = sorted((own, others), key=len)
        return all(larger.get(piece) == number for piece, number in smaller.items())

    def _encode_middle(self, text: str) -> Any:
        with self._lock:
            self._middle.encode_special_tokens = True
            return self._middle.encode(text, add_special_tokens=False)

    def _find_bytes(self, token_id: int) -> bytes:
        if token_id in self._special:
            return b""
        if token_id in self._literal:
            return self._literal[token_id].encode()
        piece = self._raw.id_to_token(token_id)
        if piece is None:
            return b""
        if self._byte_level:
            table = _byte_alphabet()
            return bytes(table[character] for character in piece if character in table)
        if self._metaspace:
            if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
                return bytes([int(piece[3:5], 16)])
            return piece.replace("▁", " ").encode()
        # Any other decoder: what the token adds behind itself, for a first token may lose its space.
        once, twice = self._raw.decode([token_id]), self._raw.decode([token_id, token_id])
        return (twice[len(once) :] if twice.startswith(once) else once).encode()

    def _end_ids(self, folder: Path) -> Iterator[int]:
        named = read_json(folder / "tokenizer_config.json").get("eos_token")
        content = named.get("content") if isinstance(named, Mapping) else named
        number = self._raw.token_to_id(content) if isinstance(content, str) else None
        if number is not None:
            yield number
        for name in ("generation_config.json", "config.json"):
            value = read_json(folder / name).get("eos_token_id")
            if value is not None:
                yield from value if isinstance(value, list) else (value,)
                return


def read_json(path: Path) -> dict[str, Any]:
    """The object in `path`; empty where there is no such file."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ModelCorrupt(f"{path} is not JSON ({error}); fetch it again") from error
    return value if isinstance(value, dict) else {}


def as_continuation(spec: dict[str, Any]) -> dict[str, Any]:
    """The tokenizer's description for the middle of a text: no opening space, offsets untrimmed."""
    spec = without_opening_space(spec)
    if "ByteLevel" in set(_types(spec.get("post_processor"))):
        # Besides special tokens, which a continuation has none of, it only cuts spaces off the offsets.
        return {**spec, "post_processor": None}
    return spec


def _parts(raw: RawTokenizer) -> dict[str, Any]:
    """The description of everything around the vocabulary.

    Asked of the library, which has read it: with the vocabulary the file is slow to read a second time.
    """
    names = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
    parts = {name: getattr(raw, name) for name in names}
    return {name: None if part is None else json.loads(part.__getstate__()) for name, part in parts.items()}


def _sharing(raw: RawTokenizer, parts: dict[str, Any]) -> RawTokenizer:
    """The tokenizer that `parts` describe over the vocabulary of `raw`: a second one takes 40 MB of 150,000
    tokens."""
    nothing = {"type": "BPE", "vocab": {}, "merges": []}
    made = RawTokenizer.from_str(json.dumps({**parts, "model": nothing, "added_tokens": []}))
    made.model = raw.model
    added = sorted(raw.get_added_tokens_decoder().items())
    made.add_tokens([token for _, token in added])
    if all(made.token_to_id(token.content) == number for number, token in added):
        return made
    # Ids that are not those which the library gives to added tokens in their order.
    return RawTokenizer.from_str(json.dumps({**json.loads(raw.to_str()), **parts}))


def without_opening_space(spec: Any) -> Any:
    """The description without the parts that put a space before a text's first word."""
    if isinstance(spec, list):
        parts = [without_opening_space(part) for part in spec]
        return [part for part in parts if part is not None]
    if not isinstance(spec, Mapping):
        return spec
    kind = spec.get("type")
    if kind == "Prepend":
        return None
    if kind == "Metaspace":
        return {**spec, "prepend_scheme": "never"}
    if kind == "ByteLevel":
        return {**spec, "add_prefix_space": False}
    wanted = ("normalizer", "pre_tokenizer", "normalizers", "pretokenizers")
    return {key: without_opening_space(value) if key in wanted else value for key, value in spec.items()}


def _types(part: Any) -> Iterator[str]:
    """The types of a decoder or processor and of those inside it."""
    if isinstance(part, Mapping):
        yield str(part.get("type"))
        for inner in (*(part.get("decoders") or ()), *(part.get("processors") or ())):
            yield from _types(inner)


@lru_cache(maxsize=1)
def _byte_alphabet() -> dict[str, int]:
    """The printable character that byte-level BPE (GPT-2) writes for each byte, as a way back."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    table = {chr(byte): byte for byte in printable}
    table.update({chr(0x100 + rank): byte for rank, byte in enumerate(others)})
    return table
