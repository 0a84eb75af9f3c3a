"""A committee's coins: what is opened at each level, and the noise that the shares add up to."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, count, product

import pytest

from spec import coins
from spec.cases import coins as cases
from spec.cases.coins import channel_seeds, channels_of, names_of, seeds_of
from spec.checked_bits import FACTOR, HONEST, as_numbers, checked_bits, chosen
from spec.noise import committee_law
from spec.prg import bits_of, derive, words
from spec.refused import Refused
from tests.spec.replaying import replay_tests
from tests.spec.test_transfers import channel_of
from tests.support.tossing import CHECKS, altered_part, parts_of
from umpc.crypto.ring import Ring
from umpc.crypto.rounds import run_mesh
from umpc.mpc.masked.material import CoinToss
from umpc.mpc.transfers.channels import CommitteeMember
from umpc.mpc.transfers.coins_from_transfers import toss
from umpc.mpc.transfers.message_shapes import TossPlan


def committee(thresholds, weights, ring, members, step="", payload=b""):
    plan = TossPlan(members, Ring(ring), (CoinToss(tuple(thresholds), tuple(weights)),))
    names = names_of(members)
    senders, receivers = [{} for _ in names], [{} for _ in names]
    for i, j in combinations(range(members), 2):
        session, delta, *seeds = channel_seeds(i, j)
        senders[i][j], receivers[j][i], _ = channel_of(session, 4, delta, *seeds)
    seats = [CommitteeMember(n, names, senders[n], receivers[n]) for n in range(members)]
    meshes = [toss(plan, seat, seed) for seat, seed in zip(seats, seeds_of(members), strict=True)]
    if step:
        liar = 0 if step == "converted" else members - 1
        meshes[liar] = altered_part(plan, liar, meshes[liar], step, lie_of(step, payload, members))
    shares, transcript = run_mesh(meshes)
    summed = [share for (share,) in shares]
    messages = messages_of(plan, transcript)
    return {"messages": messages, "shares": summed, "noise": Ring(ring).decode(sum(summed))}


def lie_of(step, payload, members):
    """A change of parts of a liar's messages: see `Lie` in `spec/checked_bits.py`."""
    calls = count()

    def change(to, part):
        if step == "compared":
            # after an extension to each other member comes the first opening
            is_due = next(calls) // (members - 1) == 1
        else:
            is_due = step != "converted" or to == 1
        return payload if is_due else part

    return change


def messages_of(plan, transcript):
    """All that the members told each other, but for extensions and corrections of triples."""
    corrections = []
    told = {name: {} for name in ("compared", *CHECKS, "coins")}
    for line in transcript:
        for name, part in parts_of(plan, line).items():
            if name != "converted":
                told[name].setdefault(line.round, {})[line.sender] = part
            elif line.sender < line.receiver:
                corrections.append((line.receiver, line.sender, part))
    rounds = {
        name: [[said[member] for member in sorted(said)] for said in by_round.values()]
        for name, by_round in told.items()
    }
    # the triples take two rounds
    found = {"compared": rounds.pop("compared")[2:]}
    found["converted"] = [part for *_, part in sorted(corrections)]
    return found | {name: said for name, (said,) in rounds.items()}


test_good_vectors, test_bad_vectors, test_each_check_is_needed = replay_tests(
    "coins", {"committee": committee}
)


@pytest.mark.parametrize("vector", cases.GOOD, ids=lambda vector: vector[1])
def test_the_coins_are_those_of_the_clear(vector):
    _, _, given = vector
    seeds = cases.seeds_of(given["members"])
    due = cases.noise_of(given["thresholds"], given["weights"], seeds)
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
    found = coins.compare(thresholds, seeds_of(2), names_of(2), channels_of(2), HONEST)["coins"]
    drawn = [words(derive(seed, "toss", "numbers"), len(thresholds)) for seed in seeds_of(2)]
    met = set()
    for one, other, threshold, *numbers in zip(*found, thresholds, *drawn, strict=True):
        u = numbers[0] ^ numbers[1]
        assert one ^ other == (u < threshold)
        met.add((u >> 64 - bits, threshold >> 64 - bits))
    assert len(met) == 4**bits


@pytest.mark.parametrize("members", [2, 3])
def test_all_bits_become_numbers_in_a_small_ring(members):
    every = list(product(range(2), repeat=members)) * 8
    bits = [list(row) for row in zip(*every, strict=True)]
    shares, _ = as_numbers(bits, channels_of(members), 3)
    for of_bits, of_number in zip(every, zip(*shares, strict=True), strict=True):
        assert sum(of_number) % 8 == sum(of_bits) % 2
        assert [share % 2 for share in of_number] == list(of_bits)


@pytest.mark.parametrize("place", range(FACTOR))
def test_a_changed_number_is_refused_if_it_is_opened_and_the_others_bit_is_1(place):
    given = seeds_of(2), 1, 64, names_of(2)
    honest = checked_bits(*given, channels_of(2))
    sent = cases.flipped(honest["converted"][0], 8 * place)
    _, opened = chosen(honest["challenge"], 1)
    if place in opened and bits_of(derive(seeds_of(2)[1], "bits"), FACTOR)[place]:
        with pytest.raises(Refused, match="numbers of coins are bits"):
            checked_bits(*given, channels_of(2), ("converted", sent))
    else:
        checked_bits(*given, channels_of(2), ("converted", sent))
