"""Zero shares sum to nothing, are uniform one by one, and are never the same twice."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.mpc_studies import ALPHA, seed_of, uniformity
from tests.support.studies import Entropy, make_attempt, make_study
from umpc.crypto.ring import RINGS
from umpc.crypto.zero_shares import KeyAgreement, zero_shares
from umpc.errors import RemoteProtocolError
from umpc.mpc.attempt import REACH

RUNS = 300


def shares(count: int, ring, attempt: bytes, keys=None, sums: int = 1) -> list[list[int]]:
    """Per node its mask of each sum."""
    entropy = Entropy(f"zero {count}")
    keys = keys or [KeyAgreement(entropy(32)) for _ in range(count)]
    publics = [key.public_key for key in keys]
    names = [f"node-{i}" for i in range(count)]
    return [
        zero_shares(own, names, publics, keys[own], attempt, ring, sums) for own in range(count)
    ]


@pytest.mark.parametrize("sums", [1, 2, 5])
@pytest.mark.parametrize("ring", RINGS, ids=lambda ring: ring.bits)
@pytest.mark.parametrize("count", [1, 2, 3, 5, 16])
def test_they_sum_to_zero_sum_by_sum(count, ring, sums):
    drawn = shares(count, ring, seed_of("attempt"), sums=sums)
    assert all(
        len(masks) == sums and all(0 <= mask < 2**ring.bits for mask in masks) for masks in drawn
    )
    assert [ring.encode(sum(masks)) for masks in zip(*drawn, strict=True)] == [0] * sums
    assert count == 1 or len({mask for masks in drawn for mask in masks}) == count * sums


def test_neighbours_on_a_circle_sum_to_zero_and_are_connected():
    """More than 64 nodes, of which all but one may collude: masks with 32 neighbours each."""
    count, ring = 70, RINGS[0]
    attempt = make_attempt(make_study(nodes=count, max_colluding=count - 1), [2] * count)
    peers = [attempt.zero_share_peers(node) for node in range(count)]
    assert all(len(set(each)) == 2 * REACH for each in peers)
    assert all(node in peers[other] for node in range(count) for other in peers[node])
    reached = {0}
    while more := {other for node in reached for other in peers[node]} - reached:
        reached |= more
    assert len(reached) == count
    keys = [KeyAgreement(bytes([node]) * 32) for node in range(count)]
    names = [f"node-{node}" for node in range(count)]
    drawn = []
    for own in range(count):
        given = [keys[other].public_key if other in peers[own] else b"" for other in range(count)]
        drawn += zero_shares(own, names, given, keys[own], bytes(32), ring, 1)
    assert ring.encode(sum(drawn)) == 0 and len(set(drawn)) == count
    fewer = make_attempt(make_study(nodes=count, max_colluding=count - 2), [2] * count)
    assert len(fewer.zero_share_peers(3)) == count - 1


def test_a_lone_node_has_no_mask():
    assert shares(1, RINGS[0], seed_of("attempt"), sums=2) == [[0, 0]]


def test_they_differ_in_every_attempt():
    drawn = [shares(3, RINGS[1], seed_of(f"attempt {number}"), sums=2) for number in range(20)]
    seen = [mask for masks in drawn for node in masks for mask in node]
    assert len(set(seen)) == 120


def test_a_proper_subset_is_uniform_over_all_sums():
    """The lowest bits of two of three nodes' masks of two sums, jointly."""
    entropy = Entropy("subset")
    keys = [KeyAgreement(entropy(32)) for _ in range(3)]
    drawn = [shares(3, RINGS[0], entropy(32), keys, sums=2) for _ in range(RUNS)]
    for first, second in ((0, 1), (0, 2), (1, 2)):
        p = uniformity(joint(drawn, first, second), 16)
        assert p > ALPHA, f"p = {p:.1e}, N = {RUNS}, {entropy}"


def joint(drawn, first, second):
    low = [[mask & 1 for mask in (*masks[first], *masks[second])] for masks in drawn]
    return np.array([sum(bit << place for place, bit in enumerate(bits)) for bits in low])


def test_power_masks_that_are_the_same_for_all_sums_are_found():
    entropy = Entropy("power")
    keys = [KeyAgreement(entropy(32)) for _ in range(3)]
    drawn = [[[m[0], m[0]] for m in shares(3, RINGS[0], entropy(32), keys)] for _ in range(RUNS)]
    assert uniformity(joint(drawn, 0, 1), 16) < ALPHA


def test_both_ends_agree_on_a_seed_and_nobody_else_has_it():
    a, b, c = (KeyAgreement(seed_of(name)) for name in "abc")
    assert a.seed_with(b.public_key, "b") == b.seed_with(a.public_key, "a")
    assert a.seed_with(c.public_key, "c") not in (
        b.seed_with(c.public_key, "c"),
        a.seed_with(b.public_key, "b"),
    )


@pytest.mark.parametrize(
    "bad",
    [bytes(32), b"\1" + bytes(31), b"short", b""],
    ids=["zero", "order one", "short", "empty"],
)
def test_a_degenerate_key_names_its_sender(bad):
    with pytest.raises(RemoteProtocolError, match="node-1") as caught:
        KeyAgreement(seed_of("a")).seed_with(bad, "node-1")
    assert caught.value.culprit == "node-1"


def test_a_key_shows_nothing_of_itself():
    assert repr(KeyAgreement(seed_of("a"))) == "KeyAgreement(<redacted>)"


@pytest.mark.parametrize("copied", ["the key", "another encoding of it"])
def test_a_node_that_copies_a_key_does_not_cancel_the_masks_of_its_owner(copied):
    """Node 1 lies between nodes 0 and 2 and learns nothing: its masks with both are independent."""
    keys = [KeyAgreement(seed_of(f"copied {node}")) for node in range(3)]
    names, publics = ["node-0", "node-1", "node-2"], [key.public_key for key in keys]
    publics[2] = publics[0]
    if copied != "the key":
        publics[2] = publics[0][:-1] + bytes([publics[0][-1] ^ 128])  # X25519 ignores this bit
        assert keys[1].seed_with(publics[2], "c") == keys[1].seed_with(publics[0], "a")
    (mask,) = zero_shares(1, names, publics, keys[1], seed_of("attempt"), RINGS[1], 1)
    assert mask != 0
