"""Gains of a lie to a grid with proofs: each attack is run to its end without its rule.

A liar wants more weight for one honest record than the noise covers, or to read a record. With a
rule in its place, the same liar is named and gets nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import chain, combinations_with_replacement, repeat
from typing import Any

import numpy as np
import pytest

from tests.attacks.test_verified_grid import (
    DEALER,
    HALF,
    LIAR,
    Lie,
    adding,
    begun,
    is_refused,
    no_share,
    shifted,
    totals,
)
from tests.support.several import several
from tests.support.studies import AUC, KENDALL, LOUD, table
from tests.support.verified import VerifiedRun
from umpc.crypto import field
from umpc.crypto.field_transforms import weights_at
from umpc.crypto.prg import Stream, derive
from umpc.errors import RemoteProtocolError
from umpc.protocols.grid import lookup_proof as proofs
from umpc.protocols.grid.lookup_proof import ProofShape
from umpc.protocols.grid.masked_form import HISTOGRAM, mask_stream
from umpc.protocols.grid.verified import LIST, OPENING, DealerAnswer, NodeStatement, bytes_of
from umpc.protocols.registry import checked, protocol_of
from umpc.study.messages import Frame
from umpc.study.settings import LYING_NODES
from umpc.testing import lying, without

TABLE, TOTAL = "a table is that of its records", "the total is that of all tables"
PRODUCTS = "products of a node"
OTHERS = (table([6] * 5, [3] * 5), table([6] * 2, [3] * 2))
"""The liar's records, and those of an honest node: all pairs with node-0's record turn round."""
ONES = [table([3], [0]), table([3], [7])]
"""Node-0's record, in two collections that are neighbours."""
A, B = 6 * 8 + 3, 1 * 8 + 3
"""Cells of records that agree with node-0's first record, and that do not."""
MORE = 2**20


@contextmanager
def unchecked(*checks: str) -> Iterator[None]:
    """Without some checks, at all processes."""
    with ExitStack() as stack:
        for check in checks:
            stack.enter_context(without(check))
        yield


def twice_the_sum(run: VerifiedRun) -> int:
    """The release, without noise."""
    return run.attempt.ring.decode(sum(node.shares[0] for node in run.tables))


def ended(run: VerifiedRun, proof: Proof | None = None) -> VerifiedRun:
    """The rest of an attempt, and everybody's checks."""
    run.up().down()
    run.up(liar=LIAR, lie=proof(run) if proof else None).ask().down()
    told = run.signatures
    run.adding.check_signed(told)
    for node in run.tables:
        node.confirm(told)
    return run


def weight(lie: Lie, proof: Proof | None = None) -> tuple[int, int]:
    """By how much one record of node-0 moves the sum, and what the noise is calibrated for."""
    sums = []
    for one in ONES:
        run = begun(tables=[one, *OTHERS])
        lie(run)
        sums.append(twice_the_sum(ended(run, proof)) // 2)
    return abs(sums[0] - sums[1]), run.attempt.sizes.sensitivities[0]


# --- tables ---------------------------------------------------------------------------------------


def at(**more: int) -> Lie:
    """More in the cells A and B of the liar's table."""
    return adding(**{f"c{cell}": more[name] for name, cell in (("a", A), ("b", B))})


LIES: dict[str, Lie] = {
    "amplified cell": at(a=MORE, b=0),
    "negative cell": at(a=1, b=-1),
    "wrapped cell": at(a=2**62, b=field.P - 2**62),
    "split cell": at(a=HALF, b=HALF - 1),
    "one more record": at(a=1, b=0),
}


def test_an_honest_record_weighs_what_the_noise_covers():
    moved, covered = weight(lambda run: None)
    assert moved == covered == 7 * 2


@pytest.mark.parametrize("name", LIES)
def test_a_false_table_would_give_a_record_more_weight(name):
    with unchecked(TABLE, TOTAL):
        moved, covered = weight(LIES[name])
    assert moved > covered


@pytest.mark.parametrize("name", LIES)
@pytest.mark.parametrize("off", [TABLE, TOTAL])
def test_either_check_alone_refuses_it(name, off):
    """That of the coordinator protects if nodes' is gone, and the other way round."""
    on, culprit = {TABLE: (TOTAL, "coordinator"), TOTAL: (TABLE, "node-1")}[off]
    run = begun(tables=[ONES[0], *OTHERS])
    LIES[name](run)
    with without(off):
        assert is_refused(lambda: ended(run), on, culprit)


# --- proofs, and challenges that are known too early ----------------------------------------------

Proof = Callable[[VerifiedRun], AbstractContextManager]
"""How the liar computes its second message, once it has the total."""
EARLY = bytes(32)
"""Bytes in the place of those that a challenge should follow."""


def lacking(inverses: Any, x: Any) -> Any:
    """MORE/(X − A) − MORE/(X − B), which the lookup lacks of a table that is `WEIGHTY`."""
    more, less = inverses(x, np.array([A, B], dtype=np.uint64))
    return field.scale(np.uint64(MORE), field.subtract(more, less))


def other_inverses(run: VerifiedRun) -> AbstractContextManager:
    """The first inverse makes up for the false table."""

    def inverses(honest: Any, x: Any, cells: Any) -> Any:
        found = honest(x, cells).copy()
        found[0] = field.add(found[0], lacking(honest, x))
        return found

    return lying("node", inverses=inverses)


WEIGHTY = at(a=MORE, b=-MORE)
"""A false table of as many records as told, as the sum over all cells is checked, too."""


def test_inverses_that_nobody_checks_would_hide_a_false_table():
    """The lookup alone holds: only the products tell w from other numbers."""
    assert is_refused(lambda: weight(WEIGHTY, other_inverses), PRODUCTS, "node-1")
    with without(PRODUCTS):
        moved, covered = weight(WEIGHTY, other_inverses)
    assert moved > covered + MORE


def hidden_from_x(run: VerifiedRun) -> None:
    """Three cells, which add up to zero, make up for two others at the expected point."""
    x = proofs.challenge_x(EARLY)
    three = proofs.inverses(x, np.arange(3, dtype=np.uint64))
    first, second = field.subtract(three[:2], three[2]).tolist()
    # v·(f_0 − f_2) + w·(f_1 − f_2) = −lacking, in both coordinates
    due = field.negate(lacking(proofs.inverses, x)).tolist()
    det = pow(first[0] * second[1] - first[1] * second[0], -1, field.P)
    v = (due[0] * second[1] - due[1] * second[0]) * det % field.P
    w = (first[0] * due[1] - first[1] * due[0]) * det % field.P
    adding(c0=v, c1=w, c2=-v - w, **{f"c{A}": MORE, f"c{B}": -MORE})(run)


def hidden_from_rho(run: VerifiedRun) -> AbstractContextManager:
    """Two wrong inverses make up for the false table, and for each other at the expected ρ."""
    root = run.adding.transcript.root(run.total_bytes)
    rho = field.powers(proofs.challenge_rho(root, LIAR, EARLY), 2)

    def inverses(honest: Any, x: Any, cells: Any) -> Any:
        found = honest(x, cells).copy()
        # d_1 + d_2 = T and s_1·d_1 + s_2·d_2 = 0, for the left factors s_i = (X − y_i)·ρ^i
        one, two = proofs.left_factors(x, cells[:2], rho, proofs.CLEAR)
        over = field.times(lacking(honest, x), field.inverse_k(field.subtract(two, one)))
        found[0] = field.add(found[0], field.times(two, over))
        found[1] = field.subtract(found[1], field.times(one, over))
        return found

    return lying("node", inverses=inverses)


def hidden_from_r(run: VerifiedRun) -> AbstractContextManager:
    """A wrong inverse, and a proof whose error is zero at the expected r."""
    r = proofs.challenge_r(run.attempt.id, EARLY)
    seen: list[Any] = []

    def inverses(honest: Any, x: Any, cells: Any) -> Any:
        found = honest(x, cells).copy()
        seen.append(lacking(honest, x))
        found[0] = field.add(found[0], seen[0])
        return found

    def make_proof(honest: Any, shape: ProofShape, left: Any, *rest: Any) -> Any:
        proof = honest(shape, left, *rest).copy()
        weights, values = weights_at(2 * shape.places, r), proof[2 * shape.wires :]
        # the sum over the calls is too large by this
        wrong = field.times(left[0], seen[0])
        values[2] = field.subtract(values[2], wrong)
        # a value between the calls makes up for it at r
        back = field.times(field.times(weights[2], wrong), field.inverse_k(weights[1]))
        values[1] = field.add(values[1], back)
        return proof

    return lying("node", inverses=inverses, make_proof=make_proof)


def nothing(run: VerifiedRun) -> None:
    """An honest first message."""


CHALLENGES: dict[str, tuple[dict[str, Any], Lie, Proof | None, str]] = {
    "X before the tables": (
        {"challenge_x": lambda honest, root: honest(EARLY)},
        hidden_from_x,
        None,
        TABLE,
    ),
    "ρ before the inverses": (
        {"challenge_rho": lambda honest, root, node, inverse: honest(root, node, EARLY)},
        WEIGHTY,
        hidden_from_rho,
        PRODUCTS,
    ),
    "r before the proofs": (
        {"challenge_r": lambda honest, attempt, coin: honest(attempt, EARLY)},
        WEIGHTY,
        hidden_from_r,
        PRODUCTS,
    ),
}


@pytest.mark.parametrize("name", CHALLENGES)
def test_a_challenge_that_is_known_early_would_hide_a_false_table(name):
    """That lie is found where the challenge follows from what was said before."""
    early, lie, proof, check = CHALLENGES[name]
    assert is_refused(lambda: weight(lie, proof), check, "node-1")
    with lying("everybody", **early):
        moved, covered = weight(lie, proof)
    assert moved > covered + MORE


# --- two answers ----------------------------------------------------------------------------------


def answered(run: VerifiedRun, dealing: Any, questions: Sequence[bytes]) -> DealerAnswer:
    """An answer, as the coordinator hears it."""
    heard = DealerAnswer(run.attempt)
    for frame in dealing.answer(questions, DEALER.sign):
        heard.take(frame, "dealer")
    return heard


def started_again(run: VerifiedRun, coin: bytes) -> Any:
    """A dealer with the same seeds, as if they came back with a process that starts again."""
    seeds = [run.dealing.seed_frame(place).payload for place in range(3)]
    drawn = chain(seeds, repeat(coin))
    return protocol_of(run.study).dealing(run.attempt, lambda size: next(drawn))


def wires_of(run: VerifiedRun, answer: DealerAnswer) -> tuple[Any, Any]:
    """r, and node-0's left wire at r, as the liars read it."""
    said = run.adding.transcript.said[0]
    root = run.adding.transcript.root(run.total_bytes)
    x, r = proofs.challenge_x(root), proofs.challenge_r(run.attempt.id, answer.coin)
    powers = powers_of(run)
    left = proofs.left_factors(x, said.cells.values, powers, proofs.CLEAR)
    sent = said.inverses.values.reshape(-1, 2), said.proof.values.reshape(-1, 2)
    return r, field.add(proofs.read_at(said.shape, left, *sent, r), answer.opened(0))[0]


def powers_of(run: VerifiedRun) -> Any:
    said = run.adding.transcript.said[0]
    root = run.adding.transcript.root(run.total_bytes)
    return field.powers(proofs.challenge_rho(root, 0, said.inverses_digest), said.shape.products)


def records_that_fit(run: VerifiedRun, answers: Sequence[DealerAnswer]) -> list[int]:
    """The cells in which node-0's one record may be, as far as the answers tell."""
    root = run.adding.transcript.root(run.total_bytes)
    x, powers, found = proofs.challenge_x(root), powers_of(run), []
    for cell in range(run.attempt.grid.cells):
        own = np.array([cell], dtype=np.uint64)
        (factor,) = proofs.left_factors(x, own, powers, proofs.CLEAR)
        seeds = []
        for r, wire in (wires_of(run, answer) for answer in answers):
            first, second = weights_at(2, r)
            # wire = first·seed + second·factor
            rest = field.subtract(wire, field.times(second, factor))
            seeds.append(field.times(rest, field.inverse_k(first)).tolist())
        if seeds == seeds[:1] * len(seeds):
            found.append(cell)
    return found


def test_a_dealer_that_answers_twice_would_open_a_record():
    """Also one that was started again with its seeds. One answer fits all records."""
    run = begun(tables=[ONES[1], *OTHERS])
    again = started_again(run, bytes(32))
    run.up().down().up()
    asked = list(run.adding.questions)
    one = answered(run, run.dealing, asked)
    assert len(records_that_fit(run, [one])) == run.attempt.grid.cells
    with pytest.raises(RemoteProtocolError, match="answered before"):
        answered(run, run.dealing, asked)
    both = [one, answered(run, again, asked)]
    assert records_that_fit(run, both) == run.cells_of(0)


def test_an_answer_about_two_roots_would_be_a_fingerprint_of_a_record():
    """Node-0 was told another total, so its inverses are those at another point X'."""
    change, seen = shifted(n0=1), []

    def kept(place: int, frame: Frame) -> Frame:
        seen.extend([frame] * ((place, frame.step) == (0, HISTOGRAM)))
        return frame

    run = begun(tables=[ONES[1], *OTHERS]).up(kept).down(change).up()
    asked = run.questions(totals(run, change))
    check = "all statements name one root"
    assert is_refused(lambda: run.ask(asked), check, "coordinator")
    # without the check the dealer takes one of the roots: here that of the others
    alike = [asked[1][:32] + each[32:] for each in asked]
    answer = answered(run, started_again(begun(tables=[ONES[1], *OTHERS]), EARLY), alike)
    own, others = (proofs.challenge_x(each[:32]) for each in asked[:2])
    cells = np.arange(run.attempt.grid.cells, dtype=np.uint64)
    masked = np.frombuffer(seen[0].payload, dtype="<u8").astype(np.uint64)
    # Σ ŵ + ⟨a, 1/(X − c)⟩ − Σ e − ⟨ĥ, 1/(X − c)⟩ = 1/(X' − y) − 1/(X − y)
    inverse = run.adding.transcript.said[0].inverses.values
    known = field.subtract(inverse, field.inner_fk(masked, proofs.inverses(others, cells)))
    told = field.add(known, answer.looked_up(0))
    guesses = field.subtract(proofs.inverses(own, cells), proofs.inverses(others, cells))
    assert [cell for cell in cells if np.array_equal(guesses[cell], told)] == run.cells_of(0)


# --- statements of another attempt ----------------------------------------------------------------


def two_attempts() -> tuple[VerifiedRun, VerifiedRun]:
    """One study twice, as far as the dealer's answer of the first one."""
    former, run = (begun(label=label) for label in ("a former attempt", "this attempt"))
    assert former.attempt.id != run.attempt.id
    return former.up().down().up(), run


def test_statements_of_another_attempt_get_no_answer():
    """Its X was known before the tables of this attempt were sent."""
    former, run = two_attempts()
    run.up().down().up()
    old, check = list(former.adding.questions), "a statement is signed"
    assert is_refused(lambda: run.ask(old), check, "coordinator")
    mixed = [*run.adding.questions[:LIAR], old[LIAR], *run.adding.questions[LIAR + 1 :]]
    assert is_refused(lambda: run.ask(mixed), check, "coordinator")
    no_share(run)
    with without(check):
        assert run.ask(old).answered


def test_a_node_that_sends_a_statement_of_another_attempt_is_named():
    former, run = two_attempts()
    run.up().down().up()
    run.adding.transcript.said[LIAR].signature.data = former.signatures[LIAR]
    check = "a statement is signed"
    assert is_refused(lambda: run.adding.questions, check, "node-1")
    no_share(run)
    with without(check):
        assert len(run.adding.questions) == 3


def test_a_first_message_of_another_attempt_names_its_node():
    """It was made under the masks of that attempt."""
    check = "a table is signed"
    for off in (False, True):
        former, run = two_attempts()
        old = former.adding.transcript.said[LIAR]

        def replayed(place: int, frame: Frame, old: Any = old) -> Frame:
            if place != LIAR or frame.step not in (LIST, OPENING):
                return frame
            (sent,) = (old.cells if frame.step == LIST else old.opening).frames()
            return sent

        if off:
            with without(check):
                run.up(replayed)
            continue
        assert is_refused(lambda one=run, lie=replayed: one.up(lie), check, "node-1")
        no_share(run)


# --- the dealer guesses ---------------------------------------------------------------------------


def guessed(run: VerifiedRun, place: int) -> list[int]:
    """The cells whose inverse, under the dealer's mask, has the digest that the dealer hears.

    It knows no salt. Called before the dealer answers, while it has its seeds.
    """
    seed = run.dealing.seed_frame(place).payload
    stream = Stream(derive(seed, "verified inverses", run.attempt.id))
    mask = field.field_elements(stream, 2)
    statement = NodeStatement.decode(run.adding.questions[place][:96])
    x, found = proofs.challenge_x(statement.root), []
    for cell in range(run.attempt.grid.cells):
        inverse = proofs.inverses(x, np.array([cell], dtype=np.uint64))
        masked = field.add(inverse.reshape(-1), mask)
        if proofs.inverses_digest(EARLY, bytes_of(masked)) == statement.inverses:
            found.append(cell)
    return found


def no_salt(honest: Any, salt: bytes, inverse: bytes) -> bytes:
    """H(ŵ)."""
    return honest(EARLY, inverse)


def test_a_dealer_that_guesses_a_record_hears_nothing_of_it_unless_a_digest_lacks_its_salt():
    run = begun(tables=[ONES[1], *OTHERS]).up().down().up()
    assert guessed(run, 0) == []
    with lying("everybody", inverses_digest=no_salt):
        bare = begun(tables=[ONES[1], *OTHERS]).up().down().up()
        assert guessed(bare, 0) == bare.cells_of(0)


def test_a_dealer_that_guesses_all_records_hears_nothing_of_them_unless_the_root_lacks_salts():
    """All tables of three nodes with a record each, of a domain of four."""
    facts = {"x": ("0", "1"), "y": ("0", "1")}
    tables = [table([x], [y]) for x, y in ((0, 1), (1, 1), (1, 0))]
    run = begun(tables=tables, **facts).up().down().up()
    assert all_guessed(run, run.adding.questions[0][:32]) == []

    def bare(honest: Any, attempt: bytes, openings: Any, salts: Any, total: bytes) -> bytes:
        return honest(attempt, [], [EARLY], total)

    with lying("everybody", root_of=bare):
        run = begun(tables=tables, **facts).up().down().up()
        found = all_guessed(run, run.adding.questions[0][:32])
    records = [run.cells_of(place)[0] for place in range(3)]
    assert found == [sorted(records)]


def all_guessed(run: VerifiedRun, root: bytes) -> list[list[int]]:
    """The records for which a total under the dealer's masks has the root that it hears."""
    cells, found = run.attempt.grid.cells, []
    seeds = [run.dealing.seed_frame(place).payload for place in range(3)]
    masks = [field.field_elements(mask_stream(seed, run.attempt.id), cells) for seed in seeds]
    mask = field.total(np.array(masks), 0)
    for guess in combinations_with_replacement(range(cells), 3):
        counted = np.bincount(guess, minlength=cells).astype(np.uint64)
        total = bytes_of(field.add(counted, mask))
        if proofs.root_of(run.attempt.id, [], [EARLY], total) == root:
            found.append(list(guess))
    return found


# --- classes and strata ---------------------------------------------------------------------------


def two_classes(cases: int, controls: int) -> VerifiedRun:
    """Node-0 has a case, and the liar so many records of both classes, all at the same number."""
    rows = [0] * cases + [1] * controls
    tables = [table([5], [0], [0]), table([3] * len(rows), [0] * len(rows), rows)]
    return begun(AUC, [*tables, table([3], [0], [1])], sampling="two_sample")


def other_classes(run: VerifiedRun) -> None:
    """The liar's cases are controls, in its list and in its table; it tells the same numbers."""
    label = run.nodes[LIAR].columns["label"]
    cells = run.cells_of(LIAR)
    control = next(c for c, of in zip(cells, label, strict=True) if of == 1)
    run.put_records(LIAR, [control] * len(cells))


def in_its_table_alone(run: VerifiedRun) -> None:
    """That table, over the list of its records as they are."""
    cells = run.cells_of(LIAR)
    other_classes(run)
    run.tables[LIAR].put_places(np.array(cells))


@pytest.mark.parametrize("lie", [other_classes, in_its_table_alone])
def test_a_member_with_other_numbers_of_classes_than_told_is_named(lie):
    run = two_classes(3, 1)
    lie(run)
    assert is_refused(lambda: ended(run), TABLE, "node-1")
    no_share(run)
    behind = two_classes(3, 1)
    lie(behind)
    with without(TABLE):
        assert is_refused(lambda: ended(behind), TOTAL, "coordinator")
    no_share(behind)


def test_records_of_another_class_than_told_would_give_a_record_more_weight():
    """A case is compared with controls. The noise covers as many as were told."""
    run, moved = two_classes(3, 1), []
    covered = run.attempt.sizes.sensitivities[0]
    for x in (0, 7):
        tables = [table([x], [0], [0]), table([3] * 4, [0] * 4, [0, 0, 0, 1])]
        run = begun(AUC, [*tables, table([3], [0], [1])], sampling="two_sample")
        other_classes(run)
        with unchecked(TABLE, TOTAL):
            moved.append(twice_the_sum(ended(run)) // 2)
    assert abs(moved[0] - moved[1]) > covered


def stratified(x: int = 3, y: int = 0) -> VerifiedRun:
    """Kendall's tau inside two strata. Node-0's record is in the first one, as the liar's are."""
    study = several(
        {"tau": KENDALL},
        ("f", "m"),
        high=7,
        nodes=begun().study.nodes,
        protocol="grid",
        backend="grid",
        adversary=LYING_NODES,
        epsilon=LOUD,
        max_colluding=2,
    )
    rows = ([(x, y, 0)], [(6, 3, 0)] * 5, [(6, 3, 0)] * 2)
    tables = [
        {
            name: np.array(column)
            for name, column in zip("xys", zip(*each, strict=True), strict=True)
        }
        for each in rows
    ]
    return VerifiedRun(checked(study), tables).prepare().count()


def moved_stratum(run: VerifiedRun) -> list[int]:
    """The cells of the liar's records, in the second stratum."""
    columns = {**run.nodes[LIAR].columns, "s": np.ones(5, dtype=np.int64)}
    return run.attempt.grid.cell_of(columns).tolist()


def in_both_strata(run: VerifiedRun) -> None:
    """The liar's table has each record in both strata."""
    cells = [*run.cells_of(LIAR), *moved_stratum(run)]
    listed = run.cells_of(LIAR)
    run.put_records(LIAR, cells)
    run.tables[LIAR].put_places(np.array(listed))


def in_another_stratum(run: VerifiedRun) -> None:
    """The liar's table has its records in the second stratum, and its list in the first one."""
    listed = run.cells_of(LIAR)
    run.put_records(LIAR, moved_stratum(run))
    run.tables[LIAR].put_places(np.array(listed))


def twice_in_one_stratum(run: VerifiedRun) -> None:
    """The liar's table has each record twice in one stratum, and takes them out of the other."""
    for_each = np.bincount(run.cells_of(LIAR), minlength=run.attempt.grid.cells)
    other = np.bincount(moved_stratum(run), minlength=run.attempt.grid.cells)

    def change(cells: np.ndarray) -> None:
        cells[:] = (2 * for_each - other).astype(object) % field.P

    run.put(LIAR, change)


STRATA = [in_both_strata, in_another_stratum, twice_in_one_stratum]


@pytest.mark.parametrize("lie", STRATA)
def test_a_member_that_counts_records_in_other_strata_than_it_lists_is_named(lie):
    run = stratified()
    lie(run)
    assert is_refused(lambda: ended(run), TABLE, "node-1")
    no_share(run)
    behind = stratified()
    lie(behind)
    with without(TABLE):
        assert is_refused(lambda: ended(behind), TOTAL, "coordinator")
    no_share(behind)


def test_all_strata_together_lose_epsilon_once_unless_a_member_counts_twice():
    """Σ |change of a stratum's sum| over its sensitivity is at most 1, and would be more."""

    def loss(lie: Lie, *checks: str) -> float:
        found = []
        for place in ((3, 0), (3, 7)):
            run = stratified(*place)
            lie(run)
            with unchecked(*checks):
                ended(run)
            ring = run.attempt.ring
            shares = zip(*(node.shares for node in run.tables), strict=True)
            found.append([ring.decode(sum(each)) // 2 for each in shares])
        covered = run.attempt.sizes.sensitivities
        rows = zip(*found, covered, strict=True)
        return sum(abs(one - other) / most for one, other, most in rows)

    assert loss(nothing) == 1
    assert loss(twice_in_one_stratum, TABLE, TOTAL) > 1
