"""Studies of linked rows: their rules, what each site reads, and what is said of them."""

from __future__ import annotations

import pytest

from tests.support.people import linked_study, with_terms
from umpc.errors import PolicyRefused, StudyError
from umpc.node.policy import Policy
from umpc.protocols.registry import checked, decode_study, protocol_of
from umpc.study.parts import Person


def test_a_study_survives_its_bytes_and_names_its_sites_columns():
    study = checked(linked_study())
    assert decode_study(study.encode()) == study
    said = dict(protocol_of(study).describe(study))
    assert said["columns at node-0"] == "x, 4 cells" and said["columns at node-1"] == "y, 4 cells"
    assert said["linked rows"].startswith("40, ")


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"rows": 1}, "has 2 rows or more"),
        ({"closes": "tomorrow"}, "a moment in UTC was expected"),
        ({"first": ("z",)}, "names z, and the study has the fields x, y"),
        ({"first": ()}, "lie at one site"),
        ({"first": ("x", "y")}, "lie at one site"),
        ({"counted": "00"}, "counted has a statement"),
    ],
)
def test_terms_that_fit_nothing_are_refused(terms, words):
    with pytest.raises(StudyError, match=words):
        checked(with_terms(linked_study(), **terms))


@pytest.mark.parametrize(
    ("kernels", "changes", "words"),
    [
        (" * ".join(2 * ["sign(a.x + a.y - b.x - b.y)"]), {}, "takes columns of both sites"),
        ("sign(a.x - b.x) * sign(a.y - b.y)", {"where": "x >= 1"}, "takes no where"),
        ("sign(a.x - b.x) * sign(a.y - b.y)", {"dealer": None}, "needs a dealer"),
    ],
)
def test_what_no_site_can_compute_is_refused(kernels, changes, words):
    with pytest.raises(StudyError, match=words):
        checked(linked_study(kernels, **changes))


def test_a_study_protects_rows_and_no_persons():
    with pytest.raises(StudyError, match="person"):
        checked(linked_study(person=Person("patient", 2)))


def test_a_sites_rules_are_asked_about_its_own_columns_only():
    study = checked(linked_study())
    Policy(fields=frozenset({"x"})).check(study, "node-0")
    with pytest.raises(PolicyRefused, match="'y'"):
        Policy(fields=frozenset({"x"})).check(study, "node-1")
