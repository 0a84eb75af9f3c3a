"""A person's device: it checks an invitation, sends one message, and keeps the receipts.

The device of a script sends the messages of many people, in batches. Both keep all in one file, in
SQLite, which only its owner can read:

| step of a place | what the file has | what leaves next |
|---|---|---|
| ASKED | key of the place, the request's own key, the person's cell | the request of the secret |
| MADE | cell, receipt, both boxes | the boxes: these bytes, however often they are sent |
| DONE | receipt, and both aggregators' signatures of it | nothing |

Each step is on disk before the next one begins, so a device goes on after a crash where it was. The
secret and the nonce are never on disk, and keys, cell and boxes are deleted once both receipts are
there. Two messages under one secret would show how their values differ. Therefore another value
for a place is refused, and no second pair of boxes is ever made for it.

*Trust.* A device trusts the invitation's authority. The certificates of both aggregators, their
signatures of study and box keys, and each door's certificate are checked against it.
"""

from __future__ import annotations

import os
import sqlite3
from asyncio import gather
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np

from umpc.crypto.signing import is_signature
from umpc.decoding import decode
from umpc.errors import (
    ConfigError,
    DataError,
    EncodingError,
    MessageRefused,
    NotNumeric,
    OutOfBounds,
    RemoteProtocolError,
    StudyError,
    UmpcError,
    UnknownField,
)
from umpc.failpoints import failpoint
from umpc.node.table.conversions import BOOLEANS, PLAIN, normal
from umpc.people.messages import (
    NONCE_BYTES,
    Entropy,
    Survey,
    agreeing_key,
    make_boxes,
    offset,
    open_secret,
    opened_statement,
    receipt_statement,
    row,
    secret_request,
    signing_key,
)
from umpc.protocols.people.settings import PeopleSettings
from umpc.protocols.people.terms import cells_of, messages_of, points_of, survey_of
from umpc.protocols.registry import decode_study
from umpc.study.document import Study, dealer_of
from umpc.study.parts import exact
from umpc.text_file import read_text, write_text
from umpc.transport.identity import nobody, verifier_of
from umpc.transport.people_door import Door, door
from umpc.ustat.schema import FieldSchema

AT_ONCE = 256
"""Places in one call."""
ASKED, MADE, DONE = range(3)
"""The steps of a place."""
Item = TypeVar("Item")
Text = TypeVar("Text")


def in_batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    """The items in lists of `AT_ONCE`; the last one may be shorter."""
    left = iter(items)
    while batch := list(islice(left, AT_ONCE)):
        yield batch


# --- the invitation -------------------------------------------------------------------------------


class DoorEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The public door of a process.

    box_key, certificate (in DER) and its signature of the box key: of an aggregator only.
    """

    name: str
    address: str
    box_key: bytes = b""
    certificate: bytes = b""
    signature: bytes = b""


class PeopleInvitation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that a device needs beside its token. It is public.

    study: the document, as canonical JSON. ca: the authority's certificate, in PEM. aggregators: in
    the study's order.
    """

    study: str
    ca: str
    dealer: DoorEntry
    aggregators: tuple[DoorEntry, DoorEntry]

    def encode(self) -> bytes:
        """The invitation as JSON, for a file."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


@dataclass(frozen=True)
class Invited:
    """An invitation that was checked. keys: the points of both aggregators' certificates."""

    invitation: PeopleInvitation
    study: Study
    survey: Survey
    keys: tuple[bytes, ...]

    async def door(self, to: DoorEntry) -> Door:
        """Connect to a door. Use it as a context. Raises: as `people_door.door`."""
        role = "node" if to.box_key else "dealer"
        return await door(to.address, self.invitation.ca.encode(), to.name, role)

    def signed(self, side: int, place: int, told: bytes, signature: bytes) -> bool:
        """Whether an aggregator has signed a receipt."""
        statement = receipt_statement(self.survey, side, place, told)
        return is_signature(self.keys[side], statement, signature)


def check_invitation(data: bytes) -> Invited:
    """Check an invitation against its own authority.

    Raises: EncodingError, StudyError, CertificateError; RemoteProtocolError naming an aggregator.
    """
    wanted = "an invitation was expected, which `umpc people open` writes"
    invitation = _read(data, PeopleInvitation, wanted, "get the file again from the organiser")
    study = decode_study(invitation.study.encode())
    if not isinstance(study.settings, PeopleSettings) or survey_of(study) != study:
        raise StudyError(
            "an invitation to a study of people that is not counted yet was expected, and this is "
            "of another study: get the file again from the organiser"
        )
    survey = messages_of(study)
    named = (invitation.dealer.name, *(each.name for each in invitation.aggregators))
    if named != (dealer_of(study)[0], *(node.name for node in study.nodes)):
        raise StudyError(
            f"the invitation has doors of {', '.join(named)}, and the study has other names: get "
            "the file again from the organiser"
        )
    shown = [each.certificate for each in invitation.aggregators]
    keys = points_of(study, shown, verifier_of(nobody(invitation.ca.encode())), "the invitation")
    for side, (key, own) in enumerate(zip(keys, invitation.aggregators, strict=True)):
        if not is_signature(key, opened_statement(survey, side, own.box_key), own.signature):
            raise RemoteProtocolError(
                f"{own.name} has not signed this study with this key of its boxes: do not answer, "
                "and tell the organiser",
                culprit=own.name,
                step="invitation",
            )
    return Invited(invitation, study, survey, tuple(keys))


def _read(text: bytes, kind: type[Text], wanted: str, advice: str) -> Text:
    """A JSON text that a person has. Raises: EncodingError."""
    try:
        return decode(text, kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise EncodingError(f"{wanted}, and this is none ({error}): {advice}") from error


# --- what a person answers ------------------------------------------------------------------------


def answered_cells(
    study: Study, answers: Sequence[Mapping[str, str]], table: str = "", first: int = 1
) -> list[int]:
    """Each person's cell. No value is rounded, and none counts as another one.

    Args:
        answers: of each person field → value, as text that a node's table may have.
        table: a file whose rows they are, from row `first` on; empty for a person's own words.

    Raises: UnknownField, NotNumeric, OutOfBounds naming the field, and the row of a table.
    """
    names, units = [schema.name for schema in study.schema], []
    for number, answer in enumerate(answers, first):
        try:
            if answer.keys() != set(names):
                raise UnknownField(
                    f"one value for each of {', '.join(names)} was expected, and values for "
                    f"{', '.join(answer) or 'none of them'} came: give each field once"
                )
            units.append([units_of(each, answer[each.name]) for each in study.schema])
        except DataError as error:
            where = f"{table}, row {number}: " if table else ""
            raise type(error)(f"{where}{error.message}") from None
    columns = np.array(units, np.int64).T
    return cells_of(study, dict(zip(names, columns, strict=True)))


def units_of(schema: FieldSchema, text: str) -> int:
    """A value in steps of its field, read as a node reads it. Raises: NotNumeric, OutOfBounds."""
    where = f"field {schema.name!r}"
    if schema.categories:
        labels = list(map(normal, schema.categories))
        if normal(text) in labels:
            return labels.index(normal(text))
        raise OutOfBounds(
            f"{where}: one of {', '.join(map(repr, schema.categories))} was expected, and another "
            "word came: choose one of them"
        )
    plain = PLAIN.plain(text)
    try:
        value = exact(plain or str(BOOLEANS[normal(text)]), where)
    except (KeyError, StudyError):
        raise NotNumeric(
            f"{where}: a number such as 3 or 0.5 was expected, and none came: correct the value"
        ) from None
    if not schema.lower <= value <= schema.upper:
        raise OutOfBounds(
            f"{where}: a number from {schema.lower} to {schema.upper} was expected, and another "
            "one came: the study takes no other, so correct the value, or do not answer"
        )
    units = value / schema.resolution
    if units.denominator != 1:
        raise OutOfBounds(
            f"{where}: a multiple of {schema.resolution} was expected, and another number came: "
            "round the value yourself as you mean it"
        )
    return int(units)


# --- the device -----------------------------------------------------------------------------------

TABLES = """
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA secure_delete = ON;
CREATE TABLE IF NOT EXISTS study (hash BLOB PRIMARY KEY);
CREATE TABLE IF NOT EXISTS places (
    place INTEGER PRIMARY KEY, step INTEGER NOT NULL, cell INTEGER, seed BLOB, device BLOB,
    receipt BLOB, first BLOB, second BLOB, signed_first BLOB, signed_second BLOB);
"""


@dataclass(frozen=True)
class Respondent:
    """Whose message a device sends. signing_seed: of the place's key. cell: that of the answer."""

    place: int
    signing_seed: bytes = field(repr=False)
    cell: int = field(repr=False)


Signature = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{128}$")]


class Receipt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The proof that a person keeps. Bytes are in hexadecimal.

    signatures: of both aggregators, in the study's order.
    """

    study: str
    place: int
    receipt: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    signatures: tuple[Signature, Signature]

    def encode(self) -> str:
        """The receipt as one line of JSON."""
        return msgspec.json.encode(self).decode()

    @property
    def row(self) -> bytes:
        """The row of the counted list that belongs to it."""
        return row(self.place, bytes.fromhex(self.receipt))


def read_receipt(line: str, invited: Invited) -> Receipt:
    """A receipt of this study, which both aggregators have signed.

    Raises: EncodingError, MessageRefused.
    """
    wanted = "a receipt was expected, as `umpc people submit` writes it"
    found = _read(line.encode(), Receipt, wanted, "correct the path")
    for side, signature in enumerate(found.signatures):
        if not invited.signed(side, found.place, *map(bytes.fromhex, (found.receipt, signature))):
            name = invited.study.nodes[side].name
            raise MessageRefused(
                f"{name} has not signed this receipt of place {found.place} in this study: give "
                "the invitation that belongs to the receipt"
            )
    return found


class Device:
    """The messages of one study that leave from one machine.

    Args: path: of the device's file, which may be there from an earlier run.

    Raises: ConfigError if the file is of another study, damaged, or in use.
    """

    def __init__(self, path: Path, invited: Invited, entropy: Entropy = os.urandom):
        self._invited, self._entropy = invited, entropy
        self.refused: dict[int, UmpcError] = {}
        """Place → why its message was not taken in this run."""
        self.sent = 0
        """Places that were done in this run."""
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        try:
            # two processes with one file would make two pairs of boxes for a place
            self._db = sqlite3.connect(path)
            self._db.executescript(TABLES)
            with self._db:
                find = "INSERT INTO study SELECT ? WHERE NOT EXISTS (SELECT * FROM study)"
                self._db.execute(find, (invited.survey.hash,))
                ((own,),) = self._db.execute("SELECT hash FROM study")
        except sqlite3.Error as error:
            raise ConfigError(
                f"{path} cannot be used as the file of a device ({error}): end the other process "
                "that uses it, or give another name"
            ) from error
        if own != invited.survey.hash:
            self.close()
            raise ConfigError(
                f"{path} is a device's file of another study: give another name for this one"
            )

    def close(self) -> None:
        """End with all on disk. No file of the database then has a value that was deleted."""
        self._db.close()

    async def send(
        self,
        people: Iterable[Respondent],
        dealer: Door,
        aggregators: Sequence[Door],
        tell: Callable[[int], None] = lambda done: None,
    ) -> None:
        """Send the messages of these people, and then those that an earlier run left behind.

        A place that is done is left alone. `refused` has those that were not taken.

        Args:
            dealer, aggregators: their public doors.
            tell: is told how many places are finished so far.

        Raises: MessageRefused for another value of a place; TransportError; RemoteProtocolError.
            Another such call goes on from there.
        """
        try:
            done = 0
            for places in chain(map(self._add, in_batches(people)), self._left()):
                await self._advance(places, dealer, aggregators)
                done += len(places)
                tell(done)
        except sqlite3.Error as error:
            raise ConfigError(
                f"the device's file cannot be written ({error}): make room, and run this again"
            ) from error

    def _add(self, people: Sequence[Respondent]) -> list[int]:
        """Put the places that are new into the file. Returns: all their places.

        Raises: MessageRefused for another value.
        """
        with self._db:
            for each in people:
                # as long as there are no boxes, a person may correct value and token
                self._db.execute(
                    "INSERT INTO places (place, step, cell, seed, device) VALUES (?, ?, ?, ?, ?) "
                    "ON CONFLICT DO UPDATE SET cell = excluded.cell, seed = excluded.seed "
                    "WHERE step = excluded.step",
                    (each.place, ASKED, each.cell, each.signing_seed, self._entropy(32)),
                )
                query = "SELECT cell FROM places WHERE place = ?"
                (cell,) = self._db.execute(query, (each.place,)).fetchone()
                if cell not in (None, each.cell):
                    raise MessageRefused(
                        f"place {each.place} has answered with another value, and a place has one: "
                        "give that value again, and the device sends the message that it has made"
                    )
        return [each.place for each in people]

    def _left(self) -> Iterator[list[int]]:
        """The places that are not done, batch by batch, but those that were refused now."""
        found = self._db.execute("SELECT place FROM places WHERE step < ?", (DONE,)).fetchall()
        yield from in_batches(place for (place,) in found if place not in self.refused)

    def _rows(self, step: int, places: Sequence[int], columns: str) -> list[Any]:
        marks = ", ".join("?" * len(places))
        query = f"SELECT place, {columns} FROM places WHERE step = ? AND place IN ({marks})"
        return self._db.execute(query, (step, *places)).fetchall()

    async def _advance(
        self, places: Sequence[int], dealer: Door, aggregators: Sequence[Door]
    ) -> None:
        if asked := self._rows(ASKED, places, "cell, seed, device"):
            await self._make(asked, dealer)
        if made := self._rows(MADE, places, "receipt, first, second"):
            await self._deliver(made, aggregators)
        failures = [self.refused[place] for place in places if place in self.refused]
        if len(failures) == AT_ONCE:
            # closed, not open yet, or the tokens of another study: all others meet the same
            raise failures[0]

    async def _make(self, rows: Sequence[Any], dealer: Door) -> None:
        """Fetch the secrets, and make both boxes: on disk before one of them leaves."""
        survey = self._invited.survey
        box_keys = [door.box_key for door in self._invited.invitation.aggregators]
        asking = [
            (place, cell, signing_key(seed), agreeing_key(own)) for place, cell, seed, own in rows
        ]
        requests = [
            (place, *secret_request(survey, place, signing, own))
            for place, _, signing, own in asking
        ]
        replies = await dealer.secrets(survey.hash, requests)
        made = []
        for (place, cell, signing, own), sealed in zip(asking, replies, strict=True):
            if isinstance(sealed, UmpcError):
                self.refused[place] = sealed
                continue
            secret = open_secret(survey, place, own, sealed)
            number = (cell - offset(survey, place, secret)) % survey.cells
            nonce, *secrets = (self._entropy(size) for size in (NONCE_BYTES, 32, 32))
            told, boxes = make_boxes(survey, box_keys, place, number, nonce, signing, secrets)
            made.append((MADE, told, *boxes, place, ASKED))
        with self._db:
            self._db.executemany(
                "UPDATE places SET step = ?, receipt = ?, first = ?, second = ?, seed = NULL, "
                "device = NULL WHERE place = ? AND step = ?",
                made,
            )
        failpoint("boxes-on-disk")

    async def _deliver(self, rows: Sequence[Any], aggregators: Sequence[Door]) -> None:
        """Send the boxes to both aggregators. Where both have signed, delete what led to them."""
        survey = self._invited.survey
        calls = [
            door.submit(survey.hash, [(each[0], each[2 + side]) for each in rows])
            for side, door in enumerate(aggregators)
        ]
        done = []
        for (place, told, *_), *both in zip(rows, *await gather(*calls), strict=True):
            for side, reply in enumerate(both):
                if isinstance(reply, UmpcError):
                    self.refused[place] = reply
                elif reply[:32] != told or not self._invited.signed(side, place, told, reply[32:]):
                    name = self._invited.study.nodes[side].name
                    raise RemoteProtocolError(
                        f"{name} gave no valid receipt for place {place}: keep the device's file, "
                        "and tell the organiser",
                        culprit=name,
                        step="receipt",
                    )
            if place not in self.refused:
                done.append((DONE, *(reply[32:] for reply in both), place))
        self.sent += len(done)
        with self._db:
            self._db.executemany(
                "UPDATE places SET step = ?, signed_first = ?, signed_second = ?, cell = NULL, "
                "first = NULL, second = NULL WHERE place = ?",
                done,
            )

    def receipts(self) -> Iterator[Receipt]:
        """The receipts of all places that are done, by place."""
        query = "SELECT place, receipt, signed_first, signed_second FROM places WHERE step = ?"
        with closing(self._db.execute(f"{query} ORDER BY place", (DONE,))) as found:
            for place, told, first, second in found:
                study = self._invited.survey.hash.hex()
                yield Receipt(study, place, told.hex(), (first.hex(), second.hex()))


# --- the counted list -----------------------------------------------------------------------------


def write_counted(path: Path, rows: Iterable[bytes]) -> None:
    """Write the public list of those who are counted. Args: rows: place and receipt.

    Raises: ConfigError.
    """
    lines = (f"{int.from_bytes(each[:8], 'little')},{each[8:].hex()}\n" for each in rows)
    write_text(path, "place,receipt\n" + "".join(lines), "the counted list", ConfigError)


def read_counted(path: Path) -> set[bytes]:
    """The rows of a public list. Raises: ConfigError."""
    text = read_text(path, "a list of those who are counted", ConfigError)
    try:
        pairs = [line.split(",") for line in text.splitlines()[1:]]
        return {row(int(place), bytes.fromhex(told)) for place, told in pairs}
    except (ValueError, OverflowError):
        raise ConfigError(
            f"{path}: a list of those who are counted was expected, as `umpc study run` writes it: "
            "correct the path"
        ) from None
