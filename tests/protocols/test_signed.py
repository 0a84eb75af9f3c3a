"""Everything that a coordinator relays before data is used, exchanged one by one, in each protocol.

The coordinator holds no node's key. It may have a key and a certificate of its own, entries of an
earlier attempt, and the help of a node that signs whatever it is asked to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.support.bell import bell_study
from tests.support.central import central_study
from tests.support.garbled import garbled_study
from tests.support.gopa import gopa_study
from tests.support.local import local_study
from tests.support.protocols import ONE_MESSAGE, coordinator_of, make_node
from tests.support.shuffled import shuffled_study
from tests.support.signed import opened, prepared, signed, signed_members
from tests.support.studies import KENDALL, Entropy, make_study
from umpc.crypto.prg import Stream, derive
from umpc.crypto.signing import MemoryAuthority
from umpc.crypto.zero_shares import KeyAgreement
from umpc.errors import CertificateError, RemoteProtocolError
from umpc.protocols.base.node import NodeSide
from umpc.simulation import AUTHORITY
from umpc.study import messages as m
from umpc.study.attempt import commit, members_statement, sign_member
from umpc.study.document import Study
from umpc.study.sizes import Member
from umpc.testing import lying

RECORDS = 30
NODES = 3
OWN = KeyAgreement(b"k" * 32)
"""A key whose secret the coordinator knows."""
KNOWN = bytes(32)
"""An opening that the coordinator knows."""

STUDIES: dict[str, Study] = {
    "u-mpc": make_study(KENDALL, NODES),
    "u-mpc without a dealer": garbled_study(KENDALL, NODES),
    "a mean of distributed noise": make_study("a.x", 16, degree=1, noise="distributed"),
    "bell-2pc": bell_study(nodes=NODES),
    **{name: local_study(name, NODES) for name in ONE_MESSAGE},
    "ghazi-shuffle": shuffled_study(NODES),
    "gopa": gopa_study(NODES),
    "central": central_study(nodes=NODES),
}
each_protocol = pytest.mark.parametrize("kind", STUDIES)


def nodes_of(study: Study, label: str = "signed") -> list[NodeSide]:
    columns = {field.name: np.arange(RECORDS) % 2 for field in study.fields}
    return [
        make_node(node.name, study, columns, RECORDS, Entropy(f"{label} {node.name}"))
        for node in study.nodes
    ]


def forged(member: Member, **changes) -> Member:
    """The member with other facts, under the signature that it had."""
    return replace(member, **changes)


def of_the_coordinator(study: Study, member: Member, **changes) -> Member:
    """The member with other facts, signed by the coordinator's own key and certificate."""
    own = AUTHORITY.credentials(study.coordinator, "coordinator")
    return sign_member(study.hash, replace(member, **changes), own)


def of_another_authority(study: Study, member: Member, **changes) -> Member:
    own = MemoryAuthority("another").credentials(member.name)
    return sign_member(study.hash, replace(member, **changes), own)


FACTS = {
    "records": {"records": RECORDS + 1},
    "first_class": {"first_class": 1},
    "commitment": {"commitment": b"c" * 32},
    "public_key": {"public_key": OWN.public_key},
    "certificate": {"certificate": AUTHORITY.credentials("node-0").certificate},
    "signature": {"signature": bytes(64)},
}
"""The facts that the coordinator exchanges in the member of another node."""


def refused(culprit: str, step: str, job: Callable[[], object]) -> None:
    with pytest.raises((RemoteProtocolError, CertificateError)) as caught:
        job()
    assert (caught.value.culprit, caught.value.step) == (culprit, step), caught.value.message


@each_protocol
@pytest.mark.parametrize("fact", FACTS)
def test_a_node_refuses_every_exchanged_fact_of_another_node(kind, fact):
    study = STUDIES[kind]
    node, other, *_ = nodes = nodes_of(study)
    members = [each.accept() for each in nodes]
    first = members[1].first_class
    changes = {"first_class": first + 1} if fact == "first_class" else FACTS[fact]
    members[1] = forged(other.accept(), **changes)
    refused(study.coordinator, "agree", lambda: node.agree(members))


@each_protocol
@pytest.mark.parametrize("maker", [of_the_coordinator, of_another_authority])
def test_a_node_refuses_a_member_that_the_coordinator_made_up(kind, maker):
    study = STUDIES[kind]
    node, *_ = nodes = nodes_of(study)
    members = [each.accept() for each in nodes]
    changes = {"commitment": commit(study.hash, "node-1", KNOWN), "public_key": OWN.public_key}
    members[1] = maker(study, members[1], **changes)
    refused(study.coordinator, "agree", lambda: node.agree(members))


@each_protocol
def test_a_node_refuses_a_member_of_another_study(kind):
    study = STUDIES[kind]
    node, *_ = nodes = nodes_of(study)
    elsewhere = study.replaced(epsilon="0.5")
    members = [each.accept() for each in nodes]
    members[1] = signed(elsewhere, members[1])
    refused(study.coordinator, "agree", lambda: node.agree(members))


@each_protocol
def test_a_node_refuses_an_exchanged_opening(kind):
    study = STUDIES[kind]
    nodes = nodes_of(study)
    members = [each.accept() for each in nodes]
    openings = [each.agree(members) for each in nodes]
    openings[1] = KNOWN
    refused(study.coordinator, "agree", lambda: nodes[0].begin(openings))


@each_protocol
def test_members_of_an_earlier_attempt_do_not_reach_the_next_one(kind):
    """The coordinator knows the earlier opening; node-1 has never signed the mixed members."""
    study = STUDIES[kind]
    earlier = nodes_of(study, "earlier")
    members = [each.accept() for each in earlier]
    for each in earlier:
        each.agree(members)
    nodes = nodes_of(study)
    told = [each.accept() for each in nodes]
    told[1] = members[1]
    nodes[0].agree(told)
    signatures = [each.sign_members() for each in (nodes[0], *earlier[1:])]
    refused(study.coordinator, "prepare", lambda: nodes[0].check_agreed(signatures))


@each_protocol
def test_two_stories_end_before_anything_is_prepared(kind):
    """The last node signs two members, and the coordinator tells node-0 and node-1 different ones.

    The signatures of all members show it to both, and the signatures of the attempt once more.
    """
    study = STUDIES[kind]
    nodes = nodes_of(study)
    told = [each.accept() for each in nodes]
    opening = Entropy("another")(32)
    changes = {"commitment": commit(study.hash, told[-1].name, opening)}
    stories = [told, [*told[:-1], signed(study, told[-1], **changes)]]
    openings = [node.agree(story) for node, story in zip(nodes, stories, strict=False)]
    signatures = [*(node.sign_members() for node in nodes[:2])]
    everybodys = signatures + [
        AUTHORITY.credentials(member.name).sign(members_statement(study, told))
        for member in told[2:]
    ]
    for node in nodes[:2]:
        refused(study.coordinator, "prepare", lambda node=node: node.check_agreed(everybodys))
    assert len(openings) == 2


@each_protocol
def test_data_waits_for_everybodys_signature_of_the_attempt(kind):
    study = STUDIES[kind]
    nodes = nodes_of(study)
    members = [each.accept() for each in nodes]
    openings = [each.agree(members) for each in nodes]
    node = nodes[0]
    attempt = node.begin(openings)
    signatures = [each.signature for each in prepared(attempt)]
    node.check_prepared(signatures)
    of_members = signed_members(study, members)
    for wrong in (
        signatures[:-1],
        [signatures[1], signatures[0], *signatures[2:]],
        [*signatures[:-1], bytes(64)],
        [*signatures[:-1], of_members[-1]],
        [],
    ):
        refused(study.coordinator, "evaluate", lambda wrong=wrong: node.check_prepared(wrong))


@each_protocol
def test_the_coordinator_names_the_node_that_sends_what_it_did_not_sign(kind):
    study = STUDIES[kind]
    nodes = nodes_of(study)
    members = [each.accept() for each in nodes]
    openings = [each.agree(members) for each in nodes]
    good = [m.Accepted(study.hash, member) for member in members]
    for fact, changes in FACTS.items():
        changes = {"first_class": members[1].first_class + 1} if fact == "first_class" else changes
        answers = [good[0], m.Accepted(study.hash, replace(members[1], **changes)), *good[2:]]
        here = coordinator_of(study)
        refused("node-1", "propose", lambda here=here, answers=answers: here.agree(answers))
    here = coordinator_of(study)
    here.agree(good)
    said = opened(study, members, openings)
    other = replace(said[1], signature=said[0].signature)
    refused("node-1", "agree", lambda: here.begin([said[0], other, *said[2:]]))
    here.begin(said)
    ready = prepared(here.attempt)
    other = replace(ready[1], signature=bytes(64))
    refused("node-1", "prepare", lambda: here.check_prepared([ready[0], other, *ready[2:]]))
    here.check_prepared(ready)
    assert here.evaluate().signatures == tuple(each.signature for each in ready)


def keys_of_the_coordinator(members: list[Member], own: int) -> list[Member]:
    """The members that the coordinator shows one node: all others have the coordinator's key."""
    return [
        member if number == own else replace(member, public_key=OWN.public_key)
        for number, member in enumerate(members)
    ]


def test_zero_shares_cannot_be_stripped_by_keys_of_the_coordinators_own():
    """Without the check of members, the coordinator knows the zero share of a node: it worked."""
    study = STUDIES["a mean of distributed noise"]
    nodes = nodes_of(study)
    members = [each.accept() for each in nodes]
    told = keys_of_the_coordinator(members, 0)
    refused(study.coordinator, "agree", lambda: nodes[0].agree(told))

    with lying("node", check_members=lambda *_: ()):
        openings = [node.agree(told if node is nodes[0] else members) for node in nodes]
    attempt = nodes[0].begin(openings)
    # The coordinator plays the other node of each pair, so it knows each mask of node-0.
    agreed = OWN.seed_with(members[0].public_key, members[0].name)
    masks = [
        Stream(derive(agreed, "zero share", attempt.id, 0, other)).bytes(attempt.ring.bytes)
        for other in range(1, len(members))
    ]
    known = sum(int.from_bytes(mask, "little") for mask in masks)
    assert attempt.ring.encode(nodes[0].zeros[0] - known) == 0 != nodes[0].zeros[0]


def test_gopas_noise_cannot_be_read_with_keys_of_the_coordinators_own():
    study = STUDIES["gopa"]
    nodes = nodes_of(study)
    members = [each.accept() for each in nodes]
    for number, node in enumerate(nodes):
        told = keys_of_the_coordinator(members, number)
        refused(study.coordinator, "agree", lambda node=node, told=told: node.agree(told))
