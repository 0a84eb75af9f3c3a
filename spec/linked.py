"""Columns at different sites: the rows that two sites both have, and shares of their histogram.

The setting of Sinh & Ramon 2025, section 1, with one table whose columns lie at two sites.
`docs/linked.md` has the promise and who sees what. Keys, statement and release are those of people
(`people.py`); a row has the place of its key among all n keys, in their order.

    deal      dealer → site    a seed, of which roots and the site's own coordinates are made, and
                               the keys of all rows for the cells r·D2 + s
    list      site → other     nonce, digest of all keys, x − r mod D1 of each row (or y − s mod D2)
    sign      both             the two lists, once
    release   each expands its keys, rotates rows by x − r and columns by y − s, and adds up
"""

from typing import Any

from spec import point_functions
from spec.people import hash_key, roots
from spec.people_messages import NONCE_BYTES, NUMBER_BYTES, seal, unseal
from spec.point_functions import Key
from spec.prg import cut, derive, digest, stream
from spec.refused import require

Study = dict[str, Any]
"""hash; widths: D1 and D2, the cells of each site; people: the rows, of which the number counts;
names of both sites; box_keys: an X25519 key of each, made for this study, which it signs. The other
one knows it before it signs a list."""
HEAD_BYTES = NONCE_BYTES + 32


def coordinates(study: Study, side: int, seed: bytes) -> list[int]:
    """r of each row, or s: dealer and site know it, and nobody else. Uniform but for D1/2^128."""
    rows = len(study["people"])
    data = stream(derive(seed, "coordinates of linked rows", study["hash"]), 16 * rows)
    return [int.from_bytes(word, "little") * study["widths"][side] >> 128 for word in cut(data, 16)]


def deal(study: Study, seeds: list[bytes]) -> list[Key]:
    """The keys of all rows, the same bytes for both. Args: seeds: of both sites."""
    first, second = study["widths"]
    hidden = zip(*(coordinates(study, side, seeds[side]) for side in (0, 1)), strict=True)
    both = zip(*(roots(study, seed) for seed in seeds), strict=True)
    return [
        point_functions.generate(first * second, r * second + s, [*pair], hash_key(study))
        for (r, s), pair in zip(hidden, both, strict=True)
    ]


# --- list: site ↔ site ---


def keys_digest(keys: list[str]) -> bytes:
    """A digest of all keys. Their order is that of their code points, and each is there once."""
    return digest(b"umpc linked keys 1", *(key.encode() for key in keys))


def row_list(
    study: Study, side: int, seed: bytes, keys: bytes, values: list[int], nonce: bytes
) -> bytes:
    """A site's list. It is made once: two numbers under one r would show how a value has changed.

    Args: keys: their digest. values: x of each row, or y. nonce: 32 random bytes.
    """
    width = study["widths"][side]
    hidden = coordinates(study, side, seed)
    numbers = [(value - r) % width for value, r in zip(values, hidden, strict=True)]
    return nonce + keys + b"".join(number.to_bytes(NUMBER_BYTES, "little") for number in numbers)


def seal_list(study: Study, side: int, text: bytes, secret: bytes) -> bytes:
    """For the other site alone: the dealer knows r. Nobody else can make such a box, so nobody can
    try guesses of all keys on the answer. Each text has a key of its own: two texts under one key
    and nonce would show the coordinator their difference.

    Args: side: the receiver's. secret: of the sender's box key."""
    fixed = digest(b"umpc list of rows 1", text)
    about = [study["hash"], side, fixed]
    return fixed + seal("list of rows", about, study["box_keys"][side], secret, text)


def open_list(study: Study, side: int, secret: bytes, sealed: bytes) -> bytes:
    about, box = [study["hash"], side, sealed[:32]], sealed[32:]
    require(box[:32] == study["box_keys"][1 - side], "a list is sealed by the other site")
    return unseal("list of rows", about, secret, box, len(box) - 48)


def numbers_of(text: bytes) -> list[int]:
    parts = cut(text[HEAD_BYTES:], NUMBER_BYTES)
    return [int.from_bytes(part, "little") for part in parts]


def check_list(study: Study, side: int, text: bytes) -> list[int]:
    """The numbers of a list that came from the site `side`."""
    due = HEAD_BYTES + len(study["people"]) * NUMBER_BYTES
    numbers = numbers_of(text)
    is_right = len(text) == due and all(each < study["widths"][side] for each in numbers)
    require(is_right, "a list has a number for each row", study["names"][side])
    return numbers


def check_keys(own: bytes, came: bytes) -> None:
    """Both have the same rows."""
    keys = slice(NONCE_BYTES, HEAD_BYTES)
    require(own[keys] == came[keys], "both sites have the same keys")


def linked_statement(study: Study, dealt: bytes, lists: list[bytes]) -> bytes:
    """Both sign it as people's (`people.counted_text`), once. The nonces hide the numbers from the
    dealer, who knows r and s. Args: dealt: the digest of the dealt keys."""
    fixed = digest(b"umpc linked rows 1", study["hash"], dealt, *lists)
    return len(study["people"]).to_bytes(8, "little") + fixed


# --- release ---


def table_share(
    study: Study, side: int, seed: bytes, keys: list[Key], lists: list[bytes]
) -> list[int]:
    """A site's share of the histogram over x·D2 + y, modulo 2^64. It then deletes lists and keys,
    and puts the cells into the order of the study's axes, if that is another one."""
    first, second = study["widths"]
    both = zip(*(numbers_of(text) for text in lists), strict=True)
    numbers = [u * second + v for u, v in both]
    own = roots(study, seed)
    return point_functions.add_up(
        side, first * second, keys, numbers, own, hash_key(study), row=second
    )


def run(
    study: Study,
    seeds: list[bytes],
    keys: list[str],
    values: list[list[int]],
    owns: list[dict[str, bytes]],
    dealt: bytes,
) -> dict[str, Any]:
    """Both sites, up to their shares. Args: values: of each site. owns: of each site box_secret and
    nonce."""
    found = keys_digest(keys)
    lists = [
        row_list(study, side, seeds[side], found, values[side], owns[side]["nonce"])
        for side in (0, 1)
    ]
    sealed = [seal_list(study, 1 - side, lists[side], owns[side]["box_secret"]) for side in (0, 1)]
    came = [open_list(study, side, owns[side]["box_secret"], sealed[1 - side]) for side in (0, 1)]
    for side in (0, 1):
        check_list(study, 1 - side, came[side])
        check_keys(lists[side], came[side])
    given = deal(study, seeds)
    tables = [table_share(study, side, seeds[side], given, lists) for side in (0, 1)]
    statement = linked_statement(study, dealt, lists)
    return {"sealed": sealed, "statement": statement, "tables": tables}
