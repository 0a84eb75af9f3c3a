"""People with one value each: umpc replays the vectors, and attacks against which rules stand."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from spec import people
from spec.cases.people import CELLS, MATRIX, OWNS, PEOPLE, RUN, STUDY, VALUES
from spec.cases.vectors import from_json
from spec.grid import image, inner
from spec.joint_seed import commit
from spec.joint_seed import sign as sign_statement
from spec.people import (
    counted,
    counted_statement,
    deal,
    hash_key,
    listed,
    roots,
    run,
    table_share,
)
from spec.people_messages import (
    BOX_BYTES,
    Row,
    accept,
    answer_request,
    offset,
    open_answer,
    receipt,
    request_secret,
    send,
    send_number,
)
from spec.point_functions import MODULUS, add_up
from spec.refused import Refused
from spec.sharing import decode
from tests.spec.blocks import integers_of
from tests.spec.replaying import replay_tests, vectors
from tests.spec.studies import study_of
from tests.spec.test_grid import run_of
from tests.support.fields import number_field
from tests.support.grid import grid_study
from tests.support.people import people_study, with_terms
from umpc.crypto.prg import FixedKeyHash
from umpc.crypto.ring import Ring
from umpc.mpc.fss import point as fss
from umpc.people import messages as m
from umpc.people.places import keys_digest
from umpc.protocols.grid.attempt import GridAttempt
from umpc.protocols.grid.binding import grid_of
from umpc.protocols.people.terms import check_count
from umpc.study.sizes import Member
from umpc.testing import limited

# --- replays: the vectors by umpc -----------------------------------------------------------------


def survey_of(study) -> m.Survey:
    return m.Survey(study["hash"], study["cells"], len(study["people"]), study["fewest"])


def place_key_of(study, place) -> bytes:
    return (study["people"] + [bytes(32)])[place]


def answered(study, requests, secrets, sealing):
    survey, devices, found = survey_of(study), {}, []
    for place, device, signature in requests:
        key, former = place_key_of(study, place), devices.get(place, b"")
        m.check_secret_request(survey, place, key, device, signature)
        m.check_device(place, device, former)
        sealed = m.seal_secret(
            survey, place, device, secrets[place], lambda _, place=place: sealing[place]
        )
        devices[place] = device
        found.append(sealed)
    return found


def taken(study, side, secret, messages):
    survey, stored = survey_of(study), {}
    for place, box in messages:
        opened = m.open_box(survey, side, secret, place, place_key_of(study, place), box)
        m.check_again(stored.setdefault(place, opened).receipt, opened)
    return [[each.place, each.number, each.receipt] for each in stored.values()]


def both(study, stored, theirs, other):
    """Rows that both have; their statement is refused if there are too few."""
    own = sorted(m.row(place, told) for place, _, told in stored)
    rows = list(m.both_have(own, [b"".join(m.row(*each) for each in theirs)], other))
    m.counted_statement(survey_of(study), rows, bytes(32))
    return [row for row in stored if m.row(row[0], row[2]) in rows]


def counted_by_umpc(study, stored, theirs, other):
    return sorted(both(study, stored, theirs, other))


def dealt_by_umpc(survey, secrets, seeds):
    """The bytes of each block of keys."""
    tree_hash = FixedKeyHash(survey.hash_key)
    for block in survey.blocks():
        cells = m.offsets(survey, block.start, secrets[block.start : block.stop])
        own = [m.roots(survey, seed, block.start, block.stop) for seed in seeds]
        yield fss.generate(survey.cells, cells, np.stack(own), tree_hash).encode()


def table_by_umpc(survey, side, seed, dealt, rows):
    """An aggregator's share, block by block. Args: dealt: bytes by block. rows: by place."""
    tree_hash, total = FixedKeyHash(survey.hash_key), np.zeros(survey.cells, dtype=np.uint64)
    for block, data in zip(survey.blocks(), dealt, strict=True):
        keys = fss.PointKeys.decode(memoryview(data), survey.cells, len(block))
        came = [place for place, _, _ in rows if place in block]
        at = [place - block.start for place in came]
        numbers = np.array([n for place, n, _ in rows if place in block], dtype=np.uint64)
        some = fss.PointKeys(survey.cells, keys.corrections[:, at], keys.leaves[at])
        own = m.roots(survey, seed, block.start, block.stop)[at]
        total += fss.add_up(side, some, numbers, own, tree_hash)
    return total


class OfCountedStudy(GridAttempt):
    """An attempt for whose identity the counted study's hash stands, as in the vectors."""

    id = b""


def run_by_umpc(study, people, dealt, owns, matrix, ring, instead, counted_hash):
    survey = survey_of(study)
    with limited(m, PLACES_AT_ONCE=study["places_at_once"]):
        keys = list(dealt_by_umpc(survey, dealt["secrets"], dealt["seeds"]))
        boxes = {each["place"]: boxes_of(survey, study, each) for each in people} | dict(instead)
        stored = [
            taken(
                study, side, own["box_secret"], [[p, b[side]] for p, b in boxes.items() if b[side]]
            )
            for side, own in enumerate(owns)
        ]
        digest = m.dealt_hash()
        for block in keys:
            digest.update(block)
        lists = [sorted((place, told) for place, _, told in each) for each in stored]
        rows = [
            counted_by_umpc(study, stored[s], lists[1 - s], study["names"][1 - s]) for s in (0, 1)
        ]
        told = [m.row(place, told) for place, _, told in rows[0]]
        statement = m.counted_statement(survey, told, digest.digest())
        text = m.counted_text(survey, statement)
        signatures = [sign_statement(own["signing_key"], text, own["nonces"][0]) for own in owns]
        n = m.check_counted(survey, statement, study["keys"], signatures, study["relay"])
        tables = [
            table_by_umpc(survey, side, dealt["seeds"][side], keys, rows[side]) for side in (0, 1)
        ]
    summed = run_of(
        attempt_of(counted_hash, matrix, ring),
        ring,
        dealt["mask_seeds"],
        dealt["randoms"],
        tables,
        [[own["signing_key"], own["nonces"][1]] for own in owns],
    )
    noisy = sum(summed["shares"]) + 2 * sum(own["noise"] for own in owns)
    return {
        "keys": b"".join(keys),
        "sent": [boxes[place] for place in sorted(boxes)],
        "counted": [[place, told] for place, _, told in rows[0]],
        "signatures": signatures,
        "n": n,
        "tables": [each.tolist() for each in tables],
        "shares": summed["shares"],
        "released": Ring(ring).decode(noisy) // 2,
    }


def boxes_of(survey, study, person):
    """An honest person's two boxes."""
    place, nonce, seed = person["place"], person["nonce"], person["signing_seed"]
    number = (person["cell"] - m.offset(survey, place, person["secret"])) % survey.cells
    secrets = person["box_secrets"]
    return m.make_boxes(survey, study["box_keys"], place, number, nonce, seed, secrets)[1]


def attempt_of(counted_hash, matrix, ring):
    fields = number_field("x", "0", "2"), number_field("y", "0", "3")
    study = study_of(counted_hash, ["node-0", "node-1"], grid_study(nodes=2, fields=fields))
    members = [
        Member(name, 6, commit(counted_hash, name, bytes(32)), bytes(32))
        for name in ("node-0", "node-1")
    ]
    made = OfCountedStudy(study, members, [bytes(32)] * 2, Ring(ring), grid_of(study))
    made.id = counted_hash
    assert matrix == MATRIX
    return made


def check_members(study, n, records):
    counted = m.STATEMENT_BYTES + 2 * m.SIGNATURE_BYTES
    hexadecimal = (n.to_bytes(8, "little") + bytes(counted - 8)).hex()
    said = {
        name: Member(name, each, bytes(32), bytes(32))
        for name, each in zip(study["names"], records, strict=True)
    }
    check_count(with_terms(people_study(), counted=hexadecimal), said)


def keep_counted(kept, statement, signatures):
    """The first list is on disk before anybody asks for a share."""
    counted = b"".join([statement, *signatures])
    m.check_kept(b"".join(kept) or counted, counted, "north")
    return [statement, *signatures]


test_good_vectors, test_bad_vectors, test_each_check_is_needed = replay_tests(
    "people",
    {
        "run": run_by_umpc,
        "offset": lambda study, **given: m.offset(survey_of(study), **given),
        "hash_key": lambda study: survey_of(study).hash_key,
        "roots": lambda study, seed: integers_of(
            m.roots(survey_of(study), seed, 0, len(study["people"]))
        ),
        "places_digest": lambda keys: keys_digest(keys)[0],
        "request_secret": lambda study, place, seed, device_secret: m.secret_request(
            survey_of(study), place, seed, device_secret
        ),
        "answered": answered,
        "open_answer": lambda study, **given: m.open_secret(survey_of(study), **given),
        "opened_statement": lambda study, side: m.opened_statement(
            survey_of(study), side, study["box_keys"][side]
        ),
        "receipt_statement": lambda study, **given: m.receipt_statement(survey_of(study), **given),
        "taken": taken,
        "counted": counted_by_umpc,
        "keep_counted": keep_counted,
        "check_members": check_members,
        "check_counted": lambda study, statement, signatures, blamed: m.check_counted(
            survey_of(study), statement, study["keys"], signatures, blamed
        ),
    },
)

RUNS = [each for each in vectors("people", "good") if each.values[0]["function"] == "run"]
SEEDS = RUN["dealt"]["seeds"]
D = len(CELLS)


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
            add_up(side, D, keys[:1], [number], roots(STUDY, seed)[:1], hash_key(STUDY))
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
    """Each study deals a secret of its own; even one that came again would give another cell."""
    studies = [{**STUDY, "hash": bytes([label]) * 32, "cells": 1 << 20} for label in range(50)]
    assert len({offset(study, 0, PEOPLE[0]["secret"]) for study in studies}) == 50


def test_who_fetches_a_secret_first_shuts_the_person_out_and_the_person_notices():
    """The organiser made the token, so it has the key of the place, and another device."""
    own, organisers = bytes([1]) * 32, bytes([2]) * 32
    seed, secret = PEOPLE[0]["signing_seed"], PEOPLE[0]["secret"]
    stolen = request_secret(STUDY, 0, seed, organisers)
    sealed = answer_request(STUDY, {}, 0, stolen, secret, bytes([3]) * 32)
    assert open_answer(STUDY, 0, organisers, sealed) == secret
    # the person cannot open that answer, gets none, and so sends no number under a known r
    with pytest.raises(Refused, match="a person's secret opens"):
        open_answer(STUDY, 0, own, sealed)
    asked = request_secret(STUDY, 0, seed, own)
    with pytest.raises(Refused, match="a place has one device"):
        answer_request(STUDY, {0: stolen[0]}, 0, asked, secret, bytes([4]) * 32)


def released_over(rows: list[list[Row]]) -> int:
    """2·S without noise, over whatever the aggregators add up. Args: rows: of each."""
    keys = deal(STUDY, RUN["dealt"]["secrets"], SEEDS)
    tables = [table_share(STUDY, side, seed, keys, rows[side]) for side, seed in enumerate(SEEDS)]
    table = [(a + b) % MODULUS for a, b in zip(*tables, strict=True)]
    return decode(inner(table, image(MATRIX, table)), 64)


def rows_of(values: list[int]) -> list[Row]:
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
        stored: list[list[Row]] = [[], []]
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
            add_up(side, D, [(corrections, more)], [0], roots(STUDY, seed)[:1], hash_key(STUDY))
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
    assert sum(map(len, people.blocks(STUDY, keys))) == len(PEOPLE) * (16 * 1 + 64)
    assert {len(box) for person in PEOPLE for box in send(STUDY, person)} == {BOX_BYTES}
