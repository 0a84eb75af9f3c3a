"""People with one value each: the specification's vectors, umpc's part of them, and attacks.

umpc has the keys and their sums. `test_point_functions.py` replays these with their bad vectors.
"""

from __future__ import annotations

import ast
import inspect
import random
from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from spec import people, point_functions
from spec.cases import people as cases
from spec.cases.people import CELLS, MATRIX, OWNS, PEOPLE, RUN, STUDY, VALUES
from spec.cases.vectors import from_json, to_json
from spec.grid import image, inner
from spec.people import (
    accept,
    counted,
    counted_statement,
    deal,
    listed,
    moved_on,
    offset,
    receipt,
    roots,
    run,
    send,
    send_number,
    table_share,
)
from spec.point_functions import MODULUS, add_up
from spec.refused import Refused
from spec.sharing import decode
from tests.spec.blocks import blocks_of
from tests.spec.replaying import vectors
from umpc.crypto.prg import FixedKeyHash
from umpc.mpc.fss.point import PointKeys
from umpc.mpc.fss.point import add_up as add_up_by_umpc

BAD = vectors("people", "bad")
GOOD = vectors("people", "good")
RUNS = [each for each in GOOD if each.values[0]["function"] == "run"]
SEEDS = RUN["dealt"]["seeds"]
D = len(CELLS)


def called(vector: dict[str, Any]) -> Any:
    function = vector["function"]
    module = cases if hasattr(cases, function) else people
    return getattr(module, function)(**from_json(vector["inputs"]))


@pytest.mark.parametrize("vector", GOOD)
def test_good_vectors(vector):
    assert to_json(called(vector)) == vector["outputs"]


@pytest.mark.parametrize("vector", BAD)
def test_bad_vectors_name_the_fault_and_nobody_honest(vector):
    with pytest.raises(Refused) as found:
        called(vector)
    assert (found.value.check, found.value.culprit) == (vector["check"], vector["culprit"])


def test_every_check_has_a_bad_vector():
    checks = set()
    for node in ast.walk(ast.parse(inspect.getsource(people))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "require":
            checks |= {each.value for each in node.args if isinstance(each, ast.Constant)}
    checks = {check for check in checks if isinstance(check, str)}
    assert len(checks) == 8 and checks == {bad.values[0]["check"] for bad in BAD}


@pytest.mark.parametrize("vector", RUNS)
def test_umpc_makes_the_tables_of_the_runs(vector):
    given, due = from_json(vector["inputs"]), from_json(vector["outputs"])
    study, tree_hash = given["study"], FixedKeyHash(STUDY["hash_key"])
    keys = PointKeys.decode(memoryview(due["keys"]), D, len(study["people"]))
    places = [place for place, _ in due["counted"]]
    numbers = np.array([number_of(place) for place in places], dtype=np.uint64)
    came = PointKeys(D, keys.corrections[:, places], keys.leaves[places])
    for side, seed in enumerate(SEEDS):
        own = blocks_of(roots(study, seed))[places]
        table = add_up_by_umpc(side, came, numbers, own, tree_hash)
        assert table.tolist() == due["tables"][side]


@pytest.mark.parametrize("vector", RUNS)
def test_the_tables_add_up_to_the_histogram_and_the_release_is_that_of_the_clear(vector):
    due = from_json(vector["outputs"])
    values = [VALUES[place] for place, _ in due["counted"]]
    opened = [(a + b) % MODULUS for a, b in zip(*due["tables"], strict=True)]
    assert opened == [values.count(cell) for cell in range(D)]
    clear = sum(MATRIX[one][other] for one, other in combinations(values, 2))
    assert due["released"] == clear + sum(own["noise"] for own in OWNS)


def number_of(place: int) -> int:
    """x − r mod D."""
    return (VALUES[place] - offset(STUDY, place, PEOPLE[place]["secret"])) % D


# --- what a process sees, and what a missing rule would tell it ---


def test_a_number_is_uniform_whatever_the_value_is():
    """The dealer's r is below D with odds that differ by 2^−128 at most, so numbers are, too."""
    for cells in (2, 3, 12):
        study = {**STUDY, "cells": cells}
        drawn = Counter(offset(study, 0, bytes([i, j] * 16)) for i in range(64) for j in range(64))
        assert sorted(drawn) == list(range(cells))
        spread = max(abs(each - 4096 / cells) for each in drawn.values())
        assert spread < 6 * (4096 / cells) ** 0.5


def test_any_number_of_a_person_is_one_vote_in_one_cell():
    keys = deal(STUDY, RUN["dealt"]["secrets"], SEEDS)
    for number in range(D):
        sums = [
            add_up(side, D, keys[:1], [number], roots(STUDY, seed)[:1], STUDY["hash_key"])
            for side, seed in enumerate(SEEDS)
        ]
        opened = [(a + b) % MODULUS for a, b in zip(*sums, strict=True)]
        assert sorted(opened) == [0] * (D - 1) + [1]


def test_a_receipt_without_its_nonce_tells_the_dealer_the_value():
    """The dealer knows r, and the list of receipts is public."""

    def found(told: bytes, nonce: bytes) -> list[int]:
        r = offset(STUDY, 0, PEOPLE[0]["secret"])
        numbers = (n for n in range(D) if receipt(STUDY, 0, n, nonce) == told)
        return [(number + r) % D for number in numbers]

    told = receipt(STUDY, 0, number_of(0), PEOPLE[0]["nonce"])
    assert found(told, bytes(32)) == []
    assert found(receipt(STUDY, 0, number_of(0), b""), b"") == [VALUES[0]]


def test_two_numbers_under_one_key_tell_the_difference_of_two_values():
    secret = OWNS[0]["box_secret"]
    first, changed = ({**PEOPLE[0], "cell": cell} for cell in (3, 10))
    stored = accept(STUDY, 0, secret, [], 0, send(STUDY, first)[0])
    with pytest.raises(Refused, match="one number a place"):
        accept(STUDY, 0, secret, stored, 0, send(STUDY, changed)[0])
    # the mark keeps the count right; whoever opened both boxes knows the difference
    other = accept(STUDY, 0, secret, [], 0, send(STUDY, changed)[0])
    assert (other[0][1] - stored[0][1]) % D == 7


def test_a_secret_of_another_study_opens_no_number():
    assert moved_on(PEOPLE[0]["secret"]) != PEOPLE[0]["secret"]
    studies = [{**STUDY, "hash": bytes([label]) * 32, "cells": 1 << 20} for label in range(50)]
    now = {offset(study, 0, PEOPLE[0]["secret"]) for study in studies}
    later = {offset(study, 0, moved_on(PEOPLE[0]["secret"])) for study in studies}
    assert len(now | later) == 100


def released_over(rows: list[list[people.Row]]) -> int:
    """2·S without noise, over whatever the aggregators add up. Args: rows: of each."""
    keys = deal(STUDY, RUN["dealt"]["secrets"], SEEDS)
    tables = [table_share(STUDY, side, seed, keys, rows[side]) for side, seed in enumerate(SEEDS)]
    table = [(a + b) % MODULUS for a, b in zip(*tables, strict=True)]
    return decode(inner(table, image(MATRIX, table)), 64)


def rows_of(values: list[int]) -> list[people.Row]:
    """Rows of both aggregators if these people come."""
    found = []
    for place, cell in enumerate(values):
        person = {**PEOPLE[place], "cell": cell}
        box = send(STUDY, person)[0]
        found = accept(STUDY, 0, OWNS[0]["box_secret"], found, place, box)
    return found


def test_two_aggregators_that_count_different_people_open_others_through_the_noise():
    """One has a person more. Its known vector then weighs each of the others' values."""

    def change(other_has: int) -> int:
        first, second = (rows_of([*VALUES[:4], last, VALUES[5]]) for last in (5, 6))
        sums = [released_over([rows, rows[other_has:]]) for rows in (first, second)]
        return abs(sums[0] - sums[1])

    most = 2 * (len(VALUES) - 1) * 2
    assert change(0) <= most < 2**32 < change(1)


def test_rows_that_differ_are_not_counted_and_both_sides_agree_on_the_rest():
    """In any order, with any of a person's boxes lost or changed, both sign one list."""
    generator, study = random.Random(5), {**STUDY, "fewest": 2}
    seen = set()
    for _ in range(12):
        stored: list[list[people.Row]] = [[], []]
        due = []
        for place in generator.sample(range(len(PEOPLE)), len(PEOPLE)):
            person, fate = PEOPLE[place], generator.choice(["both", "both", "one", "two numbers"])
            honest = number_of(place)
            other = (honest + 1) % D if fate == "two numbers" else honest
            boxes = send_number(study, person, [honest, other])
            for side in (0, 1):
                if fate != "one" or side == place % 2:
                    secret = OWNS[side]["box_secret"]
                    stored[side] = accept(study, side, secret, stored[side], place, boxes[side])
            due += [place] * (fate == "both")
        if len(due) < 2:
            continue
        lists = [listed(each) for each in stored]
        rows = [counted(study, stored[s], lists[1 - s], "other") for s in (0, 1)]
        assert rows[0] == rows[1] and [place for place, _, _ in rows[0]] == sorted(due)
        seen.add(counted_statement(study, rows[0], bytes(32)))
    assert len(seen) > 5


def test_one_secret_at_two_places_has_two_cells():
    study = {**STUDY, "cells": 1 << 20}
    assert len({offset(study, place, PEOPLE[0]["secret"]) for place in range(50)}) == 50


def test_two_dealings_over_one_seed_show_both_cells():
    """One leaf, so both keys differ at the two cells alone: a seed of roots deals once."""
    study, secrets = {**STUDY, "cells": 8}, RUN["dealt"]["secrets"]
    cells = {offset(study, 0, secret) for secret in secrets[:2]}
    first, second = (deal(study, [secret, *secrets[1:]], SEEDS)[0][1] for secret in secrets[:2])
    assert len(cells) == 2 and {n for n in range(8) if first[n] != second[n]} == cells


def test_a_dealer_can_let_a_person_count_many_times():
    """Both halves of a key add up to 40 at its cell, and to 0 elsewhere."""
    secrets = RUN["dealt"]["secrets"]
    keys = deal(STUDY, secrets, SEEDS)
    corrections, leaf = keys[0]
    place = offset(STUDY, 0, secrets[0]) % len(leaf)
    for sign in (-1, 1):
        more = [(each + sign * 39 * (n == place)) % MODULUS for n, each in enumerate(leaf)]
        sums = [
            add_up(side, D, [(corrections, more)], [0], roots(STUDY, seed)[:1], STUDY["hash_key"])
            for side, seed in enumerate(SEEDS)
        ]
        opened = sorted((a + b) % MODULUS for a, b in zip(*sums, strict=True))
        if opened == [0] * (D - 1) + [40]:
            return
    raise AssertionError("no sign gives 40")


def test_wrong_keys_of_the_dealer_spoil_the_sum_and_are_not_noticed():
    """In this grade nobody checks the dealer's keys."""
    keys = deal(STUDY, RUN["dealt"]["secrets"], SEEDS)
    corrections, leaf = keys[0]
    keys[0] = corrections, [leaf[0] ^ 1, *leaf[1:]]
    rows = rows_of(VALUES)
    tables = [table_share(STUDY, side, seed, keys, rows) for side, seed in enumerate(SEEDS)]
    opened = [(a + b) % MODULUS for a, b in zip(*tables, strict=True)]
    assert opened != [VALUES.count(cell) for cell in range(D)]


def test_an_aggregator_that_adds_a_vector_reads_a_person_through_the_noise():
    """The grade `honest` does not hold against it, and docs/people.md says so."""
    added = [2**40 * (cell == 7) for cell in range(D)]

    def total(values: list[int]) -> int:
        table = [values.count(cell) + added[cell] for cell in range(D)]
        return inner(table, image(MATRIX, table))

    noise = 2 * (len(VALUES) - 1) * 100
    assert abs(total(VALUES) - total([8, *VALUES[1:]])) > 2**20 * noise


def test_a_run_needs_no_person_twice_and_takes_any_who_come():
    few = {**RUN, "study": {**STUDY, "fewest": 2}, "people": PEOPLE[1:4]}
    found = run(**few)
    assert [place for place, _ in found["counted"]] == [1, 2, 3]
    with pytest.raises(Refused, match="enough people came"):
        run(**{**RUN, "people": PEOPLE[1:4]})


def test_keys_of_all_places_take_the_bytes_that_the_document_says():
    keys = deal(STUDY, RUN["dealt"]["secrets"], SEEDS)
    assert len(point_functions.encode(keys)) == len(PEOPLE) * (16 * 1 + 64)
    assert {len(box) for person in PEOPLE for box in send(STUDY, person)} == {people.BOX_BYTES}
