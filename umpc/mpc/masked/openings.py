"""The messages of one opening: a party's masked shares of a layer's bits and places.

Several chunks of the same plan are opened together, and each chunk has a message of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from umpc.crypto.ring import packed_size
from umpc.crypto.rounds import Message
from umpc.errors import EncodingError
from umpc.mpc.arrays import BitArray, WordArray
from umpc.mpc.masked.edge_layout import EdgeLayout
from umpc.mpc.masked.plan import Plan


@dataclass(frozen=True)
class LayerShares:
    """A party's masked shares in one layer.

    bits: for each bit (⌈n/8⌉,) uint8, eight edges to a byte. places: for each place (n,) uint64.
    """

    bits: dict[int, BitArray]
    places: dict[int, WordArray]

    def __repr__(self) -> str:
        return "LayerShares(<redacted>)"


def open_message(plan: Plan, layer: int, party: int, shares: LayerShares, count: int) -> Message:
    """The message of one round of a single chunk."""
    (message,) = open_messages(plan, layer, party, shares, EdgeLayout([count]))
    return message


def open_messages(
    plan: Plan, layer: int, party: int, shares: LayerShares, layout: EdgeLayout
) -> list[Message]:
    """Each chunk's message of one round: bit after bit, then place after place."""
    parts = [layout.cut_packed([*shares.bits.values()])]
    for number, values in shares.places.items():
        parts.append(layout.cut_words(values, plan.place_width(number)))
    width = plan.open_width(layer, party)
    return [
        Message("open", b"".join(pieces), count, width, layer + 1)
        for count, pieces in zip(layout.counts, zip(*parts, strict=True), strict=True)
    ]


def read_opens(
    plan: Plan, layer: int, party: int, messages: Sequence[Message], layout: EdgeLayout
) -> LayerShares:
    """Another party's shares in all chunks, from its message of each. Raises: EncodingError."""
    bits = plan.opened_bits(layer, party)
    widths = [len(bits), *map(plan.place_width, plan.opened_places(layer, party))]
    payloads = [message.payload for message in messages]
    stops = [0] * len(payloads)
    parts: list[list[bytes]] = []
    for width in widths:
        starts = stops
        stops = [
            start + packed_size(count, width)
            for start, count in zip(starts, layout.counts, strict=True)
        ]
        cuts = zip(payloads, starts, stops, strict=True)
        parts.append([payload[start:stop] for payload, start, stop in cuts])
    for message, due in zip(messages, stops, strict=True):
        if len(message.payload) != due:
            raise EncodingError(
                f"{message!r} must take {due} bytes, and it has {len(message.payload)}"
            )
    rows = layout.join_packed(parts[0], len(bits))
    places = plan.opened_places(layer, party)
    return LayerShares(
        dict(zip(bits, rows, strict=True)),
        {
            number: layout.join_words(part, width)
            for number, part, width in zip(places, parts[1:], widths[1:], strict=True)
        },
    )


def read_open(plan: Plan, layer: int, party: int, message: Message, count: int) -> LayerShares:
    """Another party's shares in a single chunk. Raises: EncodingError."""
    return read_opens(plan, layer, party, [message], EdgeLayout([count]))
