"""umpc.study.parts: parts of ε, and the joint sensitivity of strata by trying all tables."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import msgspec
import numpy as np
import pytest

from tests.support.several import STRATA, several
from tests.support.studies import GINI
from tests.support.studies import KENDALL as TAU
from umpc.dp.events import ApproximateEvent, LaplaceEvent, PureEvent
from umpc.errors import StudyError
from umpc.protocols.registry import checked, decode_study, delta_of, protocol_of
from umpc.study.computation import computation_hash
from umpc.study.document import Study
from umpc.study.parts import Person
from umpc.study.sizes import Sizes
from umpc.ustat.estimators import VECTOR


def losses(study: Study, records: int, most: int = 10**9) -> Fraction:
    """max Σ ε_v·|ΔS_v|/s_v over all tables and all replaced records, for the sums of strata.

    That is the exact privacy loss of independent Laplace noise on these sums.
    """
    sizes = Sizes(study, records)
    fields = study.schema
    domain = list(product(*(range(int(each.upper) + 1) for each in fields)))
    names = [each.name for each in fields]
    tables = np.array(list(product(domain, repeat=records))[:most])
    columns = [{name: tables[:, r, at] for at, name in enumerate(names)} for r in range(records)]
    sums = []
    for kernel in study.parsed_kernels:
        sets = combinations(range(records), study.degree)
        values = [
            np.broadcast_to(kernel.evaluate([columns[r] for r in e]), len(tables)) for e in sets
        ]
        sums.append(np.sum(values, axis=0))
    scales = [e / s for e, s in zip(study.epsilons, sizes.sensitivities, strict=True)]
    losses = np.stack([total * float(scale) for total, scale in zip(sums, scales, strict=True)])
    # neighbours differ in the last record: their numbers share all digits but the last ones
    blocks = losses.reshape(len(losses), -1, len(domain))
    change = np.abs(blocks[:, :, :, None] - blocks[:, :, None, :]).sum(axis=0)
    return Fraction(float(change.max())).limit_denominator(10**6)


def test_strata_together_lose_no_more_than_epsilon_and_some_table_loses_all():
    """Each name's part is split over the kernel's sums and the shares' sums, which both count."""
    for texts, high, strata, records in (
        ({"gini": GINI}, 2, STRATA, 3),
        ({"product": "a.x * b.x"}, 1, STRATA, 4),
        ({"gini": GINI, "product": "a.x * b.x"}, 1, ("f", "m"), 4),
        ({"low": "a.x + b.x - 4"}, 2, STRATA, 3),
    ):
        study = checked(several(texts, strata, high))
        assert study.strata_share_epsilon
        assert 0 < losses(study, records) <= 1
        # with the numerators alone the loss is theirs, and is reached
        firsts = [place for place in range(len(study.kernels)) if place % 2 == 0]
        assert study.epsilons[0] == Fraction(1, 2 * len(texts))
        assert len({study.epsilons[place] for place in firsts}) == 1
    assert losses(several({"product": "a.x * b.x"}, STRATA, 1), 4) == 1


def test_an_edge_of_one_record_changes_two_strata():
    study = checked(several({"mean": "a.x"}, STRATA, 2, degree=1))
    assert study.epsilons == (Fraction(1, 4),) * 6
    assert losses(study, 2) == 1
    two = several({"mean": "a.x"}, ("f", "m"), 2, degree=1)
    assert two.epsilons == (Fraction(1, 4),) * 4 and losses(two, 2) == 1


def test_triples_and_the_records_of_one_person():
    study = checked(several({"triple": "a.x * b.x * c.x"}, ("f", "m"), 1, degree=3))
    assert losses(study, 4) == 1
    person = study.replaced(person=Person("patient", 3))
    assert [3 * each for each in Sizes(study, 9).sensitivities] == [*Sizes(person, 9).sensitivities]
    assert person.epsilons == study.epsilons


def test_epsilon_is_split_over_statistics_and_then_over_their_sums():
    plain = several({"tau": TAU, "gini": GINI}, ())
    assert checked(plain).epsilons == (Fraction(1, 2),) * 2
    assert sum(plain.epsilons) == 1 and not plain.strata_share_epsilon
    uneven = plain.replaced(split=("3/4", "1/4"))
    assert uneven.epsilons == (Fraction(3, 4), Fraction(1, 4))
    strata = several({"tau": TAU, "gini": GINI}, ("f", "m"), split=("3/4", "1/4"))
    assert strata.epsilons == (Fraction(3, 8),) * 4 + (Fraction(1, 8),) * 4
    for wrong in (("1",), ("1/2", "1/4", "1/4"), ("1/2", "1/4")):
        with pytest.raises(StudyError, match="one for each statistic, that add up"):
            checked(plain.replaced(split=wrong))


def test_where_no_proof_is_known_strata_split_their_part():
    """Other laws of noise, and participants that lie and flip bits of all strata at once."""
    for changes in (
        {"noise": "skellam", "delta": "1e-9"},
        {"noise": "binomial", "delta": "1e-3"},
        {"adversary": "lying_nodes"},
    ):
        study = checked(several({"tau": TAU}, **changes))
        assert not study.strata_share_epsilon
        assert study.epsilons == (Fraction(1, 6),) * 6 and sum(study.epsilons) == 1
        assert study.sums_sharing_epsilon == tuple((place,) for place in range(6))


def test_the_ledger_counts_the_strata_of_a_kernel_once():
    study = several({"tau": TAU})
    events = protocol_of(study).events(Sizes(study, 10, holders=2))
    assert events == (PureEvent(Fraction(1, 2)),) * 2
    committee = study.replaced(noise="in_mpc")
    sizes = Sizes(committee, 10, holders=2)
    events = protocol_of(study).events(sizes)
    assert [type(event) for event in events[:2]] == [ApproximateEvent] * 2
    assert [event.epsilon for event in events[:2]] == [Fraction(1, 2)] * 2
    assert sum(event.delta for event in events) == delta_of(sizes)
    single = several({"mean": "a.x"}, degree=1)
    assert protocol_of(single).events(Sizes(single, 10)) == (PureEvent(Fraction(1, 2)),) * 2
    plain = several({"tau": TAU, "gini": GINI}, ())
    events = protocol_of(plain).events(Sizes(plain, 10, holders=2))
    assert [type(event) for event in events] == [LaplaceEvent] * 2
    assert sum(event.epsilon for event in events) == 1


def test_a_node_refuses_strata_that_its_kernels_do_not_prove():
    study = checked(several({"tau": TAU}))
    assert decode_study(study.encode()) == study
    inside = study.kernels[0].partition(", ")[0].removeprefix("select(")
    wrong = (
        TAU,  # counts all pairs
        study.kernels[2],  # another stratum
        f"select({inside}, {TAU}, 1)",  # 1 outside
        f"select((a.s == 0), {TAU}, 0) + select((b.s == 0), {TAU}, 0)",
        f"select((a.s == b.s), {TAU}, 0)",  # all strata
        f"select({inside}, {TAU}, 0) + {TAU}",
    )
    for text in wrong:
        with pytest.raises(StudyError, match="counts sets outside the stratum 'f'"):
            checked(study.replaced(kernels=(text, *study.kernels[1:])))


def test_parts_that_do_not_fit_the_kernels_are_refused():
    study = several({"tau": TAU})
    first, second, *rest = study.several
    other = msgspec.structs.replace

    def refused(match: str, **changes) -> None:
        with pytest.raises(StudyError, match=match):
            checked(study.replaced(**changes))

    refused("sum\\(s\\), and", parts=(first, second))
    refused("came twice", parts=(first, first, *rest))
    refused("is not a stratum", parts=(first, other(second, stratum="x"), *rest))
    refused("is not a stratum", strata=msgspec.UNSET)
    refused("one part for each", parts=msgspec.UNSET)
    refused("one part for each", parts=())
    one = several({"tau": TAU}, ())
    with pytest.raises(StudyError, match="estimator of a study of several values is 'means'"):
        checked(one.replaced(estimator="mean"))
    with pytest.raises(StudyError, match="one part for each"):
        checked(one.replaced(parts=()))
    refused("estimator must be", parts=(other(first, estimator=VECTOR), second, *rest))
    refused("sum\\(s\\) of", parts=(other(first, sums=1), other(second, sums=3), *rest))
    refused("categories", strata="x")
    with pytest.raises(StudyError, match="u-mpc or grid"):
        checked(several({"tau": TAU}, ("f", "m"), protocol="hajek-grid", delta="1e-9"))
    with pytest.raises(StudyError, match="1 to 16 sums"):
        checked(several({"tau": TAU}, tuple("abcdefghi")))


def test_the_identity_and_the_allowed_hash_cover_parts_and_strata():
    study = several({"tau": TAU, "gini": GINI}, ())
    alone = several({"tau": TAU}, ()).replaced(parts=msgspec.UNSET, estimator="mean")
    assert b"parts" not in alone.encode() and b"strata" not in alone.encode()
    first, second = study.several
    renamed = study.replaced(parts=(msgspec.structs.replace(first, estimator="total"), second))
    assert study.hash != renamed.hash
    assert computation_hash(study) != computation_hash(renamed)
