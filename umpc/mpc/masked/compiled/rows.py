"""Rows that the steps of compiled programs share, and the plans that such programs serve."""

from __future__ import annotations

from collections.abc import Sequence

from umpc.crypto.prg import Stream, derive_each
from umpc.crypto.ring import packed_size
from umpc.mpc.masked.edge_layout import EdgeLayout
from umpc.mpc.masked.masks import PlaceValues
from umpc.mpc.masked.material import opened_bits
from umpc.mpc.masked.native import KERNEL
from umpc.mpc.masked.one_hot import row_type, row_words
from umpc.mpc.masked.plan import Plan
from umpc.mpc.masked.plan_items import (
    Linear,
    Local,
    Logic,
    LookupBit,
    LookupTable,
    RecordPlace,
    TopBit,
)
from umpc.native.programs import (
    Code,
    EdgeProgram,
    Joined,
    KeyStreams,
    Parts,
    Source,
    cuts_of,
    piece,
)

MOST_ITEMS = 4096
"""The most products of masks of a plan that is served: rows of bits stay in the cache."""
SHARES = {"elements": "elements", "tables": "tables", "products": "bits"}
"""The sources of shares of products of masks, and the purposes of their seeds in `material.py`."""
WORD = 8
"""Bytes of a place or a difference."""


def serves(plan: Plan) -> bool:
    """Whether the kernel computes chunks of this plan."""
    return KERNEL is not None and plan.remembered("served", is_served)


def is_served(plan: Plan) -> bool:
    """Whether a plan compares places of records by tables, and multiplies bits only."""
    terms = [term for output in plan.outputs for term in output.terms]
    return (
        bool(plan.layers)
        and plan.parties > 1
        and not plan.comparisons
        and all(isinstance(place, RecordPlace) for place in plan.places)
        and all(isinstance(bit, Local | LookupBit | Logic) for bit in plan.bits)
        and not any(term.factors for term in terms)
        and all(all(element) for element in plan.bit_elements)
        and len(plan.elements) + len(plan.bit_elements) <= MOST_ITEMS
    )


def place_sources(places: PlaceValues, counts: Sequence[int]) -> dict[str, Source]:
    """The sources that hold places: values, or masks. Args: counts: edges of each chunk."""
    cuts = cuts_of(WORD * count for count in counts)
    return {f"place {number}": Joined(values, cuts) for number, values in places.items()}


def opening_masks(plan: Plan, seeds: Sequence[bytes], party: int, counts: Sequence[int]) -> Source:
    """The masks of all that a party opens, a row for each bit, from its seed of each chunk.

    In the key stream rows do not begin with a byte, unless the edges fill bytes.
    """
    streams = derive_each(seeds, "sigma")
    if fill_bytes(counts):
        return KeyStreams(streams)
    rows = len(opened_bits(plan, party))
    parts = []
    for stream, count in zip(streams, counts, strict=True):
        octets = Stream(stream).octets(packed_size(count, rows))
        parts.append(EdgeLayout([count]).join_packed([octets.data], rows, padded=False))
    return Parts(parts)


def fill_bytes(counts: Sequence[int]) -> bool:
    """Whether the bits of each chunk's edges fill bytes."""
    return not any(count % 8 for count in counts)


def expanded_shares(seeds: Sequence[bytes]) -> dict[str, Source]:
    """The shares of a party other than the last. Args: seeds: its seed of each chunk."""
    return {name: KeyStreams(derive_each(seeds, purpose)) for name, purpose in SHARES.items()}


class Rows:
    """A program's rows by what they hold, so that each is computed once."""

    def __init__(self, program: EdgeProgram):
        self.program = program
        self.bits: dict[int, int] = {}
        """The row of each bit. It grows."""
        self._differences: dict[Linear, int] = {}
        self._together: dict[tuple[Code, tuple[int, ...]], int] = {}

    def difference(self, form: Linear) -> int:
        """constant + Σ coefficient · place: a row of uint64."""
        if form not in self._differences:
            program = self.program
            to = program.add(Code.FILL, program.new(WORD), number=form.constant)
            for place, coefficient in form.terms:
                code = Code.ADD if coefficient == 1 else Code.ADD_TIMES
                program.add(code, to, program.row(f"place {place}", 0, WORD), number=coefficient)
            self._differences[form] = to
        return self._differences[form]

    def top(self, form: Linear, top: TopBit) -> int:
        """The highest bit of a difference."""
        difference = self.difference(form)
        return self.program.add(Code.TOP_BIT, self.program.new(), difference, number=top.width - 1)

    def exclusive_or(self, rows: Sequence[int]) -> int:
        """The exclusive or of rows of bits; a single row is that row."""
        return self._combined(Code.XOR_BITS, rows)

    def conjunction(self, rows: Sequence[int]) -> int:
        """The conjunction of rows of bits; a single row is that row."""
        return self._combined(Code.AND_BITS, rows)

    def _combined(self, code: Code, rows: Sequence[int]) -> int:
        if len(rows) == 1:
            return rows[0]
        key = code, tuple(rows)
        if key not in self._together:
            fewer = self._combined(code, rows[:-1])
            self._together[key] = self.program.add(code, self.program.new(), fewer, rows[-1])
        return self._together[key]


def table_rows(
    plan: Plan, program: EdgeProgram, source: str, number: int, before: int
) -> list[int]:
    """The rows of a table's words. Args: before: the bytes of an edge before all tables."""
    table = plan.tables[number]
    first = before + sum(table.bits // 8 for table in plan.tables[:number])
    unit = row_type(table).itemsize
    return [program.row(source, first + word * unit, unit) for word in range(row_words(table))]


def table_bytes(plan: Plan) -> int:
    """The bytes of an edge's tables."""
    return sum(table.bits // 8 for table in plan.tables)


def piece_number(table: LookupTable, word: int = 0) -> int:
    """The number of a step that reads a table's piece."""
    return piece(table.low, table.size, word)
