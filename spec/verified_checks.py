"""The checks of each node before it makes its share of a verified grid (`verified_grid.py`).

A node has what was sent under masks, and the dealer's answer about the masks. Each test is linear
in what is under masks, so it adds both. A fault has a name, and so has the process that is to
blame: an honest one never, because it passes on, signs and answers only what passes these tests.
"""

from spec import field
from spec.field import (
    Element,
    add,
    decode,
    decode_pairs,
    masked,
    plus,
    total,
)
from spec.joint_seed import is_signature
from spec.linear_proof import products_hold, query, shape
from spec.refused import require
from spec.verified_forms import at_cells, due, factors, looked_up, sizes
from spec.verified_messages import (
    Message,
    Opened,
    Study,
    answer_statement,
    digests_of,
    lookup_point,
    proof_point,
    proof_powers,
    root_of,
    table_digest,
)


def check(
    study: Study,
    place: int,
    opened: Opened,
    signed: Message,
    seconds: list[Message],
    told: Message,
    shown: list[bytes],
) -> None:
    """Raises: Refused, with the name of the fault and of whoever is to blame.

    Args: signed: root and digests of this node's statement. seconds: of each node inverses and
    proof. told: the dealer's answer. shown: all ĥ_u, which the coordinator owes if a sum is wrong.
    """
    relay = study["relay"]
    fits = is_signature(study["dealer_key"], answer_statement(study, told), told["signature"])
    require(fits, "the dealer signed its answer", relay)
    require(root_of(study, opened) == signed["root"], "the total is the one signed", relay)
    same = told["root"] == signed["root"] and told["digests"][place] == signed["digests"]
    require(same, "the answer is about what was signed", study["dealer"])
    require(len(seconds) == len(study["names"]), "all proofs are there", relay)
    # bytes that a node did not sign are the relay's fault: else the relay could blame a site
    for salt, message, digests in zip(opened["salts"], seconds, told["digests"], strict=True):
        fits = digests_of(salt, message["inverses"], message["proof"]) == digests
        require(fits, "a proof is as signed", relay)
    # Σ_u (Σ ŵ − ⟨Ĥ, 1/(X − c)⟩ + the dealer's) = 0, and the classes as told, if they are right
    looked, counted = [], []
    for each in range(len(seconds)):
        one, classes = check_products(study, each, opened["lists"][each], seconds[each], told)
        looked.append(one)
        counted.append(classes)
    table = decode(opened["total"], study["cells"], "shape of a total", relay)
    x = lookup_point(told["root"])
    counts = [sum(column) for column in zip(*study["counts"], strict=True)]
    minus = [sum(column) for column in zip(*counted, strict=True)]
    classes_fit = of_classes(study, table) == masked(minus, counts)
    if total(looked) != at_cells(table, x) or not classes_fit:
        blame(study, opened, x, looked, counted, shown)


def check_products(
    study: Study, place: int, listed: bytes, sent: Message, told: Message
) -> tuple[Element, list[int]]:
    """The products of one node. Returns: its side of the lookup, and the dealer's class sums."""
    name, records, part = study["names"][place], study["sizes"][place], told["parts"][place]
    width, count, inverted = sizes(study, place)
    (wires, size), dealer = shape(count), study["dealer"]
    values = decode(listed, count, "shape of a list", name)
    w = decode_pairs(sent["inverses"], inverted, "shape of a proof", name)
    proof = decode_pairs(sent["proof"], 2 * (wires + size), "shape of a proof", name)
    asked = 16 * (2 * wires + 3)
    *of_masks, lookup = decode_pairs(part[:asked], 2 * wires + 3, "shape of an answer", dealer)
    classes = decode(part[asked:], len(study["classes"]), "shape of an answer", dealer)
    rho = proof_powers(told["root"], place, told["digests"][place][0])
    x = lookup_point(told["root"])
    left, right = factors(width, x, rho, values, w, 1)
    forms = plus(query(left, right, proof, proof_point(study, told["coin"])), of_masks)
    require(products_hold(forms, due(width, rho, records)), "products of a node", name)
    return add(looked_up(width, x, values, w), lookup), classes


def blame(
    study: Study,
    opened: Opened,
    x: Element,
    looked: list[Element],
    counted: list[list[int]],
    shown: list[bytes],
) -> None:
    """The coordinator shows each ĥ_u under its signed digest. Whose own sums fail is named."""
    relay = study["relay"]
    require(len(shown) == len(looked), "all tables are shown", relay)
    for place, (name, bytes_) in enumerate(zip(study["names"], shown, strict=True)):
        salt, told = opened["salts"][place], opened["tables"][place]
        require(table_digest(salt, bytes_) == told, "a table is shown as signed", relay)
        table = decode(bytes_, study["cells"], "shape of a table", name)
        require(looked[place] == at_cells(table, x), "a table is that of its records", name)
        due = masked(counted[place], study["counts"][place])
        require(of_classes(study, table) == due, "classes are as told", name)
    require(False, "the total is that of all tables", relay)


def of_classes(study: Study, table: list[int]) -> list[int]:
    """The number of records of each public class in a table."""
    return [sum(table[cell] for cell in cells) % field.P for cells in study["classes"]]
