"""A node's side of U-MPC until it is prepared: E, noise, seed, channels and coins.

    attempt = side.begin(openings)         E, plans, noise and zero share
    side.receive_seed(node_seed)           masks
    side.set_up(peer), or take_up(…)       oblivious transfers, where there are some
    side.toss()                            the committee's noise, from transfers

`node.py` goes on with *evaluate* and *release*. No message of *prepare* depends on the
records' values.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np

from umpc.crypto.mesh import Mesh
from umpc.crypto.prg import SEED_BYTES
from umpc.crypto.rounds import Protocol
from umpc.crypto.signing import Credentials
from umpc.crypto.zero_shares import zero_shares
from umpc.errors import LocalProtocolError
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.backends import Cells, backend_of, tosses_apart, transfers_of
from umpc.mpc.garbled.cells import GarbledCells
from umpc.mpc.masked.committee_transfers import CommitteeTransfers
from umpc.mpc.transfers.correlated_ot import CorrelatedReceiver, CorrelatedSender
from umpc.protocols.base.node import NodeSide
from umpc.protocols.base.seed_agreement import Entropy
from umpc.protocols.u_mpc.noise_binding import (
    NodeNoise,
    delta_of_sums,
    noise_of_sums,
    shared_attempt,
)
from umpc.study.document import Study
from umpc.ustat.clear import Columns


class PreparingNode(NodeSide):
    """One node, one study, one attempt, in *prepare*. Args: as in SeedAgreement."""

    _attempt: SharedAttempt | None = None
    noise: Sequence[int] = ()
    """This node's own part of each sum's noise, in units; nodes that collude subtract it."""

    def __init__(
        self, own: Credentials, study: Study, columns: Columns, records: int, entropy: Entropy
    ):
        super().__init__(own, study, columns, records, entropy)
        self._cells: Cells | None = None
        self._parts: list[Sequence[int]] = []
        self._toss_begun = False
        self._tossed = False

    @property
    def attempt(self) -> SharedAttempt:
        if self._attempt is None:
            raise LocalProtocolError("the attempt has not begun")
        return self._attempt

    @property
    def delta(self) -> Fraction:
        return delta_of_sums(self.attempt.sizes)

    def begin(self, openings: Sequence[bytes]) -> SharedAttempt:
        """Expand everything that follows from the joint seed; draw noise before any data.

        Raises: RemoteProtocolError where an opening does not fit, LocalProtocolError where a record
        has more edges than the noise covers.
        """
        if self._attempt is not None:
            raise LocalProtocolError("begin comes once, after agree")
        attempt = self._make_attempt(openings)
        degree = int(attempt.hypergraph.degrees(self.index).max(initial=0))
        if degree > attempt.sizes.max_degree:
            raise LocalProtocolError(
                f"a record of this node is in {degree} edges, the noise covers "
                f"{attempt.sizes.max_degree}; refused"
            )
        _ = attempt.program  # a kernel that is too large is refused before anything is dealt
        self._attempt = attempt
        self.noise = self._own_noise(attempt)
        own_coins = attempt.noise_chunks if self.index in attempt.committee else ()
        self._drawn = {chunk: self._random_words(chunk.count) for chunk in own_coins}
        # The coins' own seed: the dealer, who may know the other seed, never sees this one.
        self._coin_seed = self._entropy(SEED_BYTES) if attempt.tosses(self.index) else b""
        # They use that seed, or the cells do.
        self._transfers = transfers_of(self.study, attempt, self.index, self._coin_seed)
        names = [member.name for member in attempt.members]
        masked_with = set(attempt.zero_share_peers(self.index))
        keys = [
            member.public_key if other in masked_with else b""
            for other, member in enumerate(attempt.members)
        ]
        self._zeros = zero_shares(
            self.index, names, keys, self._key, attempt.id, attempt.ring, attempt.sums
        )
        return attempt

    def _make_attempt(self, openings: Sequence[bytes]) -> SharedAttempt:
        return shared_attempt(self.study, self._agreed(openings), openings)

    def _own_noise(self, attempt: SharedAttempt) -> list[int]:
        """The number that this node adds to each sum; in a committee the first member's offset."""
        if attempt.coins:
            is_first = self.index == attempt.committee[0]
            return [-coins.offset * is_first for coins in attempt.coins]
        laws = noise_of_sums(attempt.sizes)
        return [law.draw(self._random_bits) for law in laws if isinstance(law, NodeNoise)]

    def _random_words(self, count: int) -> np.ndarray:
        return np.frombuffer(self._entropy(8 * count), dtype="<u8").astype(np.uint64)

    @property
    def peers(self) -> tuple[int, ...]:
        """The nodes with which this node exchanges messages."""
        return self.attempt.peers(self.index)

    @property
    def asks_early(self) -> bool:
        """Whether the edges of this study need material, unless no two nodes share one."""
        study = self.study
        return tosses_apart(study) and study.degree > 1 and len(study.nodes) > 1

    @cached_property
    def tosses_early(self) -> bool:
        """Whether `set_up` and `toss` may come before the seed, which the dealer sends."""
        return self.attempt.needs_dealer and tosses_apart(self.study)

    def receive_seed(self, node_seed: bytes) -> None:
        """The seed of all that this node keeps secret in its cells.

        The dealer sends it; where nothing is dealt, the node draws it itself.
        """
        if self._cells is not None:
            raise LocalProtocolError("the node's seed came before; masks are made once")
        backend = backend_of(self.study)
        self._cells = backend(
            self.attempt, self.index, self.columns, node_seed, self._drawn, self._coin_seed
        )

    @property
    def cells(self) -> Cells:
        """This node's part in the edges that it shares with others."""
        if self._cells is None:
            raise LocalProtocolError("the node's seed has not come")
        return self._cells

    def set_up(self, peer: int) -> Protocol[None] | None:
        """The messages between this node and a peer that go before all data, if any."""
        if self._transfers is not None:
            return self._transfers.set_up(peer)
        return None if self.tosses_early else self.cells.set_up(peer)

    @property
    def _channels(self) -> GarbledCells | CommitteeTransfers | None:
        """The part of this node with channels of transfers, if former ones may serve it."""
        if type(self).set_up is not PreparingNode.set_up:
            return None
        return self._cells if isinstance(self._cells, GarbledCells) else self._transfers

    @property
    def channel_peers(self) -> tuple[int, ...]:
        """The nodes to which this one has a channel, for garbled edges or for coins alone."""
        channels = self._channels
        return tuple(filter(channels.has_channel, self.peers)) if channels else ()

    def channel(self, peer: int) -> CorrelatedSender | CorrelatedReceiver:
        """This node's end of its channel to a peer, after all set-ups."""
        return self._with_channels().channel(peer)

    def take_up(self, peer: int, channel: CorrelatedSender | CorrelatedReceiver) -> None:
        """Use a channel to a peer, once, in place of `set_up`."""
        self._with_channels().take_up(peer, channel)

    def _with_channels(self) -> GarbledCells | CommitteeTransfers:
        if self._channels is None:
            raise LocalProtocolError("this study takes no channel that was made before")
        return self._channels

    def toss(self) -> Mesh[None] | None:
        """The committee's noise from transfers, once, after every set-up."""
        if self._toss_begun:
            raise LocalProtocolError("the committee's coins were tossed before")
        if self._transfers is not None:
            protocol = self._transfers.toss()
        else:
            protocol = None if self.tosses_early else self.cells.toss()
        self._toss_begun = True
        return None if protocol is None else self._add_tossed(protocol)

    def _add_tossed(self, protocol: Mesh[list[int]]) -> Mesh[None]:
        self._parts.append((yield from protocol))
        self._tossed = True
