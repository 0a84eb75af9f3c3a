"""The dealer's part under masks, and what the parties expand from its seeds.

Sinh & Ramon 2025, A.3: in an offline phase, before any data, correlated randomness is made. The
dealer knows all masks and sees nothing that is made from data. It gives each node a seed. All
masks of a node, and its shares of products of masks, are streams of that seed. Only the last party
of a pair gets its shares as bytes: what is missing in the first one's.

Lists are [item][edge] throughout.
"""

from __future__ import annotations

from typing import Any

from spec import dcf
from spec.masked_plan import (
    Plan,
    layers,
    products_of_bits,
    products_of_numbers,
)
from spec.prg import bits_of, derive, pack, stream, unpack, words
from spec.refused import require

Rows = list[list[int]]
Masks = list[Rows]
"""The masks of each end of the pair: for each wire, that of its record in each edge."""


def chunk_seed(node_seed: bytes, owners: list[int], number: int) -> bytes:
    """The seed of a node's part in one chunk of one cell, so that nothing dealt serves two."""
    return derive(node_seed, "chunk", len(owners), *owners, number)


def tree_key(attempt: bytes) -> bytes:
    """The public key of the trees' hash, another one in each attempt."""
    return derive(attempt, "ggm")[:16]


def record_masks(plan: Plan, mask_seed: bytes, records: int) -> Rows:
    """The masks of a node's records: for each wire one of each record."""
    rows = []
    for number, width in enumerate(plan["wires"]):
        drawn = words(derive(mask_seed, "mask", number), records)
        rows.append([word % (1 << width) for word in drawn])
    return rows


def flat(rows: Rows) -> list[int]:
    """All rows, one behind the other."""
    return [item for row in rows for item in row]


def in_rows(items: list[int], count: int) -> Rows:
    """A list cut into rows of `count`."""
    return [items[start : start + count] for start in range(0, len(items), count)]


def expand(plan: Plan, seed: bytes, count: int) -> dict[str, Any]:
    """Everything that a party expands from its chunk seed; the last party is dealt other shares.

    places: its mask of a number that all parties open together (`dealt_coins.py`).
    roots: a block for each gate. sigma: the party's mask of each bit that is opened. numbers,
    tables, bits: its shares of products of masks, of one-hot rows, and of conjunctions.
    """
    data = stream(derive(seed, "roots"), 16 * len(plan["gates"]) * count)
    blocks = [int.from_bytes(data[i : i + 16], "little") for i in range(0, len(data), 16)]
    sigma = in_rows(bits_of(derive(seed, "sigma"), len(plan["bits"]) * count), count)
    opened = [bit for layer in layers(plan) for bit in layer]
    numbers = words(derive(seed, "elements"), len(products_of_numbers(plan)) * count, plan["ring"])
    size = (count + 7) // 8
    loose = stream(derive(seed, "bits"), len(products_of_bits(plan)) * size)
    places = words(derive(seed, "places"), count)
    tables = stream(derive(seed, "tables"), table_bytes(plan, count))
    return {
        "places": [word % (1 << plan["compared"][0]) for word in places],
        "roots": in_rows(blocks, count),
        "sigma": dict(zip(opened, sigma, strict=True)),
        "numbers": in_rows(numbers, count),
        "tables": read_tables(plan, tables, count),
        # each row begins with a byte
        "bits": [
            unpack(loose[start : start + size], 8 * size, 1)[:count]
            for start in range(0, len(loose), size)
        ],
    }


def deal(plan: Plan, masks: Masks, seeds: list[bytes], hash_key: bytes) -> list[bytes]:
    """The dealer's messages to all parties for one chunk of edges.

    Args: seeds: of each party, for this chunk. hash_key: of the trees' hash.
    """
    count, modulus = len(masks[0][0]), 1 << plan["ring"]
    parts = [expand(plan, seed, count) for seed in seeds]
    keys = b""
    for gate, number in enumerate(plan["gates"]):
        roots = zip(*(part["roots"][gate] for part in parts), strict=True)
        rows = zip(difference(plan, masks, number), roots, strict=True)
        width = plan["compared"][number]
        keys += dcf.encode([dcf.generate(width, r, list(root), hash_key) for r, root in rows])
    # the mask of an opened bit: ⊕ of all σ, and msb(r) where the bit is a sign
    secret = []
    for number, (_, _, sign) in enumerate(plan["bits"]):
        tops = [0] * count
        if sign >= 0:
            tops = [r >> plan["compared"][sign] - 1 for r in difference(plan, masks, sign)]
        sigmas = zip(*(part["sigma"][number] for part in parts), tops, strict=True)
        secret.append([sum(bits) % 2 for bits in sigmas])
    numbers = [
        [_product(bits, forms, secret, masks, edge) for edge in range(count)]
        for bits, forms in products_of_numbers(plan)
    ]
    tables = [
        [1 << (r >> low) % (1 << size) for r in difference(plan, masks, number)]
        for number, low, size in plan["tables"]
    ]
    conjunctions = [
        [int(all(secret[bit][edge] for bit in part)) for edge in range(count)]
        for part in products_of_bits(plan)
    ]
    # Sinh & Ramon 2025, A.2: the last share is what is missing in the others
    for part in parts[:-1]:
        pairs = zip(numbers, part["numbers"], strict=True)
        numbers = [[(a - b) % modulus for a, b in zip(*pair, strict=True)] for pair in pairs]
        tables = xor_rows(tables, part["tables"])
        conjunctions = xor_rows(conjunctions, part["bits"])
    shares = pack(flat(numbers), plan["ring"]) + write_tables(plan, tables)
    shares += pack(flat(conjunctions), 1)
    return [keys] * (len(seeds) - 1) + [keys + shares]


def _product(bits: Any, forms: Any, secret: Rows, masks: Masks, edge: int) -> int:
    """A product of masks of bits and of factors, in one edge."""
    value = 1
    for bit in bits:
        value *= secret[bit][edge]
    for form in forms:
        value *= sum(c * masks[place % 2][place // 2][edge] for place, c in form)
    return value


def xor_rows(one: Rows, other: Rows) -> Rows:
    """⊕, item by item."""
    pairs = zip(one, other, strict=True)
    return [[a ^ b for a, b in zip(*rows, strict=True)] for rows in pairs]


def difference(plan: Plan, values: Masks, wire: int) -> list[int]:
    """The first end's number less the second one's, or of their masks, modulo 2^bits."""
    modulus = 1 << plan["compared"][wire]
    return [
        (one - other) % modulus for one, other in zip(values[0][wire], values[1][wire], strict=True)
    ]


def read(plan: Plan, data: bytes, is_last: bool, count: int) -> dict[str, Any]:
    """A party's material: the keys of its gates, and the last party's shares."""
    widths = [plan["compared"][number] for number in plan["gates"]]
    sizes = [count * (16 * dcf.levels(width) + 12) for width in widths]
    due, bits = sum(sizes), len(products_of_bits(plan)) * count
    numbers = len(products_of_numbers(plan)) * count
    if is_last:
        due += numbers * plan["ring"] // 8 + table_bytes(plan, count) + (bits + 7) // 8
    require(len(data) == due, "length of material")
    found: dict[str, Any] = {"keys": []}
    for width, size in zip(widths, sizes, strict=True):
        found["keys"].append(dcf.decode(data[:size], width, count))
        data = data[size:]
    if is_last:
        size = numbers * plan["ring"] // 8
        found["numbers"] = in_rows(unpack(data[:size], numbers, plan["ring"]), count)
        found["tables"] = read_tables(plan, data[size:], count)
        found["bits"] = in_rows(unpack(data[size + table_bytes(plan, count) :], bits, 1), count)
    return found


# --- one-hot rows on the wire: a row has whole bytes, and rows above 64 bits several words ---


def table_bytes(plan: Plan, count: int) -> int:
    """Bytes of all rows of `count` edges."""
    return count * sum(max(8, 1 << size) // 8 for _, _, size in plan["tables"])


def read_tables(plan: Plan, data: bytes, count: int) -> Rows:
    """The rows of all tables; of each table its first words for all edges, then the next ones."""
    tables, start = [], 0
    for _, _, size in plan["tables"]:
        whole = max(8, 1 << size) // 8
        word = min(8, whole)
        rows = [0] * count
        for place in range(0, whole, word):
            for edge in range(count):
                rows[edge] |= int.from_bytes(data[start : start + word], "little") << 8 * place
                start += word
        tables.append(rows)
    return tables


def write_tables(plan: Plan, tables: Rows) -> bytes:
    """The inverse of `read_tables`."""
    data = b""
    for (_, _, size), rows in zip(plan["tables"], tables, strict=True):
        whole = max(8, 1 << size) // 8
        word = min(8, whole)
        for place in range(0, whole, word):
            for row in rows:
                data += row.to_bytes(whole, "little")[place : place + word]
    return data
