"""A coordinator lies about members in a hash tree: in roots, in what it shows, to the dealer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from umpc.crypto.zero_shares import KeyAgreement
from umpc.errors import CertificateError, RemoteProtocolError
from umpc.study import messages as m

LINE = "a coordinator lies about members in a hash tree"
STUDY = {"noise": "distributed", "epsilon": "1000", "members_checked": 1}


def root(node: str, message):
    """Each node hears of a root of its own."""
    if not isinstance(message, m.AgreeInShort):
        return message
    return replace(message, members=replace(message.members, root=node.encode().ljust(32)))


def counts(node: str, message):
    """Each node hears that every other node has a record more."""
    if not isinstance(message, m.AgreeInShort):
        return message
    told = tuple(
        (first, others + (f"node-{number + 1}" != node))
        for number, (first, others) in enumerate(message.members.counts)
    )
    return replace(message, members=replace(message.members, counts=told))


def openings(node: str, message):
    """Only node-1 hears of another root over the openings."""
    if not isinstance(message, m.BeginInShort) or node != "node-1":
        return message
    return replace(message, openings=bytes(32))


def keys(node: str, message):
    """Each node is shown a key of the coordinator's own for every other node."""
    if not isinstance(message, m.Shown):
        return message
    key = KeyAgreement(bytes(32)).public_key
    return replace(
        message,
        members=tuple(
            each
            if each.member.name == node
            else replace(each, member=replace(each.member, public_key=key))
            for each in message.members
        ),
    )


def unsigned(node: str, message):
    """Nobody has prepared the attempt."""
    if not isinstance(message, m.Signed):
        return message
    return replace(message, signatures=tuple(bytes(64) for _ in message.signatures))


def attempt(node: str, message):
    """The dealer would get other bytes than those of the attempt."""
    if not isinstance(message, m.AttemptPiece) or not message.part:
        return message
    return replace(message, part=message.part[:-1] + bytes((message.part[-1] ^ 1,)))


TALES = [root, counts, openings, keys, unsigned, attempt]


@pytest.mark.attack(LINE, "both", "noticed: the coordinator is named, nothing is charged")
@pytest.mark.lies("tree")
@pytest.mark.parametrize("tale", TALES, ids=lambda tale: tale.__name__)
def test_the_coordinator_is_named_whatever_it_lies_about(liars, tale):
    name = f"tree-{tale.__name__}"
    ended = liars.attempt(tale, name=name, **STUDY)
    assert isinstance(ended, RemoteProtocolError | CertificateError), ended
    assert ended.culprit == "coordinator", ended
    assert not any(liars.charged(node, name) for node in liars.names)


def test_without_a_lie_the_study_ends_well(liars):
    report = liars.attempt(name="tree-honest", **STUDY)
    assert all(liars.charged(node, "tree-honest") for node in ("node-1", "node-2")), report
