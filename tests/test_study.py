"""umpc.study: canonical bytes, the hash that is the study's identity, and every refusal."""

from __future__ import annotations

import json
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from umpc import __version__
from umpc.agreement import attempt_of
from umpc.errors import (
    DuplicateParticipant,
    EncodingError,
    InvalidEpsilon,
    KernelError,
    RangeError,
    StudyError,
    TooFewRecords,
    UmpcError,
    UnknownField,
    VersionMismatch,
)
from umpc.mpc.attempt import Member, Sizes, commit
from umpc.study import MAX_BYTES, MAX_NUMBER, FieldText, Participant, Study, decode_study, exact

STUDY = Study(
    name="kendall-2026",
    statistic="kendall_tau",
    kernel="sign(a.age - b.age) * sign(a.balance - b.balance)",
    fields=(FieldText("age", "0", "127"), FieldText("balance", "-1000", "1000", "0.01")),
    epsilon="1/2",
    edges="2n",
    max_colluding=2,
    coordinator="coordinator",
    dealer=Participant("dealer", "dealer.example.org:7100"),
    nodes=tuple(Participant(name, f"{name}.example.org:7100") for name in ("north", "south", "west")),
)


def changed(**changes) -> Study:
    return msgspec.structs.replace(STUDY, **changes)


def as_bytes(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def document() -> dict:
    return json.loads(STUDY.encode())


# --- canonical bytes ------------------------------------------------------------------------------------------


def test_a_study_survives_its_bytes_and_keeps_its_hash():
    again = decode_study(STUDY.encode())
    assert again == STUDY and again.hash == STUDY.hash and len(STUDY.hash) == 32


def test_the_bytes_are_those_of_compact_json_in_the_order_of_the_fields():
    assert STUDY.encode() == as_bytes(document())
    assert list(document()) == [field.name for field in msgspec.structs.fields(Study)]


CHANGES = {
    "name": "other",
    "statistic": "gini_mean_difference",
    "kernel": "abs(a.age - b.age)",
    "fields": (FieldText("age", "0", "128"), FieldText("balance", "-1000", "1000", "0.01")),
    "epsilon": "1",
    "edges": "3n",
    "max_colluding": 1,
    "coordinator": "other",
    "dealer": Participant("dealing", "dealer.example.org:7100"),
    "nodes": STUDY.nodes[::-1],
    "sampling": "uniform",
    "noise": "in_mpc",
    "seconds_per_step": 601,
    "version": "0.0.0",
}


def test_every_field_of_the_study_is_changed_once_below():
    assert list(CHANGES) == [field.name for field in msgspec.structs.fields(Study)]


@pytest.mark.parametrize("key", CHANGES)
def test_the_hash_changes_when_a_field_changes(key):
    assert changed(**{key: CHANGES[key]}).hash != STUDY.hash


def test_a_participant_that_moves_leaves_the_study_as_it_is():
    moved = [Participant(participant.name, "elsewhere:1") for participant in (STUDY.dealer, *STUDY.nodes)]
    elsewhere = changed(dealer=moved[0], nodes=tuple(moved[1:]))
    assert elsewhere.hash == STUDY.hash and elsewhere.encode() != STUDY.encode()
    renamed = (Participant("north-2", STUDY.nodes[0].address), *STUDY.nodes[1:])
    assert changed(nodes=renamed).hash != STUDY.hash


def test_numbers_that_are_equal_but_written_differently_are_different_studies():
    assert changed(epsilon="0.5").hash != STUDY.hash and changed(epsilon="0.5").exact_epsilon == STUDY.exact_epsilon


def paths(value: object, path: tuple = ()) -> list[tuple]:
    """Where the objects of the document are."""
    found = [path] if isinstance(value, dict) else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [inner for key, item in items for inner in paths(item, (*path, key))]


def at(value, path):
    for key in path:
        value = value[key]
    return value


OBJECTS = paths(document())
KEYS = [(path, key) for path in OBJECTS for key in at(document(), path)]


@pytest.mark.parametrize(("path", "key"), KEYS, ids=str)
def test_a_missing_key_is_refused(path, key):
    values = document()
    del at(values, path)[key]
    with pytest.raises(EncodingError):
        decode_study(as_bytes(values))


@pytest.mark.parametrize(("path", "key"), KEYS, ids=str)
def test_a_key_of_a_wrong_type_is_refused(path, key):
    for wrong in (None, True, 1.5, {}, [0]):
        values = document()
        at(values, path)[key] = wrong
        with pytest.raises(EncodingError):
            decode_study(as_bytes(values))


@pytest.mark.parametrize("path", OBJECTS, ids=str)
def test_an_unknown_key_another_order_and_a_repeated_key_are_refused(path):
    values = document()
    at(values, path)["extra"] = 1
    with pytest.raises(EncodingError):
        decode_study(as_bytes(values))
    values = document()
    inner = at(values, path)
    first = next(iter(inner))
    inner[first] = inner.pop(first)
    with pytest.raises(EncodingError, match="not in canonical form"):
        decode_study(as_bytes(values))
    key = f'"{first}":'.encode()
    repeated = STUDY.encode().replace(key, key + as_bytes(at(document(), path)[first]) + b"," + key, 1)
    with pytest.raises(EncodingError):
        decode_study(repeated)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data + b" ",
        lambda data: b" " + data,
        lambda data: data + b"\n",
        lambda data: data.replace(b",", b", ", 1),
        lambda data: data.replace(b":", b": ", 1),
        lambda data: data.replace(b"kendall-2026", b"kendall\\u002d2026"),
        lambda data: data.replace(b'"max_colluding":2', b'"max_colluding":2.0'),
        lambda data: data.replace(b'"max_colluding":2', b'"max_colluding":2e0'),
        lambda data: data.replace(b'"resolution":"0.01"', b'"resolution":0.01'),
        lambda data: data[:-1],
        lambda data: data + data,
        lambda data: b"",
        lambda data: b"[]",
        lambda data: b"null",
        lambda data: b"\xff" + data,
        lambda data: data.replace(b"kendall-2026", b"\xff"),
        lambda data: data.replace(b"kendall-2026", b"\\ud800"),
        lambda data: b'{"version":' + b"[" * 100_000,
        lambda data: b'{"x":' + b"[" * 100_000,
        lambda data: data[:-1] + b',"x":' + b"[" * 100_000,
        lambda data: data + b" " * MAX_BYTES,
    ],
)
def test_bytes_that_are_not_canonical_are_refused(spoil):
    data = spoil(STUDY.encode())
    assert data != STUDY.encode()
    with pytest.raises(EncodingError):
        decode_study(data)


@given(st.binary(max_size=40) | st.text(alphabet='{}[]":,0ae', max_size=40).map(str.encode))
def test_any_bytes_are_refused_by_a_class_of_ours(data):
    with pytest.raises(UmpcError):
        decode_study(data)


# --- refusals -------------------------------------------------------------------------------------------------

DEALER, NODES = STUDY.dealer, STUDY.nodes


def named(*names: str) -> tuple[Participant, ...]:
    return tuple(Participant(name, "x:1") for name in names)


REFUSED = [
    ({"epsilon": "0"}, InvalidEpsilon, "epsilon must be positive, got 0"),
    ({"epsilon": "-1"}, InvalidEpsilon, "epsilon must be positive, got -1"),
    ({"epsilon": "-1/3"}, InvalidEpsilon, "epsilon must be positive"),
    ({"epsilon": "nan"}, InvalidEpsilon, "epsilon must be a number"),
    ({"epsilon": "one"}, InvalidEpsilon, "epsilon must be a number"),
    ({"nodes": named("a", "b", "a")}, DuplicateParticipant, "two participants are named 'a'"),
    ({"nodes": named("a", "b", "dealer")}, DuplicateParticipant, "two participants are named 'dealer'"),
    ({"coordinator": "north"}, DuplicateParticipant, "two participants are named 'north'"),
    ({"coordinator": "dealer"}, DuplicateParticipant, "two participants are named 'dealer'"),
    ({"nodes": (), "max_colluding": 0}, StudyError, "at least one node"),
    ({"max_colluding": 3}, StudyError, "between 0 and 2 for 3 nodes, got 3"),
    ({"max_colluding": -1}, StudyError, "between 0 and 2 for 3 nodes, got -1"),
    ({"sampling": "uniform"}, StudyError, 'sampling must be "balanced"'),
    ({"noise": "in_mpc"}, StudyError, 'noise must be "distributed"'),
    ({"edges": "many"}, StudyError, "edges must be"),
    ({"edges": "0"}, StudyError, "edges must be"),
    ({"seconds_per_step": 0}, StudyError, "seconds_per_step must be between 1 and 86400, got 0"),
    ({"seconds_per_step": 86_401}, StudyError, "seconds_per_step"),
    ({"fields": (STUDY.fields[0], STUDY.fields[0])}, StudyError, "a field is named twice: age, age"),
    ({"fields": STUDY.fields[:1]}, UnknownField, "'balance'"),
    ({"fields": ()}, UnknownField, "'age'"),
    ({"fields": (FieldText("age", "0", "x"),)}, StudyError, "field 'age': upper must be a number"),
    ({"fields": (FieldText("age", "?", "1"),)}, StudyError, "field 'age': lower must be a number"),
    ({"fields": (FieldText("age", "0", "1", ""),)}, StudyError, "field 'age': resolution must be a number"),
    ({"fields": (FieldText("age", "2", "1"),)}, RangeError, "field 'age'.*swap"),
    ({"fields": (FieldText("age", "0", "1", "0"),)}, RangeError, "field 'age'.*positive"),
    ({"fields": (FieldText("age", "0", "1e30"),)}, RangeError, "field 'age'.*narrow the bounds"),
    ({"kernel": "a.age - b.age"}, KernelError, "is not symmetric"),
    ({"kernel": "print(a.age)"}, KernelError, "may not contain"),
    ({"kernel": "abs(a.age - b.age) + 0 * c.age"}, KernelError, "uses record 3"),
    ({"version": "0.0.0"}, VersionMismatch, f"for umpc 0.0.0, this process runs umpc {__version__}"),
]


@pytest.mark.parametrize(("changes", "error", "message"), REFUSED, ids=lambda value: str(value)[:40])
def test_a_study_that_cannot_be_is_refused_by_both_doors(changes, error, message):
    for door in (Study.check, lambda study: decode_study(study.encode())):
        with pytest.raises(error, match=message) as refusal:
            door(changed(**changes))
        assert type(refusal.value) is error


def test_what_is_possible_passes():
    assert STUDY.check() is STUDY
    for changes in ({"max_colluding": 0}, {"seconds_per_step": 1}, {"seconds_per_step": 86_400}, {"edges": "all"}):
        changed(**changes).check()
    changed(nodes=STUDY.nodes[:1], max_colluding=0).check()


@pytest.mark.parametrize("name", ["a", "0", "north-1", "a--b", "x" * 63])
def test_these_names_are_possible(name):
    assert changed(coordinator=name).check()


@pytest.mark.parametrize(
    "name", ["", "-a", "a-", "A", "a_b", "a b", "a.b", "ä", "a\n", "x" * 64, "a/../b", "*", "a\x00", "٣"]
)
@pytest.mark.parametrize("role", ["node", "dealer", "coordinator"])
def test_these_names_are_refused(name, role):
    changes = {
        "node": {"nodes": (*STUDY.nodes, Participant(name, "x:1"))},
        "dealer": {"dealer": Participant(name, "x:1")},
        "coordinator": {"coordinator": name},
    }
    with pytest.raises(StudyError, match="lower-case letters, digits and inner dashes"):
        changed(**changes[role]).check()


def test_another_version_is_named_before_anything_unknown_in_its_bytes():
    values = document() | {"version": "9.9.9", "novelty": 1}
    with pytest.raises(VersionMismatch, match=r"9\.9\.9"):
        decode_study(as_bytes(values))


# --- what follows from it -------------------------------------------------------------------------------------


def test_the_honest_nodes_are_those_that_do_not_collude():
    assert STUDY.honest == 1 and changed(max_colluding=0).honest == 3


def test_a_node_is_found_by_name_or_refused():
    assert [STUDY.index_of(node.name) for node in STUDY.nodes] == [0, 1, 2]
    with pytest.raises(StudyError, match="'east' is not one of the study's nodes: north, south, west"):
        STUDY.index_of("east")


def test_fields_become_exact():
    balance = STUDY.schema["balance"]
    assert (balance.lower, balance.upper, balance.resolution) == (-1000, 1000, Fraction(1, 100))
    assert STUDY.exact_epsilon == Fraction(1, 2)


def members(study: Study, records: int) -> list[Member]:
    openings = bytes(32)
    return [Member(n.name, records, commit(study.hash, n.name, openings), bytes(32)) for n in study.nodes]


def test_the_ring_is_the_narrowest_that_holds_sum_and_noise():
    assert attempt_of(STUDY, members(STUDY, 10), [bytes(32)] * 3).ring.bits == 32
    gini = changed(kernel="abs(a.balance - b.balance)", fields=(FieldText("balance", "0", "1e6", "0.01"),))
    sizes = Sizes(gini, 30)
    assert (sizes.edges, sizes.max_degree, sizes.sensitivity) == (60, 4, 4 * 10**8)
    assert attempt_of(gini, members(gini, 10), [bytes(32)] * 3).ring.bits == 64


def test_a_sum_that_no_ring_holds_is_a_range_error():
    wide = changed(kernel="a.x * b.x", fields=(FieldText("x", "0", str(1 << 30)),)).check()
    with pytest.raises(RangeError, match="narrow the fields' bounds"):
        attempt_of(wide, members(wide, 10), [bytes(32)] * 3)
    with pytest.raises(RangeError, match=r"the ring holds 2\^63"):
        Sizes(wide, 30).ring(0)


def test_a_value_inside_a_kernel_that_64_bits_do_not_hold_is_refused_before_anything_is_computed():
    """Otherwise the bit of a wrapped product would be 1 where the analysis says 0, and the sum would carry no noise."""
    wrapping = changed(
        kernel="(a.x * a.x < 0) * a.y + (b.x * b.x < 0) * b.y",
        fields=(FieldText("x", "0", str(1 << 40)), FieldText("y", "0", "127")),
    )
    with pytest.raises(RangeError, match="62 bits"):
        wrapping.check()


def test_more_records_or_edges_than_memory_holds_are_refused():
    with pytest.raises(RangeError, match="records"):
        _ = Sizes(STUDY, 10**8).edges
    with pytest.raises(RangeError, match="sampled"):
        _ = Sizes(changed(edges="100000000"), 10**5).edges
    assert Sizes(changed(edges="all"), 10**5).edges == 10**5 * (10**5 - 1) // 2


def test_noise_that_no_ring_holds_is_refused_by_a_study_error():
    quiet = changed(epsilon="1e-15", kernel="abs(a.x - b.x)", fields=(FieldText("x", "0", "1e9"),)).check()
    with pytest.raises(StudyError, match="epsilon"):
        attempt_of(quiet, members(quiet, 10), [bytes(32)] * 3)


def test_too_few_records_are_refused():
    with pytest.raises(TooFewRecords):
        attempt_of(STUDY, members(STUDY, 0), [bytes(32)] * 3)


# --- exact numbers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1/3", Fraction(1, 3)),
        ("-2/6", Fraction(-1, 3)),
        ("0.1", Fraction(1, 10)),
        ("0.10", Fraction(1, 10)),
        ("1e9", 10**9),
        ("1E-9", Fraction(1, 10**9)),
        ("1e30", 10**30),
        ("1e-30", Fraction(1, 10**30)),
        ("-0", 0),
        ("127", 127),
    ],
)
def test_text_becomes_an_exact_number(text, value):
    assert exact(text, "epsilon") == value


@pytest.mark.parametrize(
    "text",
    [
        *["", " ", "nan", "-nan", "snan", "inf", "-Infinity", "1/0", "0/0", "1/", "/1", "1/2/3", "1//2", "1.5/2"],
        *["1e400", "1e-400", "1e31", "1e99999999999999999999", "one", "0x10", "1,5", "1 2", "--1", "\x00"],
        *["9" * 101, "9" * 10_000, "1/" + "9" * 10_000, "9" * 4000 + "/1", "0." + "1" * 5000, "[" * 1000],
    ],
    ids=lambda text: repr(text[:20]),
)
def test_everything_else_is_refused_by_name_and_in_short(text):
    with pytest.raises(StudyError, match=r"epsilon must be a number such as 3, 0.01 or") as refusal:
        exact(text, "epsilon")
    assert len(str(refusal.value)) < MAX_NUMBER + 100


@given(st.text(max_size=30) | st.text(alphabet="0123456789+-/.eE_ ", max_size=12))
def test_any_text_is_a_number_or_refused(text):
    try:
        value = exact(text, "lower")
    except StudyError:
        return
    assert isinstance(value, Fraction)
