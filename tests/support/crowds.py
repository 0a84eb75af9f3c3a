"""A study of people with its dealer and its people in memory, for stores of two aggregators."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from tests.support.studies import Entropy, make_study
from umpc.crypto import field
from umpc.crypto.prg import FixedKeyHash
from umpc.crypto.signing import MemoryAuthority
from umpc.errors import StudyError
from umpc.mpc.fss import point
from umpc.node import people_store
from umpc.node.people_store import Adding, PeopleStore, added_here
from umpc.people import messages, places
from umpc.people.messages import Survey
from umpc.protocols.grid.binding import grid_of
from umpc.protocols.people.settings import PeopleSettings, PeopleTerms
from umpc.protocols.people.terms import survey_of, terms_of
from umpc.study.document import Study
from umpc.study.parts import Participant
from umpc.study.settings import HONEST, LYING_NODES
from umpc.testing import limited

AUTHORITY = MemoryAuthority("people")
NAMES = ("node-0", "node-1")
DEALER = Participant("dealer", "127.0.0.1:1")
OPENS, CLOSES = 1_800_000_000, 1_800_086_400
"""2027-01-15T08:00:00Z and a day later."""
KEYS = [
    AUTHORITY.credentials(name).verify(AUTHORITY.credentials(name).certificate).key
    for name in NAMES
]


class Clock:
    """A clock that a test sets."""

    def __init__(self, now: float = OPENS):
        self.now = now

    def __call__(self) -> float:
        return self.now


class Crowd:
    """The dealer and all people of one study. Everything follows from the label.

    Args: widest: x and y are 0 .. widest each, so D is (widest + 1)². alpha: where aggregators may
    lie.
    """

    def __init__(
        self,
        label: str,
        count: int,
        widest: int = 3,
        seeds: Sequence[bytes] = (),
        alpha: int | None = None,
        **terms,
    ):
        self.alpha = alpha
        self.entropy = Entropy(label)
        pairs = list(places.new_tokens(count, self.entropy))
        self.signing_seeds = list(seeds) or [seed for seed, _ in pairs]
        self.place_keys = [places.place_key(seed) for seed in self.signing_seeds]
        digest, _ = places.keys_digest(self.place_keys)
        given = {
            "keys": digest,
            "places": count,
            "opens": "2027-01-15T08:00:00Z",
            "closes": "2027-01-16T08:00:00Z",
        }
        bounds = ("0", str(widest))
        study = make_study(x=bounds, y=bounds, max_colluding=1, name=label)
        settings = PeopleSettings(people=PeopleTerms(**given | terms), dealer=DEALER)
        grade = HONEST if alpha is None else LYING_NODES
        self.study = study.replaced(settings=settings, adversary=grade)
        found = terms_of(self.study)
        self.hash = survey_of(self.study).hash
        self.survey = Survey(self.hash, grid_of(self.study).cells, count, found.fewest)
        self.secrets = [self.entropy(32) for _ in range(count)]
        self.seeds = [self.entropy(32) for _ in NAMES]

    def blocks(self) -> Iterator[bytes]:
        """The dealer's keys, block by block."""
        for block in self.survey.blocks():
            roots = [
                messages.roots(self.survey, seed, block.start, block.stop) for seed in self.seeds
            ]
            cells = messages.offsets(
                self.survey, block.start, self.secrets[block.start : block.stop]
            )
            tree = FixedKeyHash(self.survey.hash_key)
            given = self.survey.cells, cells, np.stack(roots), tree
            yield point.generate(*given, alpha=self.alpha).encode()

    def number(self, place: int, cell: int) -> int:
        """x − r mod D."""
        r = messages.offset(self.survey, place, self.secrets[place])
        return (cell - r) % self.survey.cells

    def boxes(
        self, keys: Sequence[bytes], place: int, numbers: Sequence[int], label: str = ""
    ) -> list[bytes]:
        """A person's boxes of these numbers for both aggregators, the same at each call.

        Args: keys: of boxes. label: another one makes another nonce.
        """
        entropy = Entropy(f"{self.entropy.seed} {place} {label} {numbers[0]}")
        nonce, *secrets = (entropy(32) for _ in (0, *keys))
        seed = self.signing_seeds[place]
        return [
            messages.make_boxes(self.survey, keys, place, number, nonce, seed, secrets)[1][side]
            for side, number in enumerate(numbers)
        ]


def store_at(
    folder: Path, side: int, now: Callable[[], float], cap: Fraction | None = None
) -> PeopleStore:
    """The store of one of the two aggregators."""
    name = NAMES[side]
    credentials = AUTHORITY.credentials(name)
    return PeopleStore(folder, name, lambda: credentials, now=now, entropy=os.urandom, cap=cap)


def opened(store: PeopleStore, crowd: Crowd, side: int) -> bytes:
    """Open a study, from wherever it stands. Returns: the box key."""
    store.open_study(crowd.study, crowd.place_keys)
    store.take_seed(crowd.hash, crowd.seeds[side])
    come = 0
    for block in crowd.blocks():
        if come >= store.keys_so_far(crowd.hash):
            store.take_keys(crowd.hash, block)
        come += len(block)
    key, _ = store.opened(crowd.hash)
    return key


def histogram(crowd: Crowd, shares: Sequence[np.ndarray]) -> list[int]:
    """The table whose shares these are."""
    assert all(each.shape[-1] == crowd.survey.cells for each in shares)
    if crowd.alpha is None:
        return (shares[0] + shares[1]).tolist()
    table, tags = field.add(shares[0], shares[1])
    assert tags.tolist() == [crowd.alpha * each % field.P for each in table.tolist()]
    return table.tolist()


def counted_study(crowd: Crowd, statement: bytes, signatures: Sequence[bytes]) -> Study:
    """The study that the grid runs."""
    terms = terms_of(crowd.study)
    counted = b"".join((statement, *signatures)).hex()
    kept = {key: getattr(terms, key) for key in terms.__struct_fields__} | {"counted": counted}
    return crowd.study.replaced(people=PeopleTerms(**kept))


@dataclass
class Pair:
    """Two aggregators and their people."""

    folder: Path
    crowd: Crowd
    clock: Clock
    cap: Fraction | None = None

    def __post_init__(self):
        self.stores: list[PeopleStore] = []
        self.keys: list[bytes] = []
        self.start()

    def start(self) -> None:
        self.stores = [
            store_at(self.folder / name, s, self.clock, self.cap) for s, name in enumerate(NAMES)
        ]

    def open(self) -> Pair:
        self.keys = [opened(store, self.crowd, side) for side, store in enumerate(self.stores)]
        return self

    def stop(self) -> None:
        for store in self.stores:
            store.close()

    def restart(self) -> None:
        self.stop()
        self.start()

    def send(self, place: int, cell: int, sides: tuple[int, ...] = (0, 1)) -> list:
        number = self.crowd.number(place, cell)
        boxes = self.crowd.boxes(self.keys, place, [number, number])
        return [self.stores[s].submit(self.crowd.hash, [(place, boxes[s])])[0] for s in sides]

    def close(self) -> None:
        for store in self.stores:
            store.close_study(self.crowd.hash)

    def count(self) -> list[tuple[bytes, bytes]]:
        h = self.crowd.hash
        return [
            store.count(h, list(self.stores[1 - side].rows(h)), NAMES[1 - side])
            for side, store in enumerate(self.stores)
        ]

    def add_up(self, add: Adding = added_here) -> list[int]:
        """Count and add up, and put both shares together."""
        signed = self.count()
        assert signed[0][0] == signed[1][0]
        statement, signatures = signed[0][0], [signature for _, signature in signed]
        study = counted_study(self.crowd, statement, signatures)
        shares = []
        for store in self.stores:
            given = self.crowd.hash, statement, KEYS, signatures
            store.add_up(*given, lambda done, of: None, add)
            share, n = store.share(study)
            shares.append(share)
            assert n == int.from_bytes(statement[:8], "little")
        return histogram(self.crowd, shares)


CELLS = {0: 3, 1: 7, 2: 3, 3: 15, 4: 0, messages.PLACES_AT_ONCE: 9}
"""Place → cell of the people of `whole_way`: they take two blocks of keys."""


def whole_way(folder: Path, tell: Callable[[str], None], some: int = len(CELLS)) -> list[int]:
    """A study from wherever its stores stand to its histogram.

    Args: tell: is told each receipt. some: the first people that come now, if it is still open.
    """
    clock = Clock()
    pair = Pair(folder, Crowd("whole way", messages.PLACES_AT_ONCE + 2), clock)
    crowd = pair.crowd
    with suppress(StudyError):  # closed before
        pair.open()
        for place, cell in list(CELLS.items())[:some]:
            for side, told in enumerate(pair.send(place, cell)):
                tell(f"{side} {place} {told[:32].hex()}")
    if some < len(CELLS):
        pair.stop()
        return []
    clock.now = CLOSES
    pair.close()
    found = pair.add_up()
    for store in pair.stores:
        listed = b"".join(store.counted(crowd.hash))
        assert len(listed) == len(CELLS) * messages.ROW_BYTES
        for at in range(0, len(listed), messages.ROW_BYTES):
            place = int.from_bytes(listed[at : at + 8], "little")
            tell(f"listed {place} {listed[at + 8 : at + 40].hex()}")
    pair.stop()
    return found


if __name__ == "__main__":
    # a child process that a failpoint kills
    with limited(people_store, BLOCKS_AT_ONCE=1):
        whole_way(Path(sys.argv[1]), lambda line: print(line, flush=True))
