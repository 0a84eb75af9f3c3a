"""The joint noise of a vector, and the attempt in a ring that holds sums and noise.

The scale S_i of sum i says how far one record moves it, so that Σ (change_i/S_i)² is at most
`square` for the whole vector:

- *without a loss* S_i is δ_max times the width of the kernel's traced range, and every sum may move
  as far as it can: the square is the number of sums m.
- *with a loss* all coordinates of an edge move by at most `change`·C together (`losses.py`), in the
  norm of the scales s_i. So S_i = δ_max·change·C·s_i, and the square is 1.
  `ALLOWED` covers the floats of clipping.

For Laplace noise Σ |change_i|/S_i is at most m, or √m with a loss (Cauchy, Schwarz).

*Node.* A node's side of `vector`: as that of U-MPC, over clipped records, with joint noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, isqrt

from umpc.crypto.signing import Credentials
from umpc.dp.calibration import DistributedLaplace
from umpc.dp.distributed_gaussian import GaussianShare, joint_gaussian
from umpc.mpc.attempt import SharedAttempt
from umpc.protocols.base.seed_agreement import Entropy
from umpc.protocols.u_mpc.node import UMpcNode
from umpc.protocols.u_mpc.noise_binding import check_edges, ring_for
from umpc.protocols.vector.losses import ALLOWED, clip_columns
from umpc.protocols.vector.settings import VectorSettings, clip_of, coordinates_of, loss_of
from umpc.study.document import Study
from umpc.study.sizes import Member, Sizes
from umpc.ustat.clear import Columns

VectorNoise = GaussianShare | DistributedLaplace
ROOT_BITS = 40
"""√m is rounded up to a multiple of 2^-40."""


def scales_of(sizes: Sizes) -> tuple[Fraction, ...]:
    """S_i in units of sum i."""
    study = sizes.study
    loss = loss_of(study)
    if loss is None:
        return tuple(map(Fraction, sizes.sensitivities))
    # a clipped record moves δ_max edges by change·C each
    most = sizes.max_degree * loss.change * clip_of(study) * ALLOWED
    return tuple(
        most * each.scale * study.schema[each.name].resolution / kernel.unit
        for each, kernel in zip(coordinates_of(study), study.parsed_kernels, strict=True)
    )


def noise_of_vector(sizes: Sizes) -> tuple[VectorNoise, ...]:
    """The noise of each sum: one joint budget for all sums, and for all steps of a course."""
    study = sizes.study
    scales = scales_of(sizes)
    nodes, honest = len(study.nodes), study.honest
    is_bounded = loss_of(study) is not None
    steps = study.settings_as(VectorSettings).steps
    if study.noise == "gaussian":
        # Σ (change_i/S_i)² ≤ square
        square = 1 if is_bounded else len(scales)
        # Kairouz, Liu & Steinke 2021, for the whole course
        return joint_gaussian(
            study.exact_epsilon, study.exact_delta, scales, square, nodes, honest, steps
        )
    # Cauchy–Schwarz: L1 norm ≤ √m · L2 norm
    length = _root(len(scales)) if is_bounded else Fraction(len(scales))
    # basic composition over the steps of a course
    epsilon = study.exact_epsilon / steps / length
    return tuple(DistributedLaplace(epsilon, ceil(scale), nodes, honest) for scale in scales)


def vector_attempt(
    study: Study, members: Sequence[Member], openings: Sequence[bytes]
) -> SharedAttempt:
    """The attempt of these members and openings. Raises: RemoteProtocolError, RangeError."""
    sizes = Sizes.of(study, members)
    check_edges(sizes)
    ring = ring_for(sizes, [law.tail_bound() for law in noise_of_vector(sizes)])
    return SharedAttempt(study, members, openings, ring)


def _root(number: int) -> Fraction:
    """√number, rounded up."""
    # rounded up: noise is never too small
    return Fraction(isqrt((number << 2 * ROOT_BITS) - 1) + 1, 1 << ROOT_BITS)


# --- node -----------------------------------------------------------------------------------------


class VectorNode(UMpcNode):
    """One node, one study, one attempt. Args: as in SeedAgreement."""

    def __init__(
        self, own: Credentials, study: Study, columns: Columns, records: int, entropy: Entropy
    ):
        # clip first: the sensitivity counts on it
        clipped = clip_columns(columns, coordinates_of(study), clip_of(study))
        super().__init__(own, study, clipped, records, entropy)

    @property
    def delta(self) -> Fraction:
        return self.study.exact_delta

    def _make_attempt(self, openings: Sequence[bytes]) -> SharedAttempt:
        return vector_attempt(self.study, self._agreed(openings), openings)

    def _own_noise(self, attempt: SharedAttempt) -> list[int]:
        return [law.draw(self._random_bits) for law in noise_of_vector(attempt.sizes)]
