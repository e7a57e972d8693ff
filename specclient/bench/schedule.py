"""In which order: pairs side by side, arms in random order, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from specclient.bench.cases import Case

Arm = Literal["without", "with"]
ARMS: tuple[Arm, Arm] = ("without", "with")


@dataclass(frozen=True, slots=True)
class Trial:
    """One case in one arm. `key` names it in the results file."""

    case: Case
    arm: Arm
    clients: int
    repeat: int
    place: int
    """How often the case came before in the same repeat: it may be needed twice to fill a block."""

    @property
    def key(self) -> str:
        case = f"{self.case.workload}/{self.case.name}"
        return f"{case}/{self.clients} clients/{self.repeat}.{self.place}/{self.arm}"


@dataclass(frozen=True, slots=True)
class Block:
    """Trials of one arm that run at the same moment, as many as there are clients."""

    trials: tuple[Trial, ...]

    @property
    def arm(self) -> Arm:
        return self.trials[0].arm

    @property
    def clients(self) -> int:
        return self.trials[0].clients

    @property
    def name(self) -> str:
        """The same for the twin of the other arm."""
        return self.trials[0].key.removesuffix(f"/{self.arm}")


def blocks(cases: Sequence[Case], *, clients: Sequence[int], repeats: int, seed: int) -> list[Block]:
    """Every case in both arms, `repeats` times at each number of clients.

    A block is followed by its twin of the other arm; which comes first is drawn. With many clients a
    block is filled with cases of one workload, over and over if there are too few, so that the load is
    what was asked for.
    """
    draw = random.Random(seed)
    result: list[Block] = []
    for count in clients:
        for repeat in range(repeats):
            groups = _by_workload(cases)
            draw.shuffle(groups)
            for group in groups:
                for chosen in _filled(group, count, draw):
                    pair = [
                        Block(tuple(Trial(case, arm, count, repeat, place) for place, case in chosen))
                        for arm in ARMS
                    ]
                    draw.shuffle(pair)
                    result += pair
    return result


def _by_workload(cases: Sequence[Case]) -> list[list[Case]]:
    names = dict.fromkeys(case.workload for case in cases)
    return [[case for case in cases if case.workload == name] for name in names]


def _filled(cases: Sequence[Case], count: int, draw: random.Random) -> list[list[tuple[int, Case]]]:
    """The cases in random order, `count` at a time; each with how often it came before."""
    order = list(cases)
    draw.shuffle(order)
    while len(order) % count:
        order.append(order[len(order) % len(cases)])
    seen: dict[str, int] = {}
    placed = []
    for case in order:
        seen[case.name] = seen.get(case.name, -1) + 1
        placed.append((seen[case.name], case))
    return [placed[at : at + count] for at in range(0, len(placed), count)]
