"""Base transfers: the chosen seed arrives, the choice does not show, only curve points pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from Crypto.PublicKey.ECC import EccPoint
from Crypto.Util.number import isPrime

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
from umpc.errors import EncodingError, LocalProtocolError
from umpc.mpc.transfers.base_ot import (
    CHOICE,
    OFFER,
    ORDER,
    POINT_BYTES,
    PRIME,
    _scalar,
    decode_point,
    encode_point,
    generator,
    receive_seeds,
    send_seeds,
)

GENERATOR = generator()
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


def test_two_rounds_of_130_bytes_and_65_a_transfer():
    sent = run()[2]
    assert [(s.round, s.party, s.message.step) for s in sent] == [(1, 0, OFFER), (2, 1, CHOICE)]
    assert [len(s.message.payload) for s in sent] == [2 * POINT_BYTES, COUNT * POINT_BYTES]
    assert all(s.message.count * s.message.width == 8 * len(s.message.payload) for s in sent)


def test_every_message_of_the_receiver_belongs_to_either_choice():
    """P = k·G is sent for choice 0 with key k, and for choice 1 with key c − k.

    Both keys are exactly as likely.
    """
    stream = Stream(derive(seed_of("sender"), "base ot", "sender"))
    _, c = _scalar(stream), _scalar(stream)
    mine = Stream(derive(seed_of("receiver"), "base ot", "receiver"))
    payload = run(choices=CHOICES)[2][1].message.payload
    for number, choice in enumerate(CHOICES):
        k = _scalar(mine)
        keys = (k, (c - k) % ORDER) if choice == 0 else ((c - k) % ORDER, k)
        point = decode_point(
            payload[number * POINT_BYTES : (number + 1) * POINT_BYTES], "bob", CHOICE
        )
        assert point == GENERATOR * keys[0]
        assert point == GENERATOR * c + -(GENERATOR * keys[1])


def test_the_seeds_not_chosen_are_neither_received_nor_sent():
    pairs, seeds, transcript = run()
    hidden = [pair[1 - choice] for pair, choice in zip(pairs, CHOICES, strict=True)]
    payload = b"".join(sent.message.payload for sent in transcript)
    assert not any(seed in seeds or seed in payload for seed in hidden)


def test_the_group_has_prime_order():
    assert isPrime(PRIME) and isPrime(ORDER)
    assert (GENERATOR * ORDER).is_point_at_infinity()
    assert GENERATOR * (ORDER - 1) == -GENERATOR


def point_bytes(x: int, y: int, prefix: int = 4) -> bytes:
    return bytes([prefix]) + x.to_bytes(32, "big") + y.to_bytes(32, "big")


def small_point() -> tuple[int, int]:
    """A point whose x + p still has 32 bytes."""
    b = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B
    for x in range(1, 100):
        square = (x**3 - 3 * x + b) % PRIME
        y = pow(square, (PRIME + 1) // 4, PRIME)
        if y * y % PRIME == square:
            return x, y
    raise AssertionError


X, Y = small_point()
GX, GY = int(GENERATOR.x), int(GENERATOR.y)
BAD_POINTS = {
    "off the curve": point_bytes(GX, GY ^ 1),
    "on the twist": point_bytes(GX + 1, GY),
    "infinity as the library reads it": point_bytes(0, 0),
    "infinity as SEC 1 writes it": b"\0",
    "infinity, padded": bytes(POINT_BYTES),
    "zero modulo p": point_bytes(PRIME, PRIME),
    "y is zero": point_bytes(GX, 0),
    "x not reduced": point_bytes(X + PRIME, Y),
    "x at the prime": point_bytes(PRIME, Y),
    "y not reduced": point_bytes(GX, (1 << 256) - 1),
    "compressed": b"\x02" + GX.to_bytes(32, "big"),
    "compressed prefix": point_bytes(GX, GY, 2),
    "hybrid prefix": point_bytes(GX, GY, 6),
    "no prefix": point_bytes(GX, GY)[1:],
    "one byte less": point_bytes(GX, GY)[:-1],
    "one byte more": point_bytes(GX, GY) + b"\0",
    "nothing": b"",
}


def test_the_library_alone_would_take_two_of_the_bad_points():
    assert EccPoint(0, 0, curve="P-256").is_point_at_infinity()
    assert EccPoint(X + PRIME, Y, curve="P-256") == EccPoint(X, Y, curve="P-256")


@pytest.mark.parametrize("bad", BAD_POINTS.values(), ids=BAD_POINTS.keys())
def test_what_is_no_point_is_refused_with_its_sender(bad):
    with pytest.raises(EncodingError) as caught:
        decode_point(bad, "mallory", CHOICE)
    assert (caught.value.culprit, caught.value.step) == ("mallory", CHOICE)


def test_a_point_has_one_encoding():
    for scalar in (1, 2, 3, ORDER - 1, 1 << 200):
        encoding = encode_point(GENERATOR * scalar)
        assert encode_point(decode_point(encoding, "alice", OFFER)) == encoding


def test_infinity_is_never_encoded():
    with pytest.raises(LocalProtocolError):
        encode_point(GENERATOR.point_at_infinity())


@pytest.mark.parametrize("party, step, peer", [(0, OFFER, "alice"), (1, CHOICE, "bob")])
@pytest.mark.parametrize("place", [0, -1])
@pytest.mark.parametrize(
    "name", [name for name, bad in BAD_POINTS.items() if len(bad) == POINT_BYTES]
)
def test_a_bad_point_in_any_place_ends_the_run(party, step, peer, place, name):
    def change(message):
        points = [
            message.payload[i : i + POINT_BYTES]
            for i in range(0, len(message.payload), POINT_BYTES)
        ]
        points[place] = BAD_POINTS[name]
        return replace(message, payload=b"".join(points))

    assert isinstance(refusal(tampered(party, step, change), peer, step), EncodingError)


def test_the_offered_point_itself_is_no_key():
    """Its other key would be infinity, whose multiple by r everybody knows."""
    offer = run()[2][0].message.payload[:POINT_BYTES]

    def change(message):
        return replace(message, payload=offer + message.payload[POINT_BYTES:])

    assert isinstance(refusal(tampered(1, CHOICE, change), "bob", CHOICE), EncodingError)


@pytest.mark.parametrize("party, step, peer", [(0, OFFER, "alice"), (1, CHOICE, "bob")])
@pytest.mark.parametrize("name", WRONG_SHAPES)
def test_a_message_of_another_shape_is_refused(party, step, peer, name):
    refusal(tampered(party, step, WRONG_SHAPES[name]), peer, step)


@pytest.mark.parametrize(("party", "step", "culprit"), [(0, OFFER, "alice"), (1, CHOICE, "bob")])
def test_every_damage_of_a_message_is_noticed(party, step, culprit):
    """A point with a flipped bit is off the curve, so not even a flip passes."""

    def ends(change) -> bool:
        run_in_memory(tampered(party, step, change))
        return True

    assert count_outcomes(25, ends, culprit, step) == due_outcomes(25, flips="noticed")


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
