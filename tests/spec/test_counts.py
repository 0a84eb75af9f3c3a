"""Tables of counts: every level of a tree, the distance of neighbours, and a node's draws."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from spec import counts as specified
from tests.spec.replaying import replay_tests
from tests.support.counts import counts_study
from umpc.crypto.prg import Stream
from umpc.crypto.ring import Ring
from umpc.dp.calibration import sample_shares
from umpc.protocols.counts.settings import counted, law_of
from umpc.protocols.u_mpc.settings import noisy_sums

NAMES = ("x", "y", "z")


def study_over(cuts, tree, **more):
    """A study of these axes, whose fields reach beyond all cuts."""
    names = NAMES[: len(cuts)]
    fields = [{"name": name, "lower": 0, "upper": 20, "whole": True} for name in names]
    own = {"columns": list(names), "fields": fields, "epsilon": 1} | more
    bins = dict(zip(names, cuts, strict=True))
    return counts_study("counts", bins=bins, tree=names[tree] if tree >= 0 else None, **own)


def counts(records, cuts, tree):
    study = study_over(cuts, tree)
    columns = np.array(records, dtype=np.int64).reshape(-1, len(cuts)).T
    return counted(study, dict(zip(NAMES, columns, strict=False))).tolist()


def sensitivities(axes, levels, most):
    leaves = 1 << (levels - 1)
    cuts = [list(range(1, leaves)) or [1], *[[1]] * (axes - 1)]
    people = {"person": "who", "records_per_person": most} if most > 1 else {}
    study = study_over(cuts, 0 if levels > 1 else -1, **people)
    gaussian, alone = (
        each.replaced(noise="gaussian", delta="1e-6", epsilon="1/100")
        for each in (study, study_over([[1], [1]], -1))
    )
    # a Gaussian law's variance is in proportion to the square that it covers
    square = 2 * law_of(gaussian).variance / law_of(alone).variance
    assert square == pytest.approx(round(square), rel=1e-4)
    return [law_of(study).sensitivity, round(square)]


def noise(honest, ratio, count, seed):
    stream = Stream(seed)

    def bits(size: int) -> int:
        return int.from_bytes(stream.bytes(size // 8), "little")

    return sample_shares(honest, Fraction(*ratio), count, bits)


def total(shares, ring):
    as_bytes = [b"".join(each.to_bytes(ring // 8, "little") for each in one) for one in shares]
    return noisy_sums(as_bytes, len(shares[0]), Ring(ring))


def share(own, noise, zeros, ring):
    return [Ring(ring).encode(sum(each)) for each in zip(own, noise, zeros, strict=True)]


replays = {
    "counts": counts,
    "sensitivities": sensitivities,
    "noise": noise,
    "share": share,
    "total": total,
}
# a table of counts has no check of its own, and so no bad vectors
test_good_vectors, *_ = replay_tests("counts", replays)


def test_a_tree_of_one_axis_ends_with_the_number_of_records():
    cuts = [list(range(1, 13))]
    found = specified.counts([[each % 13] for each in range(40)], cuts, 0)
    assert found[-1] == 40 and len(found) == 13 + 7 + 4 + 2 + 1
