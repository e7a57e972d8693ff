"""The tokenizer of a model folder: bytes of every token, text as a continuation, the ends of a text."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from specclient_engine.errors import ModelCorrupt, ModelNotFound, UnsupportedRequest
from specclient_engine.text import TextStream
from specclient_engine.tokenizer import FolderTokenizer, as_continuation

CORPUS = ["def rename(foo, bar):\n    return foo + bar\n", "Ünïcödé und 中文 🎉", "a  b\t\tc\r\nd"] * 3
SPECIAL = ["<s>", "</s>", "<|end|>"]


def byte_level() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, special_tokens=SPECIAL)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def byte_fallback() -> Tokenizer:
    """As in Llama 2: a space before the first word, bytes for what has no token, BOS before all."""
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2} | {f"<0x{byte:02X}>": 3 + byte for byte in range(256)}
    for piece in "▁abcdefghijklmnopqrstuvwxyzABC.,\n":
        vocab[piece] = len(vocab)
    merges = [("▁", "a"), ("a", "b"), ("▁", "▁")]
    for left, right in merges:
        vocab[left + right] = len(vocab)
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens(["<s>", "</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer


KINDS = {"byte level": byte_level, "byte fallback": byte_fallback}


def save(raw: Tokenizer, folder: Path, **config: Any) -> FolderTokenizer:
    raw.save(str(folder / "tokenizer.json"))
    for name, value in config.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    return FolderTokenizer(folder)


@pytest.fixture(params=KINDS)
def tokenizer(request: pytest.FixtureRequest, tmp_path: Path) -> FolderTokenizer:
    return save(KINDS[request.param](), tmp_path)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(text=st.text())
def test_a_text_survives_the_way_to_tokens_and_back(tokenizer: FolderTokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert b"".join(map(tokenizer.token_bytes, ids)) == text.encode()
    assert tokenizer.decode(ids) == text
    stream = TextStream(tokenizer, tokenizer.encode("ab"), ())
    for token in ids:
        stream.push(token)
    assert stream.finish() == text


def test_special_tokens_in_a_continuation_are_text(tokenizer: FolderTokenizer) -> None:
    ids = tokenizer.encode("a</s>b")
    assert tokenizer.decode(ids) == "a</s>b"
    assert not {1, 2} & set(ids) or tokenizer.vocab_size > 300
    special = tokenizer.encode_prompt("a</s>b")
    assert len(special) < len(ids)
    assert tokenizer.encode("a</s>b") == ids


def test_a_continuation_gets_neither_bos_nor_space(tmp_path: Path) -> None:
    tokenizer = save(byte_fallback(), tmp_path)
    assert tokenizer.encode_prompt("ab", add_special_tokens=True)[0] == 1
    assert tokenizer.decode(tokenizer.encode("ab")) == "ab"
    assert tokenizer.decode(tokenizer.encode_prompt("ab")) == " ab"


def test_offsets_cover_the_text_without_gaps(tokenizer: FolderTokenizer) -> None:
    text = "a  b 中🎉\r\n\tfoo bar"
    ids, offsets = tokenizer.encode_with_offsets(text)
    assert len(ids) == len(offsets)
    assert offsets[0][0] == 0
    assert offsets[-1][1] == len(text)
    for (start, end), (following, _) in itertools.pairwise(offsets):
        assert following in (start, end)


def test_a_continuation_shares_its_vocabulary_with_the_prompt(tokenizer: FolderTokenizer) -> None:
    """Of 150,000 tokens a second vocabulary would be 40 MB, held for as long as the model is served."""
    prompt, middle = tokenizer._raw, tokenizer._middle
    assert middle is not prompt
    prompt.model.dropout = 0.5
    assert middle.model.dropout == 0.5
    prompt.model.dropout = None


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(parts=st.lists(st.sampled_from([*SPECIAL, "<tool>", "x<y>", " ", "foo", "中", "\r\n", "ab"])))
@pytest.mark.parametrize("kind", KINDS)
def test_a_shared_vocabulary_reads_as_one_of_its_own(kind: str, parts: list[str], tmp_path: Path) -> None:
    raw = KINDS[kind]()
    raw.add_tokens([AddedToken("<tool>", special=False, rstrip=True), AddedToken("x<y>", single_word=True)])
    tokenizer = save(raw, tmp_path)
    spec = as_continuation(json.loads((tmp_path / "tokenizer.json").read_text()))
    alone = Tokenizer.from_str(json.dumps(spec))
    text = "".join(parts)
    for special in (True, False):
        alone.encode_special_tokens = tokenizer._middle.encode_special_tokens = special
        ours, own = (each.encode(text, add_special_tokens=False) for each in (tokenizer._middle, alone))
        assert (ours.ids, ours.offsets) == (own.ids, own.offsets)


def test_added_tokens_with_ids_of_their_own_are_kept(tmp_path: Path) -> None:
    byte_fallback().save(str(tmp_path / "tokenizer.json"))
    spec = json.loads((tmp_path / "tokenizer.json").read_text())
    last = spec["added_tokens"][-1]
    spec["added_tokens"].append({**last, "id": 900, "content": "<far>", "special": False})
    (tmp_path / "tokenizer.json").write_text(json.dumps(spec))
    tokenizer = FolderTokenizer(tmp_path)
    prompt = tokenizer.encode_prompt("<far>")
    assert prompt[-1] == tokenizer.encode("<far>")[-1]


def test_the_ends_of_a_text_come_from_all_files(tmp_path: Path) -> None:
    config: dict[str, Any] = {"tokenizer_config": {"eos_token": "<|end|>"}, "config": {"eos_token_id": 7}}
    assert save(byte_level(), tmp_path, **config).eos_ids == {2, 7}
    config["generation_config"] = {"eos_token_id": [0, 1]}
    config["tokenizer_config"] = {"eos_token": {"content": "<s>"}}
    assert save(byte_level(), tmp_path, **config).eos_ids == {0, 1}
    none = {name: {} for name in config}
    assert save(byte_level(), tmp_path, **none).eos_ids == frozenset()


def test_added_tokens_are_text_unless_they_are_special(tmp_path: Path) -> None:
    raw = byte_level()
    raw.add_tokens([AddedToken("<tool_call>", special=False)])
    tokenizer = save(raw, tmp_path)
    (number,) = tokenizer.encode("<tool_call>")
    assert tokenizer.decode([number, 0]) == "<tool_call>"
    assert tokenizer.token_bytes(10**6) == b""


def test_a_missing_or_broken_file_is_one_clear_sentence(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match=r"tokenizer\.json"):
        FolderTokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ModelCorrupt, match=r"tokenizer\.json"):
        FolderTokenizer(tmp_path)


def test_half_a_surrogate_pair_is_no_prompt(tmp_path: Path) -> None:
    byte_level().save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(UnsupportedRequest, match="half a surrogate pair"):
        FolderTokenizer(tmp_path).encode_prompt("ab\ud800")
