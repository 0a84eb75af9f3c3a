"""Shared by the tests of shuffled studies: a study, and what each process saw of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import numpy as np

from tests.support.local import NO_EDGES
from tests.support.protocols import messages_of
from tests.support.studies import KENDALL, make_attempt, make_study
from umpc.crypto.ring import unpack
from umpc.mpc.attempt import SharedAttempt
from umpc.protocols.registry import checked
from umpc.simulation import Simulated
from umpc.study.document import Study
from umpc.study.parts import Participant
from umpc_papers.ghazi_shuffle.messages import ShuffleMessages
from umpc_papers.ghazi_shuffle.split_mix import add_up
from umpc_papers.local.settings import with_usual_bins
from umpc_papers.testing import lying

SHUFFLERS = (Participant("shuffler-1", "shuffler-1:1"), Participant("shuffler-2", "shuffler-2:1"))


def shuffled_study(nodes: int = 2, **changes) -> Study:
    """Return a study of Kendall's tau of x and y, from 0 to 3, with one bin per value.

    The changes are those of `make_study`.
    """
    shape = NO_EDGES | {
        "noise": "shuffled",
        "protocol": "ghazi-shuffle",
        "shufflers": SHUFFLERS,
        "kernels": KENDALL,
    }
    return checked(with_usual_bins(make_study(**(shape | {"nodes": nodes} | changes))))


def shuffled_attempt(counts: Sequence[int], label: str = "members", **changes) -> SharedAttempt:
    return make_attempt(shuffled_study(len(counts), **changes), counts, label)


def protocol_of(attempt: SharedAttempt) -> ShuffleMessages:
    return messages_of(attempt.study, [member.classes for member in attempt.members])


@contextmanager
def one_protocol() -> Iterator[None]:
    """Give all processes of all runs of equal studies one protocol object.

    Its matrix and widths are then computed once.
    """
    kept = cache(messages_of)

    def once(honest: Callable, study: Study, counts: Sequence[tuple[int, int]]) -> ShuffleMessages:
        return kept(study, tuple(counts))

    with lying("everybody", shuffle_messages=once):
        yield


def messages(run: Simulated) -> list[np.ndarray]:
    """Return every node's numbers, (d, records r), which only the node sees."""
    of = protocol_of(run.attempt)
    parts = [
        [
            np.stack([*of.rows(place, half, member.records)])
            for place, half in enumerate((delivery.masked, delivery.seed))
        ]
        for delivery, member in zip(run.transcript.deliveries, run.attempt.members, strict=True)
    ]
    return [(masked + pad) & mask_of(run) for masked, pad in parts]


def mask_of(run: Simulated) -> np.uint64:
    """Return 2^w − 1, which reduces numbers modulo 2^w."""
    return np.uint64((1 << protocol_of(run.attempt).protocol.width) - 1)


def heaps(run: Simulated) -> list[np.ndarray]:
    """Return the heap that each shuffler sent to the coordinator: (d, n r)."""
    protocol, found = protocol_of(run.attempt).protocol, []
    for place in run.attempt.study.shufflers:
        data = b"".join(
            frame.payload for sender, _, frame in run.transcript.online if sender == place.name
        )
        count = protocol.dimension * protocol.records * protocol.shares
        found.append(unpack(data, count, protocol.width).reshape(protocol.dimension, -1))
    return found


def sums(numbers: np.ndarray, run: Simulated) -> np.ndarray:
    """Return the sums of numbers by coordinate, (d,), as signed integers."""
    return add_up(numbers, protocol_of(run.attempt).protocol.width)
