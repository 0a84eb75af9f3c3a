"""Random bits as numbers: they are bits, and a member that lies about one is caught when it opens.

`docs/privacy.md` says how often a lie survives, and `python -m bench coins` prints it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats

from bench.coins import odds_of_reading
from tests.support.mpc_studies import ALPHA
from tests.support.tossing import CHECKS, Tossed, altered_mesh, altered_part, seats
from umpc.crypto.ring import RINGS
from umpc.crypto.rounds import Mesh, Message, run_mesh
from umpc.errors import FailedCheck, RemoteProtocolError
from umpc.mpc.masked.material import CoinToss
from umpc.mpc.transfers.coins_from_transfers import as_numbers, check_opened, chosen
from umpc.mpc.transfers.message_shapes import FACTOR

FAIR = CoinToss((1 << 63,) * 2, (1, 2))
COUNT = 2000


def converted(label: str, members: int, liar: int, lie) -> np.ndarray:
    """The numbers that COUNT random bits become. Args: lie: of a message's words."""
    rng = np.random.default_rng(len(label))
    bits = rng.integers(0, 2, (members, COUNT), dtype=np.uint8)
    places = seats(members, label)
    parties = [as_numbers(seat, own, 64) for seat, own in zip(places, bits, strict=True)]
    parties[liar] = changed_corrections(parties[liar], lie)
    shares, _ = run_mesh(parties)
    return np.sum(shares, axis=0, dtype=np.uint64) ^ np.bitwise_xor.reduce(bits)


def changed_corrections(party: Mesh, lie) -> Mesh:
    """A member that changes the words of all its corrections."""

    def add(said: Message) -> Message:
        words = np.frombuffer(said.payload, dtype="<u8") + lie
        return replace(said, payload=words.astype("<u8").tobytes())

    return altered_mesh(party, "ot_multiples", add)


@pytest.mark.parametrize("members", [2, 3, 4])
def test_bits_become_numbers(members):
    assert not converted(f"honest {members}", members, 0, np.uint64(0)).any()


@pytest.mark.parametrize(("members", "liar"), [(2, 0), (3, 0), (3, 1), (4, 1)])
@pytest.mark.parametrize("lie", [1, 3, 1 << 40, (1 << 62) + 1], ids=hex)
def test_half_of_all_changed_numbers_are_no_bits_whatever_the_liar_adds(members, liar, lie):
    """The liar does not know the others' bit in a changed number: it passes with ½ at most."""
    numbers = converted(f"changed {members} {liar} {lie}", members, liar, np.uint64(lie))
    most = Counter((numbers & ~np.uint64(1)).tolist()).most_common(1)[0][1]
    assert stats.binomtest(most, COUNT, 0.5, alternative="greater").pvalue > ALPHA


def first_of_three(bits, e: int, more: int, own: int) -> int:
    """The liar sends e to member 1, and to member 2 its share and `more`; it adds `own`."""
    number = bits[0] * (1 - 2 * e)
    return number + bits[1] - 2 * (number + more) * bits[1] + own


def second_of_three(bits, more: int, own: int) -> int:
    """The liar sends to member 2 its share and `more`; it adds `own`."""
    return bits[0] + bits[1] - 2 * (bits[0] + more) * bits[1] + own


def first_of_two(bits, e: int, own: int) -> int:
    """The liar sends e to member 1, and adds `own`."""
    return bits[0] * (1 - 2 * e) + own


@pytest.mark.parametrize(
    ("number", "honest"), [(first_of_two, 1), (first_of_three, 2), (second_of_three, 2)]
)
def test_every_lie_in_a_ring_of_16_passes_with_one_half_at_most_or_gives_a_bit(number, honest):
    """All numbers that a member of three can send, and all that it can say of its own shares."""
    found = []
    for lie in product(range(16), repeat=number.__code__.co_argcount - 1):
        numbers = {bits: number(bits, *lie) % 16 for bits in product((0, 1), repeat=honest)}
        passing = [value for value in numbers.values() if value < 2]
        if len(passing) == len(numbers):
            turned = {value ^ sum(bits) % 2 for bits, value in numbers.items()}
            assert len(turned) == 1, "a number that always passes is the bit, or the bit turned"
        else:
            found.append(len(passing) / len(numbers))
    assert max(found) == 0.5


def test_a_number_that_is_no_bit_ends_the_toss_without_a_culprit():
    check_opened(np.array([0, 1, 1], dtype=np.uint64))
    for kind in (np.uint32, np.uint64):
        for number in (2, 3, np.iinfo(kind).max):
            with pytest.raises(FailedCheck) as caught:
                check_opened(np.array([0, number], dtype=kind))
            assert (caught.value.culprit, caught.value.step) == (None, "prepare")


def test_one_changed_number_passes_as_often_as_it_is_not_opened_or_the_others_bit_is_0():
    """1/8, and half of 7/8."""
    runs = 240
    passed = 0
    for run in range(runs):
        tossed = Tossed(f"one {run}", 2, [FAIR])
        first, second = tossed.parties()

        def change(receiver: int, part: bytes) -> bytes:
            words = np.frombuffer(part, dtype="<u8").copy()
            words[0] += np.uint64(1 << 40)
            return words.tobytes()

        first = altered_part(tossed.plan, 0, first, "converted", change)
        try:
            run_mesh([first, second])
            passed += 1
        except FailedCheck:
            pass
    assert stats.binomtest(passed, runs, 9 / 16).pvalue > ALPHA
    assert stats.binomtest(passed, runs, 3 / 4).pvalue < ALPHA, "the power of the test"


@pytest.mark.parametrize(("members", "liar"), [(2, 0), (2, 1), (3, 0), (3, 1), (3, 2)])
@pytest.mark.parametrize("ring", RINGS, ids=str)
def test_numbers_that_are_changed_everywhere_end_the_toss(members, liar, ring):
    """Corrections of the first member; a later one chooses, too, and its proof does not hold."""
    tossed = Tossed(f"all {members} {liar} {ring}", members, [FAIR], ring)
    parties = tossed.parties()

    def change(receiver: int, part: bytes) -> bytes:
        return (np.frombuffer(part, dtype=np.uint8) ^ np.uint8(4)).tobytes()

    parties[liar] = altered_part(tossed.plan, liar, parties[liar], "converted", change)
    with pytest.raises(RemoteProtocolError if liar else FailedCheck) as caught:
        run_mesh(parties)
    assert caught.value.culprit == (f"node-{liar}" if liar else None)


@pytest.mark.parametrize("name", CHECKS)
def test_a_changed_message_of_the_check_names_its_sender(name):
    tossed = Tossed(f"check {name}", 3, [FAIR])
    parties = tossed.parties()
    altered = altered_part(
        tossed.plan, 1, parties[1], name, lambda _, part: bytes([part[0] ^ 1]) + part[1:]
    )
    with pytest.raises(RemoteProtocolError) as caught:
        run_mesh([parties[0], altered, parties[2]])
    assert (caught.value.culprit, caught.value.step) == ("node-1", "toss")


def test_two_members_that_are_told_two_challenges_open_different_numbers_and_end():
    """No sum of shares of different numbers is a bit."""
    tossed = Tossed("two challenges", 3, [FAIR])
    others = Tossed("two challenges", 3, [FAIR])
    others.seeds[1] = bytes(32)
    said = {}
    for each in (tossed, others):
        for line in each.run().told:
            if line.sender == 1 and line.receiver == 2:
                parts = each.parts(line)
                for name in ("commitment", "challenge"):
                    if name in parts:
                        said[id(each), name] = parts[name]
    fresh = Tossed("two challenges", 3, [FAIR])
    parties = fresh.parties()
    for name in ("commitment", "challenge"):
        told = said[id(others), name]
        parties[1] = altered_part(
            fresh.plan, 1, parties[1], name, lambda to, part, told=told: told if to == 2 else part
        )
    with pytest.raises(FailedCheck):
        run_mesh(parties)


def test_the_challenge_uses_each_place_once_and_another_one_uses_others():
    used, opened = chosen(bytes(32), 50)
    assert sorted([*used, *opened]) == list(range(FACTOR * 50)) and len(used) == 50
    assert set(used) != set(chosen(bytes([1] * 32), 50)[0])
    counts = np.zeros(FACTOR * 4)
    for seed in range(2000):
        counts[chosen(seed.to_bytes(32, "little"), 4)[0][0]] += 1
    assert stats.chisquare(counts).pvalue > ALPHA


def test_nothing_of_a_number_is_said_before_the_challenge_is_fixed():
    """Every member's challenge is committed to before the last conversion, and told after it."""
    for members in (2, 3, 5):
        tossed = Tossed(f"order {members}", members, [FAIR]).run()
        rounds: dict[str, set[int]] = {}
        for line in tossed.told:
            for name in tossed.parts(line):
                rounds.setdefault(name, set()).add(line.round)
        last = max(rounds["converted"])
        assert rounds["commitment"] == {1} and last == members
        assert [rounds[name] for name in CHECKS[1:]] == [{last + 1}, {last + 2}, {last + 3}]
        assert rounds["coins"] == {last + 4}


@pytest.mark.parametrize(("read", "stated"), [(1, 0.125), (2, 0.0215), (3, 0.0038), (18, 1e-18)])
def test_the_odds_that_the_documents_state(read, stated):
    assert odds_of_reading(18, read) == pytest.approx(stated, rel=0.06)
