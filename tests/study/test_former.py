"""umpc.study.computation: the identities of a study under tags 1 and 2, as they were computed then.

The golden hashes were computed by running the former versions themselves over the same facts.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.support.protocols import flat_study, with_facts
from umpc.protocols.registry import PROTOCOLS, checked
from umpc.study.computation import FORMER_VERSION, former_hash, former_hashes, second_hash
from umpc.study.document import Study
from umpc.study.parts import FieldBins, FieldText, Participant

KENDALL = "sign(a.x - b.x) * sign(a.y - b.y)"
X = FieldText("x", "0", "127", whole=True)
Y = FieldText("y", "-1000", "1000", "0.01")
LABEL = FieldText.of_categories("label", ["case", "control"], public=True)
COMMON: dict[str, Any] = {
    "name": "former-2026",
    "statistic": "custom",
    "kernels": (KENDALL,),
    "fields": (X, Y),
    "epsilon": "1/2",
    "edges": "all",
    "max_colluding": 1,
    "coordinator": "coordinator",
    "dealer": None,
    "nodes": (Participant("north", "north:7100"), Participant("south", "south:7100")),
    "backend": "none",
    "preprocessing": "none",
    "seconds_per_step": 60,
}
CELLS: dict[str, Any] = {
    "noise": "local",
    "bins": (FieldBins("x", 0, ("40", "80")), FieldBins("y", 4)),
    "rounding": "randomised",
}
FACTS: dict[str, dict[str, Any]] = {
    "u-mpc": {
        "kernels": (KENDALL, "abs(a.x - b.x)"),
        "estimator": "ratio",
        "split": ("1/3", "2/3"),
        "edges": "2n",
        "dealer": Participant("dealer", "dealer:7100"),
        "noise": "skellam",
        "delta": "1e-9",
        "backend": "shared",
        "preprocessing": "dealer",
    },
    "bell-2pc": {
        "edges": "3p",
        "noise": "randomised_response",
        "delta": "1e-12",
        "backend": "garbled",
    },
    "bell-ldp": CELLS,
    "bell-auc": {
        "statistic": "auc",
        "kernels": ("(sign(a.x - b.x) + 1) * (1/2)",),
        "fields": (X, LABEL),
        "sampling": "two_sample",
        "noise": "local",
        "levels": 5,
    },
    "ghazi-ldp": CELLS | {"rounding": "simple"},
    "ghazi-rounds": CELLS,
    "ghazi-shuffle": CELLS
    | {
        "noise": "shuffled",
        "shufflers": (Participant("one", "one:7100"), Participant("two", "two:7100")),
    },
    "gopa": {
        "statistic": "mean",
        "kernels": ("a.x",),
        "degree": 1,
        "noise": "gopa",
        "delta": "1e-9",
    },
    "central": {"noise": "hajek_subsampled", "edges": "3n"},
}

LATER = ("grid", "people", "linked", "overlap", "counts", "hajek-grid", "vector", "local-mean")
"""Protocols that the former version did not have."""
GOLDEN = {
    "u-mpc": "4f602f78d6737b52703e20d5a8f32097e4c7d72046f2a47e01baf7df3fe23e23",
    "bell-2pc": "1c8d4851acd4b20e0a41309a3fe529abb253eba1de4338d45c90feb763550ad6",
    "bell-ldp": "659fb312d26c21f9b71a8dc22cdb9b3ffc41b3122e38d02bab2a2e4e31346c73",
    "bell-auc": "7074060ddf03a5379b17b4d688fcc3904bd906b5e7247b4ba93c918f1ecc8a99",
    "ghazi-ldp": "5b8d08d6574f1091b903dfe52ea1c9e8a660b0fc7921ba1d568e82a6d8c4500a",
    "ghazi-rounds": "0e500de9bb019727daee5ee297effed535cf32c27a60e877fea555ff95560b03",
    "ghazi-shuffle": "2963abf323cb1506b8dbd125b0b3fa5cfe96e4ad0d59a6126f64d60e9fa2cd8c",
    "gopa": "34e2c525d3ef1b9373e9a052dd1bb539de6aecc4484f4b83b69e574e38ce1e95",
    "central": "56036c8f281d937f266b85d33045c0f8d49dfca95ea5277ef45b37d5e0fffed4",
}
"""The hashes that umpc 0.1 gave to these studies."""

SECOND = {
    "u-mpc": "658edd22ccb2f3a3c47afd35f396cb22daa4b5f40908e38c6c8a6effe1bd75b8",
    "bell-2pc": "a87ada0b8e2ad654bb1625cd0a3dcbb87a51c6cb40275f8924f2938bbba0b1f8",
    "bell-ldp": "b982da300da693f9c0dce88d9e3268d05adf7dd85c6431a31c6f9f900c18a15f",
    "bell-auc": "4ed29761c4ef08ba53e753b054895122629f58bb7261f5124c24f5884f6f5bbc",
    "ghazi-ldp": "45f5108d0472875111fa92ce5d9c0d8501774abf14c62b797dcca390da6f171a",
    "ghazi-rounds": "33c3fac9cc16f38efadaa8597349531dfa23a7da310395a75cda53393fb7496c",
    "ghazi-shuffle": "bfe6f2c803baf667fa7cff2352864b09003fa925de5179036506d821f64eaed5",
    "gopa": "ec798cb482d6bfa8c872ce99b68eefd99f17fa48ab1258b3d47b11f7ad0972e3",
    "central": "ac1c21b44ca9bc341dfe05f347a6ab74fd566beb8ff5168e4ba0b25275e062f8",
}
"""The hashes that umpc 0.2 gave to them before a field stated its resolution."""


def former_study(protocol: str) -> Study:
    """One study of this protocol, whose facts differ from the usual ones where they can."""
    study = flat_study(**(COMMON | {"protocol": protocol} | FACTS[protocol]))
    # umpc 0.1 allowed a field that no kernel uses, as here the y of gopa's mean.
    return study if protocol == "gopa" else checked(study)


def test_every_protocol_of_then_has_a_golden_hash():
    then = [name for name in PROTOCOLS if name not in LATER]
    assert sorted(GOLDEN) == sorted(FACTS) == sorted(then)


@pytest.mark.parametrize("protocol", GOLDEN)
def test_the_former_hash_is_what_the_former_version_computed(protocol):
    assert former_hash(former_study(protocol)).hex() == GOLDEN[protocol]


@pytest.mark.parametrize("protocol", GOLDEN)
def test_the_second_hash_is_what_it_was_before_fields_stated_their_resolution(protocol):
    study = former_study(protocol)
    assert second_hash(study).hex() == SECOND[protocol]
    stated = msgspec.structs.replace(
        study,
        fields=tuple(
            msgspec.structs.replace(field, resolution="1", whole=False) if field.whole else field
            for field in study.fields
        ),
    )
    assert second_hash(stated) == second_hash(study)
    assert stated.hash != study.hash


@pytest.mark.parametrize("protocol", GOLDEN)
def test_addresses_were_no_part_of_the_former_hash(protocol):
    study = former_study(protocol)
    moved = {"nodes": tuple(Participant(node.name, "moved:1") for node in study.nodes)}
    if study.dealer:
        moved["dealer"] = Participant(study.dealer.name, "moved:1")
    if study.shufflers:
        moved["shufflers"] = tuple(Participant(each.name, "moved:1") for each in study.shufflers)
    elsewhere = with_facts(study, **moved)
    assert elsewhere != study and former_hash(elsewhere) == former_hash(study)


@pytest.mark.parametrize("protocol", GOLDEN)
def test_the_present_hash_is_another_one(protocol):
    study = former_study(protocol)
    identities = [study.hash, *(identity for _, identity in former_hashes(study))]
    assert len(set(identities)) == 3 and study.version != FORMER_VERSION


def test_a_study_of_another_name_has_another_former_hash():
    study = former_study("gopa")
    assert former_hash(study.replaced(name="other")) != former_hash(study)
