"""What went wrong elsewhere with speculation, by the numbers of the reports that this project keeps.

Reports that another test of this folder covers by its content are not repeated here.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from engine_kit import Answer, Bench, ByteTokenizer, RecordingRunner, draft_of, oracle
from test_stopping import Reciter
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from benchmarks.oracle import replay
from specclient.core.ledger import _engine_speculation
from specclient.tracing.names import PREDICTION
from specclient_engine import GenerationRequest
from specclient_engine.api import Draft
from specclient_engine.cost import CostCurve
from specclient_engine.draft_length import DraftLengthPolicy
from specclient_engine.proposers import build_proposer
from specclient_engine.tokenizer import FolderTokenizer

DEAR_ROWS = CostCurve.linear(0.010, 0.001, 0.001)
"""Ten rows for the price of one, and each further one dear: room for one request's draft, not for eight's."""
CODE = "\n\ndef one():\n    return 1\n\n\ndef two():\n    return 2\n\n"


def at_once(bench: Bench, recording: RecordingRunner, count: int) -> list[Answer]:
    """`count` equal requests that share every pass, each with an oracle for its answer."""
    truth = bench.plain([7], max_tokens=40, ignore_eos=True).token_ids
    bench.proposer = lambda _: oracle(truth)
    gate = threading.Event()
    recording.before_forward = lambda: gate.wait(10)  # type: ignore[assignment]
    handles = [
        bench.engine.submit(GenerationRequest(prompt_ids=[7], max_tokens=40, ignore_eos=True))
        for _ in range(count)
    ]
    gate.set()
    answers = [Answer.read(handle) for handle in handles]
    assert all(answer.token_ids == truth for answer in answers)
    return answers


def test_c20_drafting_is_reduced_under_load_and_the_account_says_by_how_much(
    recording: RecordingRunner,
) -> None:
    bench = Bench(recording, lengths=DraftLengthPolicy(DEAR_ROWS))
    (alone,) = at_once(bench, recording, 1)
    assert alone.stats.held_back == 0
    crowd = at_once(bench, recording, 8)
    drafted = [sum(count for count, _ in answer.stats.by_source.values()) for answer in (alone, *crowd)]
    assert all(few < drafted[0] for few in drafted[1:])
    assert all(answer.stats.held_back > 0 for answer in crowd)
    told = [_engine_speculation(answer.stats).held_back_tokens for answer in (alone, *crowd)]
    assert told == [answer.stats.held_back for answer in (alone, *crowd)]
    assert any(name == "specclient.speculation.held_back_tokens" for name, *_ in PREDICTION)
    bench.engine.close()


@pytest.fixture(scope="module")
def merging(tmp_path_factory: pytest.TempPathFactory) -> FolderTokenizer:
    """A tokenizer for which two line breaks are one token."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=["<|turn|>"]
    )
    raw.train_from_iterator([CODE] * 50, trainer)
    folder = tmp_path_factory.mktemp("merging")
    raw.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({}))
    return FolderTokenizer(folder)


@pytest.mark.parametrize("known", [CODE, CODE.lstrip("\n"), " " + CODE.strip(), "   \n" + CODE])
def test_c25_a_template_that_ends_in_the_middle_of_a_merge(merging: FolderTokenizer, known: str) -> None:
    """The template ends with a line break, the answer begins with one: no token of the draft is lost."""
    assert len(merging.encode("\n\n")) == 1
    prompt = merging.encode_prompt("<|turn|>do nothing<|turn|>\n")
    target = merging.encode(known)
    proposer = build_proposer(prompt, [known], merging)
    assert list(proposer.propose(4).tokens) == target[:4]
    outcome = replay(build_proposer(prompt, [known], merging), target, DEAR_ROWS, length=whole)
    assert outcome.passes <= 3
    assert outcome.accepted + outcome.passes >= len(target)


def test_c25_a_model_that_splits_the_merge_is_followed(merging: FolderTokenizer) -> None:
    """The other way to go on behind a template's line break: single line breaks, then the text."""
    prompt = merging.encode_prompt("<|turn|>do nothing<|turn|>\n")
    one = merging.encode("\n")
    target = [*one, *one, *merging.encode(CODE.lstrip("\n"))]
    outcome = replay(build_proposer(prompt, [CODE], merging), target, DEAR_ROWS, length=whole)
    assert outcome.passes <= 5


def whole(draft: Draft) -> int:
    return len(draft.tokens)


def test_c23_drafts_hold_no_token_that_is_put_before_a_text(merging: FolderTokenizer, tmp_path: Path) -> None:
    """However often the known text is written anew, after renames for one."""
    raw = Tokenizer.from_str(merging._raw.to_str())
    raw.post_processor = processors.TemplateProcessing(
        single="<|turn|> $A", special_tokens=[("<|turn|>", raw.token_to_id("<|turn|>"))]
    )
    raw.save(str(tmp_path / "tokenizer.json"))
    tokenizer = FolderTokenizer(tmp_path)
    first = raw.token_to_id("<|turn|>")
    known = "".join(f"def name{i}(count):\n    return count + {i}\n\n" for i in range(40))
    target = tokenizer.encode(known.replace("count", "total"))
    proposer = build_proposer(tokenizer.encode_prompt("q", add_special_tokens=True), [known], tokenizer)
    done = 0
    while done < len(target):
        draft = proposer.propose(64)
        assert first not in draft.tokens
        proposer.commit(target[done : done + 1], draft_of([]), 0)
        done += 1


@pytest.mark.parametrize("least", range(1, 9))
def test_c30_repetitive_json_is_that_of_plain_decoding(bench: Bench, least: int) -> None:
    """Drafts from matches of any least length: verification makes the length a matter of speed alone."""
    prompt = list(b'{"tool": "read", "path": "a.py"}\n' * 3)
    plain = bench.plain(prompt, max_tokens=60, ignore_eos=True)

    class Copying:
        def __init__(self) -> None:
            self.text = list(prompt)

        def propose(self, limit: int) -> Draft:
            tail = self.text[-least:]
            for start in range(len(self.text) - least - 1, -1, -1):
                if self.text[start : start + least] == tail:
                    return draft_of(self.text[start + least : start + least + limit])
            return draft_of([])

        def commit(self, tokens: Sequence[int], drafted: Any, accepted: int) -> None:
            self.text.extend(tokens)

    bench.use(Copying())
    assert bench.ask(prompt, max_tokens=60, ignore_eos=True).token_ids == plain.token_ids


def test_c26_a_block_that_ends_inside_a_character_streams_none_of_it() -> None:
    text = "ok 🎉 中文 e\u0301 ✅"
    script = list(text.encode())
    for size in range(1, 9):
        bench = Bench(Reciter(script, prompt=1))

        class Blocks:
            def __init__(self, size: int) -> None:
                self.size, self.done = size, 0

            def propose(self, limit: int) -> Draft:
                return draft_of(script[self.done : self.done + min(limit, self.size)])

            def commit(self, tokens: Sequence[int], drafted: Any, accepted: int) -> None:
                self.done += len(tokens)

        bench.use(Blocks(size))
        answer = bench.ask([9], max_tokens=len(script), ignore_eos=True)
        assert answer.text == text
        assert not any("\ufffd" in step.text for step in answer.steps)
        bench.engine.close()


def test_c28_what_a_pass_computes_is_bounded_whatever_the_prediction(
    bench: Bench, recording: RecordingRunner
) -> None:
    """The rows of logits are those of one block, for a prediction of 20,000 tokens too."""
    bench.proposer = lambda state: build_proposer(state.prompt, state.request.predictions, ByteTokenizer())
    plain = bench.plain([5], max_tokens=250, ignore_eos=True)
    # Most of it is right: any length of draft would be accepted.
    known = plain.text + "".join(f"line {i}\n" for i in range(2000))
    assert len(known) > 18_000
    answer = bench.ask([5], predictions=[known], max_tokens=250, ignore_eos=True)
    assert answer.token_ids == plain.token_ids
    assert max(len(step.token_ids) for step in answer.steps) > 60
    assert max(wanted for chunks in recording.passes for _, _, wanted in chunks) <= 129


def test_c29_after_a_request_at_the_edge_of_the_context_the_next_is_fine(bench: Bench) -> None:
    size = bench.engine.max_context
    prompt = [3] * (size - 5)
    plain = bench.plain(prompt, ignore_eos=True)
    bench.use(oracle([*plain.token_ids, *[1] * 200]))
    answer = bench.ask(prompt, ignore_eos=True)
    assert (answer.token_ids, answer.stats.finish_reason) == (plain.token_ids, "length")
    bench.use(oracle([]))
    after = bench.ask([1], max_tokens=3, ignore_eos=True)
    assert after.token_ids == bench.plain([1], max_tokens=3, ignore_eos=True).token_ids
