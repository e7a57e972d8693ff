"""Draft corpora: loaded once, removed after the last user, and named so that nothing leaks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from specclient_providers.corpus import Corpora, CorpusCall


def test_the_first_user_loads_and_the_last_removes() -> None:
    corpora = Corpora()
    load = corpora.acquire("http://s", "secret text")
    assert load is not None
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


def test_texts_and_servers_are_kept_apart() -> None:
    corpora = Corpora()
    assert corpora.acquire("http://s", "a") is not None
    assert corpora.acquire("http://s", "b") is not None
    assert corpora.acquire("http://t", "a") is not None


def test_a_name_tells_nothing_and_differs_between_processes() -> None:
    names = {Corpora().acquire("u", "a").body["corpus_id"] for _ in range(2)}  # type: ignore[union-attr]
    assert len(names) == 2


def test_concurrent_users_load_once_and_remove_once() -> None:
    corpora = Corpora()
    with ThreadPoolExecutor(8) as pool:
        loads = list(pool.map(lambda _: corpora.acquire("u", "a"), range(64)))
        removals = list(pool.map(lambda _: corpora.release("u", "a"), range(64)))
    assert sum(call is not None for call in loads) == 1
    assert sum(call is not None for call in removals) == 1
