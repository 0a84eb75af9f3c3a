"""A node's side of `vector`: as that of U-MPC, over clipped records, with joint noise."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from umpc.crypto.signing import Credentials
from umpc.mpc.attempt import SharedAttempt
from umpc.protocols.base.seed_agreement import Entropy
from umpc.protocols.u_mpc.node import UMpcNode
from umpc.protocols.vector.clipping import clip_columns
from umpc.protocols.vector.noise_binding import noise_of_vector, vector_attempt
from umpc.protocols.vector.settings import clip_of, coordinates_of
from umpc.study.document import Study
from umpc.ustat.clear import Columns


class VectorNode(UMpcNode):
    """One node, one study, one attempt. Args: as in SeedAgreement."""

    def __init__(
        self, own: Credentials, study: Study, columns: Columns, records: int, entropy: Entropy
    ):
        clipped = clip_columns(columns, coordinates_of(study), clip_of(study))
        super().__init__(own, study, clipped, records, entropy)

    @property
    def delta(self) -> Fraction:
        return self.study.exact_delta

    def _make_attempt(self, openings: Sequence[bytes]) -> SharedAttempt:
        return vector_attempt(self.study, self._agreed(openings), openings)

    def _own_noise(self, attempt: SharedAttempt) -> list[int]:
        return [law.draw(self._random_bits) for law in noise_of_vector(attempt.sizes)]
