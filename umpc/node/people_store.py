"""An aggregator's disk: studies of people, their rows and accounts, and its share of the table.

`docs/people.md` has the promise, and the attack against which each rule stands. `spec/people.py`
has the steps. A state is on disk before anything that depends on it leaves:

| state | what is on disk | what may leave |
|---|---|---|
| `DEALING` | keys of the places, a box secret, the dealer's seed and a part of its keys | nothing |
| `OPEN` | all dealt keys, and their digest | the box key; receipts of stored rows |
| `CLOSED` | no box secret any more, so nobody can open a box | the rows of (place, receipt) |
| `COUNTED` | the rows that both have, n, one signed statement | statement and signature |
| `ADDED` | the share of the table; no number, seed or dealt key any more | what the grid sends |
| `FORGOTTEN` | n, the statement, and the rows that it is made of | these |

*Files.* `people.sqlite` has studies, rows and accounts. SQLite overwrites what is deleted, and its
log is emptied afterwards. A disk with wear levelling may still have former copies. `HASH.places`
has the keys of a study's places, 32 bytes each, and `HASH.dealt` the dealer's keys in blocks
(`umpc/people/messages.py`). Both files are deleted once the share is stored.

*Commits.* Each commit is on disk when it returns. Calls that come while another one commits share
the next commit, so many callers cost one write to the disk.

*Reveals.* A number is uniform to one aggregator. Numbers of both aggregators' disks, with the keys,
show each person's cell: so numbers and keys go with the finished sum.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property
from hashlib import file_digest
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from umpc.crypto.field import add as field_add
from umpc.crypto.prg import FixedKeyHash
from umpc.crypto.signing import Credentials
from umpc.errors import LedgerError, MessageRefused, RemoteProtocolError, StudyError
from umpc.failpoints import failpoint
from umpc.mpc.arrays import WordArray
from umpc.mpc.fss import point
from umpc.node.budget.ledger_place import locked
from umpc.people import messages
from umpc.people.disk import Disk
from umpc.people.messages import OpenedBox, Survey
from umpc.people.places import KEY_BYTES, check_list
from umpc.protocols.people.settings import seconds_of
from umpc.protocols.people.terms import messages_of, survey_of, terms_of
from umpc.protocols.registry import decode_study
from umpc.study.document import Study
from umpc.study.parts import exact
from umpc.study.settings import HONEST
from umpc.transport.files import fsync_folder, write_durably
from umpc.ustat.blocks import in_blocks

DEALING, OPEN, CLOSED, COUNTED, ADDED, FORGOTTEN = range(6)
TOLD = (
    *("waits for the dealer's keys", "is open", "is closed", "is counted", "is added up"),
    "ended: its result has left, or 30 days have passed since it closed",
)
"""A study's state in words."""
ROWS_AT_ONCE = 1 << 14
"""Rows of one part of a list, 40 bytes each."""
BLOCKS_AT_ONCE = 16
"""Blocks of places that are added up before the sum so far is stored."""
KEPT_SECONDS = 30 * 86400
"""After this time from the closing time on, everything but a public list is forgotten."""
ROW = np.dtype([("place", "<u8"), ("receipt", "V32")])
"""A row of a list."""
TABLES = """
PRAGMA journal_mode=WAL;
PRAGMA synchronous=FULL;
PRAGMA secure_delete=ON;
PRAGMA cache_size=-8192;
CREATE TABLE IF NOT EXISTS studies (
  hash BLOB NOT NULL UNIQUE, cells, places, fewest, id INTEGER PRIMARY KEY, state, side,
  opens, closes, epsilon, enrolled, document, box_secret, seed DEFAULT x'', taken DEFAULT 0,
  dealt DEFAULT x'', statement DEFAULT x'', signature DEFAULT x'', added DEFAULT 0,
  share DEFAULT x'', tagged DEFAULT 0, checking DEFAULT 0,
  signatures DEFAULT x'');
CREATE TABLE IF NOT EXISTS rows (
  study INTEGER NOT NULL, place INTEGER NOT NULL, number INTEGER, receipt BLOB NOT NULL,
  PRIMARY KEY (study, place)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS accounts (key BLOB PRIMARY KEY, spent TEXT NOT NULL) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class KeptSurvey(Survey):
    """A study's row in `studies`, column by column. Bytes that are not there are empty.

    side: this aggregator's place in the study. opens, closes: in seconds since 1970.
    taken: bytes of dealt keys on disk. dealt: the digest of all of them.
    added: blocks of places whose sum `share` has; all of them from `ADDED` on.
    tagged: whether aggregators may lie, so that keys and share are of pairs (1, α).
    checking: whether a check of the total was opened and has not passed.
    """

    id: int
    state: int
    side: int
    opens: float
    closes: float
    epsilon: str
    enrolled: bool
    document: bytes = field(repr=False)
    box_secret: bytes = field(repr=False)
    seed: bytes = field(repr=False)
    taken: int
    dealt: bytes
    statement: bytes
    signature: bytes
    added: int
    share: bytes = field(repr=False)
    tagged: int
    checking: int
    signatures: bytes

    @property
    def key_bytes(self) -> int:
        """Bytes of the dealt keys of a place."""
        return point.key_bytes(self.cells, bool(self.tagged))

    @property
    def shares(self) -> WordArray:
        """The sum so far: (cells,) words modulo 2^64, or (2, cells) elements of F."""
        found = np.frombuffer(self.share or bytes(8 * self.cells << self.tagged), dtype=np.uint64)
        return found.reshape(2, -1) if self.tagged else found

    @cached_property
    def box_key(self) -> X25519PrivateKey:
        """The key that opens boxes, as long as `box_secret` is there."""
        return X25519PrivateKey.from_private_bytes(self.box_secret)


Message = tuple[OpenedBox, bytes] | MessageRefused
"""A message with the key of its place, or why it is refused."""
Taken = OpenedBox | MessageRefused


def added(
    side: int,
    keys: point.PointKeys,
    numbers: WordArray,
    roots: WordArray,
    hash_key: bytes,
    row: int | None,
) -> WordArray:
    """`point.add_up` with the key of its hash, for a machine of the site."""
    return point.add_up(side, keys, numbers, roots, FixedKeyHash(hash_key), row)


Adding = Callable[[Sequence[tuple[Any, ...]]], Sequence[WordArray]]
"""Arguments of `added` for several blocks of places → its results, in any order."""


def added_here(blocks: Sequence[tuple[Any, ...]]) -> list[WordArray]:
    """`Adding` on all cores of this machine."""
    found: list[WordArray] = []
    in_blocks(lambda given: found.append(added(*given)), blocks)
    return found


class PeopleStore(Disk):
    """All that one aggregator keeps of studies of people, in one folder.

    Any thread may call any method; each blocks. A study's hash is its survey's everywhere.

    protocol, last_open: the studies that it takes, and the last state in which a box key is shown.

    Args:
        name: the aggregator's.
        credentials: called whenever something is signed.
        now: seconds since 1970.
        cap: ε that an enrolment may spend in all studies together; None for no limit.

    Raises: LedgerError if another process has the folder open, or the disk refuses, everywhere.
    """

    protocol, last_open = "people", OPEN
    kinds: tuple[str, ...] = ("places", "dealt")
    """The files of a study, which are deleted once its share is stored."""

    def __init__(
        self,
        folder: Path,
        name: str,
        credentials: Callable[[], Credentials],
        *,
        now: Callable[[], float] = time.time,
        entropy: Callable[[int], bytes] = os.urandom,
        cap: Fraction | None = None,
    ):
        self._name, self._credentials = name, credentials
        self._now, self._entropy, self._cap = now, entropy, cap
        self._adding = threading.Lock()
        self._dealt = threading.Lock()
        """Guards the files of dealt keys, so that people send while one is hashed."""
        self._waiting: deque[tuple[KeptSurvey, list[Message], Future[list[Taken]]]] = deque()
        self._taking: dict[bytes, KeptSurvey] = {}
        """The open studies to which messages have come, with their box secrets."""
        super().__init__(folder, "people.sqlite", TABLES)
        self._holder = locked(self._folder / "people.sqlite", "store of people")
        self.sweep()

    def __repr__(self) -> str:
        return f"PeopleStore({self._name!r}, <redacted>)"

    def close(self) -> None:
        """Let go of the folder."""
        super().close()
        os.close(self._holder)

    # --- open: the list of places, and the dealer's keys ------------------------------------------

    def open_study(self, study: Study, keys: Iterable[bytes]) -> None:
        """Store the list of places. A study that is there stays as it is.

        Args: keys: 32 bytes a place, in order, in parts, which are read to their end.

        Raises: StudyError if the list is not the study's, or the closing time is over.
        """
        self.sweep()
        survey, terms = survey_of(study), terms_of(study)
        held = b"".join(keys)
        if self._all_kept("hash = ?", survey.hash):
            return
        opens, closes = seconds_of(terms.opens), seconds_of(terms.closes)
        if closes <= self._now():
            raise StudyError(f"the study of people closed at {terms.closes}: give a later time")
        side, cells = study.index_of(self._name), messages_of(study).cells
        epsilon = str(exact(study.epsilon, "epsilon"))
        check_list(held, terms.keys, terms.places)
        with self._lock, self._disk():
            write_durably(self._path(survey.hash, "places"), held)
            self._write(
                "INSERT OR IGNORE INTO studies (hash, cells, places, fewest, state, side, opens,"
                " closes, epsilon, enrolled, document, box_secret, tagged)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                *(survey.hash, cells, terms.places, terms.fewest, DEALING, side, opens, closes),
                *(epsilon, terms.enrolled, survey.encode(), self._entropy(KEY_BYTES)),
                study.adversary != HONEST,
            )

    def study(self, study_hash: bytes) -> Study:
        """A study that was opened, as people see it. Raises: StudyError."""
        return decode_study(self._kept(study_hash).document, stored=True)

    def keys_so_far(self, study_hash: bytes) -> int:
        """Bytes of dealt keys that are on disk."""
        return self._kept(study_hash).taken

    def take_seed(self, study_hash: bytes, seed: bytes) -> None:
        """Store the dealer's seed of roots. Raises: RemoteProtocolError if another one is there."""
        with self._lock:
            kept = self._kept(study_hash, DEALING, OPEN)
            # other keys over the same roots would show cells, so a study is dealt once
            if len(seed) != KEY_BYTES or kept.seed not in (b"", seed):
                raise _misdealt("another seed than before, though a study is dealt once")
            self._write("UPDATE studies SET seed = ? WHERE id = ?", seed, kept.id)

    def take_keys(self, study_hash: bytes, data: bytes, at: int | None = None) -> None:
        """Append dealt keys. With the last byte the study is open.

        Args: at: the bytes that came before them; None for those that are on disk.

        Raises: RemoteProtocolError for more than the study has; StudyError if another call has
            brought some meanwhile.
        """
        with self._dealt, self._disk():
            kept = self._kept(study_hash, DEALING, DEALING)
            if not kept.seed:
                raise _misdealt("keys before its seed")
            if at not in (None, kept.taken):
                raise StudyError(
                    f"{self._name}: another call brings the dealer's keys at this moment; open the "
                    "study again"
                )
            end, last = kept.taken + len(data), kept.places * kept.key_bytes
            if end > last:
                raise _misdealt("more keys than the study has places")
            path = self._path(kept.hash, "dealt")
            with path.open("a+b") as file:
                # behind what the database knows is a part that a crash cut off
                file.truncate(kept.taken)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                file.seek(0)
                is_last = end == last
                dealt = file_digest(file, messages.dealt_hash).digest() if is_last else b""
            fsync_folder(self._folder)
            change = "UPDATE studies SET taken = ?, state = ?, dealt = ? WHERE id = ?"
            self._write(change, end, OPEN if is_last else DEALING, dealt, kept.id)

    def opened(self, study_hash: bytes) -> tuple[bytes, bytes]:
        """The public box key, and this aggregator's signature of `opened_statement`."""
        kept = self._kept(study_hash, OPEN, self.last_open)
        key = kept.box_key.public_key().public_bytes_raw()
        statement = messages.opened_statement(kept, kept.side, key)
        return key, self._credentials().sign(statement)

    # --- send: a person's message -----------------------------------------------------------------

    def submit(
        self, study_hash: bytes, boxes: Sequence[tuple[int, bytes]]
    ) -> list[bytes | MessageRefused]:
        """Take messages, each a place and a box, in one commit, which other calls may share.

        Returns: for each its receipt and this aggregator's signature, 32 + 64 bytes, or why it is
        refused. All rows are on disk.

        Raises: MessageRefused if the study is unknown or takes no messages.
        """
        kept = self._taking.get(study_hash) or self._take_from_now_on(study_hash)
        done: Future[list[Taken]] = Future()
        self._waiting.append((kept, self._unsealed(kept, boxes), done))
        with self._lock:
            if not done.done():
                self._store_waiting()
        taken = done.result()
        failpoint("people-receipt-due")
        sign = self._credentials().sign

        def signed(box: OpenedBox) -> bytes:
            statement = messages.receipt_statement(kept, kept.side, box.place, box.receipt)
            return box.receipt + sign(statement)

        return [each if isinstance(each, MessageRefused) else signed(each) for each in taken]

    def _take_from_now_on(self, study_hash: bytes) -> KeptSurvey:
        with self._lock:
            for kept in self._all_kept("hash = ? AND state = ?", study_hash, OPEN):
                return self._taking.setdefault(study_hash, kept)
        raise MessageRefused(
            f"{self._name} takes no message for this study, which is closed or unknown here. Check "
            "the invitation and the closing time"
        )

    def _unsealed(self, kept: KeptSurvey, boxes: Sequence[tuple[int, bytes]]) -> list[Message]:
        """Open boxes, and check signatures."""
        found: list[Message] = []
        with self._disk(), self._path(kept.hash, "places").open("rb", buffering=0) as file:
            for place, box in boxes:
                is_known = 0 <= place < kept.places
                key = os.pread(file.fileno(), KEY_BYTES, KEY_BYTES * place) if is_known else b""
                given = kept, kept.side, kept.box_key, place, key, box
                try:
                    found.append((messages.open_box(*given), key))
                except MessageRefused as refused:
                    found.append(refused)
        return found

    def _store_waiting(self) -> None:
        """Store the messages of all calls that wait, in one commit."""
        some = [self._waiting.popleft() for _ in range(len(self._waiting))]
        try:
            with self._change():
                found = []
                for kept, given, _ in some:
                    late = self._too_late(kept)
                    found.append([self._stored(kept, each, late) for each in given])
                failpoint("people-row-stored")
        except Exception as error:  # each of the calls raises it
            for *_, done in some:
                done.set_exception(error)
        else:
            for (*_, done), taken in zip(some, found, strict=True):
                done.set_result(taken)

    def _stored(self, kept: KeptSurvey, message: Message, late: MessageRefused | None) -> Taken:
        """Store one message in the open transaction, or say why it is refused.

        Args: late: why a message is refused that was not there before.
        """
        if isinstance(message, MessageRefused):
            return message
        opened, key = message
        try:
            find = "SELECT receipt FROM rows WHERE study = ? AND place = ?"
            for (former,) in self._db.execute(find, (kept.id, opened.place)):
                messages.check_again(former, opened)
                return opened
            if late:
                return late
            if kept.enrolled:
                self._charge(key, Fraction(kept.epsilon))
        except MessageRefused as refused:
            return refused
        row = kept.id, opened.place, opened.number, opened.receipt
        self._db.execute("INSERT INTO rows VALUES (?, ?, ?, ?)", row)
        return opened

    def _too_late(self, kept: KeptSurvey) -> MessageRefused | None:
        """Why a new message is refused: outside the study's time, or closed meanwhile."""
        is_open = self._read("SELECT 1 FROM studies WHERE id = ? AND state = ?", kept.id, OPEN)
        if is_open and kept.opens <= self._now() < kept.closes:
            return None
        return MessageRefused(
            f"{self._name} takes messages for this study from {_text(kept.opens)} to "
            f"{_text(kept.closes)}, and this one came at {_text(self._now())}"
            + ("" if is_open else ", after it was closed")
        )

    def _charge(self, key: bytes, epsilon: Fraction) -> None:
        """Charge an enrolment in the open transaction. Raises: MessageRefused above the cap."""
        found = self._read("SELECT spent FROM accounts WHERE key = ?", key)
        spent = Fraction(found[0][0] if found else 0)
        if self._cap is not None and spent + epsilon > self._cap:
            raise MessageRefused(
                f"this enrolment has epsilon {self._cap - spent} left of {self._cap} at "
                f"{self._name}, and the study asks for {epsilon}: it cannot take part"
            )
        self._db.execute(
            "INSERT OR REPLACE INTO accounts VALUES (?, ?)", (key, str(spent + epsilon))
        )

    # --- close and compare ------------------------------------------------------------------------

    def close_study(self, study_hash: bytes) -> None:
        """Take no message any more, and forget the box secret. Once closed, it stays so.

        Raises: StudyError before the closing time, unless every place has sent its message.
        """
        with self._lock:
            kept = self._kept(study_hash, OPEN)
            if kept.state == OPEN:
                ((came,),) = self._read("SELECT count(*) FROM rows WHERE study = ?", kept.id)
                if self._now() < kept.closes and came < kept.places:
                    raise StudyError(
                        f"{self._name} closes this study at {_text(kept.closes)}, or once all "
                        f"{kept.places} places have sent a message; {came} have. Ask again then"
                    )
                self._forget(kept, CLOSED, "box_secret = x''")
                self._taking.pop(study_hash, None)
        failpoint("people-closed")

    def rows(self, study_hash: bytes) -> Iterator[bytes]:
        """The rows of (place, receipt) by place, in parts of whole rows."""
        return self._pages(self._kept(study_hash, CLOSED).id)

    def counted(self, study_hash: bytes) -> Iterator[bytes]:
        """The public list: the counted rows, as `rows`. Raises: MessageRefused before that."""
        # strangers ask, so the study's share of a table is not read
        found = self._read("SELECT id FROM studies WHERE hash = ? AND statement != x''", study_hash)
        if not found:
            raise MessageRefused(
                f"{self._name} has not counted this study yet, or does not know it. Check the "
                "invitation, and ask again after the closing time"
            )
        return self._pages(*found[0])

    def _pages(self, study: int) -> Iterator[bytes]:
        last = -1
        find = (
            "SELECT place, receipt FROM rows WHERE study = ? AND place > ? ORDER BY place LIMIT ?"
        )
        while found := self._read(find, study, last, ROWS_AT_ONCE):
            last = found[-1][0]
            yield b"".join(messages.row(*each) for each in found)

    def count(self, study_hash: bytes, theirs: Iterable[bytes], other: str) -> tuple[bytes, bytes]:
        """Sign the rows that both aggregators have, once. All other rows are forgotten.

        Args: theirs: what `rows` of the other one yielded. other: its name.

        Returns: the statement and the signature of it, which are on disk. Later calls get them
        again.

        Raises: TooFewRecords if too few came; StudyError if another statement was signed before,
            or 30 days after the closing time; RemoteProtocolError if the other's list is none.
        """
        kept = self._in_time(study_hash, CLOSED)
        both = list(messages.both_have(self._pages(kept.id), theirs, other))
        statement = messages.counted_statement(kept, both, kept.dealt)

        def left_out() -> list[int]:
            own = self._read("SELECT place FROM rows WHERE study = ?", kept.id)
            listed = np.frombuffer(b"".join(both), dtype=ROW)["place"]
            found: list[int] = np.setdiff1d(np.array(own, dtype=np.uint64), listed).tolist()
            return found

        return self._sign_once(study_hash, statement, other, left_out)

    def _sign_once(
        self, study_hash: bytes, statement: bytes, other: str, prepare: Callable[[], Iterable[int]]
    ) -> tuple[bytes, bytes]:
        """Sign a statement, unless one is signed. Returns, raises: as of `count`.

        Args: prepare: is called before, and returns the places whose rows go.
        """
        with self._lock:
            kept = self._kept(study_hash)
            if kept.state < COUNTED:
                left_out = prepare()
                signature = self._credentials().sign(messages.counted_text(kept, statement))
                change = "statement = ?, signature = ?"
                self._forget(kept, COUNTED, change, statement, signature, left_out=left_out)
                kept = self._kept(study_hash)
        if kept.statement != statement:
            raise StudyError(
                f"{self._name} has signed another list of people than the one that follows from "
                f"the rows of {other} that came now: a study has one list. Bring the rows that "
                f"{other} listed first"
            )
        failpoint("people-signed")
        return statement, kept.signature

    # --- the share of the table -------------------------------------------------------------------

    def add_up(
        self,
        study_hash: bytes,
        statement: bytes,
        keys: Sequence[bytes],
        signatures: Sequence[bytes],
        tell: Callable[[int, int], None],
        add: Adding = added_here,
    ) -> None:
        """Add up this aggregator's share of the table, and forget numbers, seed and dealt keys.

        After a crash the next call goes on where the last sum was stored.

        Args:
            statement, signatures: of both aggregators, in the study's order.
            keys: the points of their certificates.
            tell: is told how many places are added up, of how many.
            add: adds up blocks of places, here or elsewhere.

        Raises: RemoteProtocolError if not both signed what this aggregator signed; StudyError 30
            days after the closing time.
        """
        kept = self._kept(study_hash, COUNTED)
        relay = self.study(study_hash).coordinator
        messages.check_counted(kept, statement, keys, signatures, relay)
        if statement != kept.statement:
            raise RemoteProtocolError(
                f"{relay} brought another list of people than {self._name} has signed",
                culprit=relay,
                step="compare",
            )
        with self._adding:
            kept = self._in_time(study_hash, COUNTED)
            if kept.state == COUNTED:
                share = self._in_order(kept, self._summed(kept, tell, add))
                gone = "box_secret = x'', seed = x''"
                given = share.tobytes(), b"".join(signatures)
                self._forget(kept, ADDED, f"{gone}, share = ?, signatures = ?", *given)
                failpoint("people-added")
                self._delete_unused()

    def _summed(self, kept: KeptSurvey, tell: Callable[[int, int], None], add: Adding) -> WordArray:
        """The sum of all counted people's rotated vectors, as `KeptSurvey.shares`."""
        blocks = list(kept.blocks())
        total, plus = kept.shares, field_add if kept.tagged else np.add
        for start in range(kept.added, len(blocks), BLOCKS_AT_ONCE):
            some = blocks[start : start + BLOCKS_AT_ONCE]
            for part in add([self._keys_of(kept, block) for block in some]):
                total = plus(total, part)
            change = "UPDATE studies SET share = ?, added = ? WHERE id = ?"
            self._write(change, total.tobytes(), start + len(some), kept.id)
            failpoint("people-part-added")
            tell(some[-1].stop, kept.places)
        return total

    def _keys_of(self, kept: KeptSurvey, block: range) -> tuple[Any, ...]:
        """The arguments of `added` for one block of places."""
        size = kept.key_bytes
        places, numbers, row = self._numbers_of(kept, block)
        with self._disk(), self._path(kept.hash, "dealt").open("rb") as file:
            file.seek(block.start * size)
            data = memoryview(file.read(len(block) * size))
        own = places.astype(np.intp) - block.start
        dealt = point.PointKeys.decode(data, kept.cells, len(block), bool(kept.tagged))
        keys = point.PointKeys(kept.cells, dealt.corrections[:, own], dealt.leaves[own])
        roots = messages.roots(kept, kept.seed, block.start, block.stop)[own]
        return kept.side, keys, numbers, roots, kept.hash_key, row

    def _numbers_of(
        self, kept: KeptSurvey, block: range
    ) -> tuple[WordArray, WordArray, int | None]:
        """The counted places of a block, their numbers, and the `row` of `point.add_up`."""
        find = "SELECT place, number FROM rows WHERE study = ? AND place BETWEEN ? AND ?"
        found = self._read(find, kept.id, block.start, block.stop - 1)
        places, numbers = np.array(found, dtype=np.uint64).reshape(-1, 2).T
        return places, numbers, None

    def _in_order(self, kept: KeptSurvey, share: WordArray) -> WordArray:
        """A share in the order of the study's cells."""
        return share

    def share(self, study: Study) -> tuple[WordArray, int]:
        """This aggregator's share of the table, as `KeptSurvey.shares`, and n.

        Args: study: the counted one.

        Raises: StudyError if it has not the statement and both signatures by which the share was
            added up, byte by byte, or if a check was opened that has not passed.
        """
        kept = self._kept(survey_of(study).hash, ADDED, ADDED)
        self._check_unopened(kept)
        counted = bytes.fromhex(terms_of(study).counted)
        messages.check_kept(kept.statement + kept.signatures, counted, self._name)
        n = int.from_bytes(kept.statement[:8], "little")
        return kept.shares, n

    def checking(self, study_hash: bytes, passed: bool) -> None:
        """Store that the check of a total is opened, before it is; or that it has passed.

        A liar learns α from a check that fails. With it, the next one would pass.

        Raises: StudyError if a check was opened that has not passed.
        """
        with self._lock:
            kept = self._kept(study_hash, ADDED, ADDED)
            if not passed:
                self._check_unopened(kept)
            self._write("UPDATE studies SET checking = ? WHERE id = ?", not passed, kept.id)

    def _check_unopened(self, kept: KeptSurvey) -> None:
        if kept.checking:
            raise StudyError(
                f"{self._name} opened the check of this study's people, and it has not passed: an "
                "aggregator or the coordinator lied, or the line was cut just then. It then "
                "opens no other one. Make a new study under another name: people must come again, "
                "or sites link their rows again"
            )

    # --- forgetting -------------------------------------------------------------------------------

    def forget_share(self, study_hash: bytes) -> None:
        """Forget the share of the table, once the release has left for good."""
        self._forget(self._kept(study_hash, ADDED), FORGOTTEN, "share = x''")

    def sweep(self) -> None:
        """Forget all but the public lists of studies whose time is up.

        While a share is added up, that waits for a later call: its numbers must not go meanwhile.
        """
        if not self._adding.acquire(blocking=False):
            return
        try:
            late = self._now() - KEPT_SECONDS
            for kept in self._all_kept("closes < ? AND state < ?", late, FORGOTTEN):
                with self._lock:
                    self._taking.pop(kept.hash, None)
                    self._forget(kept, FORGOTTEN, "box_secret = x'', seed = x'', share = x''")
            self._delete_unused()
        finally:
            self._adding.release()

    def _forget(
        self,
        kept: KeptSurvey,
        state: int,
        changes: str,
        *values: object,
        left_out: Iterable[int] = (),
    ) -> None:
        """Set a state and columns, and delete what goes with it, also from SQLite's log.

        From `ADDED` on these are the numbers, and all rows that nobody signed.

        Args: left_out: places whose rows go.
        """
        with self._lock, self._disk():
            with self._change():
                change = f"UPDATE studies SET state = ?, {changes} WHERE id = ?"
                self._db.execute(change, (state, *values, kept.id))
                delete = "DELETE FROM rows WHERE study = ? AND place = ?"
                self._db.executemany(delete, ((kept.id, place) for place in left_out))
                if state >= ADDED:
                    numbers = "UPDATE rows SET number = NULL WHERE study = ? AND number NOT NULL"
                    self._db.execute(numbers, (kept.id,))
                if state == FORGOTTEN and not kept.statement:
                    self._db.execute("DELETE FROM rows WHERE study = ?", (kept.id,))
                    self._db.execute("DELETE FROM studies WHERE id = ?", (kept.id,))
            self._empty_log()

    def _delete_unused(self) -> None:
        """Delete lists that no study has, and keys that are added up, also those of a crash."""
        with self._lock, self._disk():
            used = {each.hash.hex() for each in self._all_kept("state < ?", ADDED)}
            for path in self._folder.iterdir():
                if path.suffix[1:] in (*self.kinds, "new") and path.stem not in used:
                    path.unlink()

    # --- the disk ---------------------------------------------------------------------------------

    def _kept(self, study_hash: bytes, first: int = DEALING, last: int = FORGOTTEN) -> KeptSurvey:
        """A study in one of these states. Raises: StudyError."""
        found = self._all_kept("hash = ?", study_hash)
        if not found:
            raise StudyError(
                f"{self._name} does not know this study of people, or has forgotten it 30 days "
                "after its closing time: open it first, or make a new one"
            )
        if not first <= found[0].state <= last:
            raise StudyError(
                f"{self._name}: a study of people that {TOLD[first]} was expected, and this one "
                f"{TOLD[found[0].state]}"
            )
        return found[0]

    def _in_time(self, study_hash: bytes, first: int) -> KeptSurvey:
        """A study whose numbers are not yet due to be forgotten. Raises: StudyError, as `_kept`."""
        kept = self._kept(study_hash, first)
        if kept.state < ADDED and kept.closes + KEPT_SECONDS < self._now():
            raise StudyError(
                f"{self._name} forgets what people sent 30 days after the closing time, which was "
                f"{_text(kept.closes)}: make a new study under another name, and people "
                "must come again, or sites link their rows again"
            )
        return kept

    def _all_kept(self, where: str, *values: object) -> list[KeptSurvey]:
        return [
            KeptSurvey(*row) for row in self._read(f"SELECT * FROM studies WHERE {where}", *values)
        ]

    def _write(self, change: str, *values: object) -> None:
        with self._change() as db:
            db.execute(change, values)

    def _refused(self, detail: str) -> LedgerError:
        return LedgerError(
            f"{self._name}: the folder of studies of people cannot be read or written. Check the "
            "disk, the permissions and the process's own log, and ask again",
            detail=detail,
        )

    def _path(self, study_hash: bytes, kind: str) -> Path:
        return self._folder / f"{study_hash.hex()}.{kind}"


def _text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _misdealt(what: str) -> RemoteProtocolError:
    return RemoteProtocolError(
        f"the dealer sent {what}. Make a new study, under another name",
        culprit="dealer",
        step="deal",
    )
