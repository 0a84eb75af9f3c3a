"""The verified grid over triples: umpc computes the vectors, and the specification refuses lies."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from spec import field, verified_grid, verified_triples
from spec.cases import verified_grid as cases
from spec.cases.grid import CELLS
from spec.cases.vectors import from_json, to_json
from spec.cases.verified_triples import CUBE, RUN, ranks
from spec.refused import Refused
from spec.verified_triples import gradient, run
from tests.spec.replaying import vectors
from tests.spec.test_verified_grid import of_run


@pytest.mark.parametrize("vector", vectors("verified_triples", "good"))
def test_umpc_computes_the_good_vectors(vector):
    assert to_json(of_run(**from_json(vector["inputs"]))) == vector["outputs"]


@pytest.mark.parametrize("vector", vectors("verified_triples", "bad"))
def test_bad_vectors_are_refused(vector):
    with pytest.raises(Refused) as found:
        getattr(verified_triples, vector["function"])(**from_json(vector["inputs"]))
    assert (found.value.check, found.value.culprit) == (vector["check"], vector["culprit"])


def uneven(*cells: int) -> int:
    """A symmetric kernel whose value over one record three times is not zero."""
    return sum(cells) + 1 + (len(set(cells)) == 2) * max(cells)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (3, 4, 1), (0, 2, 7)])
@pytest.mark.parametrize("kernel", [ranks, uneven])
def test_an_honest_run_is_the_sum_over_all_triples(kernel, sizes):
    source = random.Random(str(sizes))
    records = [[source.randrange(len(CELLS)) for _ in range(size)] for size in sizes]
    noise = [source.randrange(-9, 10) for _ in sizes]
    places = range(len(CELLS))
    cube = [[[kernel(c, d, e) for e in places] for d in places] for c in places]
    study = {**cases.study_of(records), "cube": cube}
    owns = [own | {"noise": v} for own, v in zip(cases.owns_of(records), noise, strict=True)]
    everybody = [y for each in records for y in each]
    due = sum(kernel(*three) for three in combinations(everybody, 3))
    dealt = cases.dealt_of(records)
    assert run(study, owns, dealt, [5, field.P - 9])["released"] == due + sum(noise)


def test_the_gradient_is_the_slope_in_each_cell():
    table, cells = [3, 0, 2, 5, 1, 1], range(len(CELLS))

    def value(h: list[int]) -> int:
        return verified_triples.cubic(CUBE, h) - verified_triples.quadratic(CUBE, h)

    # a cubic polynomial's slope from four of its values, exactly
    for cell, slope in zip(cells, gradient(CUBE, table), strict=True):
        shifted = [[v + by * (c == cell) for c, v in enumerate(table)] for by in (-2, -1, 1, 2)]
        low, before, behind, high = map(value, shifted)
        assert 12 * slope == low - 8 * before + 8 * behind - high


def test_an_amplified_cell_is_refused_and_would_weigh_as_its_square():
    """Without the proof a false cell multiplies what one honest record adds to the sum."""
    records = [[0], [5], [2, 3]]
    found = []
    for lie in (0, 2**20):
        for mine in (0, 4):
            own_records = [[mine], *records[1:]]
            study = {**RUN["study"], **cases.study_of(own_records), "cube": CUBE}
            owns = cases.owns_of(own_records)
            owns[1]["table"] = [
                v + lie * (cell in (1, 5)) for cell, v in enumerate(owns[1]["table"])
            ]
            numbers, vector = verified_triples.deal(study, cases.DEALT["seeds"], [1, 2])
            owns = [own | {"dealt": n} for own, n in zip(owns, numbers, strict=True)]
            owns[2]["vector"] = vector
            sent = verified_grid.transcript(study, owns, cases.DEALT)
            shares = [verified_triples.share(study, own, sent["opened"]) for own in owns]
            found.append((sum(shares) + field.P // 2) % field.P - field.P // 2)
            if lie:
                shown = cases.tables_of(sent)
                with pytest.raises(Refused) as refused:
                    verified_grid.check(**cases.checked_by(0, sent, study, shown=shown))
                assert refused.value.culprit == "node-1"
    honest, lied = abs(found[0] - found[1]), abs(found[2] - found[3])
    assert lied > 2**38 > 2**10 > honest
