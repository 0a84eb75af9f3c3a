"""A dealer of people that deals wrong keys, and one that watches all that people send.

Wrong keys spoil what is counted, and nobody notices: the grade is `honest`. They tell the dealer
nothing. A dealer knows r of each place, so it would read a value from anything that is made of
x − r and that it can compute: it tries all D numbers. The nonce, and the box, leave it nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from tests.support.dealt_people import FIRST, SECOND, DealtPeople, device_key, tokens
from tests.support.studies import Entropy
from umpc.crypto.prg import FixedKeyHash
from umpc.errors import MessageRefused, RemoteProtocolError
from umpc.mpc.fss.point import PointKeys, add_up, expand
from umpc.people.messages import (
    Survey,
    check_counted,
    counted_statement,
    counted_text,
    dealt_hash,
    make_boxes,
    offset,
    open_box,
    receipt,
    receipt_statement,
    roots,
    row,
)
from umpc.simulation import AUTHORITY
from umpc.testing import lying

VALUES = [0, 5, 15, 6, 5]
"""The cell of each person; there are 16."""
BOX_SECRETS = [bytes([70 + side] * 32) for side in (0, 1)]
BOX_KEYS = [device_key(secret) for secret in BOX_SECRETS]
AGGREGATORS = FIRST, SECOND
"""The names of both sides."""
KEYS = [AUTHORITY.verify(AUTHORITY.credentials(name).certificate).key for name in AGGREGATORS]


@dataclass
class Sent:
    """Messages of one person, and what an aggregator answers: everybody on the network has them."""

    place: int
    boxes: list[bytes]
    receipt: bytes
    signature: bytes


class Answered:
    """A study: people who answer, and both aggregators."""

    def __init__(self, at: DealtPeople, values: list[int], nonce: Callable[[int], bytes]):
        self.at, self.survey = at, at.survey
        parts = [at.deal(aggregator) for aggregator in AGGREGATORS]
        at.confirm()
        self.seeds, self.dealt = [each[0] for each in parts], [b"".join(each[1:]) for each in parts]
        self.sent = [self.person(place, cell, nonce) for place, cell in enumerate(values)]

    def person(self, place: int, cell: int, nonce: Callable[[int], bytes]) -> Sent:
        """A person fetches its secret and sends both boxes."""
        signing, chosen = tokens()[place][0], nonce(32)
        r = offset(self.survey, place, self.at.secret(place, bytes([place + 1] * 32)))
        number = (cell - r) % self.survey.cells
        secrets = [Entropy(f"{side}")(32) for side in range(2)]
        told, boxes = make_boxes(self.survey, BOX_KEYS, place, number, chosen, signing, secrets)
        statement = receipt_statement(self.survey, 0, place, told)
        return Sent(place, boxes, told, AUTHORITY.credentials(FIRST).sign(statement))

    def counted(self, side: int) -> tuple[bytes, bytes]:
        """The statement of an aggregator and its signature."""
        rows = [row(each.place, each.receipt) for each in self.sent]
        digest = dealt_hash()
        digest.update(self.dealt[side])
        statement = counted_statement(self.survey, rows, digest.digest())
        text = counted_text(self.survey, statement)
        return statement, AUTHORITY.credentials(AGGREGATORS[side]).sign(text)

    def table(self) -> list[int]:
        """The sum of both shares."""
        places = range(self.survey.places)
        shares = []
        for side, seed in enumerate(self.seeds):
            keys = PointKeys.decode(memoryview(self.dealt[side]), self.survey.cells, len(places))
            opened = [
                open_box(
                    self.survey,
                    side,
                    BOX_SECRETS[side],
                    each.place,
                    tokens()[each.place][1],
                    each.boxes[side],
                )
                for each in self.sent
            ]
            numbers = np.array([each.number for each in opened], dtype=np.uint64)
            own = roots(self.survey, seed, 0, len(places))
            tree_hash = FixedKeyHash(self.survey.hash_key)
            shares.append(add_up(side, keys, numbers, own, tree_hash))
        return (shares[0] + shares[1]).tolist()


def histogram(weights: list[int]) -> list[int]:
    """The table in which each person counts this often."""
    return np.bincount(VALUES, weights=weights, minlength=16).astype(int).tolist()


@pytest.fixture
def people(tmp_path) -> Iterator[Callable[..., Answered]]:
    """Provide a study of five people at a dealer, who use the nonces of a source."""
    with DealtPeople(tmp_path, len(VALUES), Entropy("dealer of people")) as at:
        yield lambda nonce=None: Answered(at, VALUES, nonce or Entropy("nonces"))


# --- wrong keys ---


def counts(weight: int) -> Callable[..., PointKeys]:
    """Keys with which the first person counts this often."""

    def generate(honest, cells, places, roots_of_both, tree_hash, alpha=None):
        keys = honest(cells, places, roots_of_both, tree_hash, alpha)
        r = int(places[0])
        for sign in (-1, 1):
            leaves = keys.leaves.copy()
            leaves[:1, r % 8] += np.uint64((weight - 1) * sign % 2**64)
            made = PointKeys(cells, keys.corrections, leaves)
            both = [expand(side, made, roots_of_both[side], tree_hash) for side in (0, 1)]
            if (both[0] + both[1])[0, r] == weight:
                return made
        raise AssertionError("no sign gives this weight")

    return generate


def moves(honest, cells, places, roots_of_both, tree_hash, alpha=None):
    """Keys of other cells than the persons know."""
    moved = (places + np.uint64(3)) % np.uint64(cells)
    return honest(cells, moved, roots_of_both, tree_hash, alpha)


@pytest.mark.parametrize(
    ("lie", "due"),
    [
        (counts(1), histogram([1] * 5)),
        (counts(40), histogram([40, 1, 1, 1, 1])),
        (counts(0), histogram([0, 1, 1, 1, 1])),
        (moves, np.roll(histogram([1] * 5), 3).tolist()),
    ],
    ids=["honest", "counts 40 times", "counts not at all", "counts elsewhere"],
)
def test_wrong_keys_spoil_the_table_and_nobody_notices(people, lie, due):
    with lying("dealer", generate=lie):
        study = people()
    assert study.table() == due
    statements, signatures = zip(*(study.counted(side) for side in (0, 1)), strict=True)
    assert statements[0] == statements[1]
    assert check_counted(study.survey, statements[0], KEYS, signatures, "coordinator") == 5


@pytest.mark.parametrize("lie", [counts(40), moves], ids=["counts 40 times", "counts elsewhere"])
def test_the_dealer_hears_one_thing_whatever_it_deals_and_people_answer(tmp_path, lie):
    """It hears requests of secrets, which a person makes before it knows r."""

    def heard(values: list[int], folder: str) -> list[tuple[object, object]]:
        with DealtPeople(tmp_path / folder, 5, Entropy("dealer of people")) as at:
            Answered(at, values, Entropy("nonces"))
            return at.heard

    honest = heard(VALUES, "honest")
    with lying("dealer", generate=lie):
        assert heard(VALUES, "lying") == heard([1, 1, 2, 2, 3], "of others") == honest
    assert len(honest) == 5


def test_another_list_for_one_aggregator_ends_the_study(people):
    study = people()
    study.dealt[1] = study.dealt[1][:-1] + bytes([study.dealt[1][-1] ^ 1])
    statements, signatures = zip(*(study.counted(side) for side in (0, 1)), strict=True)
    for statement in statements:
        with pytest.raises(RemoteProtocolError, match="not both aggregators have signed"):
            check_counted(study.survey, statement, KEYS, signatures, "coordinator")


# --- a dealer that watches ---


def guesses(study: Answered, place: int) -> list[bytes]:
    """All that the dealer could take for the nonce: nothing, and every 32 bytes that it has."""
    fixed = [b"", bytes(32), study.survey.hash, tokens()[place][1], *study.seeds, *BOX_KEYS]
    own = [study.at.secret(place, bytes([place + 1] * 32)), device_key(bytes([place + 1] * 32))]
    seen = study.sent[place]
    return [*fixed, *own, *(box[at : at + 32] for box in seen.boxes for at in range(0, 117))]


def found_in(study: Answered, place: int, fits: Callable[[int], bool]) -> list[int]:
    """The values whose number fits something that the dealer sees."""
    r = offset(study.survey, place, study.at.secret(place, bytes([place + 1] * 32)))
    cells = study.survey.cells
    return [(number + r) % cells for number in range(cells) if fits(number)]


def by_receipt(study: Answered, place: int) -> list[int]:
    """The values that fit a public receipt."""
    tried, told = guesses(study, place), study.sent[place].receipt
    return found_in(
        study,
        place,
        lambda number: any(receipt(study.survey, place, number, nonce) == told for nonce in tried),
    )


def by_signature(study: Answered, place: int, signature: bytes) -> list[int]:
    """The values that fit a signature of the person."""
    key = Ed25519PublicKey.from_public_bytes(tokens()[place][1])

    def fits(number: int) -> bool:
        for nonce in guesses(study, place):
            try:
                key.verify(signature, receipt(study.survey, place, number, nonce))
            except InvalidSignature:
                continue
            return True
        return False

    return found_in(study, place, fits)


def by_digest(study: Answered, place: int, statement: bytes) -> list[int]:
    """The values that fit the signed digest, to a dealer that knows all other rows and the keys."""
    digest = dealt_hash()
    digest.update(study.dealt[0])

    def fits(number: int) -> bool:
        for nonce in guesses(study, place):
            rows = [row(each.place, each.receipt) for each in study.sent]
            rows[place] = row(place, receipt(study.survey, place, number, nonce))
            if counted_statement(study.survey, rows, digest.digest()) == statement:
                return True
        return False

    return found_in(study, place, fits)


def test_a_dealer_that_tries_all_numbers_finds_no_value_in_what_is_public(people):
    study = people()
    for place in range(len(VALUES)):
        assert by_receipt(study, place) == []
        assert by_digest(study, place, study.counted(0)[0]) == []
    assert by_signature(study, 0, study.sent[0].boxes[0][-80:-16]) == []


def test_without_the_nonce_a_dealer_reads_every_value_in_receipt_and_digest(people):
    """The people of this study have an empty nonce."""
    study = people(nonce=lambda count: b"")
    for place, cell in enumerate(VALUES):
        assert by_receipt(study, place) == [cell]
        assert by_digest(study, place, study.counted(0)[0]) == [cell]


def test_a_signature_that_is_not_in_a_box_tells_the_value_where_there_is_no_nonce(people):
    study = people(nonce=lambda count: b"")
    for place, cell in enumerate(VALUES):
        key = Ed25519PrivateKey.from_private_bytes(tokens()[place][0])
        assert by_signature(study, place, key.sign(study.sent[place].receipt)) == [cell]


def test_a_dealer_opens_no_box_with_any_secret_that_it_has(people):
    study = people()
    for sent in study.sent:
        key = tokens()[sent.place][1]
        own = [*study.seeds, study.at.secret(sent.place, bytes([sent.place + 1] * 32))]
        for side, box in enumerate(sent.boxes):
            for secret in own:
                with pytest.raises(MessageRefused, match="does not open"):
                    open_box(study.survey, side, secret, sent.place, key, box)
            opened = open_box(study.survey, side, BOX_SECRETS[side], sent.place, key, box)
            assert opened.receipt == sent.receipt


def test_a_box_has_one_size_and_every_value_makes_as_many(people):
    survey: Survey = people().survey
    signing, secrets = tokens()[0][0], [bytes([9] * 32)] * 2
    made = {
        tuple(map(len, make_boxes(survey, BOX_KEYS, 0, number, bytes(32), signing, secrets)[1]))
        for number in range(survey.cells)
    }
    assert made == {(148, 148)}
