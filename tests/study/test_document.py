"""umpc.study.document: canonical bytes, the hash that is the study's identity, exact numbers."""

from __future__ import annotations

import json
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.studies import STUDY, changed
from umpc.errors import EncodingError, StudyError, UmpcError
from umpc.protocols.people.settings import LinkedTerms, PeopleTerms
from umpc.protocols.registry import MAX_BYTES, PROTOCOLS, decode_study
from umpc.study.document import Study
from umpc.study.parts import (
    MAX_NUMBER,
    FieldBins,
    FieldText,
    Missing,
    Participant,
    Person,
    StudyPart,
    exact,
)
from umpc.study.settings import keys_of
from umpc_papers.bell_2pc.settings import BellTwoPcSettings
from umpc_papers.ghazi_shuffle.settings import GhaziShuffleSettings


def as_bytes(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def document() -> dict:
    return json.loads(STUDY.encode())


# --- canonical bytes ------------------------------------------------------------------------------


def test_a_study_survives_its_bytes_and_keeps_its_hash():
    again = decode_study(STUDY.encode())
    assert again == STUDY and again.hash == STUDY.hash and len(STUDY.hash) == 32


def test_the_bytes_are_those_of_compact_json_in_the_order_of_the_fields():
    assert STUDY.encode() == as_bytes(document())
    names = [field.name for field in msgspec.structs.fields(Study)]
    later = ("where", "person", "parts", "strata", "may_miss", "required", "missing", "datasets")
    assert list(document()) == [name for name in names if name not in later]
    filtered = STUDY.replaced(where="age >= 40", person=Person("who", 2))
    assert decode_study(filtered.encode()) == filtered
    full = filtered.replaced(**{key: CHANGES[key] for key in later[2:]})
    assert list(json.loads(full.encode())) == names
    assert list(document()["settings"]) == ["protocol", *keys_of(type(STUDY.settings))]


CHANGES = {
    "name": "other",
    "statistic": "gini_mean_difference",
    "kernels": ("abs(a.age - b.age)",),
    "fields": (
        FieldText("age", "0", "128", whole=True),
        FieldText("balance", "-1000", "1000", "0.01"),
    ),
    "epsilon": "1",
    "max_colluding": 1,
    "coordinator": "other",
    "nodes": STUDY.nodes[::-1],
    "settings": BellTwoPcSettings(edges="2n"),
    "degree": 3,
    "estimator": "total",
    "split": ("1",),
    "sampling": "two_sample",
    "adversary": "lying_nodes",
    "seconds_per_step": 601,
    "where": "age >= 40",
    "person": Person("who", 2),
    "parts": (StudyPart("tau", "kendall_tau", "mean", 1),),
    "strata": "sex",
    "may_miss": 1,
    "required": ("node-0",),
    "missing": Missing((0,), (Participant("gone", "127.0.0.1:1"),), 1),
    "datasets": tuple("heart" for _ in STUDY.nodes),
}
SETTINGS = {
    "edges": "3n",
    "noise": "other",
    "delta": "1e-7",
    "coins": "dealt",
    "backend": "garbled",
    "preprocessing": "none",
    "transfers": "checked",
    "members_checked": 8,
    "dealer": Participant("dealing", "dealer.example.org:7100"),
    "bins": (FieldBins("age", 4),),
    "rounding": "randomised",
    "loss": "auc_hinge",
    "coordinates": ("x",),
    "weights": ("1",),
    "margin": "2",
    "centres": ("1",),
    "scales": ("1",),
    "clip": "2",
    "course": "train",
    "step": 2,
    "steps": 2,
    "matrix": True,
    "levels": 5,
    "concentration": "0.5",
    "spread": "0.25",
    "distance": "0.1",
    "spread_share": "1/2",
    "chunks": 3,
    "bound_share": "1/2",
    "neighbours": 1,
    "group": 8,
    "cell_kernel": "average",
    "bins_epsilon_share": "1/4",
    "levels_by": "budget",
    "discarded": "zero",
    "people": PeopleTerms(places=2),
    "linked": LinkedTerms(rows=2),
    "shufflers": (Participant("shuffler", "shuffler.example.org:7100"),),
    "cells": ("x",),
    "tree": "x",
}
"""Another value for every setting of every protocol."""
SETTINGS_BY_PROTOCOL = [
    (protocol.name, key) for protocol in PROTOCOLS.values() for key in keys_of(protocol.settings)
]


def test_every_field_of_the_study_is_changed_once_below():
    assert {*CHANGES, "version"} == {field.name for field in msgspec.structs.fields(Study)}
    assert set(SETTINGS) == {key for _, key in SETTINGS_BY_PROTOCOL}


@pytest.mark.parametrize("key", CHANGES)
def test_the_hash_changes_when_a_field_changes(key):
    assert STUDY.replaced(**{key: CHANGES[key]}).hash != STUDY.hash


@pytest.mark.parametrize(("protocol", "key"), SETTINGS_BY_PROTOCOL)
def test_the_hash_changes_when_a_setting_changes(protocol, key):
    study = STUDY.replaced(settings=PROTOCOLS[protocol].settings())
    assert study.replaced(**{key: SETTINGS[key]}).hash != study.hash


def test_the_hash_changes_with_the_protocol_even_if_the_settings_have_the_same_values():
    studies = [STUDY.replaced(settings=each.settings()) for each in PROTOCOLS.values()]
    assert len({study.hash for study in studies}) == len(PROTOCOLS)


@pytest.mark.parametrize(
    "field",
    [
        FieldText("years", "0", "127", whole=True),
        FieldText("age", "1", "127", whole=True),
        FieldText("age", "0", "127", "1/2"),
        FieldText("age", "0", "127", "1", ("a", "b")),
        FieldText("age", "0", "127", public=True, whole=True),
    ],
)
def test_the_hash_changes_when_anything_of_a_field_changes(field):
    assert changed(fields=(field, STUDY.fields[1])).hash != STUDY.hash


def test_the_order_and_number_of_kernels_and_parts_are_part_of_the_identity():
    kernels = (("a.age",), ("a.age", "a.age"), ("a.age", "a.balance"), ("a.balance", "a.age"))
    splits = ((), ("1/3", "2/3"), ("2/3", "1/3"))
    hashes = {changed(degree=1, kernels=k, split=split).hash for k in kernels for split in splits}
    assert len(hashes) == len(kernels) * len(splits)


def test_a_participant_that_moves_leaves_the_study_as_it_is():
    moved = [
        Participant(participant.name, "elsewhere:1") for participant in (STUDY.dealer, *STUDY.nodes)
    ]
    elsewhere = changed(dealer=moved[0], nodes=tuple(moved[1:]))
    assert elsewhere.hash == STUDY.hash and elsewhere.encode() != STUDY.encode()
    here, there = (
        STUDY.replaced(settings=GhaziShuffleSettings(shufflers=(Participant("one", f"{place}:1"),)))
        for place in ("here", "there")
    )
    assert here.hash == there.hash and here.encode() != there.encode()
    other = (Participant("two", "here:1"),)
    assert here.replaced(shufflers=other).hash != here.hash
    renamed = (Participant("north-2", STUDY.nodes[0].address), *STUDY.nodes[1:])
    assert changed(nodes=renamed).hash != STUDY.hash


def test_numbers_that_are_equal_but_written_differently_are_different_studies():
    assert (
        changed(epsilon="0.5").hash != STUDY.hash
        and changed(epsilon="0.5").exact_epsilon == STUDY.exact_epsilon
    )


def paths(value: object, path: tuple = ()) -> list[tuple]:
    """Where the objects of the document are."""
    found = [path] if isinstance(value, dict) else []
    items = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
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
        if type(wrong) is type(at(values, path)[key]):
            continue
        at(values, path)[key] = wrong
        if (key, wrong) == ("dealer", None):
            continue  # a study without a dealer: tests/protocols/u_mpc/test_settings.py
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
    repeated = STUDY.encode().replace(
        key, key + as_bytes(at(document(), path)[first]) + b"," + key, 1
    )
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


# --- exact numbers --------------------------------------------------------------------------------


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
        *[
            "",
            " ",
            "nan",
            "-nan",
            "snan",
            "inf",
            "-Infinity",
            "1/0",
            "0/0",
            "1/",
            "/1",
            "1/2/3",
            "1//2",
            "1.5/2",
        ],
        *[
            "1e400",
            "1e-400",
            "1e31",
            "1e99999999999999999999",
            "one",
            "0x10",
            "1,5",
            "1 2",
            "--1",
            "1_0",
            "1_0/3",
            "１２",
            "\x00",
        ],
        *[
            "9" * 101,
            "9" * 10_000,
            "1/" + "9" * 10_000,
            "9" * 4000 + "/1",
            "0." + "1" * 5000,
            "[" * 1000,
        ],
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
