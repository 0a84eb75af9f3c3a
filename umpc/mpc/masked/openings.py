"""The message of one opening: a party's masked shares of a layer's bits and places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from umpc.crypto.ring import pack, packed_size, unpack
from umpc.crypto.rounds import Message
from umpc.errors import EncodingError
from umpc.mpc.arrays import BitArray, WordArray
from umpc.mpc.masked.plan import Plan


@dataclass(frozen=True)
class LayerShares:
    """A party's masked shares in one layer: for each bit (n,) uint8, for each place (n,) uint64."""

    bits: dict[int, BitArray]
    places: dict[int, WordArray]

    def __repr__(self) -> str:
        return "LayerShares(<redacted>)"


def open_message(plan: Plan, layer: int, party: int, shares: LayerShares, count: int) -> Message:
    """The message of one round: bit after bit, then place after place."""
    bits = np.concatenate([*shares.bits.values(), np.empty(0, np.uint8)])
    places = (pack(values, plan.place_width(number)) for number, values in shares.places.items())
    payload = pack(bits, 1) + b"".join(places)
    return Message("open", payload, count, plan.open_width(layer, party), layer + 1)


def read_open(plan: Plan, layer: int, party: int, message: Message, count: int) -> LayerShares:
    """Another party's shares. Raises: EncodingError."""
    payload = message.payload
    bits = plan.opened_bits(layer, party)
    start = packed_size(len(bits) * count, 1)
    rows = unpack(payload[:start], len(bits) * count, 1, np.uint8).reshape(len(bits), count)
    values = {}
    for number in plan.opened_places(layer, party):
        width = plan.place_width(number)
        stop = start + packed_size(count, width)
        values[number] = unpack(payload[start:stop], count, width)
        start = stop
    if start != len(payload):
        raise EncodingError(f"{message!r} must take {start} bytes, and it has {len(payload)}")
    return LayerShares(dict(zip(bits, rows, strict=True)), values)
