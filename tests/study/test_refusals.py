"""The rules of every study in `umpc.study.rules`, and the facts that follow from a study."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from tests.support.protocols import assert_refused
from tests.support.studies import CLASSES, STUDY, changed, make_members
from umpc.errors import (
    DuplicateParticipant,
    InvalidEpsilon,
    KernelError,
    RangeError,
    StudyError,
    TooFewRecords,
    UnknownField,
    VersionMismatch,
)
from umpc.protocol_version import PROTOCOL
from umpc.protocols.registry import attempt_of, checked, decode_study
from umpc.study.document import Study
from umpc.study.parts import FieldText, Participant
from umpc.study.rules import MAX_DEGREE, MAX_SUMS
from umpc.study.sizes import Sizes

# --- refusals -------------------------------------------------------------------------------------


def named(*names: str) -> tuple[Participant, ...]:
    return tuple(Participant(name, "x:1") for name in names)


REFUSED = [
    ({"epsilon": "0"}, InvalidEpsilon, "epsilon must be positive, got 0"),
    ({"epsilon": "-1"}, InvalidEpsilon, "epsilon must be positive, got -1"),
    ({"epsilon": "-1/3"}, InvalidEpsilon, "epsilon must be positive"),
    ({"epsilon": "nan"}, InvalidEpsilon, "epsilon must be a number"),
    ({"epsilon": "one"}, InvalidEpsilon, "epsilon must be a number"),
    ({"nodes": named("a", "b", "a")}, DuplicateParticipant, "two participants are named 'a'"),
    (
        {"nodes": named("a", "b", "dealer")},
        DuplicateParticipant,
        "two participants are named 'dealer'",
    ),
    ({"coordinator": "north"}, DuplicateParticipant, "two participants are named 'north'"),
    ({"coordinator": "dealer"}, DuplicateParticipant, "two participants are named 'dealer'"),
    ({"nodes": (), "max_colluding": 0}, StudyError, "at least one node"),
    (
        {"nodes": tuple(Participant(f"n{number}", "") for number in range(1025))},
        StudyError,
        "at most 1,024 nodes, got 1,025; take fewer",
    ),
    ({"max_colluding": 3}, StudyError, "between 0 and 2 for 3 nodes, got 3"),
    ({"max_colluding": -1}, StudyError, "between 0 and 2 for 3 nodes, got -1"),
    (
        {"sampling": "stratified"},
        StudyError,
        "sampling must be one of balanced, uniform, bernoulli, two_sample, got 'stratified'",
    ),
    ({"datasets": ("heart",)}, StudyError, "for each of 3 nodes, and 1 name"),
    ({"datasets": ("", "", "")}, StudyError, "for each of 3 nodes"),
    ({"datasets": ("a", "b\n", "")}, StudyError, "at most 200 printable characters"),
    ({"datasets": ("a", "b" * 201, "")}, StudyError, "at most 200 printable characters"),
    ({"edges": "many"}, StudyError, "edges must be"),
    ({"edges": "0"}, StudyError, "edges must be"),
    ({"seconds_per_step": 0}, StudyError, "seconds_per_step must be between 1 and 86400, got 0"),
    ({"seconds_per_step": 86_401}, StudyError, "seconds_per_step"),
    (
        {"fields": (STUDY.fields[0], STUDY.fields[0])},
        StudyError,
        "a field is named twice: age, age",
    ),
    ({"fields": STUDY.fields[:1]}, UnknownField, "'balance'"),
    ({"fields": ()}, UnknownField, "'age'"),
    (
        {
            "fields": (
                *STUDY.fields,
                FieldText("ward", "0", "9", whole=True),
                FieldText("day", "0", "6", whole=True),
            )
        },
        StudyError,
        "must occur in a kernel.*and 'ward', 'day' does not; leave it out",
    ),
    (
        {"kernels": ("abs(a.age - b.age)",), "fields": STUDY.fields},
        StudyError,
        "and 'balance' does not",
    ),
    (
        {"fields": (FieldText("age", "0", "x", whole=True),)},
        StudyError,
        "field 'age': upper must be a number",
    ),
    (
        {"fields": (FieldText("age", "?", "1", whole=True),)},
        StudyError,
        "field 'age': lower must be a number",
    ),
    (
        {"fields": (FieldText("age", "0", "1"),)},
        StudyError,
        "field 'age': a resolution, or whole = true, was expected, and neither came. Write",
    ),
    (
        {"fields": (FieldText("age", "0", "1", "1", whole=True),)},
        StudyError,
        "field 'age': either a resolution or whole = true was expected, and both came",
    ),
    (
        {"fields": (FieldText("age", "0", "1", "x"),)},
        StudyError,
        "field 'age': resolution must be a number",
    ),
    ({"fields": (FieldText("age", "2", "1", whole=True),)}, RangeError, "field 'age'.*swap"),
    ({"fields": (FieldText("age", "0", "1", "0"),)}, RangeError, "field 'age'.*positive"),
    (
        {"fields": (FieldText("age", "0", "1e30", whole=True),)},
        RangeError,
        "field 'age'.*narrow the bounds",
    ),
    ({"kernels": ("a.age - b.age",)}, KernelError, "is not symmetric"),
    ({"kernels": ("print(a.age)",)}, KernelError, "may not contain"),
    (
        {"kernels": ("abs(a.age - b.age) + 0 * c.age",)},
        KernelError,
        "uses record 3 of an edge of 2 records",
    ),
    (
        {"version": "0.0.0"},
        VersionMismatch,
        f"for protocol 0.0.0, this process speaks protocol {PROTOCOL}",
    ),
]


SYMMETRIC = STUDY.kernels[0]
TWO = (SYMMETRIC, "abs(a.age - b.age)")
SCORE = STUDY.fields[0]
TWO_SAMPLE = {"sampling": "two_sample", "kernels": ("a.age < b.age",), "fields": (SCORE, CLASSES)}


def labels(*categories: str, name: str = "label", public: bool = True) -> FieldText:
    return FieldText.of_categories(name, categories, public=public)


REFUSED_STATISTICS = [
    ({"degree": 0}, StudyError, f"1 to {MAX_DEGREE} records, got degree 0"),
    ({"degree": -1}, StudyError, f"1 to {MAX_DEGREE} records, got degree -1"),
    ({"degree": MAX_DEGREE + 1}, StudyError, f"1 to {MAX_DEGREE} records, got degree 9"),
    ({"degree": 1}, KernelError, "uses record 2 of an edge of 1 records"),
    ({"degree": 3}, KernelError, "is not symmetric"),
    (
        {"degree": 3, "kernels": ("a.age + b.age + c.age + d.age",)},
        KernelError,
        "uses record 4 of an edge of 3 records",
    ),
    (
        {"degree": 3, "kernels": ("a.age + b.age + h.age",)},
        KernelError,
        "uses record 8 of an edge of 3 records",
    ),
    ({"kernels": ()}, StudyError, f"1 to {MAX_SUMS} sums, got 0 kernels"),
    ({"kernels": (SYMMETRIC,) * 17}, StudyError, f"1 to {MAX_SUMS} sums, got 17 kernels"),
    ({"kernels": TWO}, StudyError, "the estimator 'mean' takes 1 sum.*has 2 kernel"),
    (
        {"kernels": TWO, "estimator": "geometric_ratio"},
        StudyError,
        "'geometric_ratio' takes 3 sum.*has 2 kernel",
    ),
    (
        {"kernels": (SYMMETRIC,) * 3, "estimator": "ratio"},
        StudyError,
        "'ratio' takes 2 sum.*has 3 kernel",
    ),
    ({"estimator": "ratio"}, StudyError, "'ratio' takes 2 sum.*has 1 kernel"),
    (
        {"estimator": "median"},
        StudyError,
        "estimator must be one of .*geometric_ratio, mean.*got 'median'",
    ),
    ({"estimator": ""}, StudyError, "estimator must be one of"),
    (
        {"kernels": (SYMMETRIC, "a.age"), "estimator": "ratio"},
        KernelError,
        "'a.age' is not symmetric",
    ),
    ({"kernels": (SYMMETRIC, "abs(a.x - b.x)"), "estimator": "ratio"}, UnknownField, "'x'"),
    ({"split": ("1/2",)}, StudyError, "split takes 1 positive part"),
    ({"split": ("1", "1")}, StudyError, "split takes 1 positive part"),
    ({"split": ("1/2", "1/2")}, StudyError, "split takes 1 positive part"),
    *(
        ({"kernels": TWO, "estimator": "ratio", "split": split}, StudyError, message)
        for split, message in [
            (("1",), "split takes 2 positive part"),
            (("1/2", "1/3"), "add up to 1; got 1/2, 1/3"),
            (("0.33", "0.66"), "add up to 1; got 0.33, 0.66"),
            (("1/2", "1/2", "0"), "split takes 2 positive part"),
            (("1", "0"), "split takes 2 positive part"),
            (("3/2", "-1/2"), "split takes 2 positive part"),
            (("0.5000000000000000000001", "0.5"), "add up to 1"),
            (("half", "1/2"), "split must be a number"),
            (("nan", "1"), "split must be a number"),
        ]
    ),
    (
        {**TWO_SAMPLE, "fields": (SCORE,)},
        StudyError,
        "exactly one label that is public, and no field came .*; write public = true for the label",
    ),
    (
        {**TWO_SAMPLE, "fields": (SCORE, labels("p", "n", public=False))},
        StudyError,
        "and no field came with public = true; write public = true",
    ),
    (
        {**TWO_SAMPLE, "fields": (SCORE, labels("p", "n"), labels("p", "n", name="other"))},
        StudyError,
        "exactly one label that is public, and fields 'label', 'other' came with public = true",
    ),
    (
        {**TWO_SAMPLE, "fields": (SCORE, labels("p", "n", "x"))},
        StudyError,
        "field 'label' is the label .*two categories, and 3 came; write categories = .FIRST",
    ),
    (
        {**TWO_SAMPLE, "fields": (SCORE, labels("p", "n"), STUDY.fields[1])},
        StudyError,
        "and 'balance' does not; leave it out",
    ),
    ({**TWO_SAMPLE, "fields": (SCORE, labels("p"))}, StudyError, "two categories, and 1 came"),
    (
        {**TWO_SAMPLE, "fields": (SCORE, FieldText("label", "0", "1", public=True, whole=True))},
        StudyError,
        "two categories, and bounds of numbers came; write categories = .FIRST, SECOND",
    ),
    ({**TWO_SAMPLE, "degree": 3}, StudyError, "two_sample sampling is of pairs, got degree 3"),
    (
        {**TWO_SAMPLE, "degree": 1, "kernels": ("a.age",)},
        StudyError,
        "two_sample sampling is of pairs, got degree 1",
    ),
    ({**TWO_SAMPLE, "sampling": "balanced"}, KernelError, "is not symmetric"),
    ({**TWO_SAMPLE, "kernels": ("a.age < c.age",)}, KernelError, "uses record 3"),
    ({**TWO_SAMPLE, "kernels": ("a.label < b.label",)}, KernelError, "no order"),
]


@pytest.mark.parametrize(
    ("changes", "error", "message"), REFUSED + REFUSED_STATISTICS, ids=lambda value: str(value)[:40]
)
def test_a_study_that_cannot_be_is_refused_by_both_doors(changes, error, message):
    assert_refused(changed(**changes), error, message)


def test_what_is_possible_passes():
    assert checked(STUDY) is STUDY
    for changes in (
        {"max_colluding": 0},
        {"seconds_per_step": 1},
        {"seconds_per_step": 86_400},
        {"edges": "all"},
    ):
        checked(changed(**changes))
    checked(changed(nodes=STUDY.nodes[:1], max_colluding=0))
    checked(changed(**TWO_SAMPLE))
    for split in ((), ("1/2", "1/2"), ("0.1", "9/10")):
        checked(changed(kernels=TWO, estimator="ratio", split=split))
    for degree in range(1, MAX_DEGREE + 1):
        checked(
            changed(
                degree=degree,
                kernels=(" + ".join(f"{record}.age" for record in "abcdefgh"[:degree]),),
                fields=(SCORE,),
            )
        )


@pytest.mark.parametrize("name", ["a", "0", "north-1", "a--b", "x" * 63])
def test_these_names_are_possible(name):
    assert checked(changed(coordinator=name))


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-a",
        "a-",
        "A",
        "a_b",
        "a b",
        "a.b",
        "ä",
        "a\n",
        "x" * 64,
        "a/../b",
        "*",
        "a\x00",
        "٣",
        "any",
    ],
)
@pytest.mark.parametrize("role", ["node", "dealer", "coordinator"])
def test_these_names_are_refused(name, role):
    changes = {
        "node": {"nodes": (*STUDY.nodes, Participant(name, "x:1"))},
        "dealer": {"dealer": Participant(name, "x:1")},
        "coordinator": {"coordinator": name},
    }
    with pytest.raises(StudyError, match="lower-case letters, digits and inner dashes"):
        checked(changed(**changes[role]))


def test_another_version_is_named_before_anything_unknown_in_its_bytes():
    values = json.loads(STUDY.encode()) | {"version": "9.9.9", "novelty": 1}
    with pytest.raises(VersionMismatch, match=r"9\.9\.9"):
        decode_study(json.dumps(values, separators=(",", ":")).encode())


# --- what follows from it -------------------------------------------------------------------------


def test_the_honest_nodes_are_those_that_do_not_collude():
    assert STUDY.honest == 1 and changed(max_colluding=0).honest == 3


def test_a_node_is_found_by_name_or_refused():
    assert [STUDY.index_of(node.name) for node in STUDY.nodes] == [0, 1, 2]
    with pytest.raises(
        StudyError, match="'east' is not one of the study's nodes: north, south, west"
    ):
        STUDY.index_of("east")


def test_fields_become_exact():
    balance = STUDY.schema["balance"]
    assert (balance.lower, balance.upper, balance.resolution) == (-1000, 1000, Fraction(1, 100))
    assert STUDY.exact_epsilon == Fraction(1, 2)


def begin(study: Study, records: int, first: int = 0):
    """An attempt of nodes with so many records each."""
    nodes = len(study.nodes)
    return attempt_of(study, *make_members(study, [records] * nodes, first=[first] * nodes))


def test_a_value_inside_a_kernel_that_64_bits_do_not_hold_is_refused_before_anything_is_computed():
    """Otherwise a wrapped product could be 1 where the analysis says 0.

    The sum would then carry no noise.
    """
    wrapping = changed(
        kernels=("(a.x * a.x < 0) * a.y + (b.x * b.x < 0) * b.y",),
        fields=(
            FieldText("x", "0", str(1 << 40), whole=True),
            FieldText("y", "0", "127", whole=True),
        ),
    )
    with pytest.raises(RangeError, match="62 bits"):
        checked(wrapping)


def test_more_records_or_edges_than_memory_holds_are_refused():
    with pytest.raises(RangeError, match="records"):
        _ = Sizes(STUDY, 10**8).edges
    with pytest.raises(RangeError, match="sampled"):
        _ = Sizes(changed(edges="100000000"), 10**5).edges
    assert Sizes(changed(edges="all"), 10**5).edges == 10**5 * (10**5 - 1) // 2


@pytest.mark.parametrize("degree", [1, 2, 3, 8])
def test_too_few_records_are_refused(degree):
    study = changed(degree=degree, kernels=("7",), nodes=STUDY.nodes[:1], max_colluding=0)
    with pytest.raises(TooFewRecords, match=f"degree {degree} needs at least {degree} records"):
        begin(study, degree - 1)
    assert begin(study, degree).sizes.edges == 1


@pytest.mark.parametrize("first", [0, 4])
def test_a_class_without_records_is_refused(first):
    study = changed(**TWO_SAMPLE)
    words = study.schema[study.label].categories
    lacking = words[first > 0]
    with pytest.raises(TooFewRecords, match=f"none has {study.label} = '{lacking}'") as caught:
        begin(study, 4, first)
    for told in (
        f"{3 * first} of the first class {words[0]!r}",
        f"{12 - 3 * first} of the second class {words[1]!r}",
        f"Compare the categories of {study.label!r} in the study",
    ):
        assert told in caught.value.message
