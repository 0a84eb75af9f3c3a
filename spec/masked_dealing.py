"""The dealer's part under masks, and what the parties expand from its seeds.

Sinh & Ramon 2025, A.3: in an offline phase, before any data, correlated randomness is made. The
dealer knows all masks and sees nothing that is made from data. It gives each node a seed. All
masks of a node, and its shares of products of masks, are streams of that seed. Only the last party
of a pair gets its shares as bytes: what is missing in the first one's.

Lists are [item][edge] throughout.
"""

from math import prod
from typing import Any

from spec import dcf
from spec.masked_plan import Part, Plan, layers, products_of_bits, products_of_numbers
from spec.prg import bits_of, cut, derive, pack, stream, unpack, words
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
    drawn = [words(derive(mask_seed, "mask", n), records) for n in range(len(plan["wires"]))]
    rows = zip(plan["wires"], drawn, strict=True)
    return [[r % (1 << width) for r in row] for width, row in rows]


def expand(plan: Plan, seed: bytes, count: int) -> dict[str, Any]:
    """Everything that a party expands from its chunk seed; the last party is dealt other shares.

    roots: a block for each gate. sigma: the party's mask of each bit that is opened. numbers,
    tables, bits: its shares of products of masks, of one-hot rows, and of conjunctions.
    """
    data = stream(derive(seed, "roots"), 16 * len(plan["gates"]) * count)
    blocks = [int.from_bytes(part, "little") for part in cut(data, 16)]
    sigma = cut(bits_of(derive(seed, "sigma"), len(plan["bits"]) * count), count)
    opened = [bit for layer in layers(plan) for bit in layer]
    numbers = words(derive(seed, "elements"), len(products_of_numbers(plan)) * count, plan["ring"])
    # each row of bits begins with a byte
    size = (count + 7) // 8
    loose = stream(derive(seed, "bits"), len(products_of_bits(plan)) * size)
    tables = stream(derive(seed, "tables"), table_bytes(plan, count))
    return {
        "roots": cut(blocks, count),
        "sigma": dict(zip(opened, sigma, strict=True)),
        "numbers": cut(numbers, count),
        "tables": read_tables(plan, tables, count),
        "bits": [unpack(row, 8 * size, 1)[:count] for row in cut(loose, size)],
    }


def deal(plan: Plan, masks: Masks, seeds: list[bytes], hash_key: bytes) -> list[bytes]:
    """The dealer's messages to both parties for one chunk of edges.

    Args: seeds: of each party, for this chunk. hash_key: of the trees' hash.
    """
    count = len(masks[0][0])
    first, last = (expand(plan, seed, count) for seed in seeds)
    keys = b""
    for gate, number in enumerate(plan["gates"]):
        rows = difference(plan, masks, number), first["roots"][gate], last["roots"][gate]
        width = plan["wires"][number]
        keys += dcf.encode(
            [dcf.generate(width, r, roots, hash_key) for r, *roots in zip(*rows, strict=True)]
        )
    # the mask of an opened bit: ⊕ of both σ, and msb(r) where the bit is a sign
    secret = []
    for number, (_, _, sign) in enumerate(plan["bits"]):
        tops = [0] * count
        if sign >= 0:
            tops = [r >> plan["wires"][sign] - 1 for r in difference(plan, masks, sign)]
        rows = first["sigma"][number], last["sigma"][number], tops
        secret.append([a ^ b ^ top for a, b, top in zip(*rows, strict=True)])

    def last_shares(products: list[Part], known: Rows, width: int) -> bytes:
        """The last party's shares of products of masks of bits and of numbers, in each edge.

        Sinh & Ramon 2025, A.2: the last share is what is missing in the first one.
        """
        shares = []
        for (bits, numbers), row in zip(products, known, strict=True):
            factors = [secret[bit] for bit in bits] + [masks[end][wire] for end, wire in numbers]
            for edge, share in enumerate(row):
                shares.append((prod(each[edge] for each in factors) - share) % (1 << width))
        return pack(shares, width)

    shares = last_shares(products_of_numbers(plan), first["numbers"], plan["ring"])
    tables = []
    for (number, low, size), row in zip(plan["tables"], first["tables"], strict=True):
        pairs = zip(difference(plan, masks, number), row, strict=True)
        tables.append([1 << (r >> low) % (1 << size) ^ share for r, share in pairs])
    conjunctions: list[Part] = [(bits, ()) for bits in products_of_bits(plan)]
    shares += write_tables(plan, tables) + last_shares(conjunctions, first["bits"], 1)
    return [keys, keys + shares]


def difference(plan: Plan, values: Masks, wire: int) -> list[int]:
    """The first end's number less the second one's, or of their masks, modulo 2^bits."""
    rows = zip(values[0][wire], values[1][wire], strict=True)
    return [(one - other) % (1 << plan["wires"][wire]) for one, other in rows]


def read(plan: Plan, data: bytes, is_last: bool, count: int) -> dict[str, Any]:
    """A party's material: the keys of its gates, and the last party's shares."""
    widths = [plan["wires"][number] for number in plan["gates"]]
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
        found["numbers"] = cut(unpack(data[:size], numbers, plan["ring"]), count)
        found["tables"] = read_tables(plan, data[size:], count)
        found["bits"] = cut(unpack(data[size + table_bytes(plan, count) :], bits, 1), count)
    return found


# --- one-hot rows on the wire: a row has whole bytes, and rows above 64 bits several words ---


def table_words(plan: Plan, count: int) -> list[tuple[int, int, int, int]]:
    """Table, edge, first byte and bytes of each word: of a table first the low words of all edges.

    Then come the next words of all edges.
    """
    sizes = [max(8, 1 << size) // 8 for _, _, size in plan["tables"]]
    return [
        (table, edge, place, min(8, whole))
        for table, whole in enumerate(sizes)
        for place in range(0, whole, 8)
        for edge in range(count)
    ]


def table_bytes(plan: Plan, count: int) -> int:
    """Bytes of all rows of `count` edges."""
    return sum(size for *_, size in table_words(plan, count))


def read_tables(plan: Plan, data: bytes, count: int) -> Rows:
    """The rows of all tables."""
    tables, start = [[0] * count for _ in plan["tables"]], 0
    for table, edge, place, size in table_words(plan, count):
        tables[table][edge] |= int.from_bytes(data[start : start + size], "little") << 8 * place
        start += size
    return tables


def write_tables(plan: Plan, tables: Rows) -> bytes:
    """The inverse of `read_tables`."""
    rows = table_words(plan, len(tables[0]) if tables else 0)
    cells = ((tables[table][edge] >> 8 * place, size) for table, edge, place, size in rows)
    return b"".join((word % (1 << 8 * size)).to_bytes(size, "little") for word, size in cells)
