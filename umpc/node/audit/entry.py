"""One row of the audit trail: its facts, its line of JSON, and the seal that chains it.

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
import re
from dataclasses import dataclass
from typing import Any

from umpc.errors import AuditError

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
