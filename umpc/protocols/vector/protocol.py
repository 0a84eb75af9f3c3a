"""`vector`: the protocol object.

*Noise binding.* The joint noise of a vector, and the attempt in a ring that holds sums and noise.

The scale S_i of sum i says how far one record moves it, so that Σ (change_i/S_i)² is at most
`square` for the whole vector:

- *without a loss* S_i is δ_max times the width of the kernel's traced range, and every sum may move
  as far as it can: the square is the number of sums m.
- *Kendall's tau of pairs of d columns* (`matrix`): an edge's vector is s_i·s_j over i < j, for a
  vector s of d signs. Replacing a record turns s into t. Both are ±1 in m columns, and in k of
  these they are opposite: then k·(m − k) products move by 2 = S_i/δ_max. A product with a column
  where s or t is 0 moves by 1 at most, and by nothing where s is 0 in one column and t in the
  other. So the square is at most k·(m − k) + (C(u, 2) + C(v, 2) + (u + v)·m)/4 with
  m + u + v <= d, which is largest for m = d: ⌊d²/4⌋ in place of d(d − 1)/2. The L1 norm, with a
  half in place of the quarter, has the same bound.
- *with a loss* all coordinates of an edge move by at most `change`·C together (`losses.py`), in the
  norm of the scales s_i. So S_i = δ_max·change·C·s_i, and the square is 1.
  `ALLOWED` covers the floats of clipping.

For Laplace noise Σ |change_i|/S_i is at most m, or ⌊d²/4⌋, or √m with a loss (Cauchy, Schwarz).

*Node.* A node's side of `vector` is that of U-MPC, over clipped records, with joint noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from math import ceil, isqrt

from umpc.crypto.signing import Credentials
from umpc.dp.calibration import DistributedLaplace
from umpc.dp.distributed_gaussian import GaussianShare, joint_gaussian
from umpc.planning.reference_table import PredictedError, ReferenceTable
from umpc.protocols.base.node import NodeSide
from umpc.protocols.base.promise import PromiseTerms
from umpc.protocols.base.protocol import Line, StudyProtocol
from umpc.protocols.base.seed_agreement import Entropy
from umpc.protocols.u_mpc.protocol import LOUD, JointSums
from umpc.protocols.u_mpc.settings import Law
from umpc.protocols.u_mpc.theory import error_of_sums
from umpc.protocols.vector.losses import ALLOWED, clip_columns
from umpc.protocols.vector.settings import (
    VectorSettings,
    check_settings,
    clip_of,
    coordinates_of,
    course_of,
    loss_of,
)
from umpc.study.attempt import Attempt
from umpc.study.document import Study
from umpc.study.parts import Course
from umpc.study.settings import HONEST, Settings
from umpc.study.sizes import Sizes
from umpc.ustat.clear import Columns
from umpc.ustat.statistics import find_statistic
from umpc.ustat.text import to_text

NOISE_IN_WORDS = {
    "gaussian": "discrete Gaussian for the whole vector, each node adds its part",
    "laplace": "discrete Laplace for the whole vector, each node adds its part",
}


class VectorProtocol(JointSums):
    """A vector of noisy sums over one E, under one joint sensitivity."""

    settings: type[Settings] = VectorSettings
    samplings = StudyProtocol.samplings
    adversaries = (HONEST,)
    protects_people = False

    def check(self, study: Study) -> None:
        check_settings(study)

    def course(self, study: Study) -> Course | None:
        return course_of(study)

    def describe(self, study: Study) -> Iterator[Line]:
        settings = study.settings_as(VectorSettings)
        if (loss := loss_of(study)) is not None:
            yield "loss", f"{loss.name} of {len(settings.coordinates)} fields, at public weights"
            yield "clip", f"records to length {settings.clip}, in scales from their centres"
        if settings.course:
            yield (
                "course",
                f"step {settings.step} of {settings.steps} of {settings.course!r}; epsilon and "
                f"delta are for all steps together",
            )

    def released(self, terms: PromiseTerms) -> str:
        return (
            f"a noisy vector of {terms.sums} means; epsilon and delta are for all steps of a "
            f"training together"
        )

    def describe_noise(self, noise: str) -> str:
        return NOISE_IN_WORDS[noise]

    def noise(self, sizes: Sizes) -> Sequence[Law]:
        return noise_of_vector(sizes)

    def error(self, attempt: Attempt, table: ReferenceTable) -> PredictedError:
        """The error of the one value, or the largest one of several."""
        found, laws = [], list(self.noise(attempt.sizes))
        for alone in attempt.study.single_statistics:
            own, laws = laws[: len(alone.kernels)], laws[len(alone.kernels) :]
            sizes, part = replace(attempt.sizes, study=alone), replace(table, study=alone)
            found.append(error_of_sums(sizes, part, own))
        return max(found, key=lambda each: each.mse)

    def node(
        self, own: Credentials, study: Study, columns: Columns, records: int, entropy: Entropy
    ) -> NodeSide:
        # clip first: the sensitivity counts on it
        clipped = clip_columns(columns, coordinates_of(study), clip_of(study))
        return super().node(own, study, clipped, records, entropy)

    def trial_over_edges(self, study: Study) -> Study:
        return study.replaced(edges="all", epsilon=LOUD, max_colluding=0)


# --- noise binding --------------------------------------------------------------------------------

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
        square = 1 if is_bounded else most_changed(study)
        # Kairouz, Liu & Steinke 2021, for the whole course
        return joint_gaussian(
            study.exact_epsilon, study.exact_delta, scales, square, nodes, honest, steps
        )
    # Cauchy–Schwarz: L1 norm ≤ √m · L2 norm
    length = _root(len(scales)) if is_bounded else Fraction(most_changed(study))
    # basic composition over the steps of a course
    epsilon = study.exact_epsilon / steps / length
    return tuple(DistributedLaplace(epsilon, ceil(scale), nodes, honest) for scale in scales)


def most_changed(study: Study) -> int:
    """A bound of Σ (change_i/S_i)² and of Σ |change_i|/S_i between neighbours, without a loss."""
    sums = len(study.kernels)
    if study.settings_as(VectorSettings).matrix is not True:
        return sums
    columns = {name for kernel in study.parsed_kernels for name in kernel.fields}
    tau = find_statistic("kendall_tau")
    known = {
        to_text(tau.expression(pair)): frozenset(pair) for pair in permutations(sorted(columns), 2)
    }
    pairs = {known.get(text) for text in study.kernels}
    # a node proves from the kernels that each is a product of two columns' signs, each pair once
    is_of_signs = None not in pairs and len(pairs) == sums
    return min(sums, len(columns) ** 2 // 4) if is_of_signs else sums


def _root(number: int) -> Fraction:
    """√number, rounded up."""
    # rounded up: noise is never too small
    return Fraction(isqrt((number << 2 * ROOT_BITS) - 1) + 1, 1 << ROOT_BITS)
