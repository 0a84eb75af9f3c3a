"""Pairwise masks, and that they cancel."""

from __future__ import annotations

from spec.cases.zero_shares import GIVEN
from spec.zero_shares import zero_shares
from tests.spec.replaying import replay_tests
from tests.support.studies import make_study
from umpc.crypto.ring import Ring
from umpc.crypto.zero_shares import KeyAgreement
from umpc.crypto.zero_shares import zero_shares as umpc_zero_shares
from umpc.mpc.attempt import SharedAttempt
from umpc.study.attempt import commit
from umpc.study.sizes import Member


def replay(names, secrets, attempt, ring_bits, sums, last_key=None):
    keys = [KeyAgreement(secret) for secret in secrets]
    public = [key.public_key for key in keys]
    if last_key is not None:
        public[-1] = last_key
    return [
        umpc_zero_shares(own, names, public, key, attempt, Ring(ring_bits), sums)
        for own, key in enumerate(keys)
    ]


def peers(openings, colluding, node):
    study = make_study("a.x * b.x", len(openings), max_colluding=colluding)
    members = [
        Member(each.name, 1, commit(study.hash, each.name, opening), b"")
        for each, opening in zip(study.nodes, openings, strict=True)
    ]
    return list(SharedAttempt(study, members, openings, Ring(32)).zero_share_peers(node))


test_good_vectors, test_bad_vectors, test_each_check_is_needed = replay_tests(
    "zero_shares",
    {
        "zero_shares": replay,
        "peers": peers,
        "public_keys": lambda secrets: [KeyAgreement(secret).public_key for secret in secrets],
    },
)


def test_the_masks_of_all_nodes_cancel_in_each_sum():
    assert all(sum(column) % 2**64 == 0 for column in zip(*zero_shares(**GIVEN), strict=True))
