"""A wrong batch or correction is refused with the peer's name and the step, or is harmless."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest

from tests.support.garbled import without_points
from tests.support.transfers import (
    WRONG_SHAPES,
    altered,
    bits_of,
    correlated,
    count_outcomes,
    delta_of,
    due_outcomes,
    flip,
    numbers_of,
    open_channel,
    refusal,
    set_up,
    triples,
)
from umpc.crypto.rounds import run_in_memory
from umpc.errors import LocalProtocolError, RemoteProtocolError
from umpc.mpc.transfers.message_shapes import (
    EXTEND,
    FOLDS,
    MULTIPLES,
    OPEN_BITS,
    TREES,
    trees_bytes,
)
from umpc.mpc.transfers.ot_products import (
    and_bits,
    receive_multiples,
    send_multiples,
)

pytestmark = pytest.mark.usefixtures("both_ways")

S, R = open_channel("malformed")
TRIPLES = triples(20, "malformed")


def test_a_batch_is_used_once():
    sender, receiver = open_channel("once")
    _, message = receiver.extend(bits_of("once", 100))
    sender.extend(message, 100)
    with pytest.raises(RemoteProtocolError) as caught:
        sender.extend(message, 100)
    assert (caught.value.culprit, caught.value.step) == ("alice", EXTEND)


def test_batches_come_in_order_and_one_refused_is_still_due():
    sender, receiver = open_channel("order")
    choices = [bits_of(f"order {number}", 50) for number in range(2)]
    sent = [receiver.extend(row) for row in choices]
    with pytest.raises(RemoteProtocolError):
        sender.extend(sent[1][1], 50)
    for row, (t, message) in zip(choices, sent, strict=True):
        assert correlated(sender.extend(message, 50), t, row, delta_of("order"))


@pytest.mark.parametrize("name", WRONG_SHAPES)
def test_an_extension_of_another_shape_is_refused(name):
    sender, receiver = open_channel("shape")
    _, message = receiver.extend(bits_of("shape", 100))
    with pytest.raises(RemoteProtocolError) as caught:
        sender.extend(WRONG_SHAPES[name](message), 100)
    assert (caught.value.culprit, caught.value.step) == ("alice", EXTEND)


@pytest.mark.parametrize("due", [0, 129, 1000])
def test_a_count_of_other_bytes_than_agreed_is_refused(due):
    sender, receiver = open_channel("count")
    _, message = receiver.extend(bits_of("count", 100))
    with pytest.raises(RemoteProtocolError):
        sender.extend(message, due)


def test_channels_of_another_fold_do_not_mix():
    sender, receiver = open_channel("fold", 4)[0], open_channel("fold", 2)[1]
    with pytest.raises(RemoteProtocolError):
        sender.extend(receiver.extend(bits_of("fold", 64))[1], 64)
    refusal([set_up(4)[0], set_up(2)[1]], "alice", TREES)


def test_a_damaged_extension_is_noticed():
    """Its proof is of what was sent, so each flipped bit counts, whatever Δ is."""
    choices = bits_of("fuzz", 100)
    forks = count()

    def is_right(change) -> bool:
        label = next(forks)
        sender, receiver = S.fork("fuzz", label), R.fork("fuzz", label)
        t, message = receiver.extend(choices)
        return correlated(sender.extend(change(message), 100), t, choices, sender.delta)

    assert count_outcomes(100, is_right, "alice", EXTEND) == due_outcomes(100, flips="noticed")


@pytest.mark.parametrize("fold", FOLDS[1:])
def test_damaged_trees_are_noticed_or_harmless(fold):
    """The sender reads one sum of two, by its bit of Δ. A bit of the other does not count."""
    choices = bits_of("trees", 64)

    def is_right(change) -> bool:
        both = set_up(fold)
        both[1] = altered(both[1], TREES, change)
        with without_points():
            sender, receiver = run_in_memory(both)[0]
        t, message = receiver.extend(choices)
        return correlated(sender.extend(message, 64), t, choices, sender.delta)

    outcomes = count_outcomes(8, is_right, "alice", TREES, within=trees_bytes(fold))
    unread = outcomes.pop(("flip", "harmless"), 0)
    outcomes["flip", "noticed"] += unread
    assert outcomes == due_outcomes(8, flips="noticed") and unread < 8


@pytest.mark.parametrize("fold", FOLDS[1:])
def test_a_bit_in_the_zeros_after_the_trees_is_noticed(fold):
    """The zeros only make all set-ups equally long; the trees before them are right."""
    for place in (trees_bytes(fold), -1):
        both = set_up(fold)
        both[1] = altered(both[1], TREES, flip(place, 1))
        with without_points():
            assert "bits after its trees" in str(refusal(both, "alice", TREES))


@pytest.mark.parametrize("name", WRONG_SHAPES)
def test_trees_of_another_shape_are_refused(name):
    both = set_up()
    both[1] = altered(both[1], TREES, WRONG_SHAPES[name])
    refusal(both, "alice", TREES)


def run():
    x, b = numbers_of("x", 5), bits_of("b", 5)
    return [send_multiples(S, x, 20), receive_multiples(R, b, 20, "alice")]


@pytest.mark.parametrize("name", WRONG_SHAPES)
def test_a_correction_of_another_shape_is_refused(name):
    sending, receiving = run()
    refusal([altered(sending, MULTIPLES, WRONG_SHAPES[name]), receiving], "alice", MULTIPLES)


def test_a_damaged_correction_is_noticed_or_spoils_one_result():
    due = numbers_of("x", 5) * bits_of("b", 5)

    def spoils_one(change) -> bool:
        sending, receiving = run()
        sent, received = run_in_memory([altered(sending, MULTIPLES, change), receiving])[0]
        result = received if sent is None else sent + received
        return np.count_nonzero((result ^ due) & np.uint64(2**20 - 1)) <= 1

    outcomes = count_outcomes(25, spoils_one, "alice", MULTIPLES)
    assert outcomes == due_outcomes(25, flips="harmless")


@pytest.mark.parametrize("name", WRONG_SHAPES)
def test_openings_of_another_shape_are_refused(name):
    refusal(opening(WRONG_SHAPES[name]), "bob", OPEN_BITS)


def test_damaged_openings_are_noticed_or_spoil_one_result():
    def spoils_one(change) -> bool:
        first, second = run_in_memory(opening(change))[0]
        return np.count_nonzero(first ^ second) <= 1  # x and y are 0

    assert count_outcomes(25, spoils_one, "bob", OPEN_BITS) == due_outcomes(25, flips="harmless")


def opening(change) -> list:
    bits = bits_of("open", 20)
    leader, other = (
        and_bits(leads, bits, bits, TRIPLES[not leads], peer)
        for leads, peer in ((1, "bob"), (0, "alice"))
    )
    return [leader, altered(other, OPEN_BITS, change)]


@pytest.mark.parametrize("width", [0, 65, -1])
def test_other_widths_are_refused(width):
    with pytest.raises(LocalProtocolError):
        next(send_multiples(S, numbers_of("x", 2), width))
    with pytest.raises(LocalProtocolError):
        next(receive_multiples(R, bits_of("x", 2), width, "alice"))


def test_as_many_triples_as_bits():
    with pytest.raises(LocalProtocolError):
        next(and_bits(True, bits_of("x", 19), bits_of("y", 19), TRIPLES[0], "bob"))
