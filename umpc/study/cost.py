"""The cost of an attempt, as predicted from public sizes alone: rounds and bytes.

Tests hold measured traffic equal to these numbers, byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from umpc.study.frames import STEPS
from umpc.study.messages import StepBytes


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
