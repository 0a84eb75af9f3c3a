"""Messages of a verified grid: digests, signed statements, and challenges (`verified_grid.py`).

The dealer sees digests with a node's salt only. It knows the masks, so a plain digest of ĥ, ŷ or Ĥ
would tell it whether a guess is right. Every challenge comes after what it tests: X after all
tables and lists, ρ after the inverses, r after the proofs.
"""

from typing import Any

from spec.field import Element, challenge
from spec.prg import digest

Study = dict[str, Any]
"""All that is public: attempt; relay and dealer, two names; dealer_key; of each node its name, key,
size (records) and counts (records of each public class), in lists names, keys, sizes and counts;
cells; classes (the cells of each public class; all are one where none is public); matrix."""
Own = dict[str, Any]
"""A node's own: place; seed (the dealer's) and dealt (c_u); records (the cell of each) and table;
salt and wires (32 random bytes each); key and nonces (of two signatures); noise."""
Message = dict[str, Any]
"""First: table (ĥ), list (ŷ), salt, signature. Second: inverses (ŵ), proof, digests, signature."""
Opened = dict[str, Any]
"""All nodes get of the first messages: total (Ĥ), and for each node its list, salt, H(salt, ĥ) and
signature, in lists named lists, salts, tables and signatures."""


def table_digest(salt: bytes, table: bytes) -> bytes:
    """H(salt, ĥ). It binds a node to its table, which all nodes see only if the total is wrong."""
    return digest(b"umpc masked table 1", salt, table)


def table_statement(study: Study, place: int, salt: bytes, table: bytes, listed: bytes) -> bytes:
    """d_u = H(salt, H(salt, ĥ), ŷ), which u signs. Args: table: H(salt, ĥ). listed: ŷ."""
    number = place.to_bytes(8, "little")
    return digest(b"umpc verified table 1", study["attempt"], number, salt, table, listed)


def root_of(study: Study, opened: Opened) -> bytes:
    """R = H(attempt, all d_u, H(all salts, Ĥ)). It fixes all masked tables and lists."""
    rows = zip(opened["salts"], opened["tables"], opened["lists"], strict=True)
    each = [table_statement(study, place, *row) for place, row in enumerate(rows)]
    return root_from(study, each, opened["salts"], opened["total"])


def root_from(study: Study, statements: list[bytes], salts: list[bytes], total: bytes) -> bytes:
    """R, of all d_u, all salts and Ĥ."""
    of_total = digest(b"umpc masked total 1", *salts, total)
    return digest(b"umpc verified root 1", study["attempt"], *statements, of_total)


def lookup_point(root: bytes) -> Element:
    """X = X(R)."""
    return challenge(b"umpc lookup point 1", root)


def digests_of(salt: bytes, inverses: bytes, proof: bytes) -> list[bytes]:
    """H(salt, ŵ) and H(salt, masked proof)."""
    return [
        digest(b"umpc masked inverses 1", salt, inverses),
        digest(b"umpc masked proof 1", salt, proof),
    ]


def proof_powers(root: bytes, place: int, inverses: bytes) -> Element:
    """ρ = ρ(R, u, H(salt, ŵ))."""
    return challenge(b"umpc proof powers 1", root, place.to_bytes(8, "little"), inverses)


def proof_statement(study: Study, place: int, root: bytes, digests: list[bytes]) -> bytes:
    """The bytes that u signs for the dealer: attempt, u, R, H(salt, ŵ), H(salt, masked proof)."""
    number = place.to_bytes(8, "little")
    return digest(b"umpc verified proof 1", study["attempt"], number, root, *digests)


def proof_point(study: Study, coin: bytes) -> Element:
    """r, from 32 random bytes of the dealer. It is the same for all nodes."""
    return challenge(b"umpc proof point 1", study["attempt"], coin)


def answer_statement(study: Study, told: Message) -> bytes:
    """The bytes that the dealer signs: attempt, R, coin, and of each node a digest.

    So evidence against one node has its part, and of the others 32 bytes each.
    """
    each = zip(told["digests"], told["parts"], strict=True)
    rows = [digest(b"umpc verified part 1", *digests, part) for digests, part in each]
    return digest(b"umpc verified answer 1", study["attempt"], told["root"], told["coin"], *rows)
