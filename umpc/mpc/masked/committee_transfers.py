"""The transfers of one committee member, which need no seed and no material of the dealer's.

They come from a seed of the member's own, which the dealer never sees. So they go on while the
dealer still deals.
"""

from __future__ import annotations

from umpc.crypto.prg import derive
from umpc.crypto.rounds import Mesh, Protocol
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.transfers.coins_from_transfers import toss
from umpc.mpc.transfers.committee_links import CommitteeLinks
from umpc.mpc.transfers.correlated_ot import CorrelatedReceiver, CorrelatedSender


class CommitteeTransfers:
    """Channels to the other members, and the committee's coins over them.

    Args:
        node: a member of the attempt's committee.
        coin_seed: 32 uniform bytes of this node's own, for this attempt alone.
    """

    def __init__(self, attempt: SharedAttempt, node: int, coin_seed: bytes):
        committee = attempt.committee
        names = [attempt.members[member].name for member in committee]
        self._attempt = attempt
        self._coin_seed = coin_seed
        self._links = CommitteeLinks(committee.index(node), names, attempt.id, coin_seed)

    def __repr__(self) -> str:
        return "CommitteeTransfers(<redacted>)"

    def set_up(self, peer: int) -> Protocol[None] | None:
        """The rounds that make the channel to another node; None where the two toss no coins."""
        if not self.has_channel(peer):
            return None
        return self._links.set_up(self._attempt.committee.index(peer))

    def has_channel(self, peer: int) -> bool:
        """Whether this node tosses coins with another node."""
        return self._attempt.tosses(peer)

    def channel(self, peer: int) -> CorrelatedSender | CorrelatedReceiver:
        """This node's end of the channel to another node, after the set-up."""
        return self._links.channel(self._attempt.committee.index(peer))

    def take_up(self, peer: int, channel: CorrelatedSender | CorrelatedReceiver) -> None:
        """Use a channel to another node that was made before, in place of `set_up`."""
        self._links.take_up(self._attempt.committee.index(peer), channel)

    def toss(self) -> Mesh[list[int]] | None:
        """This member's part in the committee's coins, after all set-ups.

        Coins that are made of the dealer's material are chunks like others.
        """
        plan = self._attempt.toss_plan
        if plan is None:
            return None
        return toss(plan, self._links.seat(), derive(self._coin_seed, "toss"))
