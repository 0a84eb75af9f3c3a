"""Base transfers: the chosen seed arrives, the choice does not show, bad points are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from nacl import bindings as sodium

from tests.support.mpc_studies import seed_of
from tests.support.transfers import (
    WRONG_SHAPES,
    altered,
    bits_of,
    count_outcomes,
    due_outcomes,
    refusal,
)
from umpc.crypto.prg import Stream, derive
from umpc.crypto.rounds import run_in_memory
from umpc.errors import LocalProtocolError, RemoteProtocolError
from umpc.mpc.transfers.channel_set_up import (
    ZERO,
    base_multiple,
    is_point,
    multiple,
    random_scalar,
    receive_seeds,
    send_seeds,
)
from umpc.mpc.transfers.message_shapes import CHOICE, OFFER, POINT_BYTES, key_message
from umpc.testing import lying

PRIME = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
"""RFC 8032, section 5.1."""

COUNT = 6
CHOICES = [0, 1, 1, 0, 1, 0]


def sides(choices=CHOICES, session=b"session", label="", count=None) -> list:
    return [
        send_seeds(seed_of("sender" + label), count or len(choices), session, "bob"),
        receive_seeds(seed_of("receiver" + label), choices, session, "alice"),
    ]


def run(**settings):
    (pairs, seeds), transcript = run_in_memory(sides(**settings))
    return pairs, seeds, transcript


@pytest.mark.parametrize(
    "choices", [[0] * COUNT, [1] * COUNT, CHOICES, bits_of("choices", 128).tolist()]
)
def test_the_receiver_gets_the_seeds_that_it_chose(choices):
    pairs, seeds, _ = run(choices=choices)
    assert seeds == [pair[choice] for pair, choice in zip(pairs, choices, strict=True)]


def test_all_seeds_differ_and_have_32_bytes():
    pairs, _, _ = run(choices=bits_of("choices", 64).tolist())
    seeds = [seed for pair in pairs for seed in pair]
    assert len(set(seeds)) == 128 and {len(seed) for seed in seeds} == {32}


def test_one_point_sent_for_every_transfer_still_gives_seeds_of_its_own():
    def change(message):
        return replace(message, payload=message.payload[:POINT_BYTES] * COUNT)

    (pairs, _), _ = run_in_memory(tampered(1, CHOICE, change))
    assert len({seed for pair in pairs for seed in pair}) == 2 * COUNT


def test_the_same_keys_in_another_session_give_other_seeds():
    first, second = run()[0], run(session=b"session 2")[0]
    assert not {seed for pair in first for seed in pair} & {
        seed for pair in second for seed in pair
    }


def test_parties_of_different_sessions_share_no_seed():
    sender, receiver = sides()[0], sides(session=b"session 2")[1]
    (pairs, seeds), _ = run_in_memory([sender, receiver])
    assert not {seed for pair in pairs for seed in pair} & set(seeds)


def test_a_run_is_a_function_of_its_seeds():
    assert run() == run()
    assert run()[0] != run(label="again")[0]


def test_two_rounds_of_64_bytes_and_32_a_transfer():
    sent = run()[2]
    assert [(s.round, s.party, s.message.step) for s in sent] == [(1, 0, OFFER), (2, 1, CHOICE)]
    assert [len(s.message.payload) for s in sent] == [2 * POINT_BYTES, COUNT * POINT_BYTES]
    assert all(s.message.count * s.message.width == 8 * len(s.message.payload) for s in sent)


def times(scalar: int) -> bytes:
    """scalar·G."""
    return base_multiple((scalar % ORDER).to_bytes(32, "little"))


def test_the_receiver_multiplies_the_generator_before_the_offer_comes():
    """So two nodes do it while they connect. The keys are those of the same numbers."""
    made: list[bytes] = []

    def noted(honest, scalar):
        made.append(scalar)
        return honest(scalar)

    offer = b"".join(base_multiple(random_scalar(Stream(seed_of(label)))) for label in "cr")
    with lying("everybody", base_multiple=noted):
        receiver = sides()[1]
        next(receiver)
        before = list(made)
        assert len(before) == len(set(before)) == COUNT
        keys = receiver.send([replace(key_message(OFFER, 2), payload=offer)]).payload
        assert made == before
    c_point = offer[:POINT_BYTES]
    for number, (scalar, choice) in enumerate(zip(before, CHOICES, strict=True)):
        own = base_multiple(scalar)
        due = sodium.crypto_core_ed25519_sub(c_point, own) if choice else own
        assert keys[number * POINT_BYTES :][:POINT_BYTES] == due


def test_every_message_of_the_receiver_belongs_to_either_choice():
    """P = k·G is sent for choice 0 with key k, and for choice 1 with key c − k.

    Both keys are exactly as likely.
    """
    stream = Stream(derive(seed_of("sender"), "base ot", "sender"))
    _, c = (int.from_bytes(random_scalar(stream), "little") for _ in range(2))
    mine = Stream(derive(seed_of("receiver"), "base ot", "receiver"))
    payload = run(choices=CHOICES)[2][1].message.payload
    for number, choice in enumerate(CHOICES):
        k = int.from_bytes(random_scalar(mine), "little")
        keys = (k, c - k) if choice == 0 else (c - k, k)
        point = payload[number * POINT_BYTES : (number + 1) * POINT_BYTES]
        assert point == times(keys[0])
        assert point == sodium.crypto_core_ed25519_sub(times(c), times(keys[1]))


def test_the_seeds_not_chosen_are_neither_received_nor_sent():
    pairs, seeds, transcript = run()
    hidden = [pair[1 - choice] for pair, choice in zip(pairs, CHOICES, strict=True)]
    payload = b"".join(sent.message.payload for sent in transcript)
    assert not any(seed in seeds or seed in payload for seed in hidden)


def is_prime(number: int) -> bool:
    """Miller and Rabin's test with twenty bases."""
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in range(2, 22):
        powers = [pow(base, odd << place, number) for place in range(twos)]
        if powers[0] != 1 and number - 1 not in powers:
            return False
    return True


def test_the_group_has_prime_order():
    assert is_prime(PRIME) and is_prime(ORDER)
    assert sodium.crypto_core_ed25519_add(times(ORDER - 1), times(1)) == ZERO


# --- bytes that are no point of the group

EIGHTH = bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")
"""A point of order 8. The curve is the group with all multiples of this point."""


def small_orders() -> list[bytes]:
    """The multiples 1 to 7 of EIGHTH, in this order."""
    points = [EIGHTH]
    while len(points) < 7:
        points.append(sodium.crypto_core_ed25519_add(points[-1], EIGHTH))
    return points


def x_of(y: int) -> int | None:
    """An x with −x² + y² = 1 + d·x²·y², or None. RFC 8032, section 5.1.3."""
    d = -121665 * pow(121666, -1, PRIME)
    square = (y * y - 1) * pow(d * y * y + 1, -1, PRIME) % PRIME
    root = pow(square, (PRIME + 3) // 8, PRIME)
    for x in (root, root * pow(2, (PRIME - 1) // 4, PRIME) % PRIME):
        if x * x % PRIME == square:
            return x
    return None


def point_bytes(y: int, odd: int = 0) -> bytes:
    return (y | odd << 255).to_bytes(POINT_BYTES, "little")


G = times(1)
TWISTED = next(y for y in range(2, 100) if x_of(y) is None)
UNREDUCED = [y for y in range(19) if x_of(y) is not None]
"""The y of points whose y + p has 255 bits."""

BAD_POINTS = {
    "off the curve": point_bytes(TWISTED),
    "zero": ZERO,
    "zero, with x odd": point_bytes(1, 1),
    "zero, not reduced": point_bytes(PRIME + 1),
    "y at the prime": point_bytes(PRIME),
    "y at the prime, with x odd": point_bytes(PRIME, 1),
    "all bits": b"\xff" * POINT_BYTES,
    "no bits": bytes(POINT_BYTES),
    "one byte less": G[:-1],
    "one byte more": G + b"\0",
    "nothing": b"",
    **{f"of small order, {i} times": p for i, p in enumerate(small_orders(), 1)},
    **{
        f"outside the group, {i} times": sodium.crypto_core_ed25519_add(times(5), p)
        for i, p in enumerate(small_orders(), 1)
    },
    **{f"y = {y} + p, x {odd}": point_bytes(PRIME + y, odd) for y in UNREDUCED for odd in (0, 1)},
}
SIZED = {name: bad for name, bad in BAD_POINTS.items() if len(bad) == POINT_BYTES}
THREE = ("off the curve", "zero", "outside the group, 4 times")
"""One of each kind. Their places in messages are tested; all of them are tested alone."""


def test_the_bad_points_are_what_their_names_say():
    orders = small_orders()
    assert sodium.crypto_core_ed25519_add(orders[-1], EIGHTH) == ZERO
    assert len(set(orders)) == 7 and orders[3] == point_bytes(PRIME - 1)
    assert x_of(int.from_bytes(G, "little")) is not None and len(UNREDUCED) > 5


@pytest.mark.parametrize("bad", BAD_POINTS.values(), ids=BAD_POINTS.keys())
def test_what_is_no_point_of_the_group_is_none(bad):
    assert not is_point(bad)


@pytest.mark.parametrize("bad", SIZED.values(), ids=SIZED.keys())
def test_a_scalar_product_refuses_it_with_its_sender(bad):
    with pytest.raises(RemoteProtocolError) as caught:
        multiple((8).to_bytes(32, "little"), bad, "mallory", CHOICE)
    assert (caught.value.culprit, caught.value.step) == ("mallory", CHOICE)


def test_points_of_the_group_pass():
    for scalar in (1, 2, 3, ORDER - 1, 1 << 200):
        assert is_point(times(scalar))
        product = multiple(scalar.to_bytes(32, "little"), G, "alice", OFFER)
        assert product == times(scalar)


def test_the_number_zero_is_never_used():
    """It gives the group's zero, which everybody knows."""
    with pytest.raises(LocalProtocolError):
        base_multiple(bytes(32))


def test_a_key_that_comes_out_as_zero_is_not_sent():
    """k = c gives C − k·G = 0, once in 2^252 transfers."""
    mine = Stream(derive(seed_of("receiver"), "base ot", "receiver"))
    offer = base_multiple(random_scalar(mine)) + G

    def change(message):
        return replace(message, payload=offer)

    with pytest.raises(LocalProtocolError):
        sender, receiver = sides(choices=[1])
        run_in_memory([altered(sender, OFFER, change), receiver])


@pytest.mark.parametrize("party, step, peer", [(0, OFFER, "alice"), (1, CHOICE, "bob")])
@pytest.mark.parametrize("place", [0, -1])
@pytest.mark.parametrize("name", THREE)
def test_a_bad_point_in_any_place_ends_the_run(party, step, peer, place, name):
    def change(message):
        points = [
            message.payload[i : i + POINT_BYTES]
            for i in range(0, len(message.payload), POINT_BYTES)
        ]
        points[place] = BAD_POINTS[name]
        return replace(message, payload=b"".join(points))

    assert isinstance(refusal(tampered(party, step, change), peer, step), RemoteProtocolError)


def test_the_offered_point_itself_is_no_key():
    """Its other key would be zero, whose multiple by r everybody knows."""
    offer = run()[2][0].message.payload[:POINT_BYTES]

    def change(message):
        return replace(message, payload=offer + message.payload[POINT_BYTES:])

    assert isinstance(refusal(tampered(1, CHOICE, change), "bob", CHOICE), RemoteProtocolError)


@pytest.mark.parametrize("party, step, peer", [(0, OFFER, "alice"), (1, CHOICE, "bob")])
@pytest.mark.parametrize("name", WRONG_SHAPES)
def test_a_message_of_another_shape_is_refused(party, step, peer, name):
    refusal(tampered(party, step, WRONG_SHAPES[name]), peer, step)


@pytest.mark.parametrize(
    ("party", "step", "culprit", "spoilt"),
    [(0, OFFER, "alice", COUNT), (1, CHOICE, "bob", 1)],
)
def test_damage_is_noticed_or_spoils_the_seeds_that_it_meets(party, step, culprit, spoilt):
    """One flip in 16 gives another point of the group. Then both seeds of the sender differ."""

    def spoils(change) -> bool:
        (pairs, seeds), _ = run_in_memory(tampered(party, step, change))
        agreed = [seed in pair for pair, seed in zip(pairs, seeds, strict=True)]
        return agreed.count(False) == spoilt

    outcomes = count_outcomes(48, spoils, culprit, step)
    passed = outcomes.pop(("flip", "harmless"))
    outcomes["flip", "noticed"] += passed
    assert 0 < passed < 12 and outcomes == due_outcomes(48, flips="noticed")


def test_counts_must_agree():
    refusal(sides(count=COUNT + 1), "bob", CHOICE)


@pytest.mark.parametrize("choices", [[2], [0, -1]])
def test_a_choice_is_a_bit(choices):
    with pytest.raises(LocalProtocolError):
        next(receive_seeds(seed_of("receiver"), choices, b"session", "alice"))


def tampered(party: int, step: str, change: Callable) -> list:
    both = sides()
    both[party] = altered(both[party], step, change)
    return both
