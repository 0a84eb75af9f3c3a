"""People with one value each: secrets, boxes, receipts, lists and what is signed of them.

`spec/people.py` and `spec/people_messages.py` are the same in plain Python. `docs/people.md` says
why each part is there. A place is a number below `Survey.places`; its holder signs by the Ed25519
key of that place. Boxes and secrets are sealed by X25519 and AES-256-GCM. Each key of AES seals one
text, so the nonce is 0.

| message | from → to | bytes |
|---|---|---|
| request of a secret | person → dealer | 8 + 32 + 64: place, the device's X25519 key, a signature |
| the secret | dealer → person | 80: the dealer's X25519 key, the secret under AES-256-GCM |
| box | person → aggregator | 148: the sender's X25519 key; number, nonce, signature; a tag |
| receipt | aggregator → person | 32 + 64: with the aggregator's signature |
| row | aggregator ↔ aggregator | 40: place and receipt |
| statement | both → all | 40: n, and a digest that fixes the rows and the dealt keys |

Integers are little-endian. The dealt keys come in blocks of `PLACES_AT_ONCE` places: first the
corrections of the block's keys, level by level, and then their leaves (`PointKeys.encode`).
Randomness is an argument.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from umpc.crypto.prg import Stream, derive, digest
from umpc.crypto.signing import is_signature
from umpc.errors import MessageRefused, RemoteProtocolError, StudyError, TooFewRecords
from umpc.mpc.arrays import WordArray

PLACES_AT_ONCE = 4096
"""Places of a block of dealt keys."""
SECRET_BYTES, NONCE_BYTES, NUMBER_BYTES, SIGNATURE_BYTES = 32, 32, 4, 64
SEALED_BYTES = 32 + SECRET_BYTES + 16
"""A sealed secret: the dealer's key, the text, its tag."""
BOX_BYTES = 32 + NUMBER_BYTES + NONCE_BYTES + SIGNATURE_BYTES + 16
"""The sender's key, the text, its tag: every box has this size."""
ROW_BYTES = 8 + 32
STATEMENT_BYTES = 8 + 32

Entropy = Callable[[int], bytes]
"""Number of bytes → so many random ones, such as `os.urandom`."""
Signing = bytes | Ed25519PrivateKey
Agreeing = bytes | X25519PrivateKey
"""32 bytes, or the key that they make. To make it takes as long as to use it once."""
_NO_NONCE = bytes(12)


@dataclass(frozen=True)
class Survey:
    """All that the messages of one study of people are made of.

    hash: that of the study's document as people see it, without `counted`. cells: D. places: how
    many there are. fewest: people without whom there is no result.
    """

    hash: bytes
    cells: int
    places: int
    fewest: int

    @property
    def hash_key(self) -> bytes:
        """The public key of the trees' hash (`FixedKeyHash`), 16 bytes."""
        return digest(b"umpc trees of people 1", self.hash)[:16]

    def blocks(self) -> Iterator[range]:
        """The places of each block of dealt keys."""
        for start in range(0, self.places, PLACES_AT_ONCE):
            yield range(start, min(start + PLACES_AT_ONCE, self.places))


def check_place(survey: Survey, place: int) -> None:
    """The study has this place. Raises: MessageRefused."""
    if not 0 <= place < survey.places:
        raise MessageRefused(
            f"a message names place {place}, and the study has {survey.places} places, from 0 on: "
            "use the token or the enrolment that belongs to the study"
        )


# --- deal: dealer → aggregators, and what a person fetches ----------------------------------------


def offset(survey: Survey, place: int, secret: bytes) -> int:
    """r of a place, uniform below D but for D/2^128. Person and dealer know it, and nobody else."""
    # spec/people_messages.py, `offset`
    word = int.from_bytes(derive(secret, "person's cell", survey.hash, place)[:16], "little")
    return word * survey.cells >> 128


def offsets(survey: Survey, first_place: int, secrets: Sequence[bytes]) -> WordArray:
    """r of consecutive places, (n,) uint64. Args: secrets: by place, from `first_place` on."""
    found = [offset(survey, place, each) for place, each in enumerate(secrets, first_place)]
    return np.array(found, dtype=np.uint64)


def roots(survey: Survey, seed: bytes, start: int, stop: int) -> WordArray:
    """The roots of an aggregator's keys at places start..stop, (stop − start, 2) uint64.

    Args: seed: that of this aggregator, 32 bytes.
    """
    # spec/people.py, `roots`: a root is one block of the stream
    stream = Stream(derive(seed, "roots of people", survey.hash), start)
    return stream.words(2 * (stop - start)).reshape(-1, 2)


def dealt_hash() -> Any:
    """The digest of all blocks of dealt keys, begun: `update` takes their bytes in order."""
    # spec/people.py, `dealt_digest`
    return hashlib.sha256(b"umpc keys of people 1")


def secret_request(
    survey: Survey, place: int, signing_seed: Signing, device_secret: Agreeing
) -> tuple[bytes, bytes]:
    """A person asks the dealer for the secret of its place.

    Args: signing_seed: of the place's Ed25519 key. device_secret: of an X25519 key, 32 random
    bytes, which the device keeps until it has the secret.

    Returns: the device's public key, and the signature.
    """
    device = agreeing_key(device_secret).public_key().public_bytes_raw()
    return device, signing_key(signing_seed).sign(_request(survey, place, device))


def check_secret_request(
    survey: Survey,
    place: int,
    place_key: bytes,
    device: bytes,
    signature: bytes,
) -> None:
    """The holder of the place asks. The dealer's other check is `check_device`.

    Raises: MessageRefused.
    """
    # spec/people_messages.py, `answer_request`
    check_place(survey, place)
    if not _signed_by(place_key, _request(survey, place, device), signature):
        raise MessageRefused(
            f"a request for the secret of place {place} is not signed by the key of this place in "
            "this study: use the token or the enrolment that belongs to the study"
        )


def check_device(place: int, device: bytes, former: bytes) -> None:
    """A place has one device, before a secret leaves.

    Args: former: the device that got this place's secret before; empty if there was none.

    Raises: MessageRefused.
    """
    if former not in (b"", device):
        raise MessageRefused(
            f"another device has fetched the secret of place {place}, and a place has one device: "
            "ask the organiser for a new place, and tell them if this was not you"
        )


def seal_secret(
    survey: Survey, place: int, device: bytes, secret: bytes, entropy: Entropy
) -> bytes:
    """The dealer's answer to a checked request, of `SEALED_BYTES`. Only the device can open it.

    Raises: MessageRefused if the device's key is unusable.
    """
    # spec/people_messages.py, `seal`
    return _seal("person's secret", (survey.hash, place), device, entropy(32), secret)


def open_secret(survey: Survey, place: int, device_secret: Agreeing, sealed: bytes) -> bytes:
    """The secret in a dealer's answer. Raises: RemoteProtocolError if it does not open."""
    try:
        # spec/people_messages.py, `open_answer`
        return _unseal("person's secret", (survey.hash, place), device_secret, sealed, SEALED_BYTES)
    except (InvalidTag, ValueError) as error:
        raise RemoteProtocolError(
            f"the dealer's answer for place {place} does not open with this device's key: ask "
            "again from the device that asked first",
            step="secret",
        ) from error


def _request(survey: Survey, place: int, device: bytes) -> bytes:
    return digest(b"umpc request of a secret 1", survey.hash, _word(place), device)


# --- send: person → both aggregators --------------------------------------------------------------


def receipt(survey: Survey, place: int, number: int, nonce: bytes) -> bytes:
    """The person signs it, the aggregators compare it, and the public list shows it.

    The dealer knows r. Without the nonce it would find x by trying all numbers.
    """
    # spec/people_messages.py, `receipt`
    return digest(b"umpc person 1", survey.hash, _word(place), _word(number), nonce)


def make_boxes(
    survey: Survey,
    box_keys: Sequence[bytes],
    place: int,
    number: int,
    nonce: bytes,
    signing_seed: Signing,
    box_secrets: Sequence[bytes],
) -> tuple[bytes, list[bytes]]:
    """A person's receipt, signed once, and a box with it for each aggregator.

    Args:
        box_keys: the aggregators' X25519 keys, in the study's order.
        number: x − r mod D. nonce: 32 random bytes.
        signing_seed: of the place's Ed25519 key.
        box_secrets: 32 random bytes for each box alone.

    Raises: MessageRefused if an aggregator's key is unusable.
    """
    # spec/people_messages.py, `send_number`
    told = receipt(survey, place, number, nonce)
    signature = signing_key(signing_seed).sign(told)
    text = number.to_bytes(NUMBER_BYTES, "little") + nonce + signature
    boxes = [
        _seal("box", (survey.hash, side, place), key, secret, text)
        for side, (key, secret) in enumerate(zip(box_keys, box_secrets, strict=True))
    ]
    return told, boxes


@dataclass(frozen=True)
class OpenedBox:
    """A box that an aggregator has opened. Its number is x − r mod D."""

    place: int
    number: int = field(repr=False)
    receipt: bytes


def open_box(
    survey: Survey,
    side: int,
    box_secret: Agreeing,
    place: int,
    place_key: bytes,
    box: bytes,
) -> OpenedBox:
    """An aggregator opens a box.

    Args: box_secret: of the aggregator's box key. place_key: the Ed25519 key of the place.

    Raises: MessageRefused, naming the fault.
    """
    check_place(survey, place)
    try:
        # spec/people_messages.py, `unseal`
        text = _unseal("box", (survey.hash, side, place), box_secret, box, BOX_BYTES)
    except (InvalidTag, ValueError) as error:
        raise MessageRefused(
            f"the box of place {place} does not open: it is made for another study, place or "
            "aggregator, or it was changed on its way. Send the device's own boxes again"
        ) from error
    number = int.from_bytes(text[:NUMBER_BYTES], "little")
    nonce, signature = text[NUMBER_BYTES:-SIGNATURE_BYTES], text[-SIGNATURE_BYTES:]
    # spec/people_messages.py, `accept`
    if number >= survey.cells:
        raise MessageRefused(
            f"a person's number is not below {survey.cells}, the number of cells, at place {place}"
        )
    told = receipt(survey, place, number, nonce)
    if not _signed_by(place_key, told, signature):
        raise MessageRefused(
            f"the message in the box of place {place} is not signed by the key of this place: use "
            "the token or the enrolment that belongs to the study"
        )
    return OpenedBox(place, number, told)


def check_again(former: bytes, opened: OpenedBox) -> None:
    """A place has one number. Args: former: the receipt on disk of the opened box's place.

    Raises: MessageRefused if the place had another number or another nonce.
    """
    # two numbers under one r are two votes
    if former != opened.receipt:
        raise MessageRefused(
            f"place {opened.place} has sent another message before, and a place has one: the first "
            "one stands. Tell the organiser if that was not you"
        )


def seal_list(survey: Survey, side: int, box_key: bytes, text: bytes, box_secret: bytes) -> bytes:
    """A site's list of linked rows, for the other site alone, which knows who sealed it.

    A digest of the text comes first, and the key of AES is made of it. So each text has a key of
    its own, also where a copy of a site's folder makes another one.

    Args: side: the receiver's. box_key: its key. box_secret: of the sender's own box key. text: it
    begins with a nonce, so its digest tests no guess.
    """
    # spec/linked.py, `seal_list`
    of_text = digest(b"umpc list of rows 1", text)
    return of_text + _seal("list of rows", (survey.hash, side, of_text), box_key, box_secret, text)


def open_list(survey: Survey, side: int, box_secret: bytes, sealed: bytes, sender: bytes) -> bytes:
    """A list in the box of `seal_list`. Args: sender: the other site's box key.

    Raises: StudyError.
    """
    # spec/linked.py, `open_list`: others could try guesses of all keys on the answer
    of_text, box = sealed[:32], sealed[32:]
    if box[:32] != sender:
        raise StudyError(
            "a list of linked rows came that is not sealed by the other site: run the study again, "
            "and ask the coordinator who made the list if it comes again"
        )
    try:
        return _unseal("list of rows", (survey.hash, side, of_text), box_secret, box, len(box))
    except (InvalidTag, ValueError) as error:
        raise StudyError(
            "the other site's list of linked rows does not open: it was made for another study or "
            "site, or changed on its way. Run the study again"
        ) from error


def opened_statement(survey: Survey, side: int, box_key: bytes) -> bytes:
    """An aggregator signs with its certificate that this box key is its own in this study."""
    return digest(b"umpc box key of people 1", survey.hash, _word(side), box_key)


def receipt_statement(survey: Survey, side: int, place: int, told: bytes) -> bytes:
    """An aggregator signs with its certificate that this receipt is on its disk."""
    return digest(b"umpc receipt of a person 1", survey.hash, _word(side), _word(place), told)


# --- compare: aggregator ↔ aggregator -------------------------------------------------------------


def row(place: int, told: bytes) -> bytes:
    """A row of a list, of `ROW_BYTES`. Args: told: the receipt."""
    return _word(place) + told


def both_have(own: Iterable[bytes], theirs: Iterable[bytes], other: str) -> Iterator[bytes]:
    """The rows that both lists have, one by one. It holds one part of each list.

    Args: own, theirs: parts of the lists, each of whole rows, by place. other: who sent `theirs`.

    Raises: RemoteProtocolError if the places of `theirs` do not ascend.
    """
    # spec/people.py, `counted`
    mine, last = rows_in(own), -1
    here = next(mine, None)
    for there in rows_in(theirs):
        place = _place(there)
        if place <= last or len(there) != ROW_BYTES:
            raise RemoteProtocolError(
                f"the list of people of {other} has rows that do not ascend by place: each "
                "place may be there once",
                culprit=other,
                step="compare",
            )
        last = place
        while here is not None and _place(here) < place:
            here = next(mine, None)
        if here == there:
            yield there


def rows_in(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The rows in parts of a list, each of whole rows."""
    for part in parts:
        yield from (part[at : at + ROW_BYTES] for at in range(0, len(part), ROW_BYTES))


def counted_statement(survey: Survey, rows: Sequence[bytes], dealt: bytes) -> bytes:
    """n, which everybody may read, and a digest that fixes every number and all keys.

    An aggregator makes one in a study. It signs `counted_text` of it, not the statement itself.

    Args: rows: those that both have, each of `ROW_BYTES`. dealt: the digest of the keys.

    Raises: TooFewRecords if too few people came.
    """
    # spec/people.py, `counted_statement`
    if len(rows) < max(2, survey.fewest):
        raise TooFewRecords(
            f"{len(rows)} people sent a message to both aggregators, and the study promises its "
            f"people at least {max(2, survey.fewest)}: there is no result"
        )
    fixed = digest(b"umpc counted people 1", survey.hash, dealt, *rows)
    return _word(len(rows)) + fixed


def counted_text(survey: Survey, statement: bytes) -> bytes:
    """Both aggregators sign it with their certificates. It names the study."""
    return digest(b"umpc signed people 1", survey.hash, statement)


def check_counted(
    survey: Survey,
    statement: bytes,
    keys: Sequence[bytes],
    signatures: Sequence[bytes],
    blamed: str,
) -> int:
    """Dealer, coordinator and aggregators: both aggregators signed one list.

    Args: keys: the points of both certificates. blamed: who brought statement and signatures.

    Returns: n.

    Raises: RemoteProtocolError.
    """
    # spec/people.py, `check_counted`
    text = counted_text(survey, statement)
    for key, signature in zip(keys, signatures, strict=True):
        if len(statement) != STATEMENT_BYTES or not is_signature(key, text, signature):
            raise RemoteProtocolError(
                f"{blamed} brought a list of people that not both aggregators have signed: they "
                "have different people or different keys",
                culprit=blamed,
                step="compare",
            )
    return _place(statement)


def check_kept(kept: bytes, counted: bytes, name: str) -> None:
    """An aggregator releases for the list by which it added up, as both signed it, byte by byte.

    Args: kept: statement and signatures on its disk. counted: those of the study. name: its own.

    Raises: StudyError.
    """
    # spec/people.py, `keep_counted`: another spelling would be another study to release
    if kept != counted:
        raise StudyError(
            f"{name} has signed another list of people than the study has: run the study file "
            "again, and it takes the list from both aggregators"
        )


# --- sealing and signing --------------------------------------------------------------------------


def _seal(use: str, about: tuple[bytes | int, ...], to: bytes, secret: bytes, text: bytes) -> bytes:
    """The sender's public key, and the text under AES-256-GCM.

    Args: about: what the key is bound to. secret: 32 random bytes for this text alone.
    """
    private = X25519PrivateKey.from_private_bytes(secret)
    try:
        shared = private.exchange(X25519PublicKey.from_public_bytes(to))
    except ValueError as error:
        raise MessageRefused(
            "an X25519 key that came is unusable: its owner must make a new one"
        ) from error
    sender = private.public_key().public_bytes_raw()
    key = derive(shared, use, *about, sender, to)
    return sender + AESGCM(key).encrypt(_NO_NONCE, text, None)


def _unseal(
    use: str,
    about: tuple[bytes | int, ...],
    secret: Agreeing,
    sealed: bytes,
    size: int,
) -> bytes:
    """The inverse of `_seal`. Raises: InvalidTag, ValueError."""
    if len(sealed) != size:
        raise ValueError("another length")
    sender = sealed[:32]
    private = agreeing_key(secret)
    shared = private.exchange(X25519PublicKey.from_public_bytes(sender))
    key = derive(shared, use, *about, sender, private.public_key().public_bytes_raw())
    return AESGCM(key).decrypt(_NO_NONCE, sealed[32:], None)


def agreeing_key(secret: Agreeing) -> X25519PrivateKey:
    """The X25519 key of 32 bytes."""
    return X25519PrivateKey.from_private_bytes(secret) if isinstance(secret, bytes) else secret


def signing_key(seed: Signing) -> Ed25519PrivateKey:
    """The Ed25519 key of 32 bytes."""
    return Ed25519PrivateKey.from_private_bytes(seed) if isinstance(seed, bytes) else seed


def _signed_by(key: bytes, statement: bytes, signature: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, statement)
    except (InvalidSignature, ValueError):
        return False
    return True


def _word(number: int) -> bytes:
    return number.to_bytes(8, "little")


def _place(words: bytes) -> int:
    """The number at the beginning of a row or a statement."""
    return int.from_bytes(words[:8], "little")
