"""A fingerprint of a study's records: whether two studies asked about the same data.

A fingerprint is for the site's own administrator. It has a range of the number of records, one
keyed hash of all fields together, and one of each field. The hashes are of values as the table has
them, before bounds and resolutions, so two studies with other bounds over the same records have the
same hashes. The order of the rows does not matter, because a database may change it.

Without the ledger's key the hashes say nothing. They never leave the site.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
from numpy.typing import NDArray

from umpc.errors import EncodingError
from umpc.study.parts import Person
from umpc.ustat.condition import Condition
from umpc.ustat.schema import FieldSchema

Floats = np.ma.MaskedArray[tuple[int], np.dtype[np.float64]]
Keyed = Callable[[bytes], bytes]
"""A keyed hash of a site, such as `Ledger.fingerprint`."""
FIRST, SECOND, HALF = map(np.uint64, (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 32))
"""Two odd multipliers and a shift, which mix the 64 bits of a word."""
SHOWN = 8
"""Hexadecimal digits of a hash that people see."""


@dataclass(frozen=True)
class Cohort:
    """The records that a study asks about, as hashes without a key. They stay in memory.

    count: the number of records. whole: of all fields together. fields: of each field. selection:
    of what chose the records, as `selection_of` gives it; empty if unknown.
    """

    count: int
    whole: bytes = field(repr=False)
    fields: Mapping[str, bytes] = field(repr=False)
    selection: bytes = b""

    @classmethod
    def of(cls, values: Mapping[str, Floats], count: int, selection: bytes = b"") -> Cohort:
        """Hash the records.

        Args:
            values: each field's values, (count,) float64, masked where there is no number.
            selection: as `selection_of` gives it.
        """
        plain = {name: _canonical(values[name]) for name in sorted(values)}
        whole = hashlib.sha256(b"umpc cohort 1\0%d" % count)
        for name in plain:
            whole.update(hashlib.sha256(name.encode()).digest())
        whole.update(np.sort(_words(plain.values(), count)).astype("<u8").data)
        fields = {name: _digest(name, np.sort(column)) for name, column in plain.items()}
        return cls(count, whole.digest(), fields, selection)

    def fingerprint(self, keyed: Keyed) -> Fingerprint:
        """Return what the site keeps of these records."""
        low, high = count_range(self.count)
        return Fingerprint(
            low,
            high,
            keyed(self.whole).hex(),
            {name: keyed(each).hex() for name, each in self.fields.items()},
            keyed(self.selection).hex() if self.selection else "",
        )


@dataclass(frozen=True)
class Fingerprint:
    """The range of a cohort's number of records, and keyed hashes of its values, in hex.

    Entries of earlier versions have no `selection`.
    """

    at_least: int
    at_most: int
    whole: str
    fields: dict[str, str]
    selection: str = ""

    def encode(self) -> str:
        """Return the text that a ledger keeps."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def decode(cls, text: str) -> Fingerprint:
        """Return the fingerprint of a text. Raises: EncodingError."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise EncodingError(
                "the text of a fingerprint was expected, and another one came. It is from another "
                "version of umpc; install the version that wrote it"
            ) from error

    def is_same(self, other: Fingerprint) -> bool:
        """Return whether both are of the same fields of the same records."""
        return self.whole == other.whole

    def has_changed(self, former: Fingerprint) -> bool:
        """Return whether a table gave other records than before to the same selection."""
        return self.selection == former.selection != "" and not self.is_same(former)

    def agreeing(self, other: Fingerprint) -> tuple[str, ...]:
        """Return the fields whose values are the same in both."""
        return tuple(name for name, each in self.fields.items() if other.fields.get(name) == each)

    def differing(self, other: Fingerprint) -> tuple[str, ...]:
        """Return the fields of both whose values are not the same."""
        return tuple(
            name for name, each in self.fields.items() if other.fields.get(name, each) != each
        )

    def __str__(self) -> str:
        return f"{self.at_least} to {self.at_most} records, {self.whole[:SHOWN]}"


def selection_of(
    fields: Sequence[FieldSchema], where: Condition | None, person: Person | None
) -> bytes:
    """Return 32 bytes for what chooses a study's records: one table gives it the same records.

    The names of the fields choose the complete rows. A condition sees values after bounds and
    steps, so it counts with them.
    """
    names = sorted(schema.name for schema in fields)
    schemas = sorted(map(repr, fields)) if where is not None else []
    limit = (person.column, person.records) if person else ()
    chosen = (names, schemas, where.text if where is not None else "", limit)
    return hashlib.sha256(b"umpc selection 1\0" + repr(chosen).encode()).digest()


def count_range(count: int) -> tuple[int, int]:
    """Return the range from one power of two to the next that a number of records lies in."""
    if count < 1:
        return 0, 0
    low = 1 << (count.bit_length() - 1)
    return low, 2 * low - 1


def _canonical(values: Floats) -> NDArray[np.float64]:
    """Return the values with one NaN for all that are no number, and one zero."""
    plain = np.ma.getdata(values).astype(np.float64) + 0.0
    plain[np.ma.getmaskarray(values) | np.isnan(plain)] = np.nan
    return plain


def _words(columns: Iterable[NDArray[np.float64]], count: int) -> NDArray[np.uint64]:
    """Return a word of 64 bits for each record, by multiplications that mix all its values.

    Equal records have equal words, and their sorted words do not depend on the order of rows. Two
    different tables have the same words with a probability of about count² / 2^64, unless somebody
    makes them so; the table's owner would deceive himself.
    """
    words = np.zeros(count, dtype=np.uint64)
    for column in columns:
        words = (words ^ column.view(np.uint64)) * FIRST
        words ^= words >> HALF
        words *= SECOND
        words ^= words >> HALF
    return words


def _digest(name: str, column: NDArray[np.float64]) -> bytes:
    found = hashlib.sha256(b"umpc cohort field 1\0")
    found.update(hashlib.sha256(name.encode()).digest())
    found.update(np.ascontiguousarray(column, dtype="<f8").data)
    return found.digest()
