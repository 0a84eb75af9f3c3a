"""A = V' G V: the kernel matrix as an inner product of one vector for each cell.

Paper: Ghazi et al. 2024 (arXiv 2406.16305), as Sinh & Ramon 2025, D.1.3 describe it: A = L' R, a record sends both of
its columns randomised, and what counts is ||L|| ||R||, the largest norms of columns; its least value is gamma_2(A).

Here L = |A|^{1/2} and R = sgn(A) |A|^{1/2}, as functions of a symmetric matrix (of its eigenvalues). So R = G L with
G = sgn(A), one vector serves for both sides, and a record spends its epsilon once instead of half on each. The norms
are r^2 = max of diag |A|, an upper bound of gamma_2(A). Functions of a matrix do not depend on the choice of
eigenvectors, so all machines agree on the vectors, where those of repeated eigenvalues (Kendall's kernel has many)
would differ.

*Johnson–Lindenstrauss.* The positive and the negative part of A are projected by themselves, each to its share of d
dimensions by a matrix of independent normals of variance 1/d±: inner products keep their sign structure, G becomes
diag(1, -1), and A is approximated with mean A and variance (|x|^2 |y|^2 + <x,y>^2)/d± in each part. It shortens what a
node computes with; it saves no bytes, as messages are one bit, and where d reaches the rank of A it only adds error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from umpc.dp.exact_sampling import ShakeStream
from umpc.errors import StudyError

TOLERANCE = 1e-9
"""Eigenvalues below this, relative to the largest, count as zero."""


@dataclass(frozen=True)
class Factors:
    """vectors: (t, d), one row for each cell. form: (d, d) symmetric. vectors @ form @ vectors.T is A or near it."""

    vectors: np.ndarray
    form: np.ndarray

    @property
    def dimension(self) -> int:
        """d."""
        return self.vectors.shape[1]

    @property
    def radius(self) -> float:
        """r, the largest norm of a vector."""
        return float(np.linalg.norm(self.vectors, axis=1).max())

    @property
    def matrix(self) -> np.ndarray:
        """(t, t): the kernel that the vectors stand for."""
        return self.vectors @ self.form @ self.vectors.T


def factor(matrix: np.ndarray) -> Factors:
    """Of a symmetric matrix, exactly (to floats), with d = t. Raises: StudyError where it is zero."""
    values, q = np.linalg.eigh(matrix)
    kept = np.abs(values) > TOLERANCE * np.abs(values).max()
    if not kept.any():
        raise StudyError("the kernel is zero between all cells; there is nothing to estimate")
    root = (q * np.where(kept, np.sqrt(np.abs(values)), 0)) @ q.T
    sign = (q * np.where(kept, np.sign(values), 0)) @ q.T
    return Factors((root + root.T) / 2, (sign + sign.T) / 2)


def project(exact: Factors, dimension: int, seed: bytes) -> Factors:
    """Vectors of fewer dimensions. seed: 32 public bytes, the same for all nodes and the coordinator.

    Raises: StudyError where the dimension does not hold a row for each part of A.
    """
    parts = [(exact.form @ exact.form + sign * exact.form) / 2 for sign in (1, -1)]
    ranks = [round(float(np.trace(part))) for part in parts]
    stream, columns, signs = ShakeStream(seed, "projection"), [], []
    for part, rank, sign in zip(parts, ranks, (1, -1), strict=True):
        mine = round(dimension * rank / sum(ranks))
        if rank and not mine:
            raise StudyError(
                f"{dimension} dimensions are too few for a matrix of rank {sum(ranks)}"
            )
        if rank:
            columns.append(
                exact.vectors @ part @ stream.normals(exact.dimension, mine) / np.sqrt(mine)
            )
            signs += [sign] * mine
    return Factors(np.concatenate(columns, axis=1), np.diag(np.array(signs, dtype=float)))


def projection_variance(exact: Factors, dimension: int, mean: np.ndarray) -> float:
    """Of mean' A mean over projections, about: 2 |x+|^4/d+ + 2 |x-|^4/d-, x± the parts of the mean vector.

    Args: mean: (t,) the share of records in each cell.
    """
    vector, total, rank = mean @ exact.vectors, 0.0, float(np.trace(exact.form @ exact.form))
    for sign in (1, -1):
        part = (exact.form @ exact.form + sign * exact.form) / 2
        mine = round(dimension * float(np.trace(part)) / rank)
        total += 2 * float(vector @ part @ vector) ** 2 / mine if mine else 0.0
    return total
