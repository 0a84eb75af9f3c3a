"""Linked rows: what two sites send each other and sign (docs/linked.md).

`spec/linked.py` is the same in plain Python. A row's place is that of its key among all n keys, in
the order of their code points. Both sites have the dealer's keys of people, one a row, for a cell
r·D2 + s. Each site knows its own of r and s, and sends the other one a list, sealed:

| part | bytes |
|---|---|
| a nonce of the site | 32 |
| a digest of all keys | 32 |
| x − r mod D1 of each row, or y − s mod D2 | 4 a row |

A row's number is (x − r)·D2 + (y − s). Dealer and coordinator get no nonce, so nothing that they
see tests a guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from umpc.crypto.prg import Stream, derive, digest
from umpc.errors import RemoteProtocolError, StudyError
from umpc.mpc.arrays import WordArray
from umpc.people.messages import NONCE_BYTES, NUMBER_BYTES, Survey

HEAD_BYTES = NONCE_BYTES + 32
_HALF = np.uint64(32)


def coordinates(survey: Survey, seed: bytes, cells: int, start: int, stop: int) -> WordArray:
    """r of rows start..stop, or s: (stop − start,) uint64, uniform below `cells` but for 2^−108.

    Args: seed: of the site's roots, which dealer and site have. cells: D1, or D2.
    """
    # spec/linked.py, `coordinates`: ⌊cells·w/2^128⌋ of a block w of the stream, by its four limbs
    stream = Stream(derive(seed, "coordinates of linked rows", survey.hash), start)
    limbs = stream.words(4 * (stop - start), np.uint32).reshape(-1, 4)
    found = np.zeros(stop - start, dtype=np.uint64)
    for limb in limbs.T:
        found = (limb * np.uint64(cells) + found) >> _HALF
    return found


def keys_digest(keys: Iterable[str]) -> bytes:
    """A digest of all keys in their order."""
    # spec/linked.py, `keys_digest`
    return digest(b"umpc linked keys 1", *(key.encode() for key in keys))


@dataclass(frozen=True)
class RowList:
    """A site's list. Args: cells: D1 or D2, of the site. text: all of it."""

    cells: int
    text: bytes = field(repr=False)

    @classmethod
    def of(
        cls, survey: Survey, seed: bytes, cells: int, keys: bytes, values: WordArray, nonce: bytes
    ) -> RowList:
        """A site's own. Args: keys: their digest. values: (n,) uint64, x or y by place."""
        # spec/linked.py, `row_list`
        hidden = coordinates(survey, seed, cells, 0, survey.places)
        numbers = (values + np.uint64(cells) - hidden) % np.uint64(cells)
        return cls(cells, nonce + keys + numbers.astype("<u4").tobytes())

    def numbers(self) -> WordArray:
        """Those of all rows, uint64, below `cells`."""
        return np.frombuffer(self.text, dtype="<u4", offset=HEAD_BYTES).astype(np.uint64)

    def check(self, survey: Survey, other: str) -> None:
        """A list that came has a number for each row.

        Args: other: the site. Raises: RemoteProtocolError.
        """
        due = HEAD_BYTES + NUMBER_BYTES * survey.places
        # spec/linked.py, `check_list`
        if len(self.text) != due or (self.numbers() >= self.cells).any():
            raise RemoteProtocolError(
                f"a list of {survey.places} numbers below {self.cells} was expected from {other}, "
                "and another one came: nothing was signed. Look into its log",
                culprit=other,
                step="compare",
            )

    def check_keys(self, own: RowList, other: str) -> None:
        """Both sites have the same keys. Raises: StudyError."""
        keys = slice(NONCE_BYTES, HEAD_BYTES)
        # spec/linked.py, `check_keys`
        if self.text[keys] != own.text[keys]:
            raise StudyError(
                f"the keys of {other} are not those of this site, though there are as many: "
                "nothing was signed. Compare how keys are written, and correct the table. A site "
                "keeps its list, so make a new study under another name"
            )


def linked_statement(survey: Survey, dealt: bytes, lists: Sequence[RowList]) -> bytes:
    """n, and a digest that fixes every number, all keys of rows, and all dealt ones.

    Args: dealt: the digest of the dealt keys. lists: of both sites, in the study's order.
    """
    # spec/linked.py, `linked_statement`
    fixed = digest(b"umpc linked rows 1", survey.hash, dealt, *(each.text for each in lists))
    return survey.places.to_bytes(8, "little") + fixed


def numbers_of(lists: Sequence[RowList]) -> WordArray:
    """The rows' numbers, uint64. Args: lists: of both sites, in the study's order."""
    first, second = lists
    return first.numbers() * np.uint64(second.cells) + second.numbers()
