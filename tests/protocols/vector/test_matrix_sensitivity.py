"""A matrix of Kendall's tau: no changed record moves its vector by more than is claimed."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from tests.support.vector import plain_study
from umpc.protocols.vector.protocol import most_changed, noise_of_vector
from umpc.study.parts import FieldText, StudyPart
from umpc.study.sizes import Sizes

FIELDS = [FieldText(name, "0", "2", "1") for name in "abcde"]


def matrix_study(columns: str, kernel: str = "sign(a.{x} - b.{x}) * sign(a.{y} - b.{y})", **other):
    pairs = list(combinations(columns, 2))
    parts = tuple(StudyPart(f"tau({x}, {y})", "kendall_tau", "mean", 1) for x, y in pairs)
    fields = tuple(field for field in FIELDS if field.name in columns)
    kernels = [kernel.format(x=x, y=y) for x, y in pairs]
    changes = {"parts": parts, "matrix": True, "edges": "all", **other}
    return plain_study(kernels, fields=fields, **changes)


def sums(records: np.ndarray, columns: int) -> np.ndarray:
    """Σ over all pairs of the records, for each pair of columns. records: (..., n, columns)."""
    total = np.zeros((*records.shape[:-2], columns * (columns - 1) // 2))
    for one, other in combinations(range(records.shape[-2]), 2):
        signs = np.sign(records[..., one, :] - records[..., other, :])
        total += np.stack(
            [signs[..., x] * signs[..., y] for x, y in combinations(range(columns), 2)], -1
        )
    return total


@pytest.mark.parametrize(
    ("columns", "values", "records"), [(2, 3, 3), (3, 3, 2), (3, 2, 3), (4, 3, 2)]
)
def test_every_change_of_one_record_of_every_small_table_is_within_both_norms(
    columns, values, records
):
    study = matrix_study("abcde"[:columns])
    sizes = Sizes(study, records)
    scales = np.array(sizes.sensitivities, dtype=float)
    rows = np.array(list(product(range(values), repeat=columns)))
    others = list(product(range(len(rows)), repeat=records - 1))
    largest = [0.0, 0.0]
    for other in others:
        beside = np.broadcast_to(rows[list(other)], (len(rows), records - 1, columns))
        tables = np.concatenate([rows[:, None, :], beside], axis=1)
        vectors = sums(tables, columns) / scales
        moved = np.abs(vectors[:, None] - vectors[None])
        largest[0] = max(largest[0], (moved**2).sum(-1).max())
        largest[1] = max(largest[1], moved.sum(-1).max())
    assert max(largest) <= most_changed(study) + 1e-12
    if values > 2:  # the bound is reached, so no smaller one would do
        assert largest == pytest.approx([most_changed(study)] * 2)


def test_all_tables_of_signs_of_five_columns_are_within_the_bound():
    signs = np.array(list(product((-1, 0, 1), repeat=5)))
    vectors = np.stack([signs[:, x] * signs[:, y] for x, y in combinations(range(5), 2)], -1)
    moved = np.abs(vectors[:, None] - vectors[None]) / 2
    assert (moved**2).sum(-1).max() == moved.sum(-1).max() == most_changed(matrix_study("abcde"))


def test_less_noise_is_for_products_of_signs_alone():
    tau, other = matrix_study("abcd"), matrix_study("abcd", "(a.{x} - b.{x}) * (a.{y} - b.{y})")
    assert (most_changed(tau), most_changed(other)) == (4, 6)
    twice = tau.replaced(kernels=(*tau.kernels[:-1], tau.kernels[0]))
    assert most_changed(twice) == 6
    before = tau.replaced(matrix=False)
    assert most_changed(before) == 6
    laws = [noise_of_vector(Sizes(study, 30))[0] for study in (tau, before)]
    assert laws[0].variance < laws[1].variance


def test_studies_of_before_have_the_identity_that_they_had():
    assert b"matrix" not in plain_study(["a.a + b.a"]).encode()
