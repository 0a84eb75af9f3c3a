"""Masked wires: the values that every node sends once per record, and the arithmetic on them.

A node's masks come from its mask seed, which only the node and the dealer know. Public arithmetic
on masked values and the same arithmetic on masks keep `value = masked − mask` true, so this module
does both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from umpc.crypto.prg import Stream, derive
from umpc.mpc.arrays import BitArray, PieceArray, WordArray
from umpc.mpc.masked.plan import Program
from umpc.mpc.masked.plan_items import Linear
from umpc.ustat.clear import Columns
from umpc.ustat.local import evaluate_local

NARROW = 32
"""The most bits of a number that is computed with in words of 32 bits."""

WireValues: TypeAlias = Sequence[WordArray]
"""For each wire of the program (n,) uint64, modulo 2^width of the wire."""
PlaceValues: TypeAlias = Mapping[int, WordArray]
"""For each known place of the plan (n,) uint64: its masked values, or its masks."""


def wire_masks(program: Program, mask_seed: bytes, records: int) -> list[WordArray]:
    """A node's masks: for each wire (records,) uint64 below 2^width."""
    return [
        Stream(derive(mask_seed, "mask", number)).words(records) & modulus(wire.width)
        for number, wire in enumerate(program.wires)
    ]


def masked_wires(
    program: Program, columns: Columns, masks: WireValues, records: int
) -> list[WordArray]:
    """A node's wires under their masks: for each wire (records,) uint64 below 2^width."""
    masked = []
    for wire, mask in zip(program.wires, masks, strict=True):
        values = evaluate_local(wire.polynomial, {0: columns}, records).view(np.uint64)
        masked.append((values + mask) & modulus(wire.width))
    return masked


def modulus(width: int) -> np.uint64:
    """The bit mask of w bits: reduction is by &, never by %."""
    return np.uint64((1 << width) - 1)


def linear_value(form: Linear, places: PlaceValues) -> WordArray:
    """constant + Σ coefficient · place, modulo 2^64, over the places that are known.

    The result has shape (n,), or () where no place of the form is known. It may be the array of a
    place itself, so nobody may write to it.
    """
    total: WordArray | None = None
    for number, coefficient in form.terms:
        value = places.get(number)
        if value is None:
            continue
        if coefficient not in (1, -1):
            value = value * np.uint64(coefficient & (2**64 - 1))
        if total is None:
            total = np.negative(value) if coefficient == -1 else value
        else:
            total = total - value if coefficient == -1 else total + value
    constant = np.array(form.constant & (2**64 - 1), dtype=np.uint64)
    if total is None:
        return constant
    return total + constant if form.constant else total


def top_bit(form: Linear, width: int, places: PlaceValues) -> BitArray:
    """Bit w − 1 of a form of masked values, or of masks: (n,) or () uint8."""
    return bit_of(narrow_value(form, width, places), width - 1)


def bit_of(values: PieceArray, number: int) -> BitArray:
    """Bit `number` of each value, counted from 0: (n,) or () uint8."""
    return (values >> values.dtype.type(number)).astype(np.uint8) & np.uint8(1)


def narrow_value(form: Linear, width: int, places: PlaceValues) -> PieceArray:
    """`linear_value` where only the low w bits are read: uint32 if they fit, which is half as long.

    The bits above w are any bits.
    """
    value = linear_value(form, places)
    return value.astype(np.uint32) if width <= NARROW else value


def joined(parts: Sequence[WordArray]) -> WordArray:
    """Values of several chunks behind each other; those of a single chunk as they are."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
