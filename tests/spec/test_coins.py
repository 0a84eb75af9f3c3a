"""A committee's coins: what is opened at each level, and the noise that the shares add up to."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import pytest

from spec import coins
from spec.cases import coins as cases
from spec.cases.coins import channel_seeds, names_of, seeds_of
from spec.noise import committee_law
from spec.prg import derive, words
from spec.transfers import fresh_delta, set_up
from tests.spec.replaying import replay_tests
from tests.spec.test_transfers import channel_of
from umpc.crypto.mesh import run_mesh
from umpc.crypto.ring import Ring
from umpc.crypto.rounds import Finished, resume
from umpc.mpc.masked.committee_coins import CoinToss
from umpc.mpc.transfers.coins_from_transfers import CommitteeMember, toss
from umpc.mpc.transfers.toss_plan import TossPlan

RING = Ring(64)


def committee(thresholds, weights, members, last_sent=None):
    plan = TossPlan(members, RING, (CoinToss(tuple(thresholds), tuple(weights)),))
    names = names_of(members)
    senders, receivers = [{} for _ in names], [{} for _ in names]
    for i, j in combinations(range(members), 2):
        session, delta, *seeds = channel_seeds(i, j)
        senders[i][j], receivers[j][i], _ = channel_of(session, 4, delta, *seeds)
    seats = [CommitteeMember(n, names, senders[n], receivers[n]) for n in range(members)]
    meshes = [toss(plan, seat, seed) for seat, seed in zip(seats, seeds_of(members), strict=True)]
    if last_sent is not None:
        meshes[-1] = first_opening(meshes[-1], last_sent)
    shares, transcript = run_mesh(meshes)
    rounds: dict[int, dict[int, bytes]] = {}
    for line in transcript:
        if line.message.step == "ot_open_bits":
            rounds.setdefault(line.round, {})[line.sender] = line.message.payload
    levels = [[rounds[number][member] for member in range(members)] for number in sorted(rounds)]
    opened = levels[: len(plan.levels)]
    return {"opened": opened, "noise": RING.decode(sum(share for (share,) in shares))}


def first_opening(mesh, payload):
    """A member whose first opening is replaced."""
    came, is_due = None, True
    while True:
        sent = resume(mesh, came)
        if isinstance(sent, Finished):
            return sent.result
        if is_due and any(message.step == "ot_open_bits" for message in sent.values()):
            sent = {peer: replace(message, payload=payload) for peer, message in sent.items()}
            is_due = False
        came = yield sent


test_good_vectors, test_bad_vectors, test_each_check_is_needed = replay_tests(
    "coins", {"committee": committee}
)


@pytest.mark.parametrize("vector", cases.GOOD, ids=lambda vector: vector[1])
def test_the_coins_are_those_of_the_clear(vector):
    _, _, given = vector
    seeds = cases.seeds_of(given["members"])
    due = coins.noise_of(given["thresholds"], given["weights"], seeds)
    assert cases.committee(**given)["noise"] == due


def test_the_law_of_the_committee_is_that_of_its_thresholds():
    """Each coin's odds are its threshold's, so the digits are those of two geometric variables."""
    law = committee_law(Fraction(1, 4))
    digits = len(law["thresholds"]) // 2
    assert law["weights"] == [s << n for s in (1, -1) for n in range(digits)]
    for number, threshold in enumerate(law["thresholds"][:digits]):
        assert threshold / 2**64 == pytest.approx(1 / (1 + math.exp(2**number / 4)), rel=1e-12)


@pytest.mark.parametrize("bits", [2, 3])
def test_every_number_is_compared_with_every_threshold(bits):
    """Coins whose thresholds have few bits: all pairs of u's highest bits and c come up."""
    thresholds = [number % 2**bits << 64 - bits for number in range(64 << bits)]
    session, delta, *pair = channel_seeds(0, 1)
    channels = {(0, 1): set_up(session, 4, fresh_delta(delta), *pair)}
    found = coins.toss(thresholds, seeds_of(2), names_of(2), channels)["coins"]
    drawn = [words(derive(seed, "toss", "numbers"), len(thresholds)) for seed in seeds_of(2)]
    met = set()
    for one, other, threshold, *numbers in zip(*found, thresholds, *drawn, strict=True):
        u = numbers[0] ^ numbers[1]
        assert one ^ other == (u < threshold)
        met.add((u >> 64 - bits, threshold >> 64 - bits))
    assert len(met) == 4**bits
