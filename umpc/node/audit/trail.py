"""The file of the audit trail, to which rows are appended.

The node and `umpc approve` append to one file beside the ledger. Each holds the file's lock while
it reads the last row, writes its own and waits until it is on disk. A crash can cut the last line
short. The next writer removes that part, and says so in a row of its own.

Nothing of a study leaves the node without a row: `append` raises if the disk refuses.

*Study rows.* The rows of one study.

*Entry.* One row of the audit trail: its facts, its line of JSON, and the seal that chains it.

    {"seq":7,"at":"…","event":"charge","study":"3f2a…",…,"hash":"…"}

A row's hash is HMAC-SHA256 over the former row's hash and all of the line before `,"hash"`. Its key
derives from the ledger's key. So nobody without that key can write, change, remove or exchange a
row before the last one. A row holds no value of a table, no share and no number of records.

| event | what the row says |
|---|---|
| start | the node started, with these rules |
| policy | the rules changed, and these count from now on |
| proposal | a coordinator proposed a study |
| pending | the study waits for a person |
| accepted | a person accepted the study |
| rejected | a person rejected the study |
| refusal | the node refused the study |
| charge | the ledger charged epsilon and delta |
| release | what the study releases leaves the node |
| answer | the answer to the study's one question leaves the node |
| ended | the study ended early for another reason |
| restore | the site's files were put back from a backup; so much counts as charged since |
| repair | a row that a crash had cut short was removed |
"""

from __future__ import annotations

import hmac
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import Any

from umpc.errors import ApprovalPending, AuditError, DataError, DpError, StudyError, UmpcError
from umpc.node.budget.ledger_place import Place, read_key, utc_text
from umpc.node.policy import Policy
from umpc.study.document import Study
from umpc.transport.files import flocked


def trail_beside(ledger: Path) -> Path:
    """Return the path of the audit trail that belongs to a ledger."""
    return Path(f"{ledger}.audit")


class AuditTrail:
    """The trail beside a ledger, whose key it uses. Any thread and any process may append."""

    def __init__(self, ledger: Path, *, clock: Callable[[], str] = utc_text):
        self.path = trail_beside(Path(ledger).resolve())
        self._key_path = Place.of(ledger).key
        self._clock = clock

    def key(self) -> bytes:
        """Return the trail's key. Raises: AuditError if the ledger has none yet."""
        key = read_key(self._key_path)
        if key is None:
            raise AuditError(
                f"audit trail {self.path}: the ledger's key {self._key_path} was expected, and "
                "there is no such file. The node makes it at its first start; put a lost one back"
            )
        return key_of(key)

    def append(self, *entries: AuditRow) -> AuditMark:
        """Write rows, on disk when this returns, and return the last one's place.

        Raises: AuditError. Then none of the rows, or only some of the first ones, are in the file.
        """
        key = self.key()
        with self._locked() as file:
            mark, torn = self._tail(file)
            if torn:
                note = f"{torn} bytes of a row that was never finished"
                entries = (AuditRow("repair", note=note), *entries)
            lines = []
            for entry in entries:
                body = entry.line(mark.seq + 1, self._clock())
                line, own = sealed(key, mark.hash, body)
                mark = AuditMark(mark.seq + 1, own)
                lines.append(line)
            self._write(file, b"".join(lines))
        return mark

    def _tail(self, file: int) -> tuple[AuditMark, int]:
        """Return the last row's place, and the number of bytes after it, which are removed."""
        size = os.fstat(file).st_size
        start = max(0, size - 2 * MOST_LINE)
        tail = os.pread(file, size - start, start)
        whole, newline, torn = tail.rpartition(b"\n")
        if torn:
            os.ftruncate(file, size - len(torn))
        if not newline and start == 0:
            return AuditMark(), len(torn)
        mark = mark_of(whole.rpartition(b"\n")[2])
        if mark is None:
            raise AuditError(
                f"audit trail {self.path}: a row was expected at its end, and something else is "
                "there. Keep the file for inquiry and move it away; the node then begins a new one"
            )
        return mark, len(torn)

    def _write(self, file: int, content: bytes) -> None:
        left = memoryview(content)
        while left:
            left = left[os.write(file, left) :]
        os.fsync(file)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Hold the open file and its lock. Raises: AuditError if the system refuses."""
        try:
            with flocked(self.path, os.O_APPEND) as file:
                yield file
        except OSError as error:
            raise AuditError(
                f"audit trail {self.path}: a readable and writable file was expected, and the "
                "system refused. Check the disk and the permissions; the node takes part in no "
                "study without it",
                detail=f"{type(error).__name__}: {error}",
            ) from error


# --- study rows -----------------------------------------------------------------------------------

Record = Callable[..., object]
"""Appends rows. Arguments: as of `AuditTrail.append`. Raises: AuditError."""


def nothing(*entries: AuditRow) -> None:
    """Append nothing: for a site without a trail, in tests."""


def about(
    event: str,
    study: Study | None,
    coordinator: str,
    note: str = "",
    *,
    cost: tuple[Fraction, Fraction] | None = None,
) -> AuditRow:
    """Return the row of an event of a study, which may not have been read.

    Args: cost: epsilon and delta, if they are known better than the study asks for.
    """
    if study is None:
        return AuditRow(event, coordinator=coordinator, note=note)
    epsilon, delta = map(str, cost) if cost else (study.epsilon, study.delta)
    if missing := study.names_missing:
        note = f"without {', '.join(missing)}{'; ' if note else ''}{note}"
    return AuditRow(
        event,
        study=study.whole.hash.hex(),
        name=study.name,
        coordinator=coordinator,
        statistic=study.statistic,
        fields=tuple(field.name for field in study.fields),
        epsilon=epsilon,
        delta=delta,
        note=note,
    )


def of_failure(error: UmpcError, study: Study | None, coordinator: str, step: str) -> AuditRow:
    """Return the row of a study that ended with an error."""
    event = "ended"
    if isinstance(error, ApprovalPending):
        event = "pending"
    elif isinstance(error, DpError | StudyError | DataError):
        event = "refusal"
    return about(event, study, coordinator, f"{type(error).__name__} in {step}: {error.message}")


def of_rules(event: str, policy: Policy) -> AuditRow:
    """Return the row that states the rules of a site, without those that restrict nothing."""
    usual = Policy()
    rules = {
        field.name: _plain(getattr(policy, field.name))
        for field in fields(policy)
        if getattr(policy, field.name) != getattr(usual, field.name)
    }
    return AuditRow(event, note=json.dumps(rules, ensure_ascii=False, sort_keys=True))


def _plain(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    return str(value) if isinstance(value, Fraction) else value


# --- entry ----------------------------------------------------------------------------------------

FIRST_HASH = bytes(32)
KEY_TAG = b"umpc audit 1"
MOST_WORD = 200
MOST_NOTE = 1500
MOST_FIELDS = 32
MOST_LINE = 1 << 16
"""Longest line, in bytes. The limits above keep every row far below."""
SEAL = re.compile(rb'\{"seq":([1-9][0-9]{0,18}),.*,"hash":"([0-9a-f]{64})"\}', re.DOTALL)
ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
SEAL_BYTES = len(b',"hash":""}') + 64


@dataclass(frozen=True)
class AuditRow:
    """The facts of a row. Texts of others are cut to one printable line.

    study: its hash, hexadecimal, or "". coordinator: the name in the caller's certificate.
    fields: the names of the columns that the study reads. epsilon, delta: exact texts.
    """

    event: str
    study: str = ""
    name: str = ""
    coordinator: str = ""
    statistic: str = ""
    fields: tuple[str, ...] = ()
    epsilon: str = ""
    delta: str = ""
    note: str = ""

    def line(self, seq: int, at: str) -> bytes:
        """Return the row's line without its hash."""
        fields = [one_line(each, MOST_WORD) for each in self.fields[:MOST_FIELDS]]
        if len(self.fields) > MOST_FIELDS:
            fields.append(f"and {len(self.fields) - MOST_FIELDS} more")
        row: dict[str, Any] = {"seq": seq, "at": at, **vars(self), "fields": fields}
        for key in ("name", "coordinator", "statistic", "epsilon", "delta", "note"):
            row[key] = one_line(row[key], MOST_NOTE if key == "note" else MOST_WORD)
        return ENCODER.encode(row).encode()[:-1]


@dataclass(frozen=True)
class AuditMark:
    """A place in the trail: the number of its rows up to there, and the last one's hash."""

    seq: int = 0
    hash: bytes = FIRST_HASH

    def __str__(self) -> str:
        return f"{self.seq} {self.hash.hex()}"

    @classmethod
    def parse(cls, text: str) -> AuditMark:
        """Return a place as `umpc audit verify` printed it. Raises: AuditError."""
        found = re.fullmatch(r"\s*([0-9]{1,19})\s+([0-9a-f]{64})\s*", text)
        if found is None:
            raise AuditError(
                "a row's number and its hash were expected, as `umpc audit verify` prints them, "
                f"and {text[:80]!a} came. Correct --expect"
            )
        return cls(int(found[1]), bytes.fromhex(found[2]))


def key_of(ledger_key: bytes) -> bytes:
    """Return the trail's key."""
    return hmac.digest(ledger_key, KEY_TAG, "sha256")


def seal(key: bytes, former: bytes, body: bytes) -> bytes:
    """Return the hash of a row. Args: former: the hash before. body: the line without its hash."""
    return hmac.digest(key, former + body, "sha256")


def sealed(key: bytes, former: bytes, body: bytes) -> tuple[bytes, bytes]:
    """Return a row's whole line, with its newline, and its hash."""
    own = seal(key, former, body)
    return body + b',"hash":"' + own.hex().encode() + b'"}\n', own


def mark_of(line: bytes) -> AuditMark | None:
    """Return the number and the hash that a whole line states, or None if it is no row."""
    found = SEAL.fullmatch(line.rstrip(b"\n"))
    return AuditMark(int(found[1]), bytes.fromhex(found[2].decode())) if found else None


def one_line(text: str, most: int) -> str:
    """Return a text from outside as one printable line of bounded length."""
    if len(text) <= most and text.isprintable():
        return text
    shown = "".join(each if each.isprintable() else "?" for each in text[:most])
    return shown if len(text) <= most else f"{shown}…"
