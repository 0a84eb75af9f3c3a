"""Coins of a committee of two that are tossed after one study, for the next one, and used once.

A toss takes ten messages one after the other, and depends on nothing of a study but its public plan
(`umpc/mpc/transfers/toss_plan.py`): the coins' probabilities and weights. Two nodes that make a
channel for their next study (`making_channels.py`) therefore also toss that study's coins over it,
if it will have the same plan. Each keeps its own shares of the sums. A study with another plan
takes the channel alone.

| rule | reason |
|---|---|
| shares are kept with their channel, and leave with it | both ends find some, or neither does |
| they serve a study of an equal plan, whose committee are the channel's two ends | as above |
| the channel is handed out once, whatever comes of it | shares serve one attempt |
| the toss uses a fork of the channel, with a session of its own | no hash is asked for twice |
| a member's numbers come from the system's randomness | they depend on no study, and no dealer |

The greeting of two nodes agrees on a channel, and plans are public: so both ends find shares.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any

from umpc.crypto.prg import SEED_BYTES, digest
from umpc.crypto.rounds import Message
from umpc.errors import LocalProtocolError
from umpc.mpc.transfers.coins_from_transfers import CommitteeMember, toss
from umpc.mpc.transfers.correlated_ot import CorrelatedReceiver, CorrelatedSender
from umpc.mpc.transfers.toss_plan import PAIR, TossPlan
from umpc.node.attempts.next_channels import Channel
from umpc.node.attempts.peers import PeerLink
from umpc.node.attempts.rounds import resume
from umpc.study.frames import frame_of

FIRST_FRAME = 2
"""The chunk in whose name the first message goes; those of the channel's set-up have 1."""


async def toss_ahead(
    link: PeerLink,
    channel: Channel,
    own: str,
    plan: TossPlan,
    owners: tuple[int, int],
    compute: Callable[..., Awaitable[Any]],
) -> list[int]:
    """Toss the coins of a plan over a link, and return this member's share of each sum.

    Args: channel: this node's end of a channel to the link's peer. own: this node's name. owners:
        in whose name the frames go. compute: runs each step.

    Raises: RemoteProtocolError, PeerLost.
    """
    member = _member(channel, own, link.peer)
    (peer,) = member.peers
    protocol = toss(plan, member, os.urandom(SEED_BYTES))
    messages, shares = await compute(resume, protocol, None)
    for number, due in enumerate(plan.shapes(peer, member.number), FIRST_FRAME):
        for message in messages.values():
            await link.send(frame_of(message, owners, number))
        replies: dict[int, Message] = {}
        if due.width:
            replies[peer] = await link.receive(frame_of(due, owners, number).key)
        messages, shares = await compute(resume, protocol, replies)
    if shares is None:
        raise LocalProtocolError("a toss ended without a result")
    made: list[int] = shares
    return made


def _member(channel: Channel, own: str, peer: str) -> CommitteeMember:
    """This node's place in a committee of two, over a fork of a channel to the other member.

    The member that comes first sends in transfers.
    """
    session = digest(b"umpc next coins 1", channel.session)
    fork = channel.fork("next coins", session=session)
    senders: dict[int, CorrelatedSender] = {}
    receivers: dict[int, CorrelatedReceiver] = {}
    if isinstance(fork, CorrelatedSender):
        senders[1] = fork
        return CommitteeMember(0, (own, peer), senders, receivers)
    receivers[0] = fork
    return CommitteeMember(1, (peer, own), senders, receivers)


def bytes_of_toss(plan: TossPlan, member: int) -> int:
    """The bytes that a member sends in a toss, as they are predicted for the study itself."""
    shapes = enumerate(plan.shapes(member, PAIR - 1 - member))
    return sum(frame_of(shape, (), number).wire_bytes for number, shape in shapes if shape.width)
