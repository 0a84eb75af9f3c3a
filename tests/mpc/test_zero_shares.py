"""Zero shares sum to nothing, are uniform one by one, and are never the same twice."""

from __future__ import annotations

import numpy as np
import pytest

from umpc.errors import RemoteProtocolError
from umpc.mpc.ring import RINGS
from umpc.mpc.zero_shares import KeyAgreement, zero_share

from .studies import ALPHA, Entropy, seed_of, uniformity

RUNS = 300


def shares(count: int, ring, attempt: bytes, keys=None) -> list[int]:
    entropy = Entropy(f"zero {count}")
    keys = keys or [KeyAgreement(entropy(32)) for _ in range(count)]
    publics = [key.public_key for key in keys]
    names = [f"node-{i}" for i in range(count)]
    return [zero_share(own, names, publics, keys[own], attempt, ring) for own in range(count)]


@pytest.mark.parametrize("ring", RINGS, ids=lambda ring: ring.bits)
@pytest.mark.parametrize("count", [1, 2, 3, 5, 16])
def test_they_sum_to_zero(count, ring):
    masks = shares(count, ring, seed_of("attempt"))
    assert ring.encode(sum(masks)) == 0
    assert all(0 <= mask < 2**ring.bits for mask in masks)
    assert count == 1 or len(set(masks)) == count


def test_a_lone_node_has_no_mask():
    assert shares(1, RINGS[0], seed_of("attempt")) == [0]


def test_they_differ_in_every_attempt():
    seen = [share for number in range(20) for share in shares(3, RINGS[1], seed_of(f"attempt {number}"))]
    assert len(set(seen)) == 60


def test_a_proper_subset_is_uniform():
    """The low bits of two of three nodes' masks, jointly."""
    entropy = Entropy("subset")
    keys = [KeyAgreement(entropy(32)) for _ in range(3)]
    drawn = [shares(3, RINGS[0], entropy(32), keys) for _ in range(RUNS)]
    for first, second in ((0, 1), (0, 2), (1, 2)):
        p = uniformity(joint(drawn, first, second), 16)
        assert p > ALPHA, f"p = {p:.1e}, N = {RUNS}, {entropy}"


def joint(drawn, first, second):
    return np.array([masks[first] & 3 | (masks[second] & 3) << 2 for masks in drawn])


def test_both_ends_agree_on_a_seed_and_nobody_else_has_it():
    a, b, c = (KeyAgreement(seed_of(name)) for name in "abc")
    assert a.seed_with(b.public_key, "b") == b.seed_with(a.public_key, "a")
    assert a.seed_with(c.public_key, "c") not in (b.seed_with(c.public_key, "c"), a.seed_with(b.public_key, "b"))


@pytest.mark.parametrize(
    "bad", [bytes(32), b"\1" + bytes(31), b"short", b""], ids=["zero", "order one", "short", "empty"]
)
def test_a_degenerate_key_names_its_sender(bad):
    with pytest.raises(RemoteProtocolError, match="node-1") as caught:
        KeyAgreement(seed_of("a")).seed_with(bad, "node-1")
    assert caught.value.culprit == "node-1"


def test_a_key_shows_nothing_of_itself():
    assert repr(KeyAgreement(seed_of("a"))) == "KeyAgreement(<redacted>)"
