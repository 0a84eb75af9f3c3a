"""The places of a study: their public keys, the file that lists them, and tokens.

A place has an Ed25519 key, and belongs to whoever holds its seed. `people.keys` lists the public
keys in base64, one a line; the line's number, counted from 0, is the place. A token is the text
that an organiser gives to a person: place and seed. With an enrolment a device made the key itself,
and there is no token.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from umpc.crypto.prg import digest
from umpc.errors import MessageRefused, StudyError
from umpc.people.messages import Entropy

KEY_BYTES, SEED_BYTES = 32, 32
_PLACE_BYTES, _SUM_BYTES, _GROUP = 5, 3, 8


def new_tokens(count: int, entropy: Entropy) -> Iterator[tuple[bytes, bytes]]:
    """New key pairs, one a place: the signing seed, and the public key."""
    for _ in range(count):
        seed = entropy(SEED_BYTES)
        yield seed, place_key(seed)


def place_key(signing_seed: bytes) -> bytes:
    """The public key of a seed."""
    return Ed25519PrivateKey.from_private_bytes(signing_seed).public_key().public_bytes_raw()


def token_text(place: int, signing_seed: bytes) -> str:
    """A token as people type or paste it: 64 small letters and digits in 8 groups.

    Three bytes of a checksum are among them.
    """
    body = place.to_bytes(_PLACE_BYTES, "little") + signing_seed
    text = base64.b32encode(body + _checksum(body)).decode().lower()
    return "-".join(text[at : at + _GROUP] for at in range(0, len(text), _GROUP))


def read_token(text: str) -> tuple[int, bytes]:
    """Place and signing seed. Spaces, hyphens, and small or capital letters make no difference.

    Raises: MessageRefused.
    """
    letters = "".join(text.split()).replace("-", "").upper()
    try:
        whole = base64.b32decode(letters)
    except ValueError:
        whole = b""
    body = whole[: _PLACE_BYTES + SEED_BYTES]
    if len(body) != _PLACE_BYTES + SEED_BYTES or whole != body + _checksum(body):
        raise MessageRefused(
            "a token has 64 letters and digits, from a to z and 2 to 7, and this text is none or "
            "has a typing error: copy the token again from where you got it"
        )
    return int.from_bytes(body[:_PLACE_BYTES], "little"), body[_PLACE_BYTES:]


def _checksum(body: bytes) -> bytes:
    return digest(b"umpc token 1", body)[:_SUM_BYTES]


def write_keys(path: Path, keys: Iterable[bytes]) -> None:
    """Write a list of keys, by place. It is public."""
    with path.open("w", encoding="ascii") as file:
        file.writelines(map(key_line, keys))


def key_line(key: bytes) -> str:
    """A key as a line of a list, or of a device's own file."""
    return base64.b64encode(key).decode() + "\n"


def read_key(line: str | bytes) -> bytes:
    """The inverse of `key_line`; empty for another text."""
    try:
        key = base64.b64decode(line.strip(), validate=True)
    except ValueError:
        return b""
    return key if len(key) == KEY_BYTES else b""


def read_keys(path: Path) -> Iterator[bytes]:
    """The keys of a list, by place, one by one. Raises: StudyError, naming the line."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                key = read_key(line)
                if not key:
                    raise StudyError(
                        f"{path}, line {number}: a key of {KEY_BYTES} bytes in base64 was expected"
                    )
                yield key
    except OSError as error:
        raise StudyError(
            f"the list of keys {path} cannot be read: {error.strerror or error}"
        ) from error


def check_list(held: bytes, digest: str, places: int) -> None:
    """The keys of all places, one after the other, are those of a study.

    Args: digest: as of `keys_digest`; empty for linked rows, which have no keys of places.

    Raises: StudyError.
    """
    keys = (held[at : at + KEY_BYTES] for at in range(0, len(held), KEY_BYTES))
    if (held or digest) and keys_digest(keys) != (digest, places):
        raise StudyError(
            "a list of keys of places came that is not the study's: its digest or its length "
            "differs. Send the file that `keys` under [people] names"
        )


def keys_digest(keys: Iterable[bytes]) -> tuple[str, int]:
    """The digest of a list in hexadecimal, and the number of its places.

    It holds the keys themselves, and nothing more.

    Raises: StudyError if a key is there twice: one person would have two places.
    """
    found = hashlib.sha256(b"umpc keys of places 1")
    held = bytearray()
    for key in keys:
        found.update(key)
        held += key.ljust(KEY_BYTES, b"\0")
    # whole keys are compared, also beyond a zero byte
    ordered = np.frombuffer(held, dtype=f"S{KEY_BYTES}")
    ordered.sort()
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(twice):
        shown = base64.b64encode(twice[0].ljust(KEY_BYTES, b"\0")).decode()
        raise StudyError(
            f"the key {shown} is in the list of places twice: a person would have two places"
        )
    return found.hexdigest(), len(ordered)
