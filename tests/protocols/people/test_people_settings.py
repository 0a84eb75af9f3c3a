"""The rules of a study of people, and what a refusal says to do; what a study file has."""

from __future__ import annotations

import pytest

from tests.support.people import closed, people_study, with_terms
from tests.support.protocols import with_facts
from tests.support.studies import AUC, KENDALL, Entropy
from umpc.api.description import describe_study
from umpc.coordinator.studyfile import load_study_file
from umpc.coordinator.studyfile_text import field_entry, write_study_file
from umpc.errors import RangeError, StudyError
from umpc.people.places import keys_digest, new_tokens, write_keys
from umpc.protocols.people.settings import seconds_of
from umpc.protocols.people.terms import (
    counted_of,
    messages_of,
    survey_of,
    terms_of,
)
from umpc.protocols.registry import allowed_as, checked, decode_study, find_protocol
from umpc.study.parts import FieldText, Participant, Person
from umpc.study.settings import keys_of

STUDY = people_study()
NODES = STUDY.nodes


def test_a_study_survives_its_bytes_before_and_after_its_people_are_counted():
    counted = closed(STUDY, 9)
    for study in (STUDY, counted):
        assert checked(study) is study and decode_study(study.encode()) == study
    assert counted_of(counted).n == 9
    assert allowed_as(counted) == allowed_as(STUDY) == STUDY.hash
    assert survey_of(counted).encode() == STUDY.encode() != counted.encode()
    assert messages_of(counted) == messages_of(STUDY) and messages_of(STUDY).hash == STUDY.hash
    moved = counted.replaced(nodes=tuple(Participant(each.name, "moved:1") for each in NODES))
    assert messages_of(moved) == messages_of(STUDY), "an address is no part of a hash"
    with pytest.raises(StudyError, match="is not closed yet: no list of people is signed"):
        counted_of(STUDY)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"nodes": NODES[:1], "max_colluding": 0}, "two aggregators"),
        ({"nodes": (*NODES, Participant("third", "t:1"))}, "two aggregators"),
        ({"max_colluding": 0}, "two aggregators, of which one may collude"),
        ({"dealer": None}, "needs a dealer, who deals a key to each place"),
        ({"datasets": ("heart", "heart")}, "leave dataset out"),
        ({"where": "x >= 1"}, "an aggregator sees no value, so it cannot leave a person out"),
        ({"person": Person("patient", 2)}, "has noise for one; leave person out"),
        (
            {"kernels": (AUC,), "sampling": "two_sample"},
            "an aggregator sees no value, so it cannot tell how many people are in a class",
        ),
        ({"kernels": ("a.x",), "degree": 1}, "a mean of x is that of the kernel"),
        ({"kernels": ("(a.x < a.y) * (b.x < b.y)",)}, "take a kernel of plain fields"),
        ({"x": ("0", "2000"), "y": ("0", "2000")}, "2 to 1,048,576 cells.*give the fields bins"),
        ({"adversary": "lying_dealer"}, "adversary"),
    ],
    ids=str,
)
def test_what_a_study_of_people_cannot_be_is_refused(changes, reason):
    facts = {key: changes[key] for key in ("x", "y") if key in changes}
    changes = {key: value for key, value in changes.items() if key not in facts}
    kernels = changes.pop("kernels", (KENDALL,))
    facts |= {"sampling": changes.pop("sampling")} if "sampling" in changes else {}
    with pytest.raises(StudyError, match=reason):
        checked(with_facts(people_study(kernels, **facts), **changes))


def test_a_study_that_may_miss_an_aggregator_is_refused():
    with pytest.raises(StudyError, match="may_miss"):
        checked(STUDY.replaced(may_miss=1))


SIGNED = terms_of(closed(STUDY, 9)).counted


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"keys": "", "places": 0, "opens": ""}, "names a list of keys"),
        ({"keys": "F" * 64}, "names a list of keys"),
        ({"keys": "0" * 64 + "\n"}, "names a list of keys"),
        ({"fewest": 1}, "fewest people from 2 to that of its 64 places, got 1"),
        ({"fewest": 65}, "got 65; correct fewest"),
        ({"places": 1}, "fewest people from 2 to that of its 1 places"),
        ({"opens": "2000-01-02T00:00:00Z"}, "opens before it closes"),
        ({"opens": ""}, "a moment in UTC was expected"),
        ({"counted": "00"}, "leave it out of a study file"),
        ({"counted": SIGNED.upper()}, "two signatures in hexadecimal"),
        ({"counted": SIGNED[:-2]}, "two signatures in hexadecimal"),
        ({"counted": SIGNED, "fewest": 10}, "counts 10 to 64 people, and a list of 9 came"),
        ({"counted": SIGNED, "places": 8}, "counts 2 to 8 people, and a list of 9 came"),
    ],
    ids=range(13),
)
def test_terms_that_fit_no_study_are_refused(changes, reason):
    with pytest.raises(StudyError, match=reason):
        checked(with_terms(STUDY, **changes))


def test_a_sum_that_many_people_would_overflow_is_refused_before_anybody_comes():
    wide = (FieldText("x", "0", "65536", whole=True),)
    square = STUDY.replaced(fields=wide, kernels=("abs(a.x - b.x)*abs(a.x - b.x)",))
    assert checked(with_terms(square, places=100))
    with pytest.raises(RangeError, match="narrow the fields' bounds"):
        checked(with_terms(square, places=1 << 20))


@pytest.mark.parametrize(
    "moment",
    [
        "2026-12-01 08:00:00Z",
        "2026-12-01T08:00:00",
        "2026-12-01T08:00:00+00:00",
        "2026-12-01T08:00Z",
        "2026-2-30T08:00:00Z",
        "2026-02-29T08:00:00Z",
        "2026-13-01T08:00:00Z",
        "2026-12-01T24:00:00Z",
        "2026-12-01T08:60:00Z",
        "2026-12-01T08:00:60Z",
        "２026-12-01T08:00:00Z",
        "2026-12-01T08:00:00Z\n",
    ],
)
def test_a_moment_has_one_form(moment):
    with pytest.raises(StudyError, match='as "2026-12-01T08:00:00Z"'):
        seconds_of(moment)


def test_a_moment_is_in_utc():
    assert seconds_of("1970-01-01T00:00:01Z") == 1
    assert seconds_of("2028-02-29T23:59:59Z") == 1835481599


# --- study.toml -----------------------------------------------------------------------------------

TERMS = {
    "keys": "people.keys",
    "fewest": 3,
    "opens": "2026-12-01T08:00:00Z",
    "closes": "2026-12-08T08:00:00Z",
}
AGGREGATORS = [{"name": name, "address": f"{name}:1"} for name in ("one", "two")]
ENTRIES = {
    "name": "ages",
    "epsilon": 1,
    "identity": "coordinator",
    "statistic": "gini_mean_difference",
    "columns": ["age"],
    "fields": [field_entry(FieldText("age", "0", "99", whole=True))],
    "protocol": "people",
    "dealer": {"name": "dealer", "address": "dealer:1"},
    "aggregators": AGGREGATORS,
}
SEEDS = Entropy("places of people")


def study_file(folder, **changes):
    """A study file, beside a list of five keys."""
    keys = [key for _, key in new_tokens(5, SEEDS)]
    write_keys(folder / "people.keys", keys)
    people = {"people": TERMS | changes.pop("people", {})}
    return keys, load_study_file(write_study_file(folder, ENTRIES | people | changes))


def test_a_study_file_names_the_list_of_keys_and_two_aggregators(tmp_path):
    keys, file = study_file(tmp_path)
    study = file.study("coordinator")
    digest, places = keys_digest(keys)
    assert (terms_of(study).keys, terms_of(study).places) == (digest, places) == (digest, 5)
    assert [node.name for node in study.nodes] == ["one", "two"] and study.max_colluding == 1
    assert (study.backend, study.noise, study.edges) == ("grid", "distributed", "all")
    lines = dict(describe_study(study))
    assert lines["places"] == "5, each with a token"
    assert lines["fewest people"].startswith("3;")
    assert lines["open"] == "from 2026-12-01T08:00:00Z to 2026-12-08T08:00:00Z"
    assert "could read a person's value" in lines["adversary"]


def test_another_list_is_another_study(tmp_path):
    (tmp_path / "other").mkdir()
    first, second = (study_file(folder)[1].study("c") for folder in (tmp_path, tmp_path / "other"))
    assert first.hash != second.hash


def test_an_enrolled_study_says_so(tmp_path):
    study = study_file(tmp_path, people={"enrolled": True})[1].study("coordinator")
    assert dict(describe_study(study))["places"] == "5, of enrolments"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"nodes": AGGREGATORS}, r"aggregators are nodes. Write \[\[aggregators\]\] only"),
        ({"noise": "in_mpc"}, "`noise` is not a key of a study of protocol = 'people'"),
        ({"backend": "grid"}, "`backend` is not a key"),
        ({"people": {"keys": "lost.keys"}}, "lost.keys"),
        ({"people": {"when": "now"}}, "when"),
        ({"people": {"fewest": "3"}}, "fewest"),
        ({"people": {"closes": "2026-12-08"}}, 'as "2026-12-01T08:00:00Z"'),
        ({"protocol": "grid"}, "`aggregators` is not a key|`people` is not a key"),
    ],
    ids=str,
)
def test_a_study_file_that_cannot_be_is_refused(tmp_path, changes, reason):
    with pytest.raises(StudyError, match=reason):
        study_file(tmp_path, **changes)[1].study("coordinator")


def test_help_lists_no_setting_that_has_one_value():
    assert set(keys_of(find_protocol("people").settings)) == {"dealer", "bins", "people"}
