"""`ghazi-rounds`: what a node's two messages prove about the one record behind them.

The last node has only the replaced record. The record is in one of three groups, which is public
and drawn before the record is read, so runs are audited by group. In groups 1 and 2 its bit is in
the first message, on a side of a public direction. In group 3 it is in the answer, about the cell
of the question. The other message must say nothing. Scores are log ratios of the claimed law, as in
`test_onemessage`.
"""

from __future__ import annotations

from math import exp

import numpy as np
from scipy import stats

from tests.audit import mutants
from tests.audit.auditor import EACH, MORE, Verdict, broken_by, loss_bound
from tests.audit.test_onemessage import short_streams
from tests.support.local import bins, local_study
from tests.support.protocols import messages_of
from tests.support.studies import Entropy, remembering, table
from umpc.simulation import Simulated, simulate
from umpc_papers.ghazi_rounds.mechanism import groups
from umpc_papers.local.sphere import directions
from umpc_papers.testing import lying

STUDY = local_study(
    "ghazi-rounds",
    kernels="(2 * a.x - 1) * (2 * b.x - 1)",
    bins=bins(x=2),
    x=("0", "1"),
    y=("0", "1"),
)
OTHERS = table([0, 1] * 30, [0, 1] * 30)
RECORDS = table([0], [0]), table([1], [0])
RUNS = 850
"""Runs on either record; a third of them are in group 3."""
PROTOCOL = messages_of(STUDY).protocol


def score(run: Simulated) -> tuple[int, int]:
    """Return the record's group, and 1 where its answer speaks for the second record, else −1."""
    script = run.transcript
    first, answer = script.shares[-1], script.answers[-1]
    group = int(groups(first[:32], 1)[0])
    if group == 2:
        assert len(first) == 32 and answer[1:] == b"\0", "the record is in both messages"
        asked = np.frombuffer(script.question, "<f8")
        assert asked[0] == -asked[1] != 0, "two opposite cells: one of them is asked for"
        return group, 1 if bool(answer[0]) == (asked[1] < 0) else -1
    assert answer == b"\0", "the record is in both messages"
    (_, direction), *_ = directions(first[:32], 1, 2)
    sides = [float(direction[0] @ vector) < 0 for vector in PROTOCOL.vectors.factors.vectors]
    assert sides[0] != sides[1]
    return group, 1 if bool(first[32]) == sides[1] else -1


def audit(mutant=None) -> dict[str, Verdict]:
    """Judge both messages.

    p: that a record's answer is right at most as often as it may be. The loss is that of both
    tables' runs.
    """
    epsilon, found = float(STUDY.exact_epsilon), []
    once = remembering("messages", "groups")
    with broken_by(mutant) as name, short_streams(), lying("everybody", **once):
        for number, record in enumerate(RECORDS):
            entropy = Entropy(f"two rounds, {number}")
            found.append(
                [score(simulate(STUDY, [OTHERS, record], entropy)) for _ in range(RUNS * MORE)]
            )
    verdicts = {}
    for message, of in {"first": (0, 1), "answer": (2,)}.items():
        one, two = (np.array([side for group, side in runs if group in of]) for runs in found)
        right = int((one < 0).sum() + (two > 0).sum())
        p = stats.binomtest(right, len(one) + len(two), exp(epsilon) / (1 + exp(epsilon))).pvalue
        loss = loss_bound(one, two, (0.5, -0.5))
        verdicts[message] = Verdict(
            f"ghazi-rounds, one record's {message}: {name}", len(one), loss, epsilon, p
        )
        print(verdicts[message])
    return verdicts


def test_either_message_keeps_its_promise_and_the_same_runs_find_one_that_does_not():
    for verdict in audit().values():
        assert verdict.sound and verdict.p > EACH, str(verdict)
    for verdict in audit(mutants.truth_told_too_often).values():
        assert verdict.caught_by("loss", "law"), f"not found: {verdict}"
