"""A study that protects people: which records count, what it asks of a site, and m-fold noise."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import msgspec
import numpy as np
import pytest

import umpc
from tests.support.studies import KENDALL, make_study
from umpc.errors import PolicyRefused, StudyError
from umpc.node.datasets import digest_of
from umpc.node.policy import ANYTHING
from umpc.node.records import PeopleSoFar, load_records
from umpc.node.table.source import TableSource
from umpc.protocols.registry import PROTOCOLS, checked
from umpc.study.computation import computation_hash
from umpc.study.parts import FieldText, Person
from umpc.study.sizes import Sizes
from umpc.ustat.condition import parse_condition

X, Y = FieldText("x", "0", "2", whole=True), FieldText("y", "0", "2", whole=True)
TAU = make_study(fields=(X, Y), edges="all", max_colluding=1)
TWICE = TAU.replaced(person=Person("who", 2))
TABLE = "who,x,y\nb,0,0\na,1,1\nb,2,1\n,1,1\nb,1,2\na,0,\na,2,2\n c ,0,1\n"


def test_places_count_from_zero_in_the_order_of_the_table():
    persons = np.array(["b", "a", "b", "b", "a", "c"], dtype=object)
    assert PeopleSoFar().places(persons).tolist() == [0, 0, 1, 2, 1, 0]
    alike = np.array(["a", "a\0", "a", "b" * 3_000_000, "a\0"], dtype=object)
    found = PeopleSoFar().places(alike).tolist()
    assert found == [0, 0, 1, 0, 1], "of any length, each letter counts"
    assert PeopleSoFar().places(np.empty(0, dtype=object)).tolist() == []


def load(tmp_path, records: int, where: str | None = None) -> list[int]:
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    condition = parse_condition(where, TAU.schema) if where else None
    fields = [X.schema(), Y.schema()]
    person = Person("who", records)
    found = load_records(TableSource(path), fields, node="a", where=condition, person=person)
    assert found.dropped == 2 and found.cohort.count == found.count
    return found.columns["x"].tolist()


def test_the_first_records_of_each_person_count_that_are_complete_and_fulfil_the_condition(
    tmp_path,
):
    assert load(tmp_path, 1) == [0, 1, 0]
    assert load(tmp_path, 2) == [0, 1, 2, 2, 0]
    assert load(tmp_path, 3) == [0, 1, 2, 1, 2, 0]
    assert load(tmp_path, 1, "x >= 1") == [1, 2]


def total(records) -> int:
    """Kendall's sum over all pairs."""
    x, y = np.array(records).T
    return int((np.sign(np.subtract.outer(x, x)) * np.sign(np.subtract.outer(y, y))).sum() // 2)


def test_replacing_all_records_of_one_person_changes_the_sum_by_at_most_the_sensitivity():
    """Brute force: two records of one person beside three others; one record's is too little."""
    values = list(product(range(3), repeat=2))
    others = [(1, 1)] * 3
    totals = [total([*others, one, two]) for one, two in product(values, repeat=2)]
    largest = max(totals) - min(totals)
    (single,) = Sizes(TAU, records=5).sensitivities
    (double,) = Sizes(TWICE, records=5).sensitivities
    assert double == 2 * single and single < largest <= double


def test_the_noise_is_that_many_times_as_large():
    rng = np.random.default_rng(5)
    frames = [
        {"id": rng.integers(0, 12, 30), "x": rng.integers(0, 9, 30), "y": rng.integers(0, 9, 30)}
        for _ in range(2)
    ]
    settings = {"bounds": {"x": (0, 9), "y": (0, 9)}, "epsilon": 1, "edges": "all"}
    for backend in ("grid", "shared"):
        settings["backend"] = backend
        reports = [
            umpc.estimate(
                "kendall_tau", frames, ["x", "y"], person="id", records_per_person=m, **settings
            ).report
            for m in (1, 4)
        ]
        kept = [[sum(min(m, int(n)) for n in np.bincount(f["id"])) for f in frames] for m in (1, 4)]
        assert [report.records_by_node for report in reports] == kept
        n = [report.records for report in reports]
        ratio = reports[1].sums[0].noise_std / reports[0].sums[0].noise_std
        assert ratio == pytest.approx(4 * n[0] / n[1], rel=0.02)  # 2·m/n in the mean of all pairs
        assert (
            "at most 4" in reports[1].protected and "of one 'id' at a site" in reports[1].protected
        )


def test_what_a_study_may_say_of_people():
    assert "person" not in msgspec.json.decode(TAU.encode())
    assert TWICE.hash != TAU.hash != TAU.replaced(person=Person("who", 1)).hash
    hashes = {computation_hash(TAU.replaced(person=Person("who", m))) for m in (1, 2)}
    assert len(hashes | {computation_hash(TAU), computation_hash(TWICE)}) == 3
    assert checked(TWICE) is TWICE
    for person, expected in (
        (Person("who", 0), "from 1 to 1000, got 0"),
        (Person("who", 1001), "from 1 to 1000, got 1001"),
        (Person("x", 2), "which is a field of the study"),
    ):
        with pytest.raises(StudyError, match=expected):
            checked(TAU.replaced(person=person))
    able = {name for name, protocol in PROTOCOLS.items() if protocol.protects_people}
    # those whose noise is of `Sizes.sensitivities`, tables of counts, and people at both sites
    assert able == {"u-mpc", "grid", "counts", "overlap"}
    other = make_study(KENDALL, fields=(X, Y), protocol="central", person=Person("who", 2))
    with pytest.raises(StudyError, match="'central' has noise for one; leave person out"):
        checked(other)


def test_what_a_site_asks_of_a_study_of_people():
    strict = replace(ANYTHING, person="who")
    strict.check(TWICE, "north")
    for study in (TAU, TAU.replaced(person=Person("row", 2))):
        with pytest.raises(PolicyRefused, match="protect people only, told apart by 'who'"):
            strict.check(study, "north")
    for column in ("who", "illness"):
        study = TAU.replaced(person=Person(column, 2))
        with pytest.raises(PolicyRefused, match=r"number of records .* would tell of its values"):
            ANYTHING.check(study, "north")
    with pytest.raises(PolicyRefused, match=r"fields under \[policy\].*'who' came"):
        replace(strict, fields=frozenset({"x", "y"})).check(TWICE, "north")
    studies = (TAU, TWICE, TAU.replaced(person=Person("who", 3)), TWICE)
    assert len({digest_of(study) for study in studies}) == 3
