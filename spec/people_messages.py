"""Messages of people with one value each: keys of places, a fetched secret, boxes, receipts.

`people.py` says who sends them when, and `docs/people.md` says against which attack each part is.
"""

import hashlib
from typing import Any

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from spec.prg import derive, digest
from spec.refused import Refused, require
from spec.zero_shares import public_key, shared_seed

Study = dict[str, Any]
"""hash; cells (D); fewest people; people: the Ed25519 key of each place; names and keys (of
certificates) of both aggregators; relay: the coordinator. The hash is of the document that has all
of these, with the digest of the places' keys, bins and closing time. box_keys (X25519, made for
this study) of both, which they sign (`opened_statement`); places_at_once, of a block of keys."""
Person = dict[str, Any]
"""place, secret; cell; signing_seed of the place's key; randomness: nonce (32 bytes), box_secrets
(of X25519), one for each aggregator. A box secret seals one text: who asks again sends the same
bytes."""
Row = tuple[int, int, bytes]
"""An aggregator's row of a person: place, number, and the receipt."""
NUMBER_BYTES = 4
NONCE_BYTES = 32
BOX_BYTES = 32 + NUMBER_BYTES + NONCE_BYTES + 64 + 16
"""The sender's key, the sealed text, and its tag: every box has this size."""


def seal(use: str, about: list[Any], to: bytes, secret: bytes, text: bytes) -> bytes:
    """The sender's public key, and the text under AES-256-GCM. Each key seals one text.

    Args: about: a text about something else does not open. secret: of the sender, for this text.
    """
    shared = shared_seed(secret, to, None)
    key = derive(shared, use, *about, public_key(secret), to)
    return public_key(secret) + AESGCM(key).encrypt(bytes(12), text, None)


def unseal(use: str, about: list[Any], secret: bytes, sealed: bytes, size: int) -> bytes:
    """The inverse of `seal`. Args: secret: of the receiver. size: of the text."""
    require(len(sealed) == 32 + size + 16, f"a {use} opens")
    try:
        shared = shared_seed(secret, sealed[:32], None)
        key = derive(shared, use, *about, sealed[:32], public_key(secret))
        return AESGCM(key).decrypt(bytes(12), sealed[32:], None)
    except (InvalidTag, Refused):
        raise Refused(f"a {use} opens") from None


def signed_at(study: Study, place: int, text: bytes, signature: bytes) -> bool:
    """Whether the key of a place signed a text (Ed25519, RFC 8032)."""
    try:
        Ed25519PublicKey.from_public_bytes(study["people"][place]).verify(signature, text)
    except InvalidSignature:
        return False
    return True


def sign_at(seed: bytes, text: bytes) -> bytes:
    """Args: seed: of the key of a place."""
    return Ed25519PrivateKey.from_private_bytes(seed).sign(text)


def place_key(seed: bytes) -> bytes:
    """The public key of a place."""
    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()


def places_digest(keys: list[bytes]) -> str:
    """The digest of the list of places' keys, which the study's document has."""
    require(len(set(keys)) == len(keys), "each place has a key of its own")
    return hashlib.sha256(b"umpc keys of places 1" + b"".join(keys)).hexdigest()


# --- fetch: person → dealer → person ---


def request_statement(study: Study, place: int, device: bytes) -> bytes:
    """The key of a place signs it. Args: device: the public key of an X25519 secret of the device,
    which keeps it until it has the place's secret."""
    return digest(b"umpc request of a secret 1", study["hash"], place.to_bytes(8, "little"), device)


def request_secret(study: Study, place: int, seed: bytes, device_secret: bytes) -> list[bytes]:
    """A person's request: its device, and a signature. Args: seed: of the key of the place."""
    device = public_key(device_secret)
    return [device, sign_at(seed, request_statement(study, place, device))]


def answer_request(
    study: Study,
    answered: dict[int, bytes],
    place: int,
    request: list[bytes],
    secret: bytes,
    sealing_secret: bytes,
) -> bytes:
    """The dealer's answer. Args: answered: place → device, of all answers so far, on its disk.

    A place has one device, so a secret that somebody else fetched first is missing at the person,
    who notices. A device that asks again gets the same answer.
    """
    device, signature = request
    require(0 <= place < len(study["people"]), "a place is the study's")
    statement = request_statement(study, place, device)
    require(signed_at(study, place, statement, signature), "the key of a place asks")
    require(answered.get(place, device) == device, "a place has one device")
    return seal("person's secret", [study["hash"], place], device, sealing_secret, secret)


def open_answer(study: Study, place: int, device_secret: bytes, sealed: bytes) -> bytes:
    """The person's secret. An answer to another study, place or device does not open."""
    return unseal("person's secret", [study["hash"], place], device_secret, sealed, 32)


# --- send: person → both aggregators ---


def offset(study: Study, place: int, secret: bytes) -> int:
    """r, uniform but for D/2^128: person and dealer know it, and nobody else.

    It is made of the study's hash and the place, so no number serves two of them.
    """
    word = int.from_bytes(derive(secret, "person's cell", study["hash"], place)[:16], "little")
    return word * study["cells"] >> 128


def receipt(study: Study, place: int, number: int, nonce: bytes) -> bytes:
    """The person signs it, the aggregators compare it, and the public list shows it.

    The dealer knows r. Without the nonce it would find x by trying all numbers.
    """
    numbers = [each.to_bytes(8, "little") for each in (place, number)]
    return digest(b"umpc person 1", study["hash"], *numbers, nonce)


def send(study: Study, person: Person) -> list[bytes]:
    """A person's two boxes, which may go through anybody but are opened by one aggregator each."""
    number = (person["cell"] - offset(study, person["place"], person["secret"])) % study["cells"]
    return send_number(study, person, [number, number])


def send_number(study: Study, person: Person, numbers: list[int]) -> list[bytes]:
    """The boxes of these numbers, one for each aggregator. An honest person has one number."""
    boxes = []
    for side, number in enumerate(numbers):
        told = receipt(study, person["place"], number, person["nonce"])
        signature = sign_at(person["signing_seed"], told)
        text = number.to_bytes(NUMBER_BYTES, "little") + person["nonce"] + signature
        about = [study["hash"], side, person["place"]]
        boxes.append(seal("box", about, study["box_keys"][side], person["box_secrets"][side], text))
    return boxes


def accept(
    study: Study, side: int, secret: bytes, stored: list[Row], place: int, box: bytes
) -> list[Row]:
    """An aggregator takes one message. Returns: what it stores, before the receipt leaves.

    Args: stored: all rows on its disk. A row that comes again changes nothing, so whoever got no
    receipt asks again.
    """
    require(0 <= place < len(study["people"]), "a place is the study's")
    text = unseal("box", [study["hash"], side, place], secret, box, BOX_BYTES - 48)
    number = int.from_bytes(text[:NUMBER_BYTES], "little")
    nonce, signature = text[NUMBER_BYTES:-64], text[-64:]
    require(number < study["cells"], "a number is a cell")
    told = receipt(study, place, number, nonce)
    require(signed_at(study, place, told, signature), "a person signed the number")
    # two numbers under one r are two votes; an aggregator that has both knows how they differ
    former = [row for row in stored if row[0] == place]
    require(former in ([], [(place, number, told)]), "one number a place")
    return stored if former else [*stored, (place, number, told)]


def opened_statement(study: Study, side: int) -> bytes:
    """An aggregator signs its box key with its certificate, and a device checks that."""
    key = study["box_keys"][side]
    return digest(b"umpc box key of people 1", study["hash"], side.to_bytes(8, "little"), key)


def receipt_statement(study: Study, side: int, place: int, told: bytes) -> bytes:
    """An aggregator signs it once the row is on its disk: it had this person's message in time."""
    numbers = [each.to_bytes(8, "little") for each in (side, place)]
    return digest(b"umpc receipt of a person 1", study["hash"], *numbers, told)
