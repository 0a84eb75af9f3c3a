"""Records as a node sends them: their bits, the fields that leave, and malformed messages."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from umpc.errors import EncodingError
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import FieldSchema, Schema
from umpc_papers.central.columns import (
    SEED_BYTES,
    fields_of,
    message_bytes,
    pack_records,
    unpack_records,
)

ONE, SEED = Fraction(1), bytes(range(32))
WIDE = FieldSchema("wide", Fraction(-(1 << 51)), Fraction(1 << 51), ONE)
SMALL = FieldSchema("small", Fraction(-1), Fraction(3), Fraction(1, 2))
JOB = FieldSchema("job", Fraction(0), Fraction(2), ONE, ("a", "b", "c"))
SINGLE = FieldSchema("single", Fraction(7), Fraction(7), ONE)
FIELDS = (JOB, SINGLE, SMALL, WIDE)


def table(records: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(records)
    return {
        f.name: rng.integers(f.lower_units, f.upper_units, records, endpoint=True) for f in FIELDS
    }


@pytest.mark.parametrize("records", [0, 1, 7, 8, 100])
def test_records_come_back_from_as_many_bytes_as_predicted(records):
    columns = table(records)
    message = pack_records(FIELDS, columns, SEED)
    bits = [2, 1, 4, 53]
    assert (
        len(message)
        == message_bytes(FIELDS, records)
        == SEED_BYTES + sum((b * records + 7) // 8 for b in bits)
    )
    seed, found = unpack_records(FIELDS, message, records)
    assert seed == SEED and list(found) == [f.name for f in FIELDS]
    assert all(
        np.array_equal(found[name], columns[name]) and found[name].dtype == np.int64
        for name in columns
    )


def test_bounds_themselves_come_back():
    columns = {f.name: np.array([f.lower_units, f.upper_units]) for f in FIELDS}
    _, found = unpack_records(FIELDS, pack_records(FIELDS, columns, SEED), 2)
    assert all(found[name].tolist() == columns[name].tolist() for name in columns)


def test_only_the_kernels_own_fields_leave():
    schema = Schema([*FIELDS, FieldSchema("other", Fraction(0), ONE, ONE)])
    kernel = Kernel.from_text("(a.job == b.job) * abs(a.small - b.small)", schema)
    assert fields_of(kernel) == (JOB, SMALL)


GOOD = pack_records((JOB,), {"job": np.array([0, 1, 2])}, SEED)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (b"", "3 records take 33 bytes, 0 came"),
        (GOOD[:-1], "32 came"),
        (GOOD + b"\0", "34 came"),
        (GOOD[:-1] + bytes([GOOD[-1] | 0xC0]), "padding"),
        (SEED + b"\x3f", "a value of 'job' is beyond its upper bound 2"),
    ],
)
def test_malformed_messages_are_refused_without_their_values(message, said):
    with pytest.raises(EncodingError, match=said):
        unpack_records((JOB,), message, 3)
