"""The cost of an attempt, as predicted from public sizes alone: rounds and bytes.

Tests hold measured traffic equal to these numbers, byte for byte.

*Measured.* The cost of a run: its times, rounds and bytes, as its report has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from umpc.study.messages import STEPS, StepBytes


@dataclass(frozen=True)
class Cost:
    """Bytes are sums over all links, framing included.

    rounds: masked fields, openings, and the reveal.
    sent: what each node sends its peers or shufflers on data, round by round.
    revealed: the bytes of each node's share.
    asked: the bytes of the question that each node gets, if there is one.
    heaps: the bytes of each shuffler's heap.
    bytes_dealt: the part of bytes_offline that a dealer sends.
    """

    rounds: int
    sent: tuple[tuple[StepBytes, ...], ...]
    revealed: tuple[int, ...]
    bytes_offline: int
    asked: tuple[int, ...] = ()
    heaps: tuple[int, ...] = ()
    bytes_dealt: int = 0

    @property
    def bytes_online(self) -> int:
        on_data = sum(each.bytes for sent in self.sent for each in sent)
        return on_data + sum(self.revealed + self.asked + self.heaps)

    @property
    def most_sent(self) -> int:
        """Bytes of the node that sends most on data, before the reveal."""
        return max((sum(each.bytes for each in sent) for sent in self.sent), default=0)


NO_COST = Cost(0, (), (), 0)
"""The predicted cost of a replay, which computes nothing."""


def sent_by_round(sent: Mapping[tuple[str, int], int]) -> tuple[StepBytes, ...]:
    """Bytes by (step, round), in the order in which a node sends them, without silent rounds."""
    order = sorted(sent, key=lambda place: (STEPS[place[0]], place[1]))
    return tuple(StepBytes(*place, sent[place]) for place in order if sent[place])


# --- measured -------------------------------------------------------------------------------------

STEP_DIGITS = 1
"""Times of nodes' steps are rounded to tenths of a second."""

TOTAL_DIGITS = 2
"""Totals of a whole run are rounded to hundredths of a second."""


@dataclass(frozen=True)
class Moment:
    """A step at one node, in seconds from the beginning: when it was asked, and had answered.

    Both are coarse: a report is passed on, and need not tell how fast each node is.
    """

    step: str
    node: str
    asked: float
    answered: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "asked", round(self.asked, STEP_DIGITS))
        object.__setattr__(self, "answered", round(self.answered, STEP_DIGITS))


@dataclass(frozen=True)
class Measured:
    """The cost of a run, as the processes counted it.

    Bytes of nodes are in the study's order, bytes of steps round by round. Shufflers send heaps.
    finished, prepared_at, version, policies: as in `Report`.
    """

    rounds: int = 0
    bytes_online_by_node: list[int] = field(default_factory=list)
    bytes_online_by_step: dict[str, int] = field(default_factory=dict)
    bytes_offline: int = 0
    seconds_online: float = 0.0
    seconds_offline: float = 0.0
    seconds_total: float = 0.0
    replayed: bool = False
    prepared: bool = False
    timeline: tuple[Moment, ...] = ()
    bytes_online_by_shuffler: list[int] = field(default_factory=list)
    finished: str = ""
    prepared_at: str = ""
    version: str = ""
    policies: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("seconds_online", "seconds_offline", "seconds_total"):
            object.__setattr__(self, name, round(getattr(self, name), TOTAL_DIGITS))

    @property
    def bytes_online(self) -> int:
        return sum(self.bytes_online_by_node) + sum(self.bytes_online_by_shuffler)


def count_online(
    sent: Sequence[Sequence[StepBytes]],
    revealed: Sequence[int],
    asked: Sequence[int] = (),
    heaps: Sequence[int] = (),
) -> dict[str, Any]:
    """Bytes by node, by step and by shuffler, as `Measured` has them.

    Args:
        sent: what each node sent, round by round.
        revealed: the size of each node's share and answer.
        asked: the size of the question to each node, if there is one.
        heaps: the size of each shuffler's heap.
    """
    lines = zip(sent, revealed, asked or [0] * len(sent), strict=True)
    by_node = [sum(each.bytes for each in own) + share + question for own, share, question in lines]
    by_step: dict[str, int] = {}
    for each in sorted(chain(*sent), key=lambda each: (STEPS[each.step], each.round)):
        label = f"{each.step} {each.round or ''}".rstrip()
        by_step[label] = by_step.get(label, 0) + each.bytes
    if heaps:
        by_step["heap"] = sum(heaps)
    elif revealed:
        by_step["reveal"] = sum(revealed)
    if asked:
        by_step["question"] = sum(asked)
    return {
        "bytes_online_by_node": by_node,
        "bytes_online_by_step": by_step,
        "bytes_online_by_shuffler": list(heaps),
    }
