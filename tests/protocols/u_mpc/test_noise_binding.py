"""umpc.protocols.u_mpc.noise_binding: which edges can be listed, and which ring holds a sum."""

from __future__ import annotations

import pytest

from tests.support.protocols import coordinator_of
from tests.support.studies import STUDY, changed, make_members, make_study
from umpc.errors import RangeError, StudyError
from umpc.mpc.attempt import SharedAttempt
from umpc.protocols.registry import attempt_of, checked
from umpc.protocols.u_mpc.noise_binding import check_edges, ring_for
from umpc.study.document import Study
from umpc.study.parts import FieldText
from umpc.study.sizes import Sizes

RECORDS = 10
"""The records of each node."""
MANY = make_study("1", 40, degree=8)
"""40 nodes have 314,457,495 groups of 8 owners with repetitions, which no process could list."""


def begin(study: Study) -> SharedAttempt:
    """An attempt of nodes with RECORDS records each."""
    counts = [RECORDS] * len(study.nodes)
    return attempt_of(study, *make_members(study, counts))


def ring_of(study: Study) -> int:
    """The bits of the ring of an attempt."""
    return begin(study).ring.bits


def test_too_many_groups_of_owners_are_refused():
    with pytest.raises(RangeError, match="groups of owners"):
        check_edges(Sizes(MANY, 40, 0, 40))
    check_edges(Sizes(MANY, 40, 0, 3))


def test_every_process_refuses_too_many_groups_of_owners():
    """The coordinator does it first, and a node does not rely on that."""
    members, openings = make_members(MANY, [1] * 40)
    with pytest.raises(RangeError, match="groups of owners"):
        coordinator_of(MANY).check_sizes(members)
    with pytest.raises(RangeError, match="groups of owners"):
        attempt_of(MANY, members, openings)


# --- the ring -------------------------------------------------------------------------------------


def test_the_ring_is_the_narrowest_that_holds_sum_and_noise():
    assert ring_of(STUDY) == 32
    gini = changed(
        kernels=("abs(a.balance - b.balance)",), fields=(FieldText("balance", "0", "1e6", "0.01"),)
    )
    sizes = Sizes(gini, 30)
    assert (sizes.edges, sizes.max_degree, sizes.sensitivities) == (60, 4, (4 * 10**8,))
    assert ring_of(gini) == 64


def test_the_ring_holds_every_sum_wherever_it_stands():
    fields = (FieldText("age", "0", "127", whole=True), FieldText("balance", "0", "1e6", "0.01"))
    narrow, wide = "abs(a.age - b.age)", "abs(a.balance - b.balance)"
    for kernels, bits in (((narrow, narrow), 32), ((narrow, wide), 64), ((wide, narrow), 64)):
        assert ring_of(changed(kernels=kernels, estimator="ratio", fields=fields)) == bits


def test_the_ring_grows_with_the_noise_of_the_smallest_part():
    kernels = (STUDY.kernels[0], "abs(a.age - b.age)")
    quiet = {"kernels": kernels, "estimator": "ratio", "epsilon": "1/1000"}
    assert ring_of(changed(**quiet)) == 32
    assert ring_of(changed(**quiet, split=("1e-6", "0.999999"))) == 64


def test_a_sum_that_no_ring_holds_is_a_range_error():
    wide = checked(
        changed(kernels=("a.x * b.x",), fields=(FieldText("x", "0", str(1 << 30), whole=True),))
    )
    with pytest.raises(RangeError, match="narrow the fields' bounds"):
        begin(wide)
    with pytest.raises(RangeError, match=r"the ring holds 2\^63"):
        ring_for(Sizes(wide, 30), [0])


def test_noise_that_no_ring_holds_is_refused_by_a_study_error():
    quiet = checked(
        changed(
            epsilon="1e-15",
            kernels=("abs(a.x - b.x)",),
            fields=(FieldText("x", "0", "1e9", whole=True),),
        )
    )
    with pytest.raises(StudyError, match="epsilon"):
        begin(quiet)


SQUARE = make_study("a.x * b.x", x=("0", "10"))
"""10 records have 45 pairs, and a sum of at most 4500."""


def test_the_ring_holds_a_sum_with_its_noise():
    sizes = Sizes(SQUARE, 10)
    assert ring_for(sizes, [2**31 - 1 - 4500]).bits == 32
    assert ring_for(sizes, [2**31 - 4500]).bits == 64


def test_the_ring_holds_every_sum_with_its_noise():
    study = make_study(["a.x * b.x", "a.x + b.x"], x=("0", "10"), estimator="ratio")
    sizes = Sizes(study, 10)
    assert ring_for(sizes, [2**31 - 1 - 4500, 2**31 - 1 - 900]).bits == 32
    assert ring_for(sizes, [2**31 - 4500, 0]).bits == 64
    assert ring_for(sizes, [0, 2**31 - 900]).bits == 64
