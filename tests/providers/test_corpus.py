"""Draft corpora: loaded once, removed after the last user, and named so that nothing leaks."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from specclient_providers.corpus import Corpora, CorpusCall, Loading


def loaded(corpora: Corpora, url: str, text: str) -> CorpusCall:
    """Load as the first user."""
    call = corpora.acquire(url, text)
    assert isinstance(call, CorpusCall)
    corpora.loaded(url, text)
    return call


def test_the_first_user_loads_and_the_last_removes() -> None:
    corpora = Corpora()
    load = loaded(corpora, "http://s", "secret text")
    assert (load.method, load.path, load.body["documents"]) == (
        "POST",
        "/add_external_corpus",
        ["secret text"],
    )
    assert corpora.acquire("http://s", "secret text") is None
    assert corpora.release("http://s", "secret text") is None
    gone = corpora.release("http://s", "secret text")
    assert gone == CorpusCall("POST", "/remove_external_corpus", {"corpus_id": load.body["corpus_id"]})
    assert corpora.release("http://s", "secret text") is None


def test_the_second_user_waits_for_the_load_of_the_first() -> None:
    corpora = Corpora()
    assert isinstance(corpora.acquire("http://s", "a"), CorpusCall)
    waiting = corpora.acquire("http://s", "a")
    assert isinstance(waiting, Loading)
    assert not waiting.done.done()
    corpora.loaded("http://s", "a")
    assert waiting.done.result(0) is None
    assert corpora.acquire("http://s", "a") is None
    assert corpora.release("http://s", "a") is None
    assert corpora.release("http://s", "a") is not None


def test_a_server_loads_one_text_at_a_time_and_servers_are_kept_apart() -> None:
    corpora = Corpora()
    assert isinstance(corpora.acquire("http://s", "a"), CorpusCall)
    assert isinstance(corpora.acquire("http://s", "b"), Loading)
    assert isinstance(corpora.acquire("http://t", "a"), CorpusCall)
    corpora.loaded("http://s", "a")
    assert isinstance(corpora.acquire("http://s", "b"), CorpusCall)


def test_a_refused_load_has_no_user_and_tells_those_who_wait() -> None:
    corpora = Corpora()
    corpora.acquire("http://s", "a")
    waiting = corpora.acquire("http://s", "a")
    assert isinstance(waiting, Loading)
    refusal = ValueError("not enabled")
    assert corpora.failed("http://s", refusal) is None
    assert waiting.done.result(0) is refusal
    assert corpora.release("http://s", "a") is None
    assert isinstance(corpora.acquire("http://s", "a"), CorpusCall)


def test_a_load_that_broke_off_is_removed_and_the_next_may_try() -> None:
    corpora = Corpora()
    load = corpora.acquire("http://s", "a")
    waiting = corpora.acquire("http://s", "a")
    assert isinstance(load, CorpusCall)
    assert isinstance(waiting, Loading)
    removal = corpora.failed("http://s")
    assert removal is not None
    assert removal.body == {"corpus_id": load.body["corpus_id"]}
    assert waiting.done.result(0) is None
    again = corpora.acquire("http://s", "a")
    assert isinstance(again, CorpusCall)
    assert again.body["corpus_id"] != load.body["corpus_id"]


def test_a_name_tells_nothing_and_is_never_used_twice() -> None:
    corpora = Corpora()
    names = set()
    for _ in range(3):
        names.add(loaded(corpora, "u", "a").body["corpus_id"])
        corpora.release("u", "a")
    assert len(names) == 3
    assert all("secret" not in repr(corpora.acquire(url, "secret")) for url in ("x", "x"))


@pytest.mark.parametrize("seed", range(3))
def test_concurrent_users_never_overlap_loads_and_leave_nothing(seed: int) -> None:
    corpora = Corpora()
    held: set[str] = set()

    def use(number: int) -> None:
        text = random.Random(seed * 1000 + number).choice("abc")
        while (step := corpora.acquire("u", text)) is not None:
            if isinstance(step, Loading):
                step.done.result(10)
                continue
            if number % 7 == 0:
                corpora.failed("u", ValueError() if number % 2 else None)
                return
            held.add(step.body["corpus_id"])
            corpora.loaded("u", text)
            break
        gone = corpora.release("u", text)
        if gone is not None:
            held.remove(gone.body["corpus_id"])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(200)))
    assert held == set()
    assert corpora.release("u", "a") is None
