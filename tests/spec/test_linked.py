"""Linked rows: umpc replays the vectors, and both shares together are the histogram."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from spec import linked as spec
from spec import people
from spec.cases.linked import RUN, STUDY, VALUES
from tests.spec.replaying import replay_tests
from umpc.crypto.prg import FixedKeyHash
from umpc.mpc.fss import point
from umpc.people import linked, messages
from umpc.people.linked import RowList
from umpc.people.messages import Survey


def survey_of(study) -> Survey:
    first, second = study["widths"]
    return Survey(study["hash"], first * second, len(study["people"]), 2)


def coordinates(study, side, seed) -> list[int]:
    survey = survey_of(study)
    found = linked.coordinates(survey, seed, study["widths"][side], 0, survey.places)
    # any part is a part of all
    part = linked.coordinates(survey, seed, study["widths"][side], 2, survey.places)
    assert part.tolist() == found[2:].tolist()
    return found.tolist()


def row_list(study, side, seed, keys, values, nonce) -> bytes:
    given = np.array(values, dtype=np.uint64)
    return RowList.of(survey_of(study), seed, study["widths"][side], keys, given, nonce).text


def open_list(study, side, secret, sealed) -> bytes:
    return messages.open_list(survey_of(study), side, secret, sealed, study["box_keys"][1 - side])


def check_list(study, side, text) -> list[int]:
    came = RowList(study["widths"][side], text)
    came.check(survey_of(study), study["names"][side])
    return came.numbers().tolist()


def check_keys(own, came) -> None:
    RowList(4, came).check_keys(RowList(3, own), "south")


def run(study, seeds, keys, values, owns, dealt) -> dict[str, Any]:
    survey, found = survey_of(study), linked.keys_digest(keys)
    texts = [
        row_list(study, side, seeds[side], found, values[side], owns[side]["nonce"])
        for side in (0, 1)
    ]
    sealed = [
        messages.seal_list(survey, 1 - side, study["box_keys"][1 - side], text, own["box_secret"])
        for side, (text, own) in enumerate(zip(texts, owns, strict=True))
    ]
    lists = [RowList(cells, text) for cells, text in zip(study["widths"], texts, strict=True)]
    numbers = linked.numbers_of(lists)
    tree = FixedKeyHash(survey.hash_key)
    both = [messages.roots(survey, seed, 0, survey.places) for seed in seeds]
    r, s = (np.array(coordinates(study, side, seeds[side]), np.uint64) for side in (0, 1))
    width = study["widths"][1]
    cells = r * np.uint64(width) + s
    dealing = point.generate(survey.cells, cells, np.stack(both), tree)
    tables = [
        point.add_up(side, dealing, numbers, both[side], tree, width).tolist() for side in (0, 1)
    ]
    statement = linked.linked_statement(survey, dealt, lists)
    return {"sealed": sealed, "statement": statement, "tables": tables}


test_good_vectors, test_bad_vectors, test_each_check_is_needed = replay_tests(
    "linked",
    {
        "run": run,
        "coordinates": coordinates,
        "keys_digest": linked.keys_digest,
        "row_list": row_list,
        "open_list": open_list,
        "check_list": check_list,
        "check_keys": check_keys,
    },
)


def histogram(values) -> list[int]:
    cells = [x * 4 + y for x, y in zip(*values, strict=True)]
    return np.bincount(cells, minlength=12).tolist()


def summed(tables) -> list[int]:
    return [(a + b) % 2**64 for a, b in zip(*tables, strict=True)]


def test_both_shares_are_the_histogram_of_the_linked_rows():
    assert summed(spec.run(**RUN)["tables"]) == histogram(VALUES)


def test_power_a_rotation_in_one_dimension_is_another_histogram():
    """A number x − r that wraps would carry into the next row of cells."""
    found = spec.run(**RUN)
    lists = [
        spec.row_list(STUDY, side, RUN["seeds"][side], bytes(32), VALUES[side], bytes(32))
        for side in (0, 1)
    ]
    keys, numbers = spec.deal(STUDY, RUN["seeds"]), []
    for u, v in zip(*(spec.numbers_of(text) for text in lists), strict=True):
        numbers.append(4 * u + v)
    share = partial(spec.point_functions.add_up, cells=12, keys=keys, numbers=numbers)
    flat = [
        share(
            party=side,
            roots=people.roots(STUDY, RUN["seeds"][side]),
            hash_key=people.hash_key(STUDY),
        )
        for side in (0, 1)
    ]
    assert summed(flat) != summed(found["tables"])


def test_a_nonce_hides_the_numbers_from_the_dealer():
    """It knows r and s: without the nonce it would try values until the statement fits."""
    owns = [{**own, "nonce": bytes(32)} for own in RUN["owns"]]
    other = spec.run(**{**RUN, "owns": owns})
    assert other["statement"] != spec.run(**RUN)["statement"]
    assert other["tables"] == spec.run(**RUN)["tables"]
