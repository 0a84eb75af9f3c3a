"""umpc.study.settings: the base of all settings, over a protocol that only this file has."""

from __future__ import annotations

from typing import Annotated

import msgspec
import pytest

from tests.support.studies import STUDY
from umpc.errors import EncodingError, LocalProtocolError, StudyError
from umpc.protocols.registry import decode_document
from umpc.study.parts import Participant
from umpc.study.settings import (
    Settings,
    describe,
    keys_of,
    name_of,
    named,
    read_settings,
    without_addresses,
)


class ToySettings(
    Settings,
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="protocol",
    tag="toy",
):
    """A setting of every kind."""

    edges: Annotated[str, describe("A number, or text.")] = "2n"
    noise: Annotated[str, describe("A choice.", "loud", "quiet")] = "loud"
    levels: Annotated[int, describe("A whole number.")] = 1
    plain: str = ""
    dealer: Annotated[Participant | None, describe("One participant.")] = None
    shufflers: Annotated[tuple[Participant, ...], describe("Several participants.")] = ()


class BareSettings(
    Settings,
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="protocol",
    tag="bare",
):
    """No setting at all."""


HERE, THERE = Participant("a", "here:1"), Participant("b", "there:1")
TOY = ToySettings(dealer=HERE, shufflers=(HERE, THERE))


def test_the_tag_is_the_protocols_name():
    assert name_of(ToySettings) == TOY.protocol == "toy" and BareSettings().protocol == "bare"


def test_the_keys_are_the_settings_in_their_order_with_their_descriptions():
    keys = keys_of(ToySettings)
    assert list(keys) == ["edges", "noise", "levels", "plain", "dealer", "shufflers"]
    assert keys["edges"].description == "A number, or text."
    assert keys["noise"].extra == {"choices": ("loud", "quiet")}
    assert keys["plain"].description == "" and keys_of(BareSettings) == {}


def test_facts_that_a_protocol_does_not_let_a_study_choose_have_one_value():
    bare = BareSettings()
    facts = (bare.edges, bare.noise, bare.delta, bare.backend, bare.preprocessing)
    assert facts == ("all", "bare", "", "none", "none")
    assert (bare.dealer, bare.shufflers) == (None, ())


def test_a_setting_takes_the_place_of_the_fact_of_its_name():
    study = STUDY.replaced(settings=TOY)
    assert (study.protocol, study.edges, study.noise, study.delta) == ("toy", "2n", "loud", "")
    assert (study.dealer, study.shufflers) == (HERE, (HERE, THERE))


# --- settings from a file -------------------------------------------------------------------------


def test_settings_that_a_file_leaves_out_have_their_usual_values():
    assert read_settings(ToySettings, {}) == ToySettings()
    assert read_settings(BareSettings, {}) == BareSettings()


def test_settings_are_read_by_their_keys():
    entries = {
        "edges": "3n",
        "levels": 4,
        "dealer": {"name": "a", "address": "here:1"},
        "shufflers": [{"name": "b", "address": "there:1"}],
    }
    assert read_settings(ToySettings, entries) == ToySettings(
        edges="3n", levels=4, dealer=HERE, shufflers=(THERE,)
    )


def test_a_whole_number_stands_for_its_text():
    assert read_settings(ToySettings, {"edges": 30}).edges == "30"


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("edges", True, r"`edges`: a text in quotes was expected, and true or false came"),
        (
            "edges",
            3.5,
            r"`edges`: .* was expected, and a number with a fraction came",
        ),
        ("edges", ["2n"], r"`edges`: a text in quotes was expected, and a list came"),
        ("noise", 3, r"`noise`: a text in quotes was expected, and a whole number came"),
        ("levels", "3", r"`levels`: a whole number was expected, and a text or a number"),
        ("levels", True, r"`levels`: a whole number was expected, and true or false came"),
        ("dealer", "a", r"`dealer`: a table or nothing was expected, and a text or a number"),
        ("dealer", {"name": "a"}, r"missing required field `address` - at `\$.dealer`"),
        ("dealer", {"name": "a", "address": 1}, r"`dealer.address`: a text in quotes was expected"),
        ("dealer", {"name": "a", "address": "", "x": 1}, r"unknown field `x` - at `\$.dealer`"),
        ("shufflers", [{"name": "a"}], r"field `address` - at `\$.shufflers\[0\]`"),
    ],
    ids=str,
)
def test_a_value_of_a_wrong_type_is_refused_with_its_place(key, value, expected):
    with pytest.raises(StudyError, match=f"{expected}.*Correct the key there"):
        read_settings(ToySettings, {key: value})


@pytest.mark.parametrize("key", ["bins", "protocol", ""])
def test_a_key_of_another_protocol_is_refused_with_those_that_there_are(key):
    with pytest.raises(StudyError, match=f"`{key}` is not a setting of protocol = 'toy', which"):
        read_settings(ToySettings, {key: "1"})
    with pytest.raises(StudyError, match="which has edges, noise, levels, plain, dealer, shuff"):
        read_settings(ToySettings, {key: "1"})
    with pytest.raises(StudyError, match="'bare', which has no settings of its own"):
        read_settings(BareSettings, {key: "1"})


# --- the parts of an identity ---------------------------------------------------------------------


def test_the_identity_has_participants_without_addresses():
    names_only = ToySettings(
        dealer=Participant("a", ""), shufflers=(Participant("a", ""), Participant("b", ""))
    )
    assert without_addresses(TOY) == names_only
    assert without_addresses(ToySettings(levels=3)) == ToySettings(levels=3)
    assert without_addresses(BareSettings()) == BareSettings()


def test_keys_are_listed_in_words():
    assert named(["a", "b"]) == "a, b" and named({}) == "no settings of its own"


# --- settings inside a study ----------------------------------------------------------------------


def test_a_study_of_several_possible_protocols_is_decoded_by_its_tag():
    for settings in (TOY, BareSettings()):
        study = STUDY.replaced(settings=settings)
        assert decode_document(study.encode(), [ToySettings, BareSettings]) == study


def test_a_tag_that_nobody_knows_is_refused():
    study = STUDY.replaced(settings=TOY)
    for kinds in ([BareSettings], [type(STUDY.settings), BareSettings]):
        with pytest.raises(EncodingError, match="toy"):
            decode_document(study.encode(), kinds)


def test_a_missing_tag_is_refused():
    data = STUDY.replaced(settings=BareSettings()).encode()
    without_tag = data.replace(b'"protocol":"bare"', b"")
    assert without_tag != data
    with pytest.raises(EncodingError):
        decode_document(without_tag, [ToySettings, BareSettings])


def test_settings_are_used_by_their_own_protocol_only():
    study = STUDY.replaced(settings=TOY)
    assert study.settings_as(ToySettings) is TOY
    with pytest.raises(LocalProtocolError, match=r"BareSettings were expected.*runs 'toy'"):
        study.settings_as(BareSettings)


def test_keys_of_a_study_and_of_its_settings_are_replaced_by_name():
    study = STUDY.replaced(settings=TOY, name="first")
    other = study.replaced(name="second", levels=7)
    assert (other.name, other.settings_as(ToySettings).levels) == ("second", 7)
    assert (study.name, study.settings_as(ToySettings).levels) == ("first", 1)
    both = STUDY.replaced(settings=ToySettings(), levels=9)
    assert both.settings_as(ToySettings).levels == 9


def test_a_key_that_neither_the_study_nor_its_protocol_has_is_not_replaced():
    study = STUDY.replaced(settings=TOY)
    with pytest.raises(StudyError, match="`bins` is not a setting of protocol = 'toy', which has"):
        study.replaced(name="second", bins=())
