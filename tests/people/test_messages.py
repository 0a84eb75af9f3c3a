"""Messages of people: what fits opens, and everything else is refused by name.

`tests/spec/test_people.py` has the bytes and each check's need.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.studies import Entropy
from umpc.crypto.signing import point_of, signer
from umpc.crypto.zero_shares import KeyAgreement
from umpc.errors import MessageRefused, RemoteProtocolError, TooFewRecords
from umpc.people import messages
from umpc.people.messages import (
    BOX_BYTES,
    ROW_BYTES,
    SEALED_BYTES,
    STATEMENT_BYTES,
    Survey,
    both_have,
    check_again,
    check_counted,
    check_device,
    check_secret_request,
    counted_statement,
    counted_text,
    dealt_hash,
    make_boxes,
    offset,
    offsets,
    open_box,
    open_secret,
    opened_statement,
    receipt,
    receipt_statement,
    roots,
    row,
    seal_secret,
    secret_request,
)
from umpc.people.places import place_key

SURVEY = Survey(bytes(range(32)), 12, 1000, 2)
OTHER = replace(SURVEY, hash=bytes(32))
ENTROPY = Entropy("messages of people")
SEED, BOX_SECRET, DEVICE, NONCE = (ENTROPY(32) for _ in range(4))
KEY, BOX_KEY = place_key(SEED), KeyAgreement(BOX_SECRET).public_key
LOW_ORDER = [
    bytes(32),
    (1).to_bytes(32, "little"),
    (2**255 - 20).to_bytes(32, "little"),
    (2**255 - 19).to_bytes(32, "little"),
    (2**255 - 18).to_bytes(32, "little"),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
]
"""Points of X25519 whose multiples are all 0 (RFC 7748, section 6.1): anybody knows the secret."""
places, numbers = st.integers(0, SURVEY.places - 1), st.integers(0, SURVEY.cells - 1)
words = st.binary(min_size=32, max_size=32)


def box_of(survey=SURVEY, side=0, key=BOX_KEY, place=7, number=5, seed=SEED) -> bytes:
    secrets = [ENTROPY(32)] * 2
    return make_boxes(survey, [key] * 2, place, number, NONCE, seed, secrets)[1][side]


def opened(box: bytes, survey=SURVEY, side=0, secret=BOX_SECRET, place=7, key=KEY):
    return open_box(survey, side, secret, place, key, box)


# --- boxes ----------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(place=places, number=numbers, side=st.integers(0, 1), nonce=words, secret=words)
def test_a_box_opens_to_what_the_person_sent(place, number, side, nonce, secret):
    keys, secrets = [BOX_KEY] * 2, [secret] * 2
    told, boxes = make_boxes(SURVEY, keys, place, number, nonce, SEED, secrets)
    box = boxes[side]
    found = open_box(SURVEY, side, BOX_SECRET, place, KEY, box)
    assert len(box) == BOX_BYTES == 148
    assert (found.place, found.number) == (place, number)
    assert found.receipt == told == receipt(SURVEY, place, number, nonce)


@pytest.mark.parametrize(
    "change",
    [
        {"survey": OTHER},
        {"survey": replace(SURVEY, hash=bytes(31) + b"\1")},
        {"side": 1},
        {"place": 8},
        {"secret": bytes([9]) * 32},
    ],
    ids=["study", "another study", "aggregator", "place", "box key"],
)
def test_a_box_opens_nowhere_else(change):
    box = box_of()
    opened(box)
    with pytest.raises(MessageRefused, match=r"the box of place [78] does not open"):
        opened(box, **change)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_bit_of_a_box_can_change(data):
    box = bytearray(box_of())
    at = data.draw(st.integers(0, 8 * BOX_BYTES - 1))
    box[at // 8] ^= 1 << at % 8
    # X25519 ignores the highest bit of a key (RFC 7748, section 5); the key of the box does not
    with pytest.raises(MessageRefused, match="does not open"):
        opened(bytes(box))


@pytest.mark.parametrize("size", [0, 31, 32, 47, 147, 149, 1000])
def test_a_box_of_another_size_does_not_open(size):
    with pytest.raises(MessageRefused, match="does not open"):
        opened((box_of() + bytes(1000))[:size])


@pytest.mark.parametrize("point", LOW_ORDER, ids=lambda point: point.hex()[:8])
def test_a_key_with_which_everybody_knows_the_secret_is_refused(point):
    with pytest.raises(MessageRefused, match="does not open"):
        opened(point + box_of()[32:])
    with pytest.raises(MessageRefused, match="unusable"):
        box_of(key=point)
    with pytest.raises(MessageRefused, match="unusable"):
        seal_secret(SURVEY, 7, point, bytes(32), ENTROPY)
    with pytest.raises(RemoteProtocolError, match="does not open with this device's key"):
        open_secret(SURVEY, 7, DEVICE, point + bytes(SEALED_BYTES - 32))


def test_the_signature_in_a_box_is_that_of_the_place():
    with pytest.raises(MessageRefused, match="is not signed by the key of this place"):
        opened(box_of(seed=bytes(32)))
    for unusable in (b"", bytes(31), bytes(33), b"\xff" * 32):
        with pytest.raises(MessageRefused, match="is not signed by the key of this place"):
            opened(box_of(), key=unusable)


@pytest.mark.parametrize("number", [12, 13, 2**32 - 1])
def test_a_number_beyond_the_cells_is_refused_and_not_shown(number):
    with pytest.raises(MessageRefused, match="not below 12, the number of cells") as found:
        opened(box_of(number=number))
    assert str(number) not in found.value.message.replace("12", "") + found.value.detail


@pytest.mark.parametrize("place", [-1, 1000, 2**64 - 1])
def test_a_place_that_the_study_does_not_have_is_refused(place):
    with pytest.raises(MessageRefused, match="the study has 1000 places"):
        opened(box_of(), place=place)
    with pytest.raises(MessageRefused, match="the study has 1000 places"):
        check_secret_request(SURVEY, place, KEY, bytes(32), bytes(64))


def test_the_first_message_of_a_place_stands():
    first, again, other = opened(box_of()), opened(box_of()), opened(box_of(number=6))
    check_again(first.receipt, again)
    with pytest.raises(MessageRefused, match="place 7 has sent another message before"):
        check_again(first.receipt, other)


def test_no_text_shows_a_number():
    assert "number" not in repr(opened(box_of()))


# --- the secret of a place ------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(place=places, secret=words, device_secret=words)
def test_a_secret_reaches_the_device_that_asked(place, secret, device_secret):
    device, signature = secret_request(SURVEY, place, SEED, device_secret)
    check_secret_request(SURVEY, place, KEY, device, signature)
    check_device(place, device, device)
    sealed = seal_secret(SURVEY, place, device, secret, ENTROPY)
    assert len(sealed) == SEALED_BYTES == 80
    assert open_secret(SURVEY, place, device_secret, sealed) == secret


def test_a_request_serves_one_study_place_and_device():
    device, signature = secret_request(SURVEY, 7, SEED, DEVICE)
    other_device, other_signature = secret_request(SURVEY, 7, SEED, bytes([1]) * 32)
    check = partial(check_secret_request, place_key=KEY, signature=signature)
    check(SURVEY, 7, device=device)
    for survey, place, asked in [
        (OTHER, 7, device),
        (SURVEY, 8, device),
        (SURVEY, 7, other_device),
    ]:
        with pytest.raises(MessageRefused, match="is not signed by the key of this place"):
            check(survey, place, device=asked)
    check_secret_request(SURVEY, 7, KEY, other_device, other_signature)
    with pytest.raises(MessageRefused, match="another device has fetched the secret of place 7"):
        check_device(7, other_device, device)
    for size in (0, 63, 65):
        with pytest.raises(MessageRefused, match="is not signed"):
            check(SURVEY, 7, device=device, signature=(signature + b"\0")[:size])


def test_the_signature_of_a_box_is_none_of_a_request():
    """One key signs both. A request with a receipt for its digest would need a collision."""
    device, _ = secret_request(SURVEY, 7, SEED, DEVICE)
    in_box = Ed25519PrivateKey.from_private_bytes(SEED).sign(receipt(SURVEY, 7, 5, NONCE))
    with pytest.raises(MessageRefused, match="is not signed"):
        check_secret_request(SURVEY, 7, KEY, device, in_box)


def test_an_answer_opens_on_one_device_for_one_study_and_place():
    device, _ = secret_request(SURVEY, 7, SEED, DEVICE)
    sealed = seal_secret(SURVEY, 7, device, bytes(32), ENTROPY)
    answers = [
        (OTHER, 7, DEVICE, sealed),
        (SURVEY, 8, DEVICE, sealed),
        (SURVEY, 7, bytes([1]) * 32, sealed),
        (SURVEY, 7, DEVICE, sealed[:-1]),
        (SURVEY, 7, DEVICE, sealed + b"\0"),
        (SURVEY, 7, DEVICE, b""),
        # a box is sealed for another use
        (SURVEY, 7, BOX_SECRET, box_of()[:SEALED_BYTES]),
    ]
    for survey, place, secret, came in answers:
        with pytest.raises(RemoteProtocolError, match="the dealer's answer for place"):
            open_secret(survey, place, secret, came)


# --- numbers of all places ------------------------------------------------------------------------


def test_offsets_of_consecutive_places_are_those_of_each():
    secrets = [ENTROPY(32) for _ in range(5)]
    found = offsets(SURVEY, 40, secrets)
    assert found.dtype == np.uint64 and found.max() < SURVEY.cells
    assert found.tolist() == [offset(SURVEY, 40 + n, each) for n, each in enumerate(secrets)]


@settings(max_examples=40, deadline=None)
@given(start=places, more=st.integers(0, 50))
def test_roots_of_some_places_are_a_part_of_all(start, more):
    stop = min(start + more, SURVEY.places)
    every = roots(SURVEY, SEED, 0, SURVEY.places)
    assert np.array_equal(roots(SURVEY, SEED, start, stop), every[start:stop])
    assert len(np.unique(every, axis=0)) == SURVEY.places


@pytest.mark.parametrize("count", [1, 7, 8, 9, 16, 17])
def test_blocks_have_all_places_once_and_in_order(count, limit):
    limit(messages, PLACES_AT_ONCE=8)
    found = list(replace(SURVEY, places=count).blocks())
    assert [place for block in found for place in block] == list(range(count))
    assert all(len(block) == 8 for block in found[:-1]) and len(found[-1]) <= 8


def test_the_digest_of_keys_does_not_depend_on_their_parts():
    one, parts = dealt_hash(), dealt_hash()
    one.update(b"abcdef")
    for part in (b"ab", b"", b"cdef"):
        parts.update(part)
    assert one.digest() == parts.digest() != dealt_hash().digest()


# --- lists ----------------------------------------------------------------------------------------


def told_of(place: int, version: int = 0) -> bytes:
    return row(place, bytes([version]) * 32)


def in_parts(rows: list[bytes], size: int) -> list[bytes]:
    return [b"".join(rows[at : at + size]) for at in range(0, len(rows), size)]


lists = st.dictionaries(st.integers(0, 300), st.integers(0, 1), max_size=30)


@settings(max_examples=200, deadline=None)
@given(own=lists, theirs=lists, size=st.integers(1, 7), other_size=st.integers(1, 7))
def test_rows_of_both_lists_are_the_equal_ones(own, theirs, size, other_size):
    mine, others = ([told_of(p, v) for p, v in sorted(each.items())] for each in (own, theirs))
    found = list(both_have(in_parts(mine, size), in_parts(others, other_size), "south"))
    assert found == [each for each in mine if each in others]
    assert found == list(both_have(in_parts(others, other_size), in_parts(mine, size), "north"))


def test_a_list_that_goes_back_names_its_sender():
    own = [told_of(1)]
    for places_told in ([1, 1], [2, 1], [1, 2, 2, 3], [5, 0]):
        for size in (1, 2):
            theirs = in_parts([told_of(place) for place in places_told], size)
            with pytest.raises(RemoteProtocolError, match="do not ascend by place") as found:
                list(both_have(own, theirs, "south"))
            assert found.value.culprit == "south"
    with pytest.raises(RemoteProtocolError, match="do not ascend by place"):
        list(both_have(own, [told_of(1) + bytes(ROW_BYTES - 1)], "south"))


def test_lists_are_compared_row_by_row_as_they_come():
    """Neither list is held: of an endless one the first row that both have comes out."""

    def endless():
        place = 0
        while True:
            yield told_of(place)
            place += 1

    found = both_have(endless(), endless(), "south")
    assert [next(found) for _ in range(3)] == [told_of(place) for place in range(3)]


def test_a_statement_has_n_and_fixes_study_rows_and_keys():
    rows = [told_of(place) for place in (0, 3, 900)]
    statement = counted_statement(SURVEY, rows, bytes(32))
    assert len(statement) == STATEMENT_BYTES and int.from_bytes(statement[:8], "little") == 3
    others = [
        counted_statement(OTHER, rows, bytes(32)),
        counted_statement(SURVEY, rows[1:], bytes(32)),
        counted_statement(SURVEY, [told_of(0, 1), *rows[1:]], bytes(32)),
        counted_statement(SURVEY, rows, bytes(31) + b"\1"),
    ]
    assert len({statement, *others}) == 5


@pytest.mark.parametrize(("fewest", "came"), [(2, 1), (2, 0), (0, 1), (5, 4)])
def test_too_few_people_have_no_statement(fewest, came):
    survey = replace(SURVEY, fewest=fewest)
    rows = [told_of(place) for place in range(max(2, fewest))]
    counted_statement(survey, rows, bytes(32))
    with pytest.raises(TooFewRecords, match=f"^{came} people sent a message to both"):
        counted_statement(survey, rows[:came], bytes(32))


def test_both_aggregators_sign_one_list_of_one_study():
    secrets = [ec.derive_private_key(5 + side, ec.SECP256R1()) for side in (0, 1)]
    keys = [point_of(each.public_key()) for each in secrets]
    statement = counted_statement(SURVEY, [told_of(0), told_of(4)], bytes(32))

    def signed(*texts: bytes) -> list[bytes]:
        return [signer(key)(text) for key, text in zip(secrets, texts, strict=True)]

    text = counted_text(SURVEY, statement)
    good = signed(text, text)
    assert check_counted(SURVEY, statement, keys, good, "coordinator") == 2
    other_n = bytes([3]) + statement[1:]
    lies = [
        (SURVEY, statement, signed(statement, statement)),
        (SURVEY, statement, signed(text, counted_text(SURVEY, other_n))),
        (SURVEY, other_n, good),
        (OTHER, statement, good),
        (SURVEY, statement, good[::-1]),
        (SURVEY, statement, [good[0], b""]),
        (SURVEY, statement, [good[0], good[0]]),
        (SURVEY, b"", signed(*[counted_text(SURVEY, b"")] * 2)),
    ]
    for survey, said, signatures in lies:
        with pytest.raises(RemoteProtocolError, match="not both aggregators have signed") as found:
            check_counted(survey, said, keys, signatures, "coordinator")
        assert found.value.culprit == "coordinator"


def test_what_an_aggregator_signs_names_study_side_and_content():
    told = bytes(32)
    statements = {
        opened_statement(SURVEY, 0, BOX_KEY),
        opened_statement(SURVEY, 1, BOX_KEY),
        opened_statement(OTHER, 0, BOX_KEY),
        opened_statement(SURVEY, 0, bytes(32)),
        receipt_statement(SURVEY, 0, 7, told),
        receipt_statement(SURVEY, 1, 7, told),
        receipt_statement(SURVEY, 0, 8, told),
        receipt_statement(OTHER, 0, 7, told),
        receipt_statement(SURVEY, 0, 7, bytes(31) + b"\1"),
    }
    assert len(statements) == 9
