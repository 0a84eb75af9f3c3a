"""Inner products of transfers are right in small rings; what either end sees says nothing."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.support.limits import no_mask_of_choices
from tests.support.mpc_studies import ALPHA, homogeneity, uniformity
from tests.support.transfers import (
    altered,
    damages,
    extension_rows,
    numbers_of,
    open_channel,
    refusal,
)
from umpc.crypto.rounds import run_in_memory
from umpc.errors import LocalProtocolError
from umpc.mpc.transfers import ot_inner_products
from umpc.mpc.transfers.message_shapes import EXTEND, MULTIPLES
from umpc.mpc.transfers.ot_inner_products import (
    channel_for,
    correction_bytes,
    correction_shape,
    extension_shape,
    receive_inner_products,
    send_inner_products,
)
from umpc.mpc.transfers.ot_products import hash_blocks
from umpc.testing import lying

S, R = open_channel("inner products")
WORDS = np.uint64


def ends(*labels):
    return channel_for(S, *labels), channel_for(R, *labels)


def both(vectors, numbers, bits, width, channels):
    sender, receiver = channels
    return run_in_memory(
        [
            send_inner_products(sender, vectors, bits, width),
            receive_inner_products(receiver, numbers, bits, width, len(vectors), "bob"),
        ]
    )


def sums_of(shares, width):
    return [sum(pair) % (1 << width) for pair in zip(*shares, strict=True)]


def expected(vectors, numbers, width):
    rows = ([int(y) * int(x) for y, x in zip(v, numbers, strict=True)] for v in vectors)
    return [sum(row) % (1 << width) for row in rows]


@pytest.mark.parametrize("width", [1, 2, 3])
def test_every_product_of_small_numbers(width):
    channels = ends("small", width)
    for bits in range(1, width + 1):
        for x, y in product(range(1 << bits), range(1 << width)):
            vectors, numbers = [np.array([y], dtype=WORDS)], np.array([x], dtype=WORDS)
            shares, _ = both(vectors, numbers, bits, width, channels)
            assert sums_of(shares, width) == [x * y % (1 << width)]


@pytest.mark.parametrize(
    ("count", "bits", "width", "sums"),
    [(1, 1, 64, 1), (9, 5, 31, 2), (40, 14, 63, 3), (17, 31, 31, 5), (8, 64, 64, 1), (3, 9, 33, 4)],
)
def test_sums_and_bytes_of_all_sizes(count, bits, width, sums):
    label = f"{count} {bits} {width} {sums}"
    numbers = numbers_of(label, count) >> WORDS(64 - bits)
    numbers[0] = WORDS((1 << bits) - 1)
    vectors = [numbers_of(f"{label} {each}", count) for each in range(sums)]
    shares, sent = both(vectors, numbers, bits, width, ends(label))
    assert sums_of(shares, width) == expected(vectors, numbers, width)
    extension, correction = (line.message for line in sent)
    for message, due in (
        (extension, extension_shape(count, bits)),
        (correction, correction_shape(count, bits, width, sums)),
    ):
        assert (message.count, message.width) == (due.count, due.width)
        assert len(message.payload) == len(due.payload)
    assert len(correction.payload) == count * correction_bytes(bits, width, sums)


@pytest.mark.parametrize("bits", [0, 9, 65])
def test_other_numbers_of_bits_are_refused(bits):
    with pytest.raises(LocalProtocolError, match="numbers of 1 to 8 bits"):
        next(send_inner_products(S, [np.zeros(1, dtype=WORDS)], bits, 8))


def test_a_number_with_too_many_bits_is_refused():
    with pytest.raises(LocalProtocolError, match="more than 3 bits"):
        next(receive_inner_products(R, np.array([8], dtype=WORDS), 3, 8, 1, "bob"))


@pytest.mark.parametrize(("step", "culprit"), [(EXTEND, "alice"), (MULTIPLES, "bob")])
def test_messages_of_another_shape_are_the_senders_fault(step, culprit):
    """A flipped bit of a correction gives another sum, which nobody notices."""
    numbers, vectors = np.array([3, 5], dtype=WORDS), [np.array([7, 9], dtype=WORDS)]
    for number, damage in enumerate(damages(3)):
        sender, receiver = ends("damaged", step, number)
        sides = [
            send_inner_products(sender, vectors, 3, 31),
            receive_inner_products(receiver, numbers, 3, 31, 1, "bob"),
        ]
        place = int(step == EXTEND)
        sides[place] = altered(sides[place], step, damage.change)
        if (damage.kind, step) == ("flip", MULTIPLES):
            run_in_memory(sides)
        else:
            refusal(sides, culprit, step)


# --- views ----------------------------------------------------------------------------------------

CELLS = 4000
BIT = numbers_of("views bit", CELLS) & WORDS(1)
"""The chooser's entries, of one bit."""
FACTOR = numbers_of("views factor", CELLS) & WORDS(1)
"""The sender's, of which the pads must hide the low bit."""


def views(label):
    """The view of each end, of every cell: small categories by name."""
    channels = sender, _ = ends(label)
    hashed = ot_inner_products.digest(b"umpc inner pads 1", sender.session, b"0")
    _, sent = both([FACTOR], BIT, 1, 63, channels)
    extension, correction = (line.message.payload for line in sent)
    rows = extension_rows(extension, CELLS)
    chosen = [np.unpackbits(row, count=CELLS, bitorder="little") for row in rows[:4]]
    words = np.frombuffer(correction, dtype="<u8").astype(WORDS)
    again, _ = channel_for(R, label).extend(BIT.astype(np.uint8))
    own = hash_blocks(again, hashed)[:, 0]
    return {
        "extension": chosen[0] | chosen[1] << 1 | chosen[2] << 2 | chosen[3] << 3,
        "correction": (words & WORDS(15)).astype(int),
        "correction less own pad": ((words - own) & WORDS(15)).astype(int),
        "correction and own pad": ((words + own) & WORDS(15)).astype(int),
    }


def p_of(seen, name):
    """Whether one view is the same for both values of what it must not show."""
    hidden = (BIT if name == "extension" else FACTOR).astype(bool)
    samples = [(seen[name][hidden & part], seen[name][~hidden & part]) for part in parts_of(name)]
    return min(homogeneity(*pair) for pair in samples)


def parts_of(name):
    """A chooser knows its bits: its views are compared for each bit."""
    chosen = BIT.astype(bool)
    return [np.ones(CELLS, dtype=bool)] if name == "extension" else [chosen, ~chosen]


NAMES = ("extension", "correction", "correction less own pad", "correction and own pad")


def test_views_say_nothing():
    seen = views("views")
    assert set(seen) == set(NAMES)
    for name in NAMES:
        assert p_of(seen, name) > ALPHA, name
        assert uniformity(seen[name], 16) > ALPHA, name


def one_pad():
    """Both pads of a transfer are those of choice 0, as if Δ were 0."""
    asked = []  # by the sender for choice 0, by it for choice 1, by the receiver

    def pads(honest, session, blocks):
        asked.append(blocks)
        return honest(session, asked[0] if len(asked) == 2 else blocks)

    return lying("node", inner_pads=pads)


def half_a_pad():
    """Corrections are under the pad of choice 0 alone, which a chooser of 0 has."""
    asked = []

    def pads(honest, session, blocks):
        asked.append(blocks)
        factor = np.uint64(len(asked) != 2)
        return (words * factor for words in honest(session, blocks))

    return lying("node", inner_pads=pads)


MUTANTS = [
    (one_pad, "correction"),
    (half_a_pad, "correction less own pad"),
    (no_mask_of_choices, "extension"),
]


@pytest.mark.parametrize(("mutate", "finder"), MUTANTS)
def test_power_a_missing_mask_is_found(mutate, finder):
    with mutate():
        seen = views(f"power {mutate.__name__}")
    assert p_of(seen, finder) < ALPHA


def test_two_chunks_have_pads_of_their_own():
    """Else the difference of two chunks' corrections would be that of their numbers."""

    def difference(*labels):
        corrections = []
        for label in labels:
            numbers, vectors = np.zeros(8, dtype=WORDS), [np.arange(8, dtype=WORDS)]
            _, sent = both(vectors, numbers, 1, 64, ends("chunks", label))
            corrections.append(np.frombuffer(sent[1].message.payload, dtype="<u8"))
        return corrections[0] - corrections[1]

    assert difference(0, 1).all()
    assert not difference(0, 0).any(), "labels that are used twice"


def test_no_secret_is_shown():
    sender, receiver = ends("shown")
    assert "redacted" in repr(sender) and "redacted" in repr(receiver)
