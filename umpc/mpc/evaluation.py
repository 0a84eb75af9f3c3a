"""What the two owners of a cell compute for one chunk of its edges (Sinh & Ramon 2025, protocol 3.1, step 2).

Round 1 (`masked_fields`, once per cell, not per chunk) gave each owner the other's masked records. Then, per chunk:

    open_bits:  each sends its share of every comparison bit under its mask, p bits an edge and way
    no round:   both expand the kernel's terms over masked values; sums over the edges stay shared

Sees: masked records (uniform to whoever lacks the mask), masked bits (uniform). Learns nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from umpc.errors import EncodingError
from umpc.mpc.comparison import evaluate
from umpc.mpc.masks import Wires, linear_value, modulus
from umpc.mpc.material import DealtPart, SeededPart
from umpc.mpc.plan import Linear, PairPlan, Term, expansions
from umpc.mpc.prg import FixedKeyHash
from umpc.mpc.ring import pack, packed_size, unpack
from umpc.mpc.rounds import Message, Protocol


@dataclass(frozen=True)
class ChunkInputs:
    """The masked wires of both records of each edge, and the masks of one's own: per wire (n,) uint64."""

    first: Wires
    second: Wires
    own_masks: Wires
    count: int

    def __repr__(self) -> str:
        return f"ChunkInputs({self.count} edges, <redacted>)"


def evaluate_chunk(
    party: int, plan: PairPlan, inputs: ChunkInputs, dealt: DealtPart, seeded: SeededPart, tree_hash: FixedKeyHash
) -> Protocol[int]:
    """One owner's additive share of Σ terms over the chunk's edges, as a ring element.

    The local parts and the constant of the plan are not in it: `node/session.py` adds them.
    Cost: one round of plan.bits bits an edge and way, none without comparisons.
    """
    opened = np.zeros((plan.bits, inputs.count), dtype=np.uint8)
    if plan.bits:
        mine = masked_bit_shares(party, plan, inputs, dealt, seeded, tree_hash)
        message = bits_message(mine)
        (theirs,) = yield message
        opened = mine ^ unpack(theirs.payload, theirs.count, 1, np.uint8).reshape(mine.shape)
    elements = seeded.elements if party == 0 else dealt.elements
    return expand_terms(party, plan, inputs, opened, elements)


def bits_message(bits: np.ndarray) -> Message:
    packed = np.packbits(bits.reshape(-1), bitorder="little").tobytes()
    return Message("open_bits", packed, bits.size, 1)


def masked_bit_shares(
    party: int, plan: PairPlan, inputs: ChunkInputs, dealt: DealtPart, seeded: SeededPart, tree_hash: FixedKeyHash
) -> np.ndarray:
    """This party's XOR shares of all bits under their masks: (bits, n) uint8."""
    shares = seeded.sigma.copy()
    for gate, keys, roots in zip(plan.comparisons, dealt.keys, seeded.roots, strict=True):
        masked = linear_value(gate.difference, inputs.first, inputs.second, constant=True) & modulus(gate.width)
        less, equal = evaluate(party, keys, masked, roots, tree_hash)
        if gate.less is not None:
            shares[gate.less] ^= less
        if gate.equal is not None:
            shares[gate.equal] ^= equal
    return shares


def expand_terms(party: int, plan: PairPlan, inputs: ChunkInputs, opened: np.ndarray, elements: np.ndarray) -> int:
    """Σ over edges and terms of this party's share.

    With b = m ⊕ s = m + (1 − 2m)s for every bit and X = X̂ − R for every linear form, a term is a sum over subsets of
    its bits and factors: public coefficient × product of masks. Products of masks are shared.
    """
    kind = plan.ring.dtype
    flip = (1 - 2 * opened.astype(np.int8)).astype(kind)  # 1 − 2m
    shares = dict(zip(plan.elements, elements, strict=True))
    coefficients: dict = {}
    total = 0
    for term in plan.terms:
        values = {
            form: linear_value(form, inputs.first, inputs.second, constant=True).astype(kind) for form in term.factors
        }
        if party == 0:
            total += int(_public(plan, term, (), (), opened, flip, values).sum(dtype=kind))
        for element in expansions(term):
            public = _public(plan, term, *element, opened, flip, values)
            known = coefficients.get(element)
            coefficients[element] = public if known is None else known + public
    for (bits, factors), public in coefficients.items():
        if (bits, factors) in shares:
            share = shares[bits, factors]
        else:
            share = _own_mask(party, factors[0], inputs.own_masks).astype(kind)
        total += int(np.multiply(public, share, dtype=kind).sum(dtype=kind))
    return plan.ring.encode(total)


def _public(
    plan: PairPlan, term: Term, bits, factors, opened: np.ndarray, flip: np.ndarray, values: dict
) -> np.ndarray:
    """The known factor of one product of masks in a term: (n,) of the ring."""
    kind = plan.ring.dtype
    sign = -1 if len(factors) % 2 else 1
    product = np.full(
        opened.shape[1] if plan.bits else len(next(iter(values.values()))), plan.ring.scalar(sign * term.coefficient)
    )
    for bit in term.bits:
        product *= flip[bit] if bit in bits else opened[bit].astype(kind)
    for form in term.factors:
        if form not in factors:
            product *= values[form]
    return product


def _own_mask(party: int, form: Linear, masks: Wires) -> np.ndarray:
    """The part of a linear form's mask that this owner knows: its share, since the rest is the other's."""
    first, second = (masks, None) if party == 0 else (None, masks)
    return np.broadcast_to(linear_value(form, first, second, constant=False), np.shape(masks[0]))


FIELDS_BYTES = 1_000_000
"""Masked fields of so many bytes at most go into one message."""


def fields_frames(plan: PairPlan, records: int) -> Iterator[tuple[int, int, int]]:
    """How round 1 is cut into messages: (number, records, bytes) of each. None where nothing is sent masked."""
    if not plan.wires:
        return
    width = sum(wire.width for wire in plan.wires)
    step = FIELDS_BYTES * 8 // width // 8 * 8
    for number, start in enumerate(range(0, records, step)):
        count = min(step, records - start)
        yield number, count, sum(packed_size(count, wire.width) for wire in plan.wires)


def fields_messages(plan: PairPlan, masked: Wires, records: np.ndarray) -> list[Message]:
    """Round 1: the masked wires of these records, wire after wire, in as few messages as fit."""
    width, start, messages = sum(wire.width for wire in plan.wires), 0, []
    for _, count, _ in fields_frames(plan, len(records)):
        part = records[start : start + count]
        payload = b"".join(pack(values[part], wire.width) for wire, values in zip(plan.wires, masked, strict=True))
        messages.append(Message("masked_fields", payload, count, width))
        start += count
    return messages


def read_fields(plan: PairPlan, messages: Sequence[Message]) -> list[np.ndarray]:
    """The other owner's masked wires: per wire (records sent,) uint64. Raises: EncodingError."""
    values: list[list[np.ndarray]] = [[] for _ in plan.wires]
    for message in messages:
        start = 0
        for wire, parts in zip(plan.wires, values, strict=True):
            size = packed_size(message.count, wire.width)
            parts.append(unpack(message.payload[start : start + size], message.count, wire.width))
            start += size
        if start != len(message.payload):
            raise EncodingError(f"{message!r} takes {start} bytes, got {len(message.payload)}")
    return [np.concatenate(parts) if parts else np.empty(0, np.uint64) for parts in values]
