"""A = V' G V: the kernel matrix as an inner product of one vector for each cell.

Paper: Ghazi et al. 2024 (arXiv 2406.16305), as Sinh & Ramon 2025, D.1.3 describe it. There,
A = L' R and a record sends both of its columns randomised. The error depends on ||L|| ||R||, the
largest norms of columns, whose least value is gamma_2(A).

Departure: here L = |A|^{1/2} and R = sgn(A) |A|^{1/2}, as functions of a symmetric matrix, that is
of its eigenvalues. So R = G L with G = sgn(A). One vector serves for both sides, and a record
spends its epsilon once instead of half on each side. The norms satisfy r^2 = max of diag |A|,
which is an upper bound on gamma_2(A). Functions of a matrix do not depend on the choice of
eigenvectors. All machines therefore agree on the vectors, although eigenvectors of repeated
eigenvalues may differ between machines; Kendall's kernel has many repeated eigenvalues.

*Johnson-Lindenstrauss projection.* The positive and the negative part of A are projected
separately, each to its share of d dimensions, by a matrix of independent normals of variance 1/d±.
Inner products then keep their sign structure and G becomes diag(1, -1). The projected matrix has
mean A and variance (|x|^2 |y|^2 + <x,y>^2)/d± in each part. The projection shortens the vectors
that a node computes with. It saves no bytes, because a message is one bit for each record. Where d
reaches the rank of A, it only adds error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from umpc.errors import StudyError
from umpc.mpc.arrays import Floats
from umpc_papers.exact_sampling import ShakeStream

TOLERANCE = 1e-9
"""Eigenvalues below this, relative to the largest, count as zero."""


@dataclass(frozen=True)
class Factors:
    """Vectors and a form whose inner products are the kernel, or near it.

    The product vectors @ form @ vectors.T is A, or near A after a projection.

    Args:
        vectors: (t, d) float64, one row for each cell.
        form: (d, d) float64, symmetric.
    """

    vectors: Floats
    form: Floats

    @property
    def dimension(self) -> int:
        """d."""
        return len(self.form)

    @property
    def radius(self) -> float:
        """r, the largest norm of a vector."""
        return float(np.linalg.norm(self.vectors, axis=1).max())

    @property
    def matrix(self) -> Floats:
        """(t, t) float64: the kernel that the vectors represent."""
        product: Floats = self.vectors @ self.form @ self.vectors.T
        return product


def factor(matrix: Floats) -> Factors:
    """Factors of a symmetric matrix with d = t, exact up to floating point.

    Raises:
        StudyError: the matrix is zero.
    """
    values, q = np.linalg.eigh(matrix)
    kept = np.abs(values) > TOLERANCE * np.abs(values).max()
    if not kept.any():
        raise StudyError("the kernel is zero between all cells; there is nothing to estimate")
    # V = |A|^{1/2} and G = sgn(A), from the eigenvalues.
    root = (q * np.where(kept, np.sqrt(np.abs(values)), 0)) @ q.T
    sign = (q * np.where(kept, np.sign(values), 0)) @ q.T
    return Factors((root + root.T) / 2, (sign + sign.T) / 2)


def project(exact: Factors, dimension: int, seed: bytes) -> Factors:
    """A Johnson-Lindenstrauss projection: vectors of fewer dimensions.

    Args:
        exact: the result of `factor`.
        dimension: d of the result.
        seed: 32 public bytes, equal for all nodes and the coordinator.

    Raises:
        StudyError: the dimension does not hold a row for each part of A.
    """
    parts = _parts(exact)
    ranks = [round(float(np.trace(part))) for part in parts]
    stream = ShakeStream(seed, "projection")
    columns: list[Floats] = []
    signs: list[int] = []
    for part, rank, sign in zip(parts, ranks, (1, -1), strict=True):
        # d±: this part's share of the dimensions.
        mine = round(dimension * rank / sum(ranks))
        if rank and not mine:
            raise StudyError(
                f"{dimension} dimensions are too few for a matrix of rank {sum(ranks)}; "
                "take more dimensions, or no projection"
            )
        if rank:
            normals = stream.normals(exact.dimension, mine)
            columns.append(exact.vectors @ part @ normals / np.sqrt(mine))
            signs += [sign] * mine
    return Factors(np.concatenate(columns, axis=1), np.diag(np.array(signs, dtype=float)))


def _parts(exact: Factors) -> tuple[Floats, Floats]:
    """Projections (d, d) on the positive and on the negative part of A: (G^2 ± G)/2."""
    square = exact.form @ exact.form
    return (square + exact.form) / 2, (square + -1 * exact.form) / 2
