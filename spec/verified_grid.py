"""The grid when nodes lie: the opened total is proved to be a table of records.

Sums over all pairs with a dealer, as in `grid.py`, but the coordinator and all nodes but one may
send anything. The dealer follows the protocol, colludes with nobody, and learns nothing. No table
is proved alone: it is enough that Ĥ − Σ a_u is the table of Σ n_u records, because then the release
is that of honest nodes with these records. `docs/verified_grid.md` has the promise and its proof.

A table is compared with a list by logarithmic derivatives (Haböck 2022): h is the table of
y_1 … y_n if and only if Σ_i 1/(X − y_i) = Σ_c h(c)/(X − c) as functions of X. Both sides are opened
at one random X, and `linear_proof.py` proves the inverses. Numbers that nodes send are under the
dealer's masks: ĥ = h + a, ŷ = y + b, ŵ = w + e, and the proof + m. All tests are linear in them. So
the dealer computes the same forms of the masks, and everybody adds both.
"""

from collections.abc import Callable
from typing import Any

from spec import field
from spec.field import (
    Element,
    decode,
    elements,
    encode,
    negative,
    pairs,
    plus,
    subtract,
)
from spec.grid import Matrix, image, inner
from spec.joint_seed import is_signature, sign
from spec.linear_proof import prove, query, shape
from spec.prg import derive
from spec.refused import require
from spec.verified_checks import check, of_classes
from spec.verified_forms import at_cells, factors, inverses_of, looked_up, sizes, values_of
from spec.verified_messages import (
    Message,
    Opened,
    Own,
    Study,
    answer_statement,
    digests_of,
    lookup_point,
    proof_point,
    proof_powers,
    proof_statement,
    root_of,
    table_digest,
    table_statement,
)

# --- prepare: dealer → u ---


def masks(study: Study, place: int, seed: bytes) -> dict[str, Any]:
    """a (table), b (list), e (inverses), m (proof): a stream each, of the seed and the attempt."""
    cells, (_, values, inverted) = study["cells"], sizes(study, place)

    def drawn(label: str, count: int) -> list[int]:
        return elements(derive(seed, label, study["attempt"]), count)

    return {
        "table": drawn("grid mask", cells),
        "list": drawn("verified list", values),
        "inverses": pairs(drawn("verified inverses", 2 * inverted)),
        "proof": pairs(drawn("verified proof", 4 * sum(shape(values)))),
    }


def deal(study: Study, seeds: list[bytes], randoms: list[int]) -> list[int]:
    """The numbers c_u: shares in F of aᵀA a. Args: randoms: uniform, of all nodes but the last."""
    tables = [masks(study, place, seed)["table"] for place, seed in enumerate(seeds)]
    a = [sum(column) for column in zip(*tables, strict=True)]
    return [*randoms, (inner(a, image(study["matrix"], a)) - sum(randoms)) % field.P]


# --- round 1: u → coordinator → all ---


def first(study: Study, own: Own) -> Message:
    """ĥ = h + a, ŷ = y + b, a salt, and the signature of their salted digest: once an attempt."""
    place, salt, mask = own["place"], own["salt"], masks(study, own["place"], own["seed"])
    table = encode(field.masked(own["table"], mask["table"]))
    listed = encode(field.masked(values_of(study, own), mask["list"]))
    statement = table_statement(study, place, salt, table_digest(salt, table), listed)
    signature = sign(own["key"], statement, own["nonces"][0])
    return {"table": table, "list": listed, "salt": salt, "signature": signature}


def collect(study: Study, messages: list[Message]) -> Opened:
    """The coordinator checks all messages, adds up Ĥ, and passes on all but the tables ĥ_u."""
    rows = zip(study["names"], messages, strict=True)
    tables = [decode(m["table"], study["cells"], "shape of a table", name) for name, m in rows]
    opened = {
        "total": encode([sum(column) % field.P for column in zip(*tables, strict=True)]),
        "tables": [table_digest(m["salt"], m["table"]) for m in messages],
        **{f"{part}s": [m[part] for m in messages] for part in ("list", "salt", "signature")},
    }
    check_signed(study, opened, study["names"])
    return opened


def check_signed(study: Study, opened: Opened, blamed: list[str]) -> None:
    """Each node signed what stands under its name. Only then a wrong list is its node's fault."""
    rows = zip(opened["salts"], opened["tables"], opened["lists"], strict=True)
    for place, row in enumerate(rows):
        key, signature = study["keys"][place], opened["signatures"][place]
        fits = is_signature(key, table_statement(study, place, *row), signature)
        require(fits, "a table is signed", blamed[place])
        decode(row[2], sizes(study, place)[1], "shape of a list", study["names"][place])


def accept(study: Study, place: int, sent: Message, opened: Opened) -> bytes:
    """A node's checks before its inverses leave. Returns: R. Args: sent: its own first message."""
    relay, count = study["relay"], len(study["names"])
    counts = {len(rows) for part, rows in opened.items() if part != "total"}
    require(counts == {count}, "all tables are there", relay)
    decode(opened["total"], study["cells"], "shape of a total", relay)
    parts = ("list", "salt", "signature")
    same = all(opened[f"{part}s"][place] == sent[part] for part in parts)
    require(same, "the own table is in the root", relay)
    check_signed(study, opened, [relay] * count)
    return root_of(study, opened)


# --- round 2: u → coordinator ---


def second(study: Study, own: Own, root: bytes) -> Message:
    """ŵ with w_i = 1/(X − y_i), none for bits, and the proof: once an attempt.

    Two roots are two X. Under one mask e they would tell differences of inverses, and so records.
    """
    width, _, _ = sizes(study, own["place"])
    w = inverses_of(width, lookup_point(root), values_of(study, own))
    return prove_list(study, own, root, w)


def prove_list(study: Study, own: Own, root: bytes, w: list[Element]) -> Message:
    """ŵ = w + e, and the proof + m of the node's products. Its 2L seeds are random."""
    place, mask = own["place"], masks(study, own["place"], own["seed"])
    sent = field.encode_pairs(plus(w, mask["inverses"]))
    rho = proof_powers(root, place, digests_of(own["salt"], sent, b"")[0])
    width, count, _ = sizes(study, place)
    left, right = factors(width, lookup_point(root), rho, values_of(study, own), w, 1)
    drawn = elements(derive(own["wires"], "wires", study["attempt"]), 4 * shape(count)[0])
    proof = prove(left, right, pairs(drawn))
    return seal(study, own, root, sent, field.encode_pairs(plus(proof, mask["proof"])))


def seal(study: Study, own: Own, root: bytes, sent: bytes, proof: bytes) -> Message:
    """The statement (attempt, u, R, H(salt, ŵ), H(salt, proof)), signed for the dealer."""
    digests = digests_of(own["salt"], sent, proof)
    statement = proof_statement(study, own["place"], root, digests)
    signature = sign(own["key"], statement, own["nonces"][1])
    return {"inverses": sent, "proof": proof, "digests": digests, "signature": signature}


def check_statements(study: Study, statements: list[Message], blamed: list[str]) -> None:
    """Each node signed its statement, in this attempt. Coordinator and dealer check it."""
    for place, each in enumerate(statements):
        statement = proof_statement(study, place, each["root"], each["digests"])
        fits = is_signature(study["keys"][place], statement, each["signature"])
        require(fits, "a statement is signed", blamed[place])


# --- round 3: coordinator → dealer → all ---


def answer(study: Study, dealt: Message, statements: list[Message]) -> Message:
    """A random r, and the same linear forms of the masks. Then the dealer deletes its seeds.

    Args: dealt: seeds, none if it has answered in this attempt; coin, 32 fresh random bytes; key
    and nonce of its signature. statements: of each node root, digests and signature.
    """
    relay, count = study["relay"], len(study["names"])
    # two answers would tell each wire at two points, and it has one random seed
    require(len(dealt["seeds"]) == count, "the dealer has not answered", relay)
    require(len(statements) == count, "all statements are there", relay)
    check_statements(study, statements, [relay] * count)
    # with another root, X here is not X there, and the answer is a function of the node's records
    root = statements[0]["root"]
    require(all(s["root"] == root for s in statements), "all statements name one root", relay)
    digests = [each["digests"] for each in statements]
    parts = []
    for place, seed in enumerate(dealt["seeds"]):
        mask, rho = masks(study, place, seed), proof_powers(root, place, digests[place][0])
        point = lookup_point(root), rho, proof_point(study, dealt["coin"])
        parts.append(part_of(study, mask, *point, sizes(study, place)[0]))
    told = {"root": root, "digests": digests, "coin": dealt["coin"], "parts": parts}
    signature = sign(dealt["key"], answer_statement(study, told), dealt["nonce"])
    return {**told, "signature": signature}


def part_of(
    study: Study, mask: dict[str, Any], x: Element, rho: Element, r: Element, width: int = 0
) -> bytes:
    """The answer about one node: 2L + 2 elements of K, one more, and one of F for each class.

    ⟨a, 1/(X − c)⟩ and Σ e leave as ONE number: apart they tell Σ 1/(X − y_i), and so the table.
    """
    minus = [-b for b in mask["list"]]
    left, right = factors(width, x, rho, minus, negative(mask["inverses"]), 0)
    forms = query(left, right, negative(mask["proof"]), r)
    said = looked_up(width, x, mask["list"], mask["inverses"])
    lookup = subtract(at_cells(mask["table"], x), said)
    return field.encode_pairs([*forms, lookup]) + encode(of_classes(study, mask["table"]))


# --- round 4: each node checks (`verified_checks.py`), and only then makes its share ---


def share(study: Study, own: Own, opened: Opened) -> int:
    """z_u, a share of 2·S + 2·noise in F, as in `grid.py`."""
    matrix: Matrix = study["matrix"]
    a = masks(study, own["place"], own["seed"])["table"]
    total = decode(opened["total"], study["cells"], "shape of a total", study["relay"])
    of_total = image(matrix, total)
    diagonal = [matrix[cell][cell] for cell in range(study["cells"])]
    z = own["dealt"] - 2 * inner(a, of_total) - inner(diagonal, own["table"]) + 2 * own["noise"]
    if own["place"] == 0:
        z += inner(total, of_total)
    return z % field.P


def release(shares: list[int], factor: int = 2) -> int:
    """S + noise: half (a sixth) of the integer in (−p/2, p/2) for which all shares add up."""
    found = (sum(shares) + field.P // 2) % field.P - field.P // 2
    require(found % factor == 0, "the sum is a multiple")
    return found // factor


# --- all together ---


def transcript(
    study: Study,
    owns: list[Own],
    dealt: Message,
    pass_on: Callable[[Study, list[Message]], Opened] = collect,
    second_by: Callable[[Study, Own, bytes], Message] = second,
) -> dict[str, Any]:
    """All messages before a share is made. Args: pass_on, second_by: steps that a liar replaces."""
    firsts = [first(study, own) for own in owns]
    opened = pass_on(study, firsts)
    roots = [accept(study, place, sent, opened) for place, sent in enumerate(firsts)]
    seconds = [second_by(study, own, root) for own, root in zip(owns, roots, strict=True)]
    statements = [
        {"root": root, "digests": each["digests"], "signature": each["signature"]}
        for root, each in zip(roots, seconds, strict=True)
    ]
    check_statements(study, statements, study["names"])
    # so a digest of other bytes is its signer's fault, and not the relay's
    for name, salt, each in zip(study["names"], opened["salts"], seconds, strict=True):
        fits = digests_of(salt, each["inverses"], each["proof"]) == each["digests"]
        require(fits, "a statement is signed", name)
    told = answer(study, dealt, statements)
    return {
        "firsts": firsts,
        "opened": opened,
        "statements": statements,
        "seconds": [{part: each[part] for part in ("inverses", "proof")} for each in seconds],
        "told": told,
    }


def run(study: Study, owns: list[Own], dealt: Message, randoms: list[int]) -> dict[str, Any]:
    """One attempt of honest nodes, from tables to the release."""
    numbers = deal(study, dealt["seeds"], randoms)
    owns = [{**own, "dealt": number} for own, number in zip(owns, numbers, strict=True)]
    sent = transcript(study, owns, dealt)
    opened, seconds, told = sent["opened"], sent["seconds"], sent["told"]
    for place, signed in enumerate(sent["statements"]):
        check(study, place, opened, signed, seconds, told, [])
    shares = [share(study, own, opened) for own in owns]
    return {**sent, "dealt": numbers, "shares": shares, "released": release(shares)}
