"""`vector`: what a coalition of the coordinator and two nodes can prove about a record.

The worst case: one record moves from one end of its ball to the other, in all its edges. The nodes
take off their own noise, and the sums with one discrete Gaussian are left, whose
parameter is large.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from tests.audit.auditor import EACH, MORE, Verdict, broken_by, coalitions_view, loss_bound
from tests.audit.mutants import Broken
from tests.support.studies import Entropy
from tests.support.vector import sums_by_numpy, vector_study, vector_tables
from umpc.protocols.vector.losses import ALLOWED
from umpc.protocols.vector.protocol import noise_of_vector, scales_of
from umpc.simulation import simulate
from umpc.study.sizes import Sizes
from umpc.testing import lying

STUDY = vector_study("auc_hinge", ("0", "0"), edges="all", delta="0.01", clip="1/2")
OTHERS = [{name: column[:3] for name, column in each.items()} for each in vector_tables("audit")]
NARROW = vector_study("auc_hinge", ("0", "0"), edges="all", delta="0.01", clip="1/10")
"""Its ball is far smaller than the records are."""
SIZES = Sizes(STUDY, 9, 6, 3)
ENDS = 5, 15
"""Half of the bounds of a, 0 to 20, on both sides of the middle."""
RUNS = 16


def moved(a: int) -> list[dict]:
    """The tables, where the last node's record of the second class has this a, and b of 0."""
    last = {name: column.copy() for name, column in OTHERS[-1].items()}
    last["a"][-1], last["b"][-1] = a, 0
    return [*OTHERS[:-1], last]


def a_fifth_of_the_ball() -> Broken:
    """The noise is for a record that moves by a fifth of the ball. Loss about 15."""
    return lying(
        "everybody", scales_of=lambda honest, sizes: tuple(scale / 5 for scale in honest(sizes))
    )


def nobody_clips() -> Broken:
    """Records stay as they are, far outside the ball."""
    return lying("node", clip_columns=lambda honest, columns, *rest: dict(columns))


def audit(mutant=None, study=STUDY) -> Verdict:
    """Judge both sums under the claimed law, and a's sum by the events of its worst shift."""
    sizes = Sizes(study, 9, 6, 3)
    deviations = np.array([float(law.parameter) ** 0.5 for law in noise_of_vector(sizes)])
    shift = float(scales_of(sizes)[0])
    seen, noise = [], []
    with broken_by(mutant) as name:
        for end in ENDS:
            entropy, tables = Entropy(f"audit of a vector, {end}"), moved(end)
            done = [simulate(study, tables, entropy) for _ in range(RUNS * MORE)]
            sums = np.array([coalitions_view(each) for each in done], dtype=float)
            exact = sums_by_numpy(study, tables, done[0].attempt.hypergraph) * [1, 2]
            seen.append(sums[:, 0])
            noise.append((sums - exact) / deviations)
    start = float(np.median(seen[0]))
    loss = loss_bound(-seen[0], -seen[1], [-start + shift * part for part in (0, 0.5, 1)], 0.01)
    found = np.concatenate(noise).ravel()
    square, length = float((found**2).sum()), len(found)
    tails = (
        stats.chi2.sf(square, length),
        stats.chi2.cdf(square, length),
        stats.norm.sf(abs(found.mean()) * length**0.5),
    )
    verdict = Verdict(
        f"vector, one record to two nodes and the coordinator: {name}",
        len(seen[0]),
        loss,
        float(study.exact_epsilon),
        min(1.0, 4 * float(min(tails))),
    )
    print(verdict)
    return verdict


def test_one_record_moves_the_vector_by_the_whole_scale():
    low, high = (
        sums_by_numpy(
            STUDY, moved(end), simulate(STUDY, moved(end), Entropy("e")).attempt.hypergraph
        )
        for end in ENDS
    )
    assert int(abs(low - high)[0]) * ALLOWED == scales_of(SIZES)[0] and low[1] == high[1]


def test_the_honest_nodes_noise_keeps_its_promise():
    verdict = audit()
    assert verdict.sound and verdict.p > EACH, str(verdict)


def test_too_little_noise_and_records_outside_the_ball_are_found():
    for mutant, study in ((a_fifth_of_the_ball, STUDY), (nobody_clips, NARROW)):
        verdict = audit(mutant, study)
        assert verdict.caught_by("law"), f"not found: {verdict}"
