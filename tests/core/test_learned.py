"""The memory of live refusals: scoped, bounded, visible, clearable."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from specclient.core.learned import Learned
from specclient.report import Reason

NO = Reason(code="refused_now", text="It was refused.")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_refusal_is_scoped_to_address_model_and_field() -> None:
    learned = Learned()
    learned.remember("https://a/v1", "m", NO)
    assert learned.refused("https://a/v1", "m") == NO
    assert learned.refused("https://b/v1", "m") is None
    assert learned.refused("https://a/v1", "n") is None
    assert learned.refused("https://a/v1", "m", key="seed") is None


def test_a_refusal_is_forgotten_after_its_time() -> None:
    clock = Clock()
    learned = Learned(ttl=10, clock=clock)
    learned.remember("u", "m", NO)
    clock.now = 9.9
    assert learned.refused("u", "m") == NO
    clock.now = 10
    assert learned.entries() == ()
    assert learned.refused("u", "m") is None


def test_the_memory_is_bounded_and_the_oldest_makes_room() -> None:
    clock = Clock()
    learned = Learned(limit=2, clock=clock)
    for number in range(3):
        clock.now = number
        learned.remember("u", f"m{number}", NO)
    assert [refusal.model for refusal in learned.entries()] == ["m1", "m2"]


def test_remembering_again_at_the_limit_drops_nothing_else() -> None:
    learned = Learned(limit=2)
    learned.remember("u", "a", NO)
    learned.remember("u", "b", NO)
    learned.remember("u", "b", NO)
    assert [refusal.model for refusal in learned.entries()] == ["a", "b"]


@pytest.mark.parametrize(
    ("url", "model", "gone"), [(None, None, 3), ("u", None, 2), ("u", "a", 1), ("x", None, 0)]
)
def test_clearing(url: str | None, model: str | None, gone: int) -> None:
    learned = Learned()
    for place in (("u", "a"), ("u", "b"), ("v", "a")):
        learned.remember(*place, NO)
    assert learned.clear(url, model) == gone
    assert len(learned.entries()) == 3 - gone


def test_many_threads_may_remember_and_ask_at_once() -> None:
    learned = Learned(limit=50)

    def work(number: int) -> None:
        for step in range(200):
            learned.remember("u", f"{number}-{step}", NO)
            learned.refused("u", f"{number}-{step}")
            learned.entries()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(learned.entries()) == 50
