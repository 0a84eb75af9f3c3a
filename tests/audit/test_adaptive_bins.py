"""`bins_epsilon_share`: what both messages of a node together prove about a record.

The seed is public, and says whether the first question separates the two records; runs in which it
does are judged. The score is the claimed law's log ratio of both answers: −ε, a part of it, or ε.
The cut point is the worst, between the two records.
"""

from __future__ import annotations

from math import exp

import numpy as np
from scipy import stats

from tests.audit import mutants
from tests.audit.auditor import EACH, MORE, Verdict, broken_by, loss_bound
from tests.support.local import bins, local_study
from tests.support.protocols import messages_of
from tests.support.statistical import SeededBits
from tests.support.studies import GINI
from umpc.crypto.ring import unpack
from umpc_papers.local.hadamard import signs

STUDY = local_study("bell-ldp", kernels=GINI, bins=bins(x=2), bins_epsilon_share="1/2")
RECORDS = 0, 3
CUT = np.array([2], dtype="<i8").tobytes()
RUNS = 20_000


def scores(messages, record: int) -> np.ndarray:
    """Return (runs, 2): for each answer 1 where it speaks for the second record, else −1.

    Records answer independently, so each record of a table of equal ones is a run. The runs are
    those whose first question separates the records.
    """
    bits, count = SeededBits(f"adaptive bins, {record}"), RUNS * MORE
    columns = {"x": np.full(count, record)}
    first = messages.randomise(columns, (0, count), bits)
    answer = messages.answer(columns, (0, count), first, CUT, bits)
    told = [2 * unpack(each, count, 1).astype(int) - 1 for each in (first[32:], answer)]
    found = []
    for asked, searched, level, index in messages.search.questions(first[:32], count):
        one, two = (
            signs(index, np.full(len(index), each >> (searched.levels - level))) for each in RECORDS
        )
        separates = one != two
        # A bit 1 speaks for the second record where that has the sign 1.
        spoken = told[0][asked] * np.where(two == 1, 1, -1)
        found.append(np.stack([spoken, told[1][asked]], axis=1)[separates])
    return np.concatenate(found)


def audit(mutant=None) -> Verdict:
    """Judge both messages together. p: that the answers are right as often as they may be."""
    half = float(STUDY.exact_epsilon) / 2
    with broken_by(mutant) as name:
        messages = messages_of(STUDY)
        one, two = (scores(messages, record) for record in RECORDS)
    right = int((one < 0).sum() + (two > 0).sum())
    p = stats.binomtest(right, 2 * (len(one) + len(two)), exp(half) / (1 + exp(half))).pvalue
    loss = loss_bound(one.sum(axis=1), two.sum(axis=1), (-0.5, 0.5, 1.5))
    verdict = Verdict(f"bell-ldp, both answers of a record: {name}", len(one), loss, 2 * half, p)
    print(verdict)
    return verdict


def test_both_answers_keep_their_promise_and_the_same_runs_find_some_that_do_not():
    verdict = audit()
    assert verdict.sound and verdict.p > EACH, str(verdict)
    for mutant in (mutants.truth_told_too_often, mutants.whole_epsilon_for_the_second_answer):
        verdict = audit(mutant)
        assert verdict.caught_by("loss", "law"), f"not found: {verdict}"
