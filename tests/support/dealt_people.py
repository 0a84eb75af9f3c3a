"""A study of people at a dealer: its places, its aggregators, and what they make of what came."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from tests.support.people import people_study, with_terms
from tests.support.studies import Entropy
from umpc.crypto.prg import FixedKeyHash
from umpc.dealer.people import PeopleDealer
from umpc.errors import MessageRefused
from umpc.mpc.fss.point import PointKeys, expand
from umpc.people.messages import Survey, open_secret, roots, secret_request
from umpc.people.places import keys_digest, new_tokens
from umpc.protocols.people.settings import seconds_of
from umpc.protocols.people.terms import key_bytes_of, messages_of
from umpc.study.document import Study
from umpc.study.settings import HONEST

OPENS, CLOSES = "2026-12-01T08:00:00Z", "2026-12-08T08:00:00Z"
DURING, AFTER = seconds_of(OPENS) + 60.0, float(seconds_of(CLOSES))
FIRST, SECOND = "node-0", "node-1"
SIGNING = 8
"""The places at the beginning that somebody can sign for."""


@cache
def tokens() -> list[tuple[bytes, bytes]]:
    """Signing seed and key of the first places."""
    return list(new_tokens(SIGNING, Entropy("tokens")))


@cache
def keys_of(places: int) -> tuple[bytes, ...]:
    """The keys of all places, in this process and in any other."""
    others = Entropy("keys of places")
    own = [key for _, key in tokens()][:places]
    return (*own, *(others(32) for _ in range(places - len(own))))


def open_study(
    places: int, name: str = "people", adversary: str = HONEST, **terms: object
) -> Study:
    """A study of these places."""
    digest, count = keys_digest(keys_of(places))
    facts = {"keys": digest, "places": count, "opens": OPENS, "closes": CLOSES}
    return with_terms(people_study(name=name, adversary=adversary), **(facts | terms))


class DealtPeople:
    """A dealer and one study that is opened.

    now: may be moved. heard: requests of secrets, each with its reply.
    """

    def __init__(
        self,
        folder: Path,
        places: int,
        entropy: object = None,
        name: str = "people",
        adversary: str = HONEST,
    ):
        self.now = DURING
        self.heard: list[tuple[object, object]] = []
        chosen = {} if entropy is None else {"entropy": entropy}
        self.dealer = PeopleDealer(folder, now=lambda: self.now, **chosen)
        self.study = open_study(places, name, adversary)
        self.survey = messages_of(self.study)
        self.dealer.open_study(self.study, keys_of(places))

    def __enter__(self) -> DealtPeople:
        return self

    def __exit__(self, *_: object) -> None:
        self.dealer.close()

    @property
    def total(self) -> int:
        """Bytes of all keys."""
        return self.survey.places * key_bytes_of(self.study)

    def deal(self, aggregator: str = FIRST, already: int = 0) -> list[bytes]:
        """Seed, and blocks of keys."""
        return list(self.dealer.deal(self.survey.hash, aggregator, already))

    def confirm(self) -> None:
        """Both say that they have all keys."""
        for aggregator in (FIRST, SECOND):
            assert self.deal(aggregator, self.total) == []

    def ask(self, place: int, device: bytes, signer: int | None = None) -> bytes | MessageRefused:
        """The dealer's reply.

        Args: device: its secret. signer: the place whose key signs, by default this one.
        """
        seed, _ = tokens()[place if signer is None else signer]
        request = place, *secret_request(self.survey, place, seed, device)
        (reply,) = self.dealer.secrets(self.survey.hash, [request])
        self.heard.append((request, reply))
        return reply

    def secret(self, place: int, device: bytes) -> bytes:
        """The secret of a place."""
        reply = self.ask(place, device)
        assert isinstance(reply, bytes)
        return open_secret(self.survey, place, device, reply)


def opened_cells(
    survey: Survey, seeds: Sequence[bytes], blocks: Iterable[bytes], authenticated: bool = False
) -> np.ndarray:
    """The vectors of both aggregators together, (places, cells): 1 at r and 0 elsewhere.

    Authenticated keys have (places, 2·cells), in F.
    """
    found = []
    tree_hash = FixedKeyHash(survey.hash_key)
    for block, places in zip(blocks, survey.blocks(), strict=True):
        keys = PointKeys.decode(memoryview(block), survey.cells, len(places), authenticated)
        both = [
            expand(side, keys, roots(survey, seed, places.start, places.stop), tree_hash)
            for side, seed in enumerate(seeds)
        ]
        found.append(keys.ring.plus(both[0], both[1]))
    return np.concatenate(found)


def device_key(secret: bytes) -> bytes:
    """The public key of a device."""
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()
