"""One-message protocols: what a node's message proves about the one record behind it.

The last node has only the replaced record. Its message is scored by the claimed law's log ratio of
the two records, given the message's public part. The score is −ε, 0 (the public part does not
separate the records) or ε.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from math import exp

import numpy as np
import pytest
from scipy import stats

from tests.audit import mutants
from tests.audit.auditor import EACH, MORE, Verdict, broken_by, loss_bound
from tests.support.local import bins, local_study
from tests.support.protocols import messages_of
from tests.support.studies import AUC, GINI, Columns, Entropy, table
from umpc.simulation import simulate
from umpc.study.document import Study
from umpc_papers import exact_sampling
from umpc_papers.local.messages import OneMessage
from umpc_papers.local.sphere import directions
from umpc_papers.testing import limited

Score = Callable[[Study, bytes], int]


protocol_of: Callable[[Study], OneMessage] = cache(messages_of)
"""The real code's protocol, whatever a mutant breaks later."""


def told_cell(study: Study, message: bytes) -> int:
    """Read the message of one bit for two cells."""
    return 2 * message[0] - 1


def told_side(study: Study, message: bytes) -> int:
    """Read the side of the public direction, for two opposite vectors; 0 is the direction's own."""
    (_, direction), *_ = directions(message[:32], 1, 2)
    vectors = protocol_of(study).protocol.factors.vectors
    first, second = (float(direction[0] @ vector) < 0 for vector in vectors)
    assert first != second
    return 1 if bool(message[32]) == second else -1


def told_sign(study: Study, message: bytes) -> int:
    """Read the sign, for one level and so leaves of one bit.

    With index 0 both leaves have the sign +, with index 1 each its own.
    """
    (_, _, index), *_ = protocol_of(study).protocol.questions(message[:32], 1)
    return int(index[0]) * (2 * message[32] - 1)


@contextmanager
def short_streams() -> Iterator[None]:
    """Expand streams by 256 bytes, since one record takes few of the usual 64 KiB."""
    with limited(exact_sampling, CHUNK_BYTES=256):
        yield


@dataclass(frozen=True)
class Case:
    """Two tables of one protocol.

    asked: how often the public part separates the two records.
    """

    study: Study
    first: Columns
    second: Columns
    others: Columns
    score: Score
    asked: float
    runs: int

    @property
    def name(self) -> str:
        return f"{self.study.protocol}, {self.study.sampling}"

    def scores(self, record: Columns, label: str) -> np.ndarray:
        entropy = Entropy(f"{self.study.protocol}, {label}")
        runs = (
            simulate(self.study, [self.others, record], entropy) for _ in range(self.runs * MORE)
        )
        return np.array([self.score(self.study, run.transcript.shares[-1]) for run in runs])

    def audit(self, mutant=None) -> Verdict:
        """Judge that a record's own answer comes at most as often as it may, for both records."""
        epsilon = float(self.study.exact_epsilon)
        protocol_of(self.study)
        with broken_by(mutant) as name, short_streams():
            first, second = self.scores(self.first, "first"), self.scores(self.second, "second")
        right = int((first < 0).sum() + (second > 0).sum())
        odds = self.asked * exp(epsilon) / (1 + exp(epsilon))
        p = stats.binomtest(right, 2 * len(first), odds).pvalue
        loss = loss_bound(first, second, (0.5, -0.5))
        verdict = Verdict(
            f"{self.study.protocol}, one record's message: {name}", len(first), loss, epsilon, p
        )
        print(verdict)
        return verdict


TWO_BINS = {"bins": bins(x=2), "x": ("0", "1"), "y": ("0", "1")}
ZERO, ONE, BOTH = table([0], [0]), table([1], [0]), table([0, 1], [0, 1])
CASES = [
    Case(local_study("bell-ldp", kernels=GINI, **TWO_BINS), ZERO, ONE, BOTH, told_cell, 1.0, 300),
    Case(
        local_study("bell-ldp", kernels=AUC, sampling="two_sample", x=("0", "1")),
        *(
            table([0], [0], [0]),
            table([1], [0], [0]),
            table([0, 1], [0, 1], [0, 1]),
            told_cell,
            1.0,
            300,
        ),
    ),
    Case(
        local_study("local-mean", x=("0", "1")),
        *(ZERO, ONE, BOTH, told_cell, 1.0, 300),
    ),
    Case(
        local_study("ghazi-ldp", kernels="(2 * a.x - 1) * (2 * b.x - 1)", **TWO_BINS),
        *(ZERO, ONE, BOTH, told_side, 1.0, 330),
    ),
    Case(
        local_study("bell-auc", levels=1, x=("0", "1")),
        *(
            table([0], [0], [0]),
            table([1], [0], [0]),
            table([0, 1], [0, 1], [0, 1]),
            told_sign,
            0.5,
            1000,
        ),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_records_answer_keeps_its_promise_and_the_same_runs_find_one_that_does_not(case):
    verdict = case.audit()
    assert verdict.sound and verdict.p > EACH, str(verdict)
    verdict = case.audit(mutants.truth_told_too_often)
    assert verdict.caught_by("loss", "law"), f"not found: {verdict}"
