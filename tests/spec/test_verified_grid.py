"""The grid when nodes lie: umpc replays the good vectors here, and bad ones in another file.

Small fields show exactly what the large one makes likely: p = 17 with roots of unity of order 16
for soundness, p = 5 with those of order 4 for what the dealer's answer tells.
"""

from __future__ import annotations

import ast
import inspect
import random
from collections import Counter
from itertools import (
    chain,
    combinations,
    combinations_with_replacement,
    permutations,
    product,
    repeat,
)
from math import log2
from typing import Any

import numpy as np
import pytest

from spec import field, grid, linear_proof, verified_checks, verified_grid
from spec.cases import verified_grid as cases
from spec.cases.grid import CELLS, MATRIX, signs
from spec.cases.vectors import from_json, to_json
from spec.cases.verified_grid import DEALT, HONEST, LIAR, OWNS, RECORDS, STUDY, checked_by
from spec.field import add, dot, inverse, lift, multiply, plus, powers, subtract, total, weights
from spec.joint_seed import sign
from spec.linear_proof import inverses, products_hold, prove, query, scaled, shape
from spec.prg import words
from spec.refused import Refused
from spec.verified_grid import (
    check,
    deal,
    first,
    part_of,
    release,
    run,
    share,
    transcript,
)
from tests.spec.replaying import vectors
from tests.spec.test_joint_seed import verify
from tests.support.fields import number_field
from tests.support.grid import cells_of, grid_study
from tests.support.studies import AUC, make_members
from umpc.crypto import field as elements
from umpc.crypto.prime_field import PRIME
from umpc.crypto.signing import Credentials
from umpc.protocols.grid import lookup_proof
from umpc.protocols.grid.attempt import GridAttempt
from umpc.protocols.grid.binding import grid_of
from umpc.protocols.grid.lookup_proof import ProofShape, cells_by_class
from umpc.protocols.grid.masked_form import HISTOGRAM, masked_forms
from umpc.protocols.grid.protocol import VerifiedTotal
from umpc.protocols.grid.verified import (
    DealerAnswer,
    NodeStatement,
    VerifiedDealing,
    VerifiedTranscript,
    bytes_of,
    inverses_of_cells,
)
from umpc.protocols.grid.verified_node import VerifiedTable
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.study.parts import FieldText
from umpc.study.settings import LYING_NODES

BAD = vectors("verified_grid", "bad")
RANKS = " + ".join(f"sign({p}.x - {q}.x) * sign({p}.y - {r}.y)" for p, q, r in permutations("abc"))
"""The kernel of spec/cases/verified_triples.py."""


def called(vector: dict[str, Any]) -> Any:
    function = vector["function"]
    module = cases if hasattr(cases, function) else verified_grid
    return getattr(module, function)(**from_json(vector["inputs"]))


GOOD = vectors("verified_grid", "good")


@pytest.mark.parametrize("vector", GOOD)
def test_good_vectors(vector):
    assert to_json(called(vector)) == vector["outputs"]


@pytest.mark.parametrize("vector", GOOD)
def test_umpc_computes_the_good_vectors(vector):
    found = REPLAYS[vector["function"]](**from_json(vector["inputs"]))
    assert to_json(found) == vector["outputs"]


@pytest.mark.parametrize("vector", BAD)
def test_bad_vectors_name_the_fault_and_nobody_honest(vector):
    with pytest.raises(Refused) as found:
        called(vector)
    assert (found.value.check, found.value.culprit) == (vector["check"], vector["culprit"])
    assert vector["culprit"] in {STUDY["names"][LIAR], STUDY["relay"], STUDY["dealer"], None}


def test_every_check_has_a_bad_vector():
    """A check is the only text among the arguments of a call that may refuse."""
    checks, refusing = set(), ("require", "decode", "decode_pairs")
    for module in (field, verified_grid, verified_checks):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in refusing:
                checks |= {each.value for each in node.args if isinstance(each, ast.Constant)}
    checks = {check for check in checks if isinstance(check, str)}
    assert len(checks) > 15 and checks == {bad.values[0]["check"] for bad in BAD}


# --- umpc ---


def of_shapes(records):
    return [(each.wires, each.places) for each in map(ProofShape, records)]


def of_points(root, place, inverses, study, coin):
    found = {
        "x": lookup_proof.challenge_x(root),
        "rho": lookup_proof.challenge_rho(root, place, inverses),
        "r": lookup_proof.challenge_r(study["attempt"], coin),
    }
    return {name: each.tolist() for name, each in found.items()}


DEALER = b"dealer" + STUDY["dealer_key"]
"""Its certificate, as `verify` reads it."""


def attempt_of(study) -> GridAttempt:
    """The attempt, with the vectors' id. Two public classes are those of the first field."""
    number, label = number_field("x", "0", "1"), FieldText.of_categories("x", "01", public=True)
    other = number_field("y", "0", "2")
    sets = {"kernels": RANKS, "degree": 3} if "cube" in study else {}
    plain = grid_study(fields=(number, other), adversary=LYING_NODES, **sets)
    found, firsts = plain, [0] * len(study["sizes"])
    if len(study["classes"]) == 2:
        # the form is that of `plain`, whose x is a number, and classes are those of a label
        facts = {"fields": (label, other), "kernels": (AUC.replace("x", "y"),)}
        found = plain.replaced(sampling="two_sample", **facts)
        firsts = [first for first, _ in study["counts"]]
    # t, by default so many that all nodes verify
    found = found.replaced(max_colluding=study.get("colluding", len(study["sizes"]) - 1))
    members = make_members(found, study["sizes"], first=firsts)
    made = GridAttempt(found, *members, PRIME, grid_of(plain))
    made.id = study["attempt"]
    assert [each.tolist() for each in cells_by_class(made)] == study["classes"]
    assert (made.study.coordinator, made.study.dealer.name) == (study["relay"], study["dealer"])
    return made


def table_of_node(made, study, own) -> VerifiedTable:
    """A node's part, with its randomness; its last signature may be asked again."""
    nonces = chain(own["nonces"], repeat(own["nonces"][-1]))

    def signed(text: bytes) -> bytes:
        return sign(own["key"], text, next(nonces))

    credentials = Credentials(study["names"][own["place"]], b"", signed, verify)
    drawn = iter([own["salt"], own["wires"]])
    node = VerifiedTable(
        made, own["place"], own["seed"], credentials, study["keys"], lambda size: next(drawn)
    )
    counted = np.array(own["table"], dtype=np.uint64)
    (form,) = masked_forms(made.grid, made.ring)
    node.put(counted, [form.own(counted)])
    node.put_places(np.array(own["records"], dtype=np.int64))
    return node


def of_run(study, owns, dealt, randoms):
    total, nodes, dealing, numbers, vectors = parties(study, owns, dealt, randoms)
    found = {**said_of(total, nodes, dealing, owns, signer_of(dealt)), "dealt": numbers}
    return found if not vectors else {**found, "vector": vectors[0].tolist()}


def parties(study, owns, dealt, randoms):
    """Coordinator, nodes and dealer after the dealing, the dealt numbers, and the last vectors."""
    made = attempt_of(study)
    # the dealer draws shares from a seed, so those of the vectors replace them
    drawn = chain(dealt["seeds"], [bytes(32)] * len(randoms), [dealt["coin"]])
    dealing = VerifiedDealing(made, lambda size: next(drawn))
    dealings = [dict(dealing.deal_one(chunk)) for chunk in made.chunks()]
    own_shares = [cells_of([frame], 64) for frame in dealings[-1].values()]
    numbers = [*randoms, (sum(int(each[0]) for each in own_shares) - sum(randoms)) % field.P]
    total = VerifiedTotal(made, study["keys"], verify)
    nodes = [table_of_node(made, study, own) for own in owns]
    for node, number in zip(nodes, numbers, strict=True):
        node.deal([number])
    vectors = [cells_of([each[len(nodes) - 1]], 64) for each in dealings[:-1]]
    for number, vector in enumerate(vectors):
        nodes[-1].deal_vector(number, 0, vector)
    return total, nodes, dealing, numbers, vectors


def said_of(total, nodes, dealing, owns, signer) -> dict[str, Any]:
    """All that is said from the tables to the release."""
    made, tables, questions = total.attempt, [], []
    for exchange in range(2):
        for place, node in enumerate(nodes):
            frames = list(node.masked())
            tables += [frame.payload for frame in frames if frame.step == HISTOGRAM]
            for frame in frames:
                total.add(place, frame)
        total.end_exchange()
        if exchange:
            questions = total.questions
            for frame in list(dealing.answer(questions, signer)):
                for hearing in (total, *nodes):
                    hearing.hear(frame, DEALER)
        for place, node in enumerate(nodes):
            for frame in total.told(place):
                node.take(frame)
    signatures = [node.sign() for node in nodes]
    total.check_signed(signatures)
    for node in nodes:
        node.confirm(signatures)
    rows = zip(nodes, owns, strict=True)
    shares = [(node.shares[0] + made.factor * own["noise"]) % field.P for node, own in rows]
    each_share = [bytes_of(np.array([share], dtype=np.uint64)) for share in shares]
    (multiplied,) = noisy_sums(each_share, 1, PRIME)
    opened = b"".join(frame.payload for frame in total.total())
    more = {"shares": shares, "released": multiplied // made.factor}
    return {**said_in(total, tables, questions), "opened": opened_in(total, opened), **more}


def signer_of(dealt):
    """The dealer's signature, with the vector's nonce."""
    return lambda text: sign(dealt["key"], text, dealt["nonce"])


def said_in(total: VerifiedTotal, tables, questions) -> dict[str, Any]:
    """All messages but the opened total, as the vectors have them."""
    said, answer = total.transcript.said, total.answer
    signed = [NodeStatement.decode(each[:96]) for each in questions]
    digests = [[each.inverses, each.proof] for each in signed]
    firsts = [
        {
            "table": masked,
            "list": each.cells.bytes,
            "salt": each.opening.salt,
            "signature": each.opening.signature,
        }
        for masked, each in zip(tables, said, strict=True)
    ]
    statements = [
        {"root": each.root, "digests": row, "signature": question[96:]}
        for each, row, question in zip(signed, digests, questions, strict=True)
    ]
    told = {
        "root": answer.statements[0].root,
        "digests": digests,
        "coin": answer.coin,
        "parts": [each.bytes for each in answer.parts],
        "signature": answer.signature,
    }
    seconds = [{"inverses": each.inverses.bytes, "proof": each.proof.bytes} for each in said]
    return {"firsts": firsts, "statements": statements, "seconds": seconds, "told": told}


def opened_in(total: VerifiedTotal, opened: bytes) -> dict[str, Any]:
    """All that nodes get of the first messages."""
    said = total.transcript.said
    return {
        "total": opened,
        "tables": [each.opening.table for each in said],
        "lists": [each.cells.bytes for each in said],
        "salts": [each.opening.salt for each in said],
        "signatures": [each.opening.signature for each in said],
    }


def of_check(study, place, opened, signed, seconds, told, shown):
    """The checks of signed tables, proofs and the total; the messages come from the vector."""
    transcript = VerifiedTranscript(attempt_of(study), study["keys"])
    answer = DealerAnswer(transcript.attempt)
    for number, said in enumerate(transcript.said):
        said.cells.put(from_bytes(opened["lists"][number]))
        rows = (opened[part][number] for part in ("salts", "tables", "signatures"))
        said.opening.data = b"".join(rows)
        said.inverses.put(from_bytes(seconds[number]["inverses"]))
        said.proof.put(from_bytes(seconds[number]["proof"]))
        answer.parts[number].put(from_bytes(told["parts"][number]))
        statement = said.statement(signed["root"])
        assert [statement.inverses, statement.proof] == told["digests"][number]
    answer.begin(told["coin"], [], [])
    transcript.check_opened(study["relay"])
    root, cells = transcript.root(opened["total"]), from_bytes(opened["total"])
    assert root == signed["root"] == told["root"]
    looked = elements.inner_fk(cells, inverses_of_cells(root, len(cells)))
    assert (transcript.check_proofs(root, answer) == looked).all()
    counted = [int(elements.total(cells[each])) for each in cells_by_class(transcript.attempt)]
    assert transcript.classes_fit(counted, answer)


def from_bytes(data: bytes) -> np.ndarray:
    return np.frombuffer(data, dtype="<u8").astype(np.uint64)


REPLAYS = {"shapes": of_shapes, "points": of_points, "run": of_run, "check": of_check}


# --- honest nodes ---


def released(records: list[list[int]], matrix: grid.Matrix, noise: list[int]) -> int:
    study = {**cases.study_of(records), "matrix": matrix}
    owns = [own | {"noise": v} for own, v in zip(cases.owns_of(records), noise, strict=True)]
    randoms = [field.P - 3 - place for place in range(len(records) - 1)]
    return run(study, owns, cases.dealt_of(records), randoms)["released"]


@pytest.mark.parametrize("sizes", [(1, 1), (3, 4, 1), (0, 2, 10), (17, 5)])
def test_an_honest_run_is_the_sum_over_all_pairs(sizes):
    source = random.Random(str(sizes))
    records = [[source.randrange(len(CELLS)) for _ in range(size)] for size in sizes]
    noise = [source.randrange(-9, 10) for _ in sizes]
    everybody = [y for each in records for y in each]
    due = sum(signs(*CELLS[a], *CELLS[b]) for a, b in combinations(everybody, 2))
    assert released(records, MATRIX, noise) == due + sum(noise)
    products = [[(a + 1) * (b + 1) for b in range(6)] for a in range(6)]
    due = sum((a + 1) * (b + 1) for a, b in combinations(everybody, 2))
    assert released(records, products, noise) == due + sum(noise), "a diagonal that is not zero"


def test_two_tables_that_are_wrong_pass_if_their_sum_is_the_table_of_all_records():
    """This is meant: the release is that of honest nodes with these records."""
    lies = [[*RECORDS[1], 2], []]
    records = [RECORDS[0], RECORDS[1], [2]]
    study = {**cases.study_of(records), "matrix": MATRIX}
    owns = cases.owns_of(records)
    for own, table in zip(owns[1:], lies, strict=True):
        own["table"] = cases.table_of(table)
    sent = transcript(study, owns, DEALT)
    check(**checked_by(0, sent, study))
    numbers = deal(study, DEALT["seeds"], [5, 6])
    shares = [
        share(study, own | {"dealt": dealt}, sent["opened"])
        for own, dealt in zip(owns, numbers, strict=True)
    ]
    everybody = [y for each in records for y in each]
    due = sum(signs(*CELLS[a], *CELLS[b]) for a, b in combinations(everybody, 2))
    assert release(shares) == due + sum(own["noise"] for own in owns)


def test_random_lies_name_the_liar_or_change_nothing():
    source, verdicts = random.Random(20), Counter[bool]()
    for _ in range(40):
        records = [source.choice([y, y, y, source.randrange(7)]) for y in OWNS[LIAR]["records"]]
        table = cases.table_of(records)
        table[source.randrange(6)] += source.choice([0, 0, 0, 1, -1, 2**40])
        lies = {"table": table, "records": records}
        owns = [own | lies if own["place"] == LIAR else own for own in OWNS]
        sent = transcript(STUDY, owns, DEALT)
        right = table == cases.table_of(records) and sum(table) == 4 and sum(table[:3]) == 2
        verdicts[right] += 1
        try:
            check(**checked_by(source.choice([0, 2]), sent, shown=cases.tables_of(sent)))
        except Refused as found:
            assert found.culprit == "node-1" and not right
        else:
            assert right
    assert min(verdicts[True], verdicts[False]) > 5


def test_whatever_byte_the_coordinator_changes_it_is_named():
    source = random.Random(21)
    for part in ("inverses", "proof"):
        for u in range(3):
            data = HONEST["seconds"][u][part]
            place = source.randrange(len(data))
            bent = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
            seconds = [{**m, part: bent} if i == u else m for i, m in enumerate(HONEST["seconds"])]
            with pytest.raises(Refused) as found:
                check(**checked_by((u + 1) % 3, HONEST, seconds=seconds))
            assert found.value.culprit == "coordinator"


# --- what a liar could add to a total, and what the release is then ---


def test_what_all_liars_tables_are_decides_the_change_by_one_honest_record():
    """The lemma. For one view, the honest shares add up to 2·S(honest and liars' table) + known."""
    source = random.Random(22)
    cells = range(6)
    masked, liars_mask = ([source.randrange(field.P) for _ in cells] for _ in range(2))

    def honest_shares(table: list[int], liars: list[int], dealt_to_liars: int) -> int:
        own_mask = [(v - h) % field.P for v, h in zip(masked, table, strict=True)]
        mask = field.masked(own_mask, liars_mask)
        opened = field.masked(field.masked(masked, liars), liars_mask)
        dealt = grid.inner(mask, grid.image(MATRIX, mask)) - dealt_to_liars
        return (dealt - 2 * grid.inner(own_mask, grid.image(MATRIX, opened))) % field.P

    def twice(table: list[int]) -> int:
        return grid.inner(table, grid.image(MATRIX, table))

    one, other = cases.table_of([0, 3, 3, 5]), cases.table_of([0, 3, 3, 1])
    for liars in (cases.table_of([1, 2, 4]), [2**30, 0, -1, 0, 5, 0]):
        dealt = source.randrange(field.P)
        found = honest_shares(one, liars, dealt) - honest_shares(other, liars, dealt)
        both = [[h + v for h, v in zip(table, liars, strict=True)] for table in (one, other)]
        assert (found - twice(both[0]) + twice(both[1])) % field.P == 0


# --- a small field ---


@pytest.fixture
def seventeen():
    """All challenges of a small field: the elements of K that are not in F."""
    with field.small_field(17, 3):
        yield [(v, w) for v in range(17) for w in range(1, 17)]


@pytest.fixture
def five():
    with field.small_field(5, 2):
        yield


def test_the_small_fields_are_fields_with_roots_of_unity(seventeen):
    for size in (2, 4, 8, 16):
        points = roots_of(size)
        assert len(set(points)) == size and (size == 16 or roots_of(2 * size)[::2] == points)
    assert all(multiply(value, inverse(value)) == field.ONE for value in seventeen)
    assert pow(field.NON, (field.P - 1) // 2, field.P) == field.P - 1, "no square root"


def roots_of(size):
    """All roots of unity of an order, in the order of their places."""
    return [(pow(field.root(size), place, field.P), 0) for place in range(size)]


def test_weights_are_those_of_the_value_at_a_point(seventeen):
    source = random.Random(23)
    for size in (2, 4, 8):
        polynomial = [(source.randrange(17), source.randrange(17)) for _ in range(size)]

        def at(x, terms=polynomial):
            found = field.ZERO
            for coefficient in reversed(terms):
                found = add(multiply(found, x), coefficient)
            return found

        values = [at(x) for x in roots_of(size)]
        assert all(dot(weights(size, x), values) == at(x) for x in seventeen)


def test_at_most_d_plus_n_minus_1_points_accept_a_false_table(seventeen):
    """All tables in F² against all lists of two numbers of F, and all X."""
    tables = list(product(range(17), repeat=2))
    lists = list(combinations_with_replacement(range(17), 2))
    accepting: Counter[Any] = Counter()
    for x in seventeen:
        at = inverses(x, list(range(17)))
        of_lists: dict[Any, list[Any]] = {}
        for one, other in lists:
            of_lists.setdefault(add(at[one], at[other]), []).append((one, other))
        for table in tables:
            for listed in of_lists.get(dot(lift(list(table)), at[:2]), []):
                accepting[table, listed] += 1
    true = {((2, 0), (0, 0)), ((1, 1), (0, 1)), ((0, 2), (1, 1))}
    assert {pair for pair, count in accepting.items() if count == len(seventeen)} == true
    false = max(count for pair, count in accepting.items() if pair not in true)
    assert 0 < false <= 2 + 2 - 1


def test_at_most_n_minus_1_powers_accept_wrong_inverses(seventeen):
    x, listed = (4, 9), [3, 7, 7]
    right, source = inverses(x, listed), random.Random(24)
    most = 0
    for _ in range(300):
        shift = [(source.randrange(3), source.randrange(3)) for _ in listed]
        w = plus(right, shift)
        sums = [dot(scaled(x, lift(listed), rho), w) == total(powers(rho, 3)) for rho in seventeen]
        most = max(most, sum(sums) if w != right else 0)
    assert 0 < most <= 2


def test_at_most_2n_minus_1_points_accept_a_bent_proof_and_a_liar_can_choose_them(seventeen):
    """Two records, N = 4. The error of p has degree 7, so a liar chooses 7 points of 272."""
    x, rho, listed, source = (4, 9), (5, 1), [3, 7], random.Random(25)
    w = plus(inverses(x, listed), [field.ONE, field.ZERO])
    left = scaled(x, lift(listed), rho)
    proof = prove(left, w, [(2, 3), (11, 8)])
    missing = subtract(total(powers(rho, 2)), dot(left, w))
    assert missing != field.ZERO and shape(2) == (1, 4)
    most = 0
    for _ in range(30):
        chosen = source.sample(seventeen, 7)
        error = []
        for point in roots_of(8):
            value = field.ONE
            for each in chosen:
                value = multiply(value, subtract(point, each))
            error.append(value)
        calls = total(error[2::2])
        if calls == field.ZERO:
            continue
        factor = multiply(missing, inverse(calls))
        bent = [*proof[:2], *plus(proof[2:], [multiply(factor, each) for each in error])]
        accepting = [
            r for r in seventeen if products_hold(query(left, w, bent, r), total(powers(rho, 2)))
        ]
        assert set(chosen) == set(accepting)
        most = max(most, len(accepting))
    assert most == 2 * 4 - 1
    assert not any(
        products_hold(query(left, w, proof, r), total(powers(rho, 2))) for r in seventeen
    )


def test_the_number_of_the_document():
    cells, records = 2**17, 10**6
    _, size = shape(records)
    bound = (cells + 2 * records + 2 * size) / (field.P**2 - field.P)
    assert -107 < log2(bound) < -106.9
    assert round(log2(bound * 64 * 1000)) == -91 and round(log2(bound * 2**60)) == -47
    # n + m < 4n where nodes send bits
    assert (cells + 4 * records + 2 * shape(3 * records)[1]) / (field.P**2 - field.P) < 2 * bound


# --- the view before a share: one law for all honest tables ---

CLASSES = [[0, 1], [2]]
HATS = [
    ([1, 4, 2], [3], [(2, 1)], [(1, 1), (0, 3), (4, 4), (2, 0), (3, 1), (0, 1)]),
    ([0, 0, 0], [1], [(0, 0)], [(0, 0), (4, 3), (1, 2), (2, 2), (0, 4), (3, 3)]),
]
"""Masked table, list, inverses and proof of one record, as they were sent."""


def masks_behind(hats, records, x, rho, seeds):
    """The masks with which an honest node with these records sends just this.

    Masks are uniform, so for all records and seeds what is sent is uniform, and fixes the masks.
    """
    masked_table, masked_list, masked_inverses, masked_proof = hats
    w = inverses(x, records)
    proof = prove(scaled(x, lift(records), rho), w, seeds)
    cells = enumerate(masked_table)
    return {
        "table": [(v - records.count(cell)) % field.P for cell, v in cells],
        "list": [(v - y) % field.P for v, y in zip(masked_list, records, strict=True)],
        "inverses": plus(masked_inverses, field.negative(w)),
        "proof": plus(masked_proof, field.negative(proof)),
    }


def law(hats, y, x, rho, seen, all_seeds):
    """How often each answer of the dealer comes over all seeds of wires, given what was sent."""
    return Counter(seen(masks_behind(hats, [y], x, rho, seeds)) for seeds in all_seeds)


def all_seeds():
    """The seeds of both wires."""
    every = list(product(range(5), repeat=2))
    return [list(both) for both in product(every, repeat=2)]


@pytest.mark.parametrize("hats", HATS)
@pytest.mark.parametrize(("x", "rho", "r"), [((0, 1), (2, 3), (4, 1)), ((3, 4), (1, 1), (0, 2))])
def test_what_was_sent_and_the_answer_have_one_law_for_two_records_of_a_class(
    five, hats, x, rho, r
):
    study = {"classes": CLASSES}

    def seen(mask):
        return part_of(study, mask, x, rho, r)

    one, other = (law(hats, y, x, rho, seen, all_seeds()) for y in (0, 1))
    assert one == other and len(one) == 5**4
    of_another_class = law(hats, 2, x, rho, seen, all_seeds())
    assert one.keys().isdisjoint(of_another_class.keys()), "a class's number is public"

    # power: the laws differ without seeds, with two points, with another X, with two sums
    no_seeds = [[field.ZERO, field.ZERO]]
    assert law(hats, 0, x, rho, seen, no_seeds) != law(hats, 1, x, rho, seen, no_seeds)

    def at_two_points(mask):
        return seen(mask), part_of(study, mask, x, rho, multiply(r, (2, 0)))

    def at_another_x(mask):
        return part_of(study, mask, multiply(x, (2, 0)), rho, r)

    def both_sums(mask):
        return verified_checks.at_cells(mask["table"], x), total(mask["inverses"])

    for told in (at_two_points, at_another_x, both_sums):
        assert law(hats, 0, x, rho, told, all_seeds()) != law(hats, 1, x, rho, told, all_seeds())


@pytest.mark.parametrize("count", [1, 3, 4, 12])
def test_a_view_of_one_list_is_the_view_of_each_other_one_under_other_randomness(count):
    """In the large field: one to one, so the law is the same for both. Classes are 0 … 2, 3 … 5."""
    source = random.Random(count)

    def drawn(size):
        return [(source.randrange(field.P), source.randrange(1, field.P)) for _ in range(size)]

    wires, size = shape(count)
    one = [source.randrange(6) for _ in range(count)]
    other = source.sample([y // 3 * 3 + source.randrange(3) for y in one], count)
    (x, rho, r), seeds = drawn(3), drawn(2 * wires)
    words = [[source.randrange(field.P) for _ in range(each)] for each in (6, count)]
    hats = (*words, drawn(count), drawn(2 * (wires + size)))
    # the seeds with which each wire of the other list has the same value at r
    row, values = weights(size, r), []
    for listed in (one, other):
        w = inverses(x, listed)
        sides = (scaled(x, lift(listed), rho), w)
        zeros = [field.ZERO] * wires
        rows = [wire for side in sides for wire in linear_proof.wires(side, zeros, size)]
        values.append([dot(row, wire) for wire in rows])
    moved = [multiply(subtract(a, b), inverse(row[0])) for a, b in zip(*values, strict=True)]
    parts = [
        part_of({"classes": cases.CLASSES}, masks_behind(hats, listed, x, rho, each), x, rho, r)
        for listed, each in ((one, seeds), (other, plus(seeds, moved)))
    ]
    assert parts[0] == parts[1] and (one != other or count == 1)


def test_each_wire_at_r_is_a_bijection_of_its_seed(seventeen):
    """No weight of a seed is zero where r is not in F. So the view is uniform for any n."""
    for size in (2, 4, 8):
        assert all(weights(size, r)[0] != field.ZERO for r in seventeen)


def test_the_dealer_sees_salted_digests_and_signatures_only():
    other = [own | {"salt": bytes(32)} if u == LIAR else own for u, own in enumerate(OWNS)]
    sent = transcript(STUDY, other, DEALT)
    for one, again in zip(HONEST["statements"], sent["statements"], strict=True):
        lengths = [len(one["root"]), *map(len, one["digests"]), len(one["signature"])]
        assert lengths == [32, 32, 32, 64] and len(one) == 3
        assert one["root"] != again["root"]
    liars = HONEST["statements"][LIAR]["digests"], sent["statements"][LIAR]["digests"]
    assert not set(liars[0]) & set(liars[1])
    assert first(STUDY, OWNS[LIAR])["table"] == first(STUDY, other[LIAR])["table"]


def test_masks_of_two_attempts_have_nothing_in_common():
    masks = [
        verified_grid.masks(STUDY | {"attempt": attempt}, 1, OWNS[1]["seed"])
        for attempt in (b"one", b"two")
    ]
    for one, other in zip(*(each.values() for each in masks), strict=True):
        assert not set(one) & set(other)


def test_words_that_are_not_below_p_are_left_out():
    drawn = words(bytes(32), 100)
    with field.small_field(2**63, 3):
        found = field.elements(bytes(32), 40)
    assert found == [word for word in drawn if word < 2**63][:40]
    assert pow(field.NON, (field.P - 1) // 2, field.P) == field.P - 1, "the large field is back"


def test_messages_have_the_bytes_of_the_document():
    cells = len(CELLS)
    for u, records in enumerate(RECORDS):
        (wires, size), count = shape(len(records)), len(records)
        sent, later = HONEST["firsts"][u], HONEST["seconds"][u]
        assert sum(map(len, sent.values())) == 8 * cells + 8 * count + 32 + 64
        assert sum(map(len, later.values())) == 16 * count + 32 * (wires + size)
        assert len(HONEST["told"]["parts"][u]) == 16 * (2 * wires + 3) + 8 * 2
    assert [shape(n) for n in (0, 1, 2, 9, 10)] == [(0, 2), (1, 2), (1, 4), (3, 4), (2, 8)]
