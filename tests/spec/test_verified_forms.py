"""The bits form of the verified grid: umpc computes the vectors, and small fields show its law."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations, product
from typing import Any

import pytest

from spec import field
from spec.cases import verified_forms as cases
from spec.cases import verified_grid as lists
from spec.cases.grid import CELLS, MATRIX, signs
from spec.cases.vectors import from_json, to_json
from spec.cases.verified_forms import STUDY
from spec.field import dot, inverse, multiply, plus, subtract, weights
from spec.linear_proof import prove, shape
from spec.linear_proof import wires as wires_of
from spec.refused import Refused
from spec.verified_forms import (
    at_cells,
    due,
    factors,
    inverses_of,
    looked_up,
    sizes,
    values_of,
    width_of,
)
from spec.verified_grid import part_of, run
from tests.spec.replaying import vectors
from tests.spec.test_verified_grid import all_seeds, of_run
from umpc.protocols.grid.lookup_proof import ProofShape


def of_widths(cells: int, records: list[int]) -> list[int]:
    return [ProofShape.of(cells, number).width for number in records]


REPLAYS = {"widths": of_widths, "run": of_run}


@pytest.mark.parametrize("vector", vectors("verified_forms", "good"))
def test_umpc_and_the_specification_compute_the_good_vectors(vector):
    for replays in (REPLAYS, vars(cases)):
        found = replays[vector["function"]](**from_json(vector["inputs"]))
        assert to_json(found) == vector["outputs"]


@pytest.mark.parametrize("vector", vectors("verified_forms", "bad"))
def test_bad_vectors_are_refused_and_name_the_liar(vector):
    with pytest.raises(Refused) as found:
        getattr(cases, vector["function"])(**from_json(vector["inputs"]))
    assert (found.value.check, found.value.culprit) == (vector["check"], "node-1")


def test_the_vectors_have_both_forms_with_the_bytes_of_the_document():
    assert [sizes(STUDY, place)[0] > 0 for place in range(3)] == [True, True, False]
    cells = len(CELLS)
    for place, records in enumerate(cases.RECORDS):
        _, count, inverted = sizes(STUDY, place)
        wires, size = shape(count)
        sent, later = cases.HONEST["firsts"][place], cases.HONEST["seconds"][place]
        assert sum(map(len, sent.values())) == 8 * cells + 8 * count + 32 + 64
        assert sum(map(len, later.values())) == 16 * inverted + 32 * (wires + size)
        assert len(cases.HONEST["told"]["parts"][place]) == 16 * (2 * wires + 3) + 8
        assert count == cells * len(records).bit_length() or count == inverted == len(records)


@pytest.mark.parametrize("cells", [1, 2, 7, 64, 1000])
def test_bits_take_fewer_bytes_where_they_are_taken(cells):
    for records in range(3000):
        width = width_of(cells, records)
        bits = records.bit_length()
        assert width in (0, bits) and records < 2**bits
        assert (width > 0) == (8 * cells * bits < 24 * records)


@pytest.mark.parametrize("counts", [(40, 9, 1), (13, 0, 100), (2, 70, 3)])
def test_an_honest_run_is_the_sum_over_all_pairs(counts):
    """Some nodes list their records, others send bits."""
    source = random.Random(str(counts))
    records = [[source.randrange(len(CELLS)) for _ in range(count)] for count in counts]
    everybody = [y for each in records for y in each]
    study = {**lists.study_of(records), "matrix": MATRIX}
    owns = lists.owns_of(records)
    found = run(study, owns, lists.dealt_of(records), [3, 4])
    forms = {sizes(study, place)[0] > 0 for place in range(3)}
    due_sum = sum(signs(*CELLS[a], *CELLS[b]) for a, b in combinations(everybody, 2))
    assert found["released"] == due_sum + sum(own["noise"] for own in owns)
    assert forms == {False, True}


# --- small fields ---


@pytest.fixture
def seventeen():
    """All challenges of a small field: the elements of K that are not in F."""
    with field.small_field(17, 3):
        yield [(v, w) for v in range(17) for w in range(1, 17)]


def test_at_most_m_minus_1_powers_accept_values_that_are_no_bits(seventeen):
    """All triples of values of F, and all ρ."""
    most, source = 0, random.Random(31)
    tried = [
        *product((0, 1, 2, 16), repeat=3),
        *(source.choices(range(17), k=3) for _ in range(60)),
    ]
    for values in tried:
        accepting = 0
        for rho in seventeen:
            left, right = factors(1, field.ZERO, rho, list(values), [], 1)
            accepting += dot(left, right) == due(1, rho, 1)
        if set(values) <= {0, 1}:
            assert accepting == len(seventeen)
        else:
            most = max(most, accepting)
    assert 0 < most <= 3 - 1


def test_the_sides_of_the_lookup_are_linear_and_those_of_the_table(seventeen):
    x, table = (4, 9), [2, 0, 3]
    bits = [0, 1, 0, 0, 1, 1]
    mask = [5, 16, 3, 0, 2, 9]
    assert looked_up(2, x, bits, []) == at_cells(table, x)
    both = [v + b for v, b in zip(bits, mask, strict=True)]
    minus = field.negative([looked_up(2, x, mask, [])])
    assert plus([looked_up(2, x, both, [])], minus) == [at_cells(table, x)]


@pytest.fixture
def five():
    with field.small_field(5, 2):
        yield


HATS = [
    ([1], [3], [(2, 1), (1, 1), (0, 3), (4, 4), (2, 0), (3, 1)]),
    ([0], [1], [(0, 0), (0, 0), (4, 3), (1, 2), (2, 2), (0, 4)]),
]
"""Masked table, bit and proof of one cell, as they were sent."""


def masks_behind(hats: Any, bits: list[int], rho: Any, seeds: list[Any]) -> dict[str, Any]:
    """The masks with which an honest node whose cells are these bits sends just this."""
    table, listed, proof = hats
    left, right = factors(1, field.ZERO, rho, bits, [], 1)
    return {
        "table": [(v - h) % field.P for v, h in zip(table, bits, strict=True)],
        "list": [(v - b) % field.P for v, b in zip(listed, bits, strict=True)],
        "inverses": [],
        "proof": plus(proof, field.negative(prove(left, right, seeds))),
    }


@pytest.mark.parametrize("hats", HATS)
@pytest.mark.parametrize(("x", "rho", "r"), [((0, 1), (2, 3), (4, 1)), ((3, 4), (1, 1), (0, 2))])
def test_the_answer_about_a_bit_has_one_law_for_both_bits(five, hats, x, rho, r):
    """All seeds of wires. The sum over a class tells its number, so there is none."""

    def law(bit: int, seeds: Any, classes: Any = ()) -> Counter[bytes]:
        masks = (masks_behind(hats, [bit], rho, each) for each in seeds)
        return Counter(part_of({"classes": classes}, mask, x, rho, r, 1) for mask in masks)

    one = law(1, all_seeds())
    assert law(0, all_seeds()) == one and len(one) == 5**4
    # power: without seeds, and with the number of records
    no_seeds = [[field.ZERO, field.ZERO]]
    assert law(0, no_seeds) != law(1, no_seeds)
    assert law(0, all_seeds(), [[0]]).keys().isdisjoint(law(1, all_seeds(), [[0]]))


@pytest.mark.parametrize("cells", [2, 5, 12])
def test_a_view_of_one_table_is_the_view_of_each_other_one_under_other_randomness(cells):
    """In the large field: one to one, so the law is the same for both."""
    source = random.Random(cells)

    def drawn(size: int) -> list[Any]:
        return [(source.randrange(field.P), source.randrange(1, field.P)) for _ in range(size)]

    wires, size = shape(cells)
    one = [cell % 2 for cell in range(cells)]
    other = [*one[1:], one[0]]
    (x, rho, r), seeds = drawn(3), drawn(2 * wires)
    words = [[source.randrange(field.P) for _ in range(cells)] for _ in range(2)]
    hats = (*words, drawn(2 * (wires + size)))
    # the seeds with which each wire of the other table has the same value at r
    row, values = weights(size, r), []
    for bits in (one, other):
        sides = factors(1, x, rho, bits, [], 1)
        rows = [wire for side in sides for wire in wires_of(side, [field.ZERO] * wires, size)]
        values.append([dot(row, wire) for wire in rows])
    moved = [multiply(subtract(a, b), inverse(row[0])) for a, b in zip(*values, strict=True)]
    study = {"classes": [list(range(cells))]}
    parts = [
        part_of(study, masks_behind(hats, bits, rho, each), x, rho, r, 1)
        for bits, each in ((one, seeds), (other, plus(seeds, moved)))
    ]
    assert parts[0] == parts[1] and one != other
    unmoved = part_of(study, masks_behind(hats, other, rho, seeds), x, rho, r, 1)
    assert unmoved != parts[0], "power"


def test_what_a_node_says_of_its_table():
    study = {**STUDY, "sizes": [3, 0, 0], "cells": 2}
    own = {"place": 0, "records": [1, 0, 1]}
    assert sizes(study, 0) == (2, 4, 0) and values_of(study, own) == [1, 0, 0, 1]
    assert inverses_of(2, (0, 1), [1, 0, 0, 1]) == []
