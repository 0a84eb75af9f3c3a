"""SeedAgreement.secrets_with: the secrets of a meeting's links, from the keys of the members."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.protocols import make_node
from tests.support.studies import KENDALL, Entropy, make_study
from umpc.crypto.prg import derive
from umpc.errors import LocalProtocolError

NODES = 3
STUDY = make_study(KENDALL, NODES)
FIRST, SECOND = b"1" * 32, b"2" * 32


def sides(label: str):
    columns = {field.name: [0, 1] * 10 for field in STUDY.fields}
    made = [
        make_node(node.name, STUDY, columns, 20, Entropy(f"{label} {node.name}"))
        for node in STUDY.nodes
    ]
    members = [each.accept() for each in made]
    for each in made:
        each.agree(members)
    return made


def secrets_of(side, meeting: bytes) -> dict[int, bytes]:
    return side.secrets_with([peer for peer in range(NODES) if peer != side.index], meeting)


def test_both_nodes_of_a_pair_have_one_secret_and_nobody_else_has_it():
    made = [secrets_of(side, FIRST) for side in sides("pairs")]
    assert all(made[one][two] == made[two][one] for one in range(NODES) for two in made[one])
    distinct = {secret for each in made for secret in each.values()}
    assert len(distinct) == NODES * (NODES - 1) // 2 and all(len(each) == 32 for each in distinct)


def test_each_meeting_and_each_attempt_has_secrets_of_its_own():
    """So a session begins at nonce 1 under a key that no other session ever has."""
    one, other = sides("one attempt"), sides("another attempt of the study")
    found = [
        secret
        for side in (one[0], other[0])
        for meeting in (FIRST, SECOND)
        for secret in secrets_of(side, meeting).values()
    ]
    assert len(set(found)) == len(found)


def test_the_secrets_of_a_meeting_are_given_once():
    side = sides("once")[0]
    secrets_of(side, FIRST)
    for peers in ([1], [2], []):
        with pytest.raises(LocalProtocolError, match="given once"):
            side.secrets_with(peers, FIRST)
    assert secrets_of(side, SECOND)


def test_a_links_secret_is_neither_the_agreement_nor_the_seed_of_a_zero_share():
    side = sides("labels")[0]
    member = side.members[1]
    agreed = side._key.seed_with(member.public_key, member.name)
    secret = secrets_of(side, FIRST)[1]
    assert secret not in (agreed, derive(agreed, "zero share", FIRST, 0, 1))


def test_a_copied_key_gives_the_links_of_two_nodes_no_common_secret():
    """A node may show the key of another one as its own: it signs what it likes."""
    made = sides("copied")
    members = list(made[0].members)
    members[2] = replace(members[2], public_key=members[1].public_key)
    made[0]._members = tuple(members)
    secrets = secrets_of(made[0], FIRST)
    assert secrets[1] != secrets[2]


def test_an_agreement_is_computed_once_for_zero_shares_and_links(monkeypatch):
    side = sides("once each")[0]
    count = 0
    exchange = side._key._exchange

    def counted(*given):
        nonlocal count
        count += 1
        return exchange(*given)

    monkeypatch.setattr(side._key, "_exchange", counted)
    secrets_of(side, FIRST)
    secrets_of(side, SECOND)
    assert count == NODES - 1
