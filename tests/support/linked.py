"""A study of linked rows in memory: its dealer, and the stores of both sites."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np

from tests.support.checked_people import PeopleRun
from tests.support.people import linked_study, with_terms
from tests.support.protocols import coordinator_of
from tests.support.studies import LOUD, Entropy
from umpc.crypto.signing import Credentials
from umpc.dealer.people import PeopleDealer
from umpc.node.linked_store import LinkedStore
from umpc.people.linked import keys_digest
from umpc.people.messages import seal_list
from umpc.protocols.people.settings import seconds_of
from umpc.protocols.people.split import split_of
from umpc.protocols.people.terms import columns_of, key_bytes_of, messages_of, with_counted
from umpc.protocols.registry import checked, protocol_of
from umpc.simulation import AUTHORITY
from umpc.study.document import Study
from umpc.study.settings import HONEST

NOW = float(seconds_of("2026-12-01T08:00:00Z"))


class LinkedPair:
    """A dealer and two sites.

    Args: values: x of each row, at the first site, and y. entropy: of all three.
    dealt: by site, the seed and the parts of the keys that came from the dealer.
    """

    def __init__(
        self,
        folder: Path,
        values: list[np.ndarray],
        adversary: str = HONEST,
        entropy: Callable[[int], bytes] = os.urandom,
        **bounds,
    ):
        self.folder, self.values, self.now, self.entropy = folder, values, NOW, entropy
        self.rows = len(values[0])
        facts = {"adversary": adversary, "epsilon": LOUD, **bounds}
        self.study = checked(with_terms(linked_study(**facts), rows=self.rows))
        self.survey, self.split = messages_of(self.study), split_of(self.study)
        self.names = [node.name for node in self.study.nodes]
        self.owns: list[Credentials] = [AUTHORITY.credentials(name) for name in self.names]
        self.points = [AUTHORITY.verify(own.certificate).key for own in self.owns]
        self.dealer = PeopleDealer(folder / "dealer", now=lambda: NOW, entropy=entropy)
        self.dealer.open_study(self.study, ())
        self.reads = [0, 0]
        self.stores = [self.store(side) for side in (0, 1)]
        self.dealt = [self._open(side) for side in (0, 1)]

    def store(self, side: int) -> LinkedStore:
        folder = self.folder / self.names[side]
        given = folder, self.names[side], lambda: self.owns[side]
        return LinkedStore(*given, now=lambda: self.now, entropy=self.entropy)

    def _open(self, side: int) -> list[bytes]:
        store, study_hash = self.stores[side], self.survey.hash
        store.open_study(self.study, ())
        seed, *keys = parts = list(self.dealer.deal(study_hash, self.names[side], 0))
        store.take_seed(study_hash, seed)
        for part in keys:
            store.take_keys(study_hash, part)
        total = self.survey.places * key_bytes_of(self.study)
        assert list(self.dealer.deal(study_hash, self.names[side], total)) == []
        return parts

    def restart(self, side: int) -> None:
        self.stores[side].close()
        self.stores[side] = self.store(side)

    def stop(self) -> None:
        self.dealer.close()
        for store in self.stores:
            store.close()

    def box_key(self, side: int) -> bytes:
        return self.stores[side].opened(self.survey.hash)[0]

    def sealed(self, side: int, text: bytes) -> bytes:
        """A list of any text, sealed by a site that lies."""
        file = self.folder / self.names[side] / "people.sqlite"
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as db:
            ((secret,),) = db.execute("SELECT box_secret FROM studies")
        return seal_list(self.survey, 1 - side, self.box_key(1 - side), text, secret)

    def listed(self, side: int) -> bytes:
        """A site's list, sealed to the other one."""

        def read():
            self.reads[side] += 1
            (field,) = self.split.fields[side]
            cells = self.split.places(side, {field.name: self.values[side]})
            return keys_digest(map(str, range(self.rows))), cells

        return self.stores[side].listed(self.survey.hash, self.box_key(1 - side), read)

    def count(self, side: int, sealed: bytes) -> tuple[bytes, bytes]:
        """A site signs. Args: sealed: the list that comes."""
        return self.stores[side].count(self.survey.hash, [sealed], self.names[1 - side])

    def signed(self) -> list[tuple[bytes, bytes]]:
        """Both list, and sign."""
        lists = [self.listed(side) for side in (0, 1)]
        return [self.count(side, lists[1 - side]) for side in (0, 1)]

    def add_up(self, signed: list[tuple[bytes, bytes]], side: int) -> None:
        given = signed[0][0], self.points, [signature for _, signature in signed]
        self.stores[side].add_up(self.survey.hash, *given, lambda done, total: None)

    def counted(self, signed: list[tuple[bytes, bytes]]) -> Study:
        text = signed[0][0] + b"".join(signature for _, signature in signed)
        return with_counted(self.study, text.hex())

    def shares(self, signed: list[tuple[bytes, bytes]]) -> list[np.ndarray]:
        """Both shares, once they are added up."""
        return [store.share(self.counted(signed))[0] for store in self.stores]


class LinkedRun(PeopleRun):
    """The grid of both sites over their shares."""

    def __init__(self, pair: LinkedPair, signed: list[tuple[bytes, bytes]], label: str):
        self.entropy = Entropy(label)
        self.study = pair.counted(signed)
        checks = self.study.adversary != HONEST
        self.alpha = pair.dealer.alpha(pair.survey.hash) if checks else None
        self.coordinator = coordinator_of(self.study)
        self.nodes = [
            protocol_of(self.study).node(
                own, self.study, columns_of(share), pair.rows, self.entropy
            )
            for own, share in zip(pair.owns, pair.shares(signed), strict=True)
        ]

    def prepare(self) -> LinkedRun:
        super().prepare()
        self.dealing.alpha = self.alpha
        return self
