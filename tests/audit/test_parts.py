"""The views of single processes besides the result.

The coordinator sees each node's share, and a member of the committee sees its û.
"""

from __future__ import annotations

import numpy as np

from tests.audit import mutants
from tests.audit.auditor import (
    EACH,
    MORE,
    Case,
    Verdict,
    broken_by,
    coalitions_view,
    loss_bound,
    outputs,
)
from tests.support.mpc_studies import homogeneity, uniformity
from tests.support.one_chunk import seeded_part
from tests.support.studies import make_study
from umpc.crypto.ring import unpack
from umpc.simulation import Simulated

ONE, NONE = (1, 0), (0, 0)

# --- shares of single nodes

SHARES = Case(
    "single shares of three nodes",
    make_study("a.x", 3, degree=1, x=("0", "1")),
    ((ONE,), (ONE,), ()),
    (NONE, ONE),
    500,
)
TWO_SHARES = Case(
    "two sums' shares",
    make_study(("a.x", "a.y"), 2, degree=1, x=("0", "1"), y=("0", "1"), estimator="ratio"),
    ((ONE,), ()),
    ((0, 1), ONE),
    150,
)


def shares(run: Simulated) -> list[int]:
    """Return every node's message by sum, as signed numbers of the ring, and their sum."""
    ring, sent = run.attempt.ring, run.transcript.shares
    size = ring.bytes
    parts = [share[start : start + size] for share in sent for start in range(0, len(share), size)]
    return [ring.decode(int.from_bytes(part, "little")) for part in parts] + coalitions_view(run)


def audit_shares(mutant=None) -> Verdict:
    """Judge the loss in the last node's share, which holds the replaced record.

    p: that all shares are uniform, given the sum.
    """
    with broken_by(mutant) as name:
        first, second = outputs(SHARES, shares)
    both = np.concatenate([first, second])
    p = [uniformity(part >> shift & 15, 16) for part in both.T[:-1] for shift in (0, 14, 28)]
    p += [
        homogeneity(part[both[:, -1] > 2] & 15, part[both[:, -1] <= 2] & 15) for part in both.T[:-1]
    ]
    loss = loss_bound(first[:, 2], second[:, 2], (2, 1, 0))
    verdict = Verdict(
        f"{SHARES.name}: {name}", len(first), loss, SHARES.claim.epsilon, min(p) * len(p)
    )
    print(verdict)
    return verdict


def test_a_single_share_is_uniform_and_says_nothing():
    verdict = audit_shares()
    assert verdict.sound, str(verdict)
    verdict = audit_shares(mutants.no_zero_shares)
    assert verdict.caught_by("loss", "law"), f"not found: {verdict}"


def difference_p(mutant=None) -> float:
    """Test that the difference of one node's shares of two sums is uniform."""
    with broken_by(mutant):
        both = np.concatenate(outputs(TWO_SHARES, shares))
    return uniformity((both[:, 2] - both[:, 3]) & 15, 16)


def test_a_nodes_shares_of_two_sums_are_independent():
    assert difference_p() > EACH
    assert difference_p(mutants.one_zero_share_for_all_sums) < EACH, "not found"


# --- coins

COINS = Case(
    "the sum without the coins that a member would know",
    make_study("a.x", 2, degree=1, x=("0", "2"), max_colluding=1, noise="in_mpc", coins="dealt"),
    ((ONE,), ()),
    (NONE, (2, 0)),
    90,
)


def without_known_coins(run: Simulated) -> list[int]:
    """Return the released sum without the noise that zero masks r would give.

    û is opened, so r determines the coins.
    """
    (chunk,), attempt = run.attempt.noise_chunks, run.attempt
    sent = [frame for _, _, frame in run.transcript.offline + run.transcript.online]
    opened = [frame for frame in sent if (frame.step, frame.owners, frame.round) == ("open", (), 1)]
    assert len(opened) == 2, "each of the two members sends its part of û to the other"
    public = np.add.reduce([unpack(frame.payload, chunk.count, 64) for frame in opened])
    seeds = [attempt.chunk_seed(bytes(32), chunk) for _ in attempt.members]
    parts = [
        seeded_part(attempt.noise_plan, seed, party, chunk.count)
        for party, seed in enumerate(seeds)
    ]
    masks = np.add.reduce([part.place_masks[0] for part in parts])
    coins = (public ^ masks) < np.array(attempt.coins[0].thresholds, dtype=np.uint64)
    return [coalitions_view(run)[0] - int(coins @ np.array(attempt.coins[0].weights))]


def loss_of_coins(mutant=None) -> Verdict:
    claim = COINS.claim
    with broken_by(mutant) as name:
        first, second = outputs(COINS, without_known_coins)
    loss = loss_bound(claim.score(first), claim.score(second), claim.thresholds, claim.delta)
    verdict = Verdict(f"{COINS.name}: {name}", len(first), loss, claim.epsilon)
    print(verdict)
    return verdict


def test_coins_are_known_to_nobody_unless_the_dealers_masks_are_known_too():
    """One member's bits may be public, the dealer's masks may not.

    The dealer is trusted to collude with no member.
    """
    for harmless in (None, mutants.first_member_draws_zeros):
        verdict = loss_of_coins(harmless)
        assert verdict.loss <= verdict.claimed, str(verdict)
    for mutant in (
        mutants.member_and_dealer_known,
        *([mutants.dealer_deals_zeros] if MORE > 1 else []),
    ):
        verdict = loss_of_coins(mutant)
        assert verdict.loss > verdict.claimed, f"not found: {verdict}"
