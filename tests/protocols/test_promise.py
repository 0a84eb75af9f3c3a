"""The promise in words: every protocol, with a person, a label, a condition, helpers and liars.

`promises.txt` has all paragraphs, to be read by a person beside docs/privacy.md. After a change
that is meant, `python -m tests.protocols.test_promise` writes it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

import umpc
from tests.support.bell import bell_study
from tests.support.central import central_study
from tests.support.counts import counts_study
from tests.support.gopa import gopa_study
from tests.support.grid import grid_study
from tests.support.local import local_study
from tests.support.overlap import overlap_study
from tests.support.people import linked_study, people_study
from tests.support.shuffled import shuffled_study
from tests.support.studies import AUC, SPEARMAN, make_study
from tests.support.vector import plain_study, vector_study
from umpc.api.description import describe_study
from umpc.errors import UmpcError
from umpc.protocols.registry import PROTOCOLS, checked, protocol_of
from umpc.reporting.rows import promise_of
from umpc.study.document import Study
from umpc.study.parts import Person
from umpc.study.report import Report
from umpc.study.settings import ADVERSARIES, HONEST

PARAGRAPHS = Path(__file__).parent / "promises.txt"
STUDIES = {
    "u-mpc": lambda **more: make_study(nodes=3, max_colluding=2, **more),
    "u-mpc, two sums": lambda **more: make_study(
        ["a.x", "a.y"], 3, degree=1, estimator="ratio", **more
    ),
    "u-mpc, no dealer": lambda **more: make_study(
        nodes=3, backend="garbled", dealer=None, preprocessing="none", **more
    ),
    "u-mpc, one record": lambda **more: make_study("a.x", 3, degree=1, **more),
    "u-mpc, two samples": lambda **more: make_study(AUC, 3, sampling="two_sample", **more),
    "grid": grid_study,
    "grid, two check": lambda **more: grid_study(max_colluding=1, **more),
    "grid, no dealer": lambda **more: grid_study(dealer=None, preprocessing="none", **more),
    "grid, two samples": lambda **more: grid_study(AUC, sampling="two_sample", **more),
    "people": people_study,
    "linked": linked_study,
    "people, triples": lambda **more: people_study(SPEARMAN, degree=3, **more),
    "hajek-grid": lambda **more: grid_study(protocol="hajek-grid", delta="1e-9", **more),
    "vector": lambda **more: plain_study(["a.a * b.a", "a.b * b.b"], **more),
    "vector, two samples": vector_study,
    "counts": lambda **more: counts_study(epsilon="1").replaced(**more),
    "counts, gaussian": lambda **more: counts_study(
        epsilon="1", noise="gaussian", delta="1e-6"
    ).replaced(**more),
    "counts, in a committee": lambda **more: counts_study(epsilon="1", noise="in_mpc").replaced(
        **more
    ),
    "overlap": lambda **more: overlap_study("1", person="patient").replaced(**more),
    "bell-2pc": bell_study,
    "bell-2pc, groups": lambda **more: bell_study(noise="group_laplace", group=4, **more),
    "bell-ldp": lambda **more: local_study("bell-ldp", **more),
    "bell-ldp, two samples": lambda **more: local_study(
        "bell-ldp", kernels=AUC, sampling="two_sample", **more
    ),
    "bell-auc, two samples": lambda **more: local_study("bell-auc", **more),
    "ghazi-ldp": lambda **more: local_study("ghazi-ldp", **more),
    "local-mean": lambda **more: local_study("local-mean", **more),
    "ghazi-rounds": lambda **more: local_study("ghazi-rounds", **more),
    "ghazi-shuffle": lambda **more: shuffled_study(**more),
    "gopa": gopa_study,
    "central": central_study,
}
"""A protocol and its variant → a function that makes a study from further entries."""
PEOPLE = {"": {}, "person": {"person": Person("patient", 3)}}


def cases() -> Iterator[tuple[str, Study]]:
    """Every study of the above × person × condition × grade that the rules allow."""
    for (name, make), people, where, adversary in product(
        STUDIES.items(), PEOPLE, ("", "condition"), ADVERSARIES
    ):
        field = {"vector": "a", "counts": "time"}.get(name.partition(",")[0], "x")
        more = PEOPLE[people] | ({"where": f"{field} >= 1"} if where else {})
        try:
            study = checked(make(adversary=adversary, **more))
        except UmpcError:
            assert people or where or adversary != HONEST, name
            continue
        yield ", ".join(filter(None, (name, people, where, adversary))), study


def paragraphs() -> str:
    found = []
    for name, study in cases():
        lines = protocol_of(study).promise_of(study).lines
        found.append("\n".join((f"# {name}", *lines)))
    return "\n\n".join(found) + "\n"


def test_every_paragraph_is_the_one_that_was_read():
    assert paragraphs() == PARAGRAPHS.read_text(encoding="utf-8")


def test_every_protocol_has_paragraphs_and_each_says_what_its_study_is():
    seen = set()
    for name, study in cases():
        promise = protocol_of(study).promise_of(study)
        text = str(promise)
        seen.add(study.protocol)
        is_of_people = study.people is not None or study.protocol == "people"
        assert ("To every person" in text) is is_of_people, name
        assert ("'patient'" in text) is (study.people is not None), name
        assert ("that fulfil the condition" in text) is (study.condition is not None), name
        assert ("for each class" in text) is study.two_sample, name
        assert ("shuffler" in text) is bool(study.shufflers), name
        assert ("trusted curator" in text) is bool(protocol_of(study).discloses(study)), name
        assert ("no dealer" in text) <= (study.dealer is None), name
        assert ("the dealer" in text.lower()) <= (study.dealer is not None), name
    assert seen == set(PROTOCOLS)


def test_the_dealer_colludes_with_nobody_in_either_grade_where_it_deals():
    for name, study in cases():
        needed = protocol_of(study).trust(study).who == "the dealer"
        text = protocol_of(study).promise_of(study).sites
        assert ("colludes with nobody" in text) is needed, name
        assert f"up to {study.max_colluding} of" in text or study.protocol in (
            "bell-2pc",
            "central",
            *(each for each in PROTOCOLS if each.startswith(("bell", "local", "ghazi-ldp"))),
            "ghazi-rounds",
        ), name


@pytest.mark.parametrize("name", ["central", "ghazi-shuffle", "u-mpc, person, condition"])
def test_a_check_prints_the_paragraph_of_the_protocol_and_the_records_that_count(name):
    study = next(study for each, study in cases() if each.startswith(name))
    lines = dict(describe_study(study))
    promise = protocol_of(study).promise_of(study)
    assert lines["promise"] == promise.protected and lines["disclosed"] == promise.disclosed
    assert lines["adversary"] == f"{study.adversary}. {promise.sites}"
    columns = len(study.fields) + (study.people is not None)
    assert lines["records"].startswith(f"complete in all {columns} columns of the study")
    assert ("whatever the condition says" in lines["records"]) is bool(study.condition)


TABLES = [
    {"x": [0, 1, 2, 3, 3], "y": [3, 1, 0, 2, 2], "patient": [1, 1, 2, 3, 4]},
    {"x": [2, 2, 1, 0, 1], "y": [0, 1, 1, 3, 2], "patient": [1, 2, 2, 2, 5]},
]
BOUNDS = {"x": (0, 3), "y": (0, 3)}
RUNS = [
    {"protocol": "u-mpc"},
    {"protocol": "u-mpc", "person": "patient", "records_per_person": 2, "where": "x >= 1"},
    {"protocol": "grid"},
    {"protocol": "hajek-grid", "delta": "1e-9"},
    {"protocol": "people"},
    {"protocol": "bell-ldp"},
    {"protocol": "central"},
]


@pytest.mark.parametrize("settings", RUNS, ids=lambda each: ", ".join(each))
def test_a_report_and_its_document_make_the_promise_of_the_study_with_the_delta(settings):
    result = umpc.estimate("kendall_tau", TABLES, ["x", "y"], bounds=BOUNDS, epsilon=1, **settings)
    text = result.to_dict()["promise"]
    assert text == str(promise_of(result.report))
    words = re.search(r"but for a probability of (\S+)\. A person", text)
    delta = f"{result.report.delta:.2g}" if result.report.delta else None
    assert (words and words.group(1)) == delta
    is_of_people = "person" in settings or settings["protocol"] == "people"
    assert ("To every person" in text) is is_of_people
    assert ("that fulfil the condition" in text) is ("where" in settings)
    plain = result.to_html().replace("&#x27;", "'")
    assert all(line in plain for line in promise_of(result.report).lines)


def test_a_report_of_before_has_the_promise_of_its_protocol():
    """It had one text for all protocols, also for a curator who sees every record."""
    result = umpc.estimate(
        "kendall_tau", TABLES, ["x", "y"], bounds=BOUNDS, epsilon=1, protocol="central"
    )
    values = result.to_dict() | {"promise": "everybody follows the protocol"}
    for key in ("person", "finished", "prepared_at"):
        del values[key]
    old = Report.from_dict(values)
    assert "trusted curator" in promise_of(old).sites


if __name__ == "__main__":
    PARAGRAPHS.write_text(paragraphs(), encoding="utf-8")
