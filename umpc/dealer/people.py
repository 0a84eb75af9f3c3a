"""The dealer's disk and logic for studies of people (docs/people.md), without a network.

A study is opened with the keys of its places. Each place gets a fresh secret, of which its cell r
is made, and each aggregator gets a seed of roots. All of that is on disk before anything leaves.
The dealt keys follow from it alone, and are made anew whenever an aggregator asks. So a dealer that
dies while it deals goes on with the same bytes, and never deals other keys over the same roots. No
device gets a secret before both aggregators have all keys: what is fetched is deleted. The cells of
linked rows (docs/linked.md) follow from both seeds, and no row has a secret.

| on disk | until |
|---|---|
| the secret of a place | a device has fetched it, or the study closes |
| the sealed answer to that device | the study closes |
| the list of places | the study closes |
| D1, of linked rows | the study closes |
| seeds | both aggregators have all keys, or the study closes |
| α, where aggregators may lie | `KEPT_SECONDS` after the closing time |
| the study's hash, with what all may know | for ever: such a study is never dealt again |

A folder belongs to one process. Its database overwrites what it deletes; its log has older pages
until `sweep` empties it.

Cost: 6 µs for a place's keys on one core, nearly all of it for r, and once for each aggregator; 64
bytes of a place on disk. Threads gain nothing, since r is made by many short calls.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from umpc.crypto.prg import SEED_BYTES, FixedKeyHash
from umpc.crypto.prime_field import PRIME
from umpc.errors import ConfigError, MessageRefused, RemoteProtocolError, StudyError
from umpc.failpoints import failpoint
from umpc.mpc.fss.point import generate, key_bytes
from umpc.people.disk import Disk
from umpc.people.linked import coordinates
from umpc.people.messages import (
    PLACES_AT_ONCE,
    SECRET_BYTES,
    Survey,
    check_device,
    check_secret_request,
    offsets,
    roots,
    seal_secret,
)
from umpc.people.places import KEY_BYTES, check_list
from umpc.protocols.people.settings import LinkedSettings, seconds_of
from umpc.protocols.people.split import split_of
from umpc.protocols.people.terms import messages_of, terms_of
from umpc.study.document import Study
from umpc.study.settings import HONEST

MOST_PLACES = 1 << 26
"""Places of all studies of a folder that are not over: up to 13 GB on disk."""
KEPT_SECONDS = 30 * 86400
"""The time after closing in which aggregators may ask about their total."""
BLOCKS = MOST_PLACES // PLACES_AT_ONCE
"""The most blocks of a study. A block's row has the number id of the study · BLOCKS + block."""
BOTH = 3
"""Bits of both aggregators, 1 << side."""
SETTINGS = """
PRAGMA locking_mode=EXCLUSIVE;
PRAGMA journal_mode=WAL;
PRAGMA synchronous=FULL;
PRAGMA secure_delete=ON;
PRAGMA temp_store=MEMORY;
PRAGMA foreign_keys=ON;
CREATE TABLE IF NOT EXISTS past (hash BLOB PRIMARY KEY);
CREATE TABLE IF NOT EXISTS alphas (hash BLOB PRIMARY KEY, alpha BLOB, until);
CREATE TABLE IF NOT EXISTS linked (hash BLOB PRIMARY KEY, cells);
CREATE TABLE IF NOT EXISTS surveys (id INTEGER PRIMARY KEY, hash BLOB UNIQUE, cells, places,
 fewest, closes, first, second, seeds BLOB, dealt DEFAULT 0, confirmed DEFAULT 0);
CREATE TABLE IF NOT EXISTS blocks (id INTEGER PRIMARY KEY, survey INTEGER REFERENCES surveys ON
 DELETE CASCADE, keys BLOB, secrets BLOB);
CREATE TABLE IF NOT EXISTS opened (survey INTEGER REFERENCES surveys ON DELETE CASCADE, place,
 device BLOB, sealed BLOB, PRIMARY KEY (survey, place)) WITHOUT ROWID;
UPDATE surveys SET confirmed = 3 WHERE id IN (SELECT survey FROM opened);
"""
"""The last line is for folders of former dealers, which gave secrets to devices before both
aggregators had confirmed all keys. A secret is gone then, and no key is made without it."""


@dataclass(frozen=True)
class DealtSurvey:
    """A study as the dealer keeps it.

    closes: seconds since 1970. nodes: the names of both aggregators. seeds: of both, empty once
    forgotten. dealt: bytes of keys that may have left. confirmed: `BOTH`, or the bit of one that
    has all keys. alpha: of authenticated keys; None of others. first_cells: D1 of linked rows;
    None for people.
    """

    id: int
    survey: Survey
    closes: float
    nodes: tuple[str, str]
    seeds: bytes = field(repr=False)
    dealt: int
    confirmed: int
    alpha: int | None = field(repr=False)
    first_cells: int | None

    @property
    def widths(self) -> tuple[int, int] | None:
        """D1 and D2 of linked rows; None for people."""
        first = self.first_cells
        return None if first is None else (first, self.survey.cells // first)

    @property
    def key_bytes(self) -> int:
        """Bytes of the keys of one place."""
        return key_bytes(self.survey.cells, self.alpha is not None)

    @property
    def total(self) -> int:
        """Bytes of all keys."""
        return self.survey.places * self.key_bytes


class PeopleDealer(Disk):
    """All that a dealer keeps of studies of people. Any thread may call any method.

    Args:
        folder: made if it is not there; of this process alone.
        now: seconds since 1970.
        entropy: number of bytes → uniform bytes.

    Raises: ConfigError, here and in each method, if the disk refuses.
    """

    def __init__(
        self,
        folder: Path,
        *,
        now: Callable[[], float] = time.time,
        entropy: Callable[[int], bytes] = os.urandom,
    ):
        self._now = now
        self._entropy = entropy
        super().__init__(folder, "people.db", SETTINGS)
        with self._disk():
            for former in self._folder.glob("*.keys"):  # dealers once kept the dealt keys
                former.unlink()

    def _refused(self, detail: str) -> ConfigError:
        return ConfigError(
            "the dealer cannot use its folder of people: a folder was expected that this process "
            "alone reads and writes. Check the disk and the permissions, and that no other dealer "
            "has it",
            detail=detail,
        )

    def open_study(self, study: Study, keys: Iterable[bytes]) -> None:
        """Draw secrets and seeds of a study; all is on disk afterwards. Again, nothing happens.

        Args: keys: the public keys of all places in order, in parts, which are read to their end.
        They and their digest take 64 bytes of memory a place.

        Raises: StudyError, also for a study whose closing time is past.
        """
        survey, terms = messages_of(study), terms_of(study)
        closes = seconds_of(terms.closes)
        if closes <= self._now():
            raise StudyError(f"the study closed at {terms.closes}: give it a later closing time")
        held = b"".join(keys)
        if self._select("hash = ?", survey.hash):
            return
        check_list(held, terms.keys, terms.places)
        nodes = (node.name for node in study.nodes)
        facts = survey.hash, survey.cells, survey.places, survey.fewest, closes, *nodes
        seeds = self._entropy(2 * SEED_BYTES)
        with self._change() as db:
            (others,) = db.execute("SELECT total(places) FROM surveys").fetchone()
            if others + survey.places > MOST_PLACES:
                raise StudyError(
                    f"all studies of people that are open at a dealer have up to {MOST_PLACES} "
                    f"places, and {others:.0f} are taken: wait until another study has closed"
                )
            add = "INSERT OR IGNORE INTO surveys SELECT NULL, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0"
            past = "WHERE NOT EXISTS (SELECT * FROM past WHERE hash = ?)"
            if not db.execute(f"{add} {past}", (*facts, seeds, survey.hash)).rowcount:
                return  # another call was faster, or the study was dealt before a clock went back
            if study.adversary != HONEST:
                alpha = PRIME.uniform(self._entropy, 1).tobytes()
                until = closes + KEPT_SECONDS
                db.execute("INSERT INTO alphas VALUES (?, ?, ?)", (survey.hash, alpha, until))
            if isinstance(study.settings, LinkedSettings):
                # the cells follow from both seeds
                first, _ = split_of(study).cells
                db.execute("INSERT INTO linked VALUES (?, ?)", (survey.hash, first))
                return
            (kept,) = self._select("hash = ?", survey.hash)
            for row, places in enumerate(survey.blocks(), kept.id * BLOCKS):
                own = held[places.start * KEY_BYTES : places.stop * KEY_BYTES]
                block = row, kept.id, own, self._entropy(SECRET_BYTES * len(places))
                db.execute("INSERT INTO blocks VALUES (?, ?, ?, ?)", block)

    def deal(self, study_hash: bytes, aggregator: str, already: int) -> Iterator[bytes]:
        """An aggregator's seed of roots, and then the keys of all places, block by block.

        Both aggregators get the same keys, now and later.

        Args:
            aggregator: the name in the caller's certificate.
            already: bytes of keys that it has on its disk. If these are all, nothing is left to
                send, and the dealer notes it: once both have said so, `sweep` forgets the keys.

        Raises: RemoteProtocolError; MessageRefused for a study that is unknown or closed.
        """
        with self._change() as db:
            kept = self._open(study_hash)
            if aggregator not in kept.nodes:
                raise RemoteProtocolError(
                    f"{aggregator} asked for keys of people, and the study's aggregators are "
                    f"{' and '.join(kept.nodes)}",
                    culprit=aggregator,
                )
            _check_due(kept, aggregator, already)
            side = kept.nodes.index(aggregator)
            if already == kept.total:
                bits = 1 << side, kept.id
                db.execute("UPDATE surveys SET confirmed = confirmed | ? WHERE id = ?", bits)
                return iter(())
        return self._parts(kept, side, already)

    def secrets(
        self, study_hash: bytes, requests: Sequence[tuple[int, bytes, bytes]]
    ) -> list[bytes | MessageRefused]:
        """The secret of each place, sealed to the device; or why it does not get it.

        The secret is deleted with the commit that stores the sealed answer. The device that asks
        again gets the same bytes.

        Args: requests: place, the device's X25519 key, and a signature by the key of the place.

        Raises: MessageRefused for a study that is unknown, closed or not open yet.
        """
        with self._lock:
            kept = self._open(study_hash)
            if kept.widths:
                raise MessageRefused("this is a study of linked rows, and no row has a secret")
            bits = enumerate(kept.nodes)
            if missing := [name for side, name in bits if not kept.confirmed >> side & 1]:
                raise MessageRefused(
                    f"the study is not open yet: {' and '.join(missing)} has not confirmed the "
                    "dealer's keys. Try again later, or tell the organiser"
                )
            keys = [self._place_key(kept, place) for place, *_ in requests]
        # a stranger's signatures hold up nobody: no lock is held
        refusals = [
            _refusal(kept.survey, place, key, *rest)
            for key, (place, *rest) in zip(keys, requests, strict=True)
        ]
        with self._change():
            kept = self._open(study_hash)
            replies = [
                refused or self._secret(kept, place, device)
                for refused, (place, device, _) in zip(refusals, requests, strict=True)
            ]
        failpoint("people_secret_stored")
        return replies

    def alpha(self, study_hash: bytes) -> int:
        """α of a study's keys, by which its total is checked. Raises: StudyError."""
        find = "SELECT alpha FROM alphas WHERE hash = ? AND until > ?"
        found = self._read(find, study_hash, self._now())
        if not found:
            raise StudyError(
                "the dealer has no keys of this study of people, or has forgotten them 30 days "
                "after its closing time: make a new study, and people must come again, "
                "or sites link their rows again"
            )
        return int.from_bytes(found[0][0], "little")

    def sweep(self) -> None:
        """Forget the seeds of keys that both aggregators have, and all of closed studies."""
        now = (self._now(),)
        with self._change() as db:
            db.execute("INSERT INTO past SELECT hash FROM surveys WHERE closes <= ?", now)
            db.execute("DELETE FROM surveys WHERE closes <= ?", now)
            db.execute("DELETE FROM alphas WHERE until <= ?", now)
            db.execute("DELETE FROM linked WHERE hash NOT IN (SELECT hash FROM surveys)")
            have_all = "confirmed = ? AND seeds != x''"
            db.execute(f"UPDATE surveys SET seeds = x'' WHERE {have_all}", (BOTH,))
        self._empty_log()

    # --- dealing ------------------------------------------------------------------------------

    def _parts(self, kept: DealtSurvey, side: int, at: int) -> Iterator[bytes]:
        """The seed, and the keys from byte `at` on. They are dealt as far as somebody asks."""
        yield kept.seeds[side * SEED_BYTES :][:SEED_BYTES]
        for places in kept.survey.blocks():
            start, stop = (place * kept.key_bytes for place in (places.start, places.stop))
            if at < stop:
                keys = self._block(kept, places, kept.nodes[side])
                failpoint("people_dealt_block")
                with self._change() as db:
                    # a number of a study that was forgotten meanwhile may be another one's
                    note = "UPDATE surveys SET dealt = max(dealt, ?) WHERE hash = ?"
                    db.execute(note, (stop, kept.survey.hash))
                yield keys[max(0, at - start) :]

    def _block(self, kept: DealtSurvey, places: range, aggregator: str) -> bytes:
        """The keys of a block of places. Raises: as `deal`."""
        with self._lock:
            # once both have all keys, devices fetch secrets, which are gone then
            _check_due(self._open(kept.survey.hash), aggregator, 0)
            row, _ = _at(kept, places.start)
            found = self._read("SELECT secrets FROM blocks WHERE id = ?", row)
        seeds = [kept.seeds[at : at + SEED_BYTES] for at in (0, SEED_BYTES)]
        both = [roots(kept.survey, seed, places.start, places.stop) for seed in seeds]
        if kept.widths:
            r, s = (
                coordinates(kept.survey, seed, width, places.start, places.stop)
                for seed, width in zip(seeds, kept.widths, strict=True)
            )
            cells = r * np.uint64(kept.widths[1]) + s
        else:
            ((data,),) = found
            secrets = [data[at : at + SECRET_BYTES] for at in range(0, len(data), SECRET_BYTES)]
            cells = offsets(kept.survey, places.start, secrets)
        tree_hash = FixedKeyHash(kept.survey.hash_key)
        given = kept.survey.cells, cells, np.stack(both), tree_hash
        return generate(*given, alpha=kept.alpha).encode()

    # --- the database -------------------------------------------------------------------------

    def _place_key(self, kept: DealtSurvey, place: int) -> bytes:
        """The key of a place; empty for one that the study has not."""
        if not 0 <= place < kept.survey.places:
            return b""
        row, number = _at(kept, place)
        with self._disk(), self._db.blobopen("blocks", "keys", row, readonly=True) as keys:
            keys.seek(number * KEY_BYTES)
            return keys.read(KEY_BYTES)

    def _secret(self, kept: DealtSurvey, place: int, device: bytes) -> bytes | MessageRefused:
        """The reply to one request whose signature was checked, inside a transaction."""
        survey, db = kept.survey, self._db
        found = "SELECT device, sealed FROM opened WHERE survey = ? AND place = ?"
        former, sealed = db.execute(found, (kept.id, place)).fetchone() or (b"", b"")
        try:
            check_device(place, device, former)
            if not former:
                row, number = _at(kept, place)
                with db.blobopen("blocks", "secrets", row) as secrets:
                    secrets.seek(number * SECRET_BYTES)
                    own = secrets.read(SECRET_BYTES)
                    sealed = seal_secret(survey, place, device, own, self._entropy)
                    secrets.seek(number * SECRET_BYTES)
                    secrets.write(bytes(SECRET_BYTES))
                opened = kept.id, place, device, sealed
                db.execute("INSERT INTO opened VALUES (?, ?, ?, ?)", opened)
        except MessageRefused as refused:
            return refused
        return sealed

    def _open(self, study_hash: bytes) -> DealtSurvey:
        """A study that has not closed. Raises: MessageRefused."""
        for kept in self._select("hash = ? AND closes > ?", study_hash, self._now()):
            return kept
        raise MessageRefused(
            "this dealer has no such study of people, or it has closed: check its closing time, "
            "and that it names this dealer"
        )

    def _select(self, where: str, *values: object) -> list[DealtSurvey]:
        columns = (
            "id, hash, cells, places, fewest, closes, first, second, seeds, dealt, confirmed, "
            "(SELECT alpha FROM alphas WHERE alphas.hash = surveys.hash), "
            "(SELECT cells FROM linked WHERE linked.hash = surveys.hash)"
        )
        return [
            DealtSurvey(
                *(row[0], Survey(*row[1:5]), row[5], row[6:8]),
                *(row[8], row[9], row[10], _number(row[11]), row[12]),
            )
            for row in self._read(f"SELECT {columns} FROM surveys WHERE {where}", *values)
        ]


def _refusal(
    survey: Survey, place: int, key: bytes, device: bytes, signature: bytes
) -> MessageRefused | None:
    """Why a request is refused, whoever has fetched the secret."""
    try:
        check_secret_request(survey, place, key, device, signature)
    except MessageRefused as refused:
        return refused
    return None


def _check_due(kept: DealtSurvey, aggregator: str, already: int) -> None:
    """An aggregator may get the keys from this byte on. Raises: RemoteProtocolError."""
    # a site that made a list of linked rows, and lost it, would make another one with these keys
    last = 1 << kept.nodes.index(aggregator) if kept.widths else BOTH
    ended = kept.confirmed & last == last and already < kept.total
    if not 0 <= already <= kept.dealt or ended:
        raise RemoteProtocolError(
            f"{aggregator} says that it has {already} bytes of keys of people. The dealer has "
            f"dealt {kept.dealt}, and deals none once both aggregators, or this site of linked "
            "rows, have said that they have all. If one has lost them, the study needs another "
            "name, and people must answer again",
            culprit=aggregator,
        )


def _at(kept: DealtSurvey, place: int) -> tuple[int, int]:
    """The row of a place's block, and its number in it."""
    return kept.id * BLOCKS + place // PLACES_AT_ONCE, place % PLACES_AT_ONCE


def _number(data: bytes | None) -> int | None:
    return None if data is None else int.from_bytes(data, "little")
