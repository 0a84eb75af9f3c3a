"""A fingerprint of a study's records: whether two studies asked about the same data.

A fingerprint is for the site's own administrator. It has a range of the number of records, one
keyed hash of all fields together, and one of each field. The hashes are of values as the table has
them, before bounds and resolutions, so two studies with other bounds over the same records have the
same hashes. The order of the rows does not matter, because a database may change it. In a field
with categories the words themselves are hashed, also those that the study does not list: so the
order of the list does not matter either. In any other field all texts that are no number are alike.

Until version 2 of the fields' hash, a category was hashed by its place in the study's list. So a
field of words has a version of its own, which is compared with no hash of an earlier version and
with no hash of the same column read as numbers.

Without the ledger's key the hashes say nothing. They never leave the site.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
from numpy.typing import NDArray

from umpc.errors import EncodingError
from umpc.node.table.batch import DIGEST_BYTES, Floats, Values
from umpc.study.parts import Person
from umpc.ustat.condition import Condition
from umpc.ustat.schema import FieldSchema

Keyed = Callable[[bytes], bytes]
"""A keyed hash of a site, such as `Ledger.fingerprint`."""
INCREMENT, FIRST, SECOND = map(
    np.uint64, (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
SHIFTS = tuple(map(np.uint64, (30, 27, 31)))
"""The increment, the multipliers and the shifts of SplitMix."""
HALF = np.uint64(32)
WORDS = "words 3:"
"""The mark in front of the hash of a field with categories."""
SHOWN = 8
"""Hexadecimal digits of a hash that people see."""


@dataclass(frozen=True)
class Cohort:
    """The records that a study asks about, as hashes without a key. They stay in memory.

    count: the number of records. whole: of all fields together. fields: of each field. selection:
    of what chose the records, as `selection_of` gives it; empty if unknown. words: the names of
    the fields with categories.
    """

    count: int
    whole: bytes = field(repr=False)
    fields: Mapping[str, bytes] = field(repr=False)
    selection: bytes = b""
    words: frozenset[str] = frozenset()

    def fingerprint(self, keyed: Keyed) -> Fingerprint:
        """Return what the site keeps of these records."""
        low, high = count_range(self.count)
        return Fingerprint(
            low,
            high,
            keyed(self.whole).hex(),
            {
                name: (WORDS if name in self.words else "") + keyed(each).hex()
                for name, each in self.fields.items()
            },
            keyed(self.selection).hex() if self.selection else "",
        )


class CohortHash:
    """The hashes of a cohort, batch by batch.

    Each record becomes a word of 64 bits, and so does each value of a field. Two sums over the
    words, 128 bits together, stand for all of them. They do not depend on the order, need no
    memory, and two different tables have the same sums with a probability of about count² / 2^64
    by their words, unless somebody makes them so; the table's owner would deceive himself.

    Args: fields: of the study. Their bounds, steps and lists of categories do not matter.
    """

    def __init__(self, fields: Sequence[FieldSchema]):
        self._count = 0
        self._whole = _Sums()
        self._words = frozenset(each.name for each in fields if each.categories)
        self._fields = {name: _Sums() for name in sorted(each.name for each in fields)}

    def add(self, values: Mapping[str, Values], count: int) -> None:
        """Add records. Args: values: each field's, of `count` rows."""
        self._count += count
        records = np.zeros(count, dtype=np.uint64)
        for name, sums in self._fields.items():
            bits = _bits(values[name])
            sums.add(_mixed(bits))
            records = _mixed(records ^ bits)
        self._whole.add(records)

    def cohort(self, selection: bytes = b"") -> Cohort:
        """Return the cohort. Args: selection: as `selection_of` gives it."""
        whole = hashlib.sha256(b"umpc cohort 2\0%d" % self._count)
        for name in self._fields:
            whole.update(self._tag(name))
        whole.update(self._whole.data)
        fields = {
            name: hashlib.sha256(
                b"umpc cohort field 2\0%d" % self._count + self._tag(name) + sums.data
            ).digest()
            for name, sums in self._fields.items()
        }
        return Cohort(self._count, whole.digest(), fields, selection, self._words)

    def _tag(self, name: str) -> bytes:
        """Return 32 bytes for a field's name and for what is hashed of it."""
        kind = WORDS.encode() + b"\0" if name in self._words else b""
        return hashlib.sha256(kind + name.encode()).digest()


class _Sums:
    """The sum of words, and of each word's product with its upper half, modulo 2^64."""

    def __init__(self) -> None:
        self._sums = np.zeros(2, dtype=np.uint64)

    def add(self, words: NDArray[np.uint64]) -> None:
        products = words * (words >> HALF)
        self._sums += np.array([words.sum(), products.sum()], dtype=np.uint64)

    @property
    def data(self) -> bytes:
        return self._sums.astype("<u8").tobytes()


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
        """Return the fields of both whose values are not the same.

        A hash of words and a hash of numbers do not tell whether they are.
        """
        both = self.fields.keys() & other.fields.keys()
        return tuple(name for name in self.fields if name in both and self._differs(other, name))

    def _differs(self, other: Fingerprint, name: str) -> bool:
        one, another = self.fields[name], other.fields[name]
        return one != another and one.startswith(WORDS) == another.startswith(WORDS)

    def __str__(self) -> str:
        return f"{self.at_least} to {self.at_most} records, {self.whole[:SHOWN]}"


def selection_of(
    fields: Sequence[FieldSchema], where: Condition | None, person: Person | None
) -> bytes:
    """Return 32 bytes for what chooses a study's records: one table gives it the same records.

    The names of the fields choose the complete rows. A condition sees values after bounds and
    steps, so it counts with them. Which fields have categories is part of it, because their values
    are hashed in another way.
    """
    names = sorted(schema.name for schema in fields)
    schemas = sorted(map(repr, fields)) if where is not None else []
    limit = (person.column, person.records) if person else ()
    words = sorted(schema.name for schema in fields if schema.categories)
    text = where.text if where is not None else ""
    chosen = (names, schemas, text, limit, words) if words else (names, schemas, text, limit)
    tag = b"umpc selection 3\0" if words else b"umpc selection 2\0"
    return hashlib.sha256(tag + repr(chosen).encode()).digest()


def count_range(count: int) -> tuple[int, int]:
    """Return the range from one power of two to the next that a number of records lies in."""
    if count < 1:
        return 0, 0
    low = 1 << (count.bit_length() - 1)
    return low, 2 * low - 1


def _bits(values: Values) -> NDArray[np.uint64]:
    """Return a word of 64 bits for each value: its number, or the digest of its text."""
    if values.digests is None:
        return _canonical(values.numbers).view(np.uint64)
    parts = values.digests.view("<u8").reshape(-1, DIGEST_BYTES // 8)  # 32 bits of each digest
    bits: NDArray[np.uint64] = _mixed(parts[:, 0].astype(np.uint64)) ^ parts[:, 1]
    return bits


def _canonical(values: Floats) -> Floats:
    """Return the values with one NaN for all that are no number, and one zero."""
    plain = values + 0.0
    plain[np.isnan(plain)] = np.nan
    return plain


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return words of which each bit depends on each bit of the given one, one to one.

    *Paper*: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014,
    figure 17: SplitMix's `mix64variant13`, after its increment.
    """
    mixed = words + INCREMENT
    shifted = mixed >> SHIFTS[0]
    mixed ^= shifted
    mixed *= FIRST
    mixed ^= np.right_shift(mixed, SHIFTS[1], out=shifted)
    mixed *= SECOND
    mixed ^= np.right_shift(mixed, SHIFTS[2], out=shifted)
    return mixed
