"""Lies to a grid whose tables are proved: each ends with the name of who lied, and without a share.

A node, the coordinator, or both lie. The real sides of all processes stand in one memory, and the
dealer's statements come through its server's door. With a check taken out, the lie that it refuses
is not refused in that way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.grid import grid_study
from tests.support.studies import AUC, KENDALL, LOUD, SPEARMAN, Entropy, random_tables, table
from tests.support.verified import COORDINATOR, DEALER, Change, VerifiedRun, raised
from umpc.coordinator import conductor
from umpc.crypto import field
from umpc.dealer import server
from umpc.dealer.server import AskedAttempt
from umpc.errors import LocalProtocolError, RemoteProtocolError, StudyError, UmpcError
from umpc.protocols.grid.masked_form import TOTAL
from umpc.protocols.grid.verified import INVERSES, LIST, OPENING, PROOF, STATEMENT, NodeStatement
from umpc.protocols.registry import checked
from umpc.simulation import AUTHORITY
from umpc.study.messages import Frame
from umpc.study.settings import LYING_NODES
from umpc.testing import CHECKS, lying, without
from umpc.transport import dealer_answer
from umpc.transport.certificates import SignedIn
from umpc.transport.tls import Peer

LIAR = 1
HONEST = (0, 2)
COUNTS = (3, 5, 2)
HALF = (field.P + 1) // 2
"""Two of it are 1 in F."""


def begun(
    kernel: str = KENDALL, tables: Sequence[Any] = (), label: str = "lies", **changes: Any
) -> VerifiedRun:
    """Honest nodes that have counted their records. Args: label: of everybody's randomness."""
    facts = {"x": ("0", "7"), "y": ("0", "7"), "epsilon": LOUD, "adversary": LYING_NODES}
    study = checked(grid_study(kernel, 3, **{**facts, **changes}))
    tables = tables or random_tables(COUNTS, "liars", high=7)
    names = {field.name for field in study.fields}
    own = [{name: each[name] for name in names} for each in tables]
    return VerifiedRun(study, own, Entropy(label)).prepare().count()


def two_classes() -> VerifiedRun:
    """Each node has records of both public classes, or of one."""
    tables = [
        table([1, 2, 7], [0] * 3, [0, 0, 1]),
        table([3, 4, 4, 6], [0] * 4, [0, 1, 1, 1]),
        table([5], [0], [0]),
    ]
    return begun(AUC, tables, sampling="two_sample")


def no_share(run: VerifiedRun, honest: Sequence[int] = HONEST) -> None:
    """No honest node made a share."""
    for place in honest:
        with pytest.raises(LocalProtocolError, match="no shares"):
            _ = run.tables[place].shares


def is_refused(step: Callable[[], Any], check: str, culprit: str) -> bool:
    """Whether a step ends with the words of a check, and names who lied."""
    try:
        step()
    except UmpcError as error:
        return error.culprit == culprit and CHECKS[check][0] in error.message
    except Exception:  # without a check anything may come of a lie
        return False
    return False


# --- a node lies about its records ----------------------------------------------------------------

Lie = Callable[[VerifiedRun], None]


def adding(**changes: int) -> Lie:
    """The liar's table has more in some cells: c3=1 is one more in cell 3."""

    def lie(run: VerifiedRun) -> None:
        def change(cells: np.ndarray) -> None:
            for name, more in changes.items():
                place = int(name[1:])
                cells[place] = (int(cells[place]) + more) % field.P

        run.put(LIAR, change)

    return lie


def outside(run: VerifiedRun) -> None:
    """The liar's last record is in the first cell behind the table."""
    run.put_records(LIAR, [*run.cells_of(LIAR)[:-1], run.attempt.grid.cells])


def other_list(run: VerifiedRun) -> None:
    """The liar's list has another cell than its table."""
    first, *rest = run.cells_of(LIAR)
    run.tables[LIAR].put_places(np.array([(first + 1) % run.attempt.grid.cells, *rest]))


TABLES: dict[str, Lie] = {
    "amplified cell": adding(c3=2**30),
    "negative cell": adding(c3=1, c4=-1),
    "wrapped cell": adding(c3=2**63, c4=field.P - 2**63),
    "split cell": adding(c1=HALF - 1, c4=HALF),
    "one more record than in the list": adding(c0=1),
    "one record fewer than in the list": adding(c0=-1),
    "a record outside": outside,
    "another list": other_list,
}


SETS = {"pairs": (KENDALL, 2), "triples": (SPEARMAN, 3)}
FEW_CELLS = {"x": ("0", "3"), "y": ("0", "1")}
MANY = (20, 27, 16)
"""Records of nodes whose tables have eight cells: each node sends five bits for a cell."""


def begun_with_bits(kernel: str = KENDALL, degree: int = 2) -> VerifiedRun:
    """Honest nodes that send bits. Each cell of the liar has records; cell 1 has two or three."""
    tables = [table(np.arange(n) % 4, np.arange(n) // 4 % 2) for n in MANY]
    run = begun(kernel, tables, degree=degree, **FEW_CELLS)
    assert all(said.shape.width == 5 for said in run.adding.transcript.said)
    return run


FORMS = {
    **{sets: lambda given=given: begun(given[0], degree=given[1]) for sets, given in SETS.items()},
    **{
        f"bits of {sets}": lambda given=given: begun_with_bits(*given)
        for sets, given in SETS.items()
    },
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_is_not_its_list_names_its_node(name, form):
    """An honest coordinator checks each node's own table, before anybody has all signatures."""
    run = FORMS[form]()
    TABLES[name](run)
    run.up().down().up().ask().down()
    check = "a table is that of its records"
    assert is_refused(lambda: run.adding.check_signed(run.signatures), check, "node-1")
    with without(check):
        assert not is_refused(lambda: run.adding.check_signed(run.signatures), check, "node-1")
    no_share(run)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", TABLES)
def test_nodes_refuse_it_too_behind_a_coordinator_that_checks_nothing(name, form):
    """They see the sum of all tables only, so they name the coordinator, who did not say whose."""
    run = FORMS[form]()
    TABLES[name](run)
    run.up().down().up().ask().down()
    check, signatures = "the total is that of all tables", run.signatures
    for place in HONEST:
        confirm = run.tables[place].confirm
        assert is_refused(lambda one=confirm: one(signatures), check, "coordinator")
    no_share(run)
    with without(check):
        run.tables[0].confirm(signatures)
    assert run.tables[0].shares, "power: without the check the node makes a share"


@pytest.mark.parametrize("name", TABLES)
def test_one_honest_node_that_checks_refuses_the_tables_of_two_liars(name):
    """The check of a verifier itself holds against any number of liars."""
    run = begun()
    TABLES[name](run)

    def moved(cells: np.ndarray) -> None:
        """The other liar's table has a record in another cell than its list."""
        cells[5] += np.uint64(1)
        cells[6] = (int(cells[6]) - 1) % field.P

    run.put(2, moved)
    run.up().down().up().ask().down()
    check, signatures = "the total is that of all tables", run.signatures
    assert is_refused(lambda: run.tables[0].confirm(signatures), check, "coordinator")
    no_share(run, (0,))
    with without(check):
        run.tables[0].confirm(signatures)
    assert run.tables[0].shares, "power: without the check the node makes a share"


@pytest.mark.parametrize("more", [-1, 1])
def test_bits_of_another_number_of_records_name_their_node(more):
    """A list has as many cells as records. Bits fit their table, so only its sum tells."""
    run = begun_with_bits()
    cells = run.cells_of(LIAR)
    run.put_records(LIAR, [*cells, 0] if more > 0 else cells[1:])
    run.up().down().up().ask().down()
    told = run.signatures
    check = "classes are as told"
    assert is_refused(lambda: run.adding.check_signed(told), check, "node-1")
    assert [run.verdicts(told)[place].culprit for place in HONEST] == ["coordinator"] * 2
    no_share(run)
    with without(check), without("the total is that of all tables"):
        run.adding.check_signed(told)
        run.tables[0].confirm(told)
    assert run.tables[0].shares, "power: products and the lookup hold"


WEIGHTY: dict[str, Lie] = {
    "honest": adding(),
    "amplified cells": adding(c8=2**20, c54=2**20),
    "negative cells": adding(c8=2**20, c54=-(2**20)),
}


@pytest.mark.parametrize("sets", SETS)
def test_power_without_the_proof_false_cells_make_one_record_weigh_more_than_noise_covers(sets):
    """The liar takes away what its own table adds, and reads an honest record through the noise."""
    kernel, degree = SETS[sets]
    found: dict[str, list[int]] = {name: [] for name in WEIGHTY}
    for name, lie in WEIGHTY.items():
        for mine in (0, 7):
            tables = [table([mine], [mine]), table([2, 3], [3, 5]), table([5], [0])]
            run = begun(kernel, tables, degree=degree)
            lie(run)
            run.up().down().up().ask().down()
            with without("the total is that of all tables"):
                assert run.verdicts() == [None] * 3
            shares = [each.shares[0] for each in run.tables]
            found[name].append(run.attempt.ring.decode(sum(shares)))
    weights = {name: abs(one - other) for name, (one, other) in found.items()}
    sizes = run.attempt.sizes
    covered = run.attempt.factor * max(sizes.sensitivities)
    assert weights.pop("honest") <= covered
    assert min(weights.values()) > 2**10 * covered


def test_class_counts_told_wrongly_name_the_node():
    """The liar said one record of the first class, and its table and list have two."""
    run = two_classes()
    labels = run.nodes[LIAR].columns["label"]
    first, second = np.flatnonzero(labels == 0), np.flatnonzero(labels == 1)
    cells = run.cells_of(LIAR)
    moved = [cells[first[0]] if place == second[0] else cell for place, cell in enumerate(cells)]
    run.put_records(LIAR, moved)
    run.up().down().up().ask().down()
    check = "a table is that of its records"
    assert is_refused(lambda: run.adding.check_signed(run.signatures), check, "node-1")
    told = run.signatures
    verdicts = run.verdicts(told)
    assert [verdicts[place].culprit for place in HONEST] == ["coordinator"] * 2
    no_share(run)
    with without(check):
        run.adding.check_signed(told)


# --- a node lies about its proof ------------------------------------------------------------------


def exchanged(honest: Any, x: Any, cells: Any) -> Any:
    """Each record has the inverse of another one."""
    return np.roll(honest(x, cells), 1, axis=0)


def zeros(honest: Any, x: Any, cells: Any) -> Any:
    return np.zeros_like(honest(x, cells))


def bent_at(place: int) -> Any:
    """The proof with 1 added to one of its numbers."""

    def bent(honest: Any, *given: Any) -> Any:
        proof = honest(*given).copy()
        proof[place, 0] = (int(proof[place, 0]) + 1) % field.P
        return proof

    return bent


PROOFS: dict[str, dict[str, Any]] = {
    "w of another record": {"inverses": exchanged},
    "w = 0": {"inverses": zeros},
    "bent proof, a value of a wire": {"make_proof": bent_at(1)},
    "bent proof, a call": {"make_proof": bent_at(6)},
    "bent proof, a value between calls": {"make_proof": bent_at(7)},
    "a proof of zeros": {"make_proof": lambda honest, *given: np.zeros_like(honest(*given))},
}


@pytest.mark.parametrize("name", PROOFS)
def test_a_proof_that_does_not_hold_names_its_author(name):
    """At the coordinator, and at each honest node behind a coordinator that checks nothing."""
    run = begun().up().down()
    run.up(liar=LIAR, lie=lying("node", **PROOFS[name])).ask().down()
    check, told = "products of a node", run.signatures
    assert is_refused(lambda: run.adding.check_signed(told), check, "node-1")
    for place in HONEST:
        confirm = run.tables[place].confirm
        assert is_refused(lambda one=confirm: one(told), check, "node-1")
    no_share(run)
    with without(check):
        assert not is_refused(lambda: run.adding.check_signed(told), check, "node-1")
        assert not is_refused(lambda: run.tables[0].confirm(told), check, "node-1")


def values_with(*changes: tuple[int, int, int]) -> Any:
    """Other numbers in place of bits. Args: changes: cell, place of the bit, and what is added."""

    def values_of(honest: Any, shape: Any, places: Any) -> Any:
        found = honest(shape, places).copy()
        for cell, bit, more in changes:
            place = cell * shape.width + bit
            found[place] = (int(found[place]) + more) % field.P
        return found

    return lying("node", values_of=values_of)


NO_BITS: dict[str, tuple[tuple[int, int, int], ...]] = {
    "a bit is 2 or 3 in place of the next bit": ((1, 0, 2), (1, 1, -1)),
    "a bit is -1 or -2 beside more of the next bit": ((2, 0, -2), (2, 1, 1)),
    "halves": ((3, 0, 1), (3, 1, -HALF)),
    "a large bit and its negative": ((1, 0, 2**40), (1, 3, -(2**37))),
}
"""Changes after which the numbers of records in all cells are the same."""
WEIGHTY_BITS = ((1, 0, 2**20), (6, 0, -(2**20)))
"""Two cells with other numbers of records, whose sum is right."""


@pytest.mark.parametrize("name", [*NO_BITS, "weighty cells"])
def test_values_that_are_no_bits_name_their_node(name):
    """The table, its sum, and the lookup are right. So only the products tell."""
    run = begun_with_bits()
    changes = NO_BITS.get(name, WEIGHTY_BITS)
    if name not in NO_BITS:
        adding(**{f"c{cell}": more for cell, _, more in changes})(run)
    with values_with(*changes):
        run.tables[LIAR].put_places(np.array(run.cells_of(LIAR)))
    run.up().down().up().ask().down()
    check, told = "products of a node", run.signatures
    assert is_refused(lambda: run.adding.check_signed(told), check, "node-1")
    for place in HONEST:
        confirm = run.tables[place].confirm
        assert is_refused(lambda one=confirm: one(told), check, "node-1")
    no_share(run)
    with without(check):
        run.adding.check_signed(told)
        run.tables[0].confirm(told)
    assert run.tables[0].shares, "power: without the check the node makes a share"


BENT = {"a seed": 1, "a call": 14, "a value between calls": 15}
"""Behind the seeds of twelve wires are the values of p."""


@pytest.mark.parametrize("name", BENT)
def test_a_bent_proof_of_bits_names_its_author(name):
    run = begun_with_bits().up().down()
    run.up(liar=LIAR, lie=lying("node", make_proof=bent_at(BENT[name]))).ask().down()
    check, told = "products of a node", run.signatures
    assert run.adding.transcript.said[LIAR].shape.wires == 6
    assert is_refused(lambda: run.adding.check_signed(told), check, "node-1")
    assert is_refused(lambda: run.tables[0].confirm(told), check, "node-1")
    no_share(run)
    with without(check):
        assert not is_refused(lambda: run.adding.check_signed(told), check, "node-1")


# --- a node signs something else ------------------------------------------------------------------


def signed_by_liar(run: VerifiedRun, **changes: bytes) -> tuple[NodeStatement, bytes]:
    """A statement of the liar with other digests, and its signature."""
    said = run.adding.transcript.said[LIAR]
    root = run.adding.transcript.root(run.total_bytes)
    statement = replace(said.statement(root), **changes)
    sign = AUTHORITY.credentials("node-1").sign
    return statement, sign(statement.signed_as(run.attempt.id, LIAR))


def test_a_statement_of_another_root_names_its_signer_and_never_reaches_the_dealer():
    run = begun().up().down().up()
    _, signature = signed_by_liar(run, root=bytes(32))
    run.adding.transcript.said[LIAR].signature.data = signature
    check = "a statement is signed"
    assert is_refused(lambda: run.adding.questions, check, "node-1")
    no_share(run)
    with without(check):
        assert len(run.adding.questions) == 3


def test_two_statements_of_one_node_name_it():
    """A coordinator that colludes gives the dealer one, and the other nodes the other one."""
    run = begun().up().down().up()
    statement, signature = signed_by_liar(run, proof=bytes(32))
    questions = list(run.adding.questions)
    questions[LIAR] = statement.encode() + signature
    run.ask(questions).down()
    check, told = "the answer is about what was signed", run.signatures
    for place in HONEST:
        confirm = run.tables[place].confirm
        assert is_refused(lambda one=confirm: one(told), check, "node-1")
    no_share(run)
    with without(check):
        assert not is_refused(lambda: run.tables[0].confirm(told), check, "node-1")


def test_another_table_than_its_digest_names_its_node():
    """The liar's masked table changes after its digest was signed."""
    run = begun()
    check = "a table is signed"

    def change(place: int, frame: Frame) -> Frame:
        is_table = (place, frame.step) == (LIAR, "histogram")
        return raised(frame) if is_table else frame

    assert is_refused(lambda: run.up(change), check, "node-1")
    no_share(run)
    again = begun()
    with without(check):
        again.up(change)


@pytest.mark.parametrize("step", [LIST, OPENING])
def test_a_list_under_another_signature_names_its_node(step):
    run, check = begun(), "a table is signed"
    change = at(step, LIAR, of=LIAR)
    assert is_refused(lambda: run.up(change), check, "node-1")
    no_share(run)
    again = begun()
    with without(check):
        assert not is_refused(lambda: again.up(change), check, "node-1")


# --- the coordinator lies -------------------------------------------------------------------------


def at(step: str, place: int, of: int) -> Change:
    """One byte of a step of node `of` is another one, where node `place` sends or gets it."""

    def change(to: int, frame: Frame) -> Frame:
        if (to, frame.step, frame.key[2]) != (place, step, (of,)):
            return frame
        payload = bytes([frame.payload[0] ^ 1]) + frame.payload[1:]
        return replace(frame, payload=payload)

    return change


def shifted(**by: int) -> Change:
    """Some nodes get a total with more in its first cell: n0=1 is one more for node-0."""

    def change(place: int, frame: Frame) -> Frame:
        more = by.get(f"n{place}", 0)
        return raised(frame, by=more) if frame.step == TOTAL and more else frame

    return change


def totals(run: VerifiedRun, change: Change) -> list[bytes]:
    """The total that each node was told."""
    (frame,) = run.adding.total()
    return [change(place, frame).payload for place in range(3)]


@pytest.mark.parametrize("by", [{"n0": 1}, {"n0": 1, "n2": 2}, {"n0": 1, "n1": 1}])
def test_two_totals_get_no_answer_and_name_the_coordinator(by):
    """One answer about two points X would open a function of records."""
    run = begun().up().down(shifted(**by)).up()
    check, asked = "all statements name one root", run.questions(totals(run, shifted(**by)))
    assert is_refused(lambda: run.ask(asked), check, "coordinator")
    no_share(run, (0, 1, 2))
    again = begun().up().down(shifted(**by)).up()
    asked = again.questions(totals(again, shifted(**by)))
    with without(check):
        assert not is_refused(lambda: again.ask(asked), check, "coordinator")


def test_statements_that_nodes_did_not_sign_get_no_answer():
    """The coordinator told node-0 another total, and gives the dealer one root for all."""
    change = shifted(n0=1)
    run = begun().up().down(change).up()
    check, asked = "a statement is signed", run.questions([run.total_bytes] * 3)
    assert is_refused(lambda: run.ask(asked), check, "coordinator")
    no_share(run, (0, 1, 2))
    again = begun().up().down(change).up()
    asked = again.questions([again.total_bytes] * 3)
    with without(check):
        again.ask(asked)


def test_a_shifted_total_told_to_all_names_the_coordinator():
    change = shifted(n0=1, n1=1, n2=1)
    run = begun().up().down(change).up()
    run.ask(run.questions(totals(run, change))).down()
    check, told = "the total is that of all tables", run.signatures
    for node in run.tables:
        assert is_refused(lambda one=node: one.confirm(told), check, "coordinator")
    no_share(run, (0, 1, 2))
    with without(check):
        run.tables[0].confirm(told)


def swapped(step: str) -> Callable[[VerifiedRun], Change]:
    """Node-0 gets the list or the opening of node-2 under node-1's name."""

    def of(run: VerifiedRun) -> Change:
        said = run.adding.transcript.said
        part = {LIST: said[2].cells, OPENING: said[2].opening}[step]
        (other,) = part.frames()

        def change(place: int, frame: Frame) -> Frame:
            is_due = (place, frame.key) == (0, (step, 0, (1,), 0))
            return replace(frame, payload=other.payload) if is_due else frame

        return change

    return of


@pytest.mark.parametrize("step", [LIST, OPENING])
def test_swapped_lists_name_the_coordinator(step):
    """All nodes have as many records, so only signatures tell the lists apart."""
    tables = random_tables((3, 3, 3), "swapped", high=7)
    check = "a table is signed"
    for is_power in (False, True):
        run = begun(tables=tables).up()
        change = swapped(step)(run)
        if is_power:
            with without(check):
                run.down(change)
            continue
        assert is_refused(lambda one=run, lie=change: one.down(lie), check, "coordinator")
        no_share(run, (0, 1, 2))


@pytest.mark.parametrize("step", [LIST, OPENING])
def test_a_changed_byte_of_a_relayed_list_names_the_coordinator(step):
    run = begun().up()
    change = at(step, 0, of=LIAR)
    assert is_refused(lambda: run.down(change), "a table is signed", "coordinator")
    no_share(run, (0, 1, 2))


@pytest.mark.parametrize("step", [INVERSES, PROOF])
def test_a_changed_byte_of_a_relayed_proof_names_the_coordinator(step):
    """Without the check it would frame the honest node whose proof it is."""
    run = begun().up().down().up().ask().down(at(step, 0, of=LIAR))
    check, told = "a proof is as signed", run.signatures
    run.adding.check_signed(told)
    assert is_refused(lambda: run.tables[0].confirm(told), check, "coordinator")
    other, last = "the answer is about what was signed", "the evidence proves the lie"
    with without(check):
        assert not is_refused(lambda: run.tables[0].confirm(told), other, "node-1")
        with without(last):
            assert is_refused(lambda: run.tables[0].confirm(told), other, "node-1")
    no_share(run, (0,))


def test_the_statement_of_another_node_names_the_coordinator():
    """The last signatures come in another order, or one of them is missing."""
    run = begun().up().down().up().ask().down()
    told = run.signatures
    for lie in ([told[1], told[0], told[2]], told[:2], [b"", *told[1:]]):
        assert [each.culprit for each in run.verdicts(lie) if each] == ["coordinator"] * 3
    no_share(run, (0, 1, 2))
    assert run.verdicts(told) == [None] * 3


def test_the_dealer_answers_once_and_names_who_asks_again():
    """A second point of each proof would open the wires."""
    run = begun().up().down().up()
    asked = list(run.adding.questions)
    run.ask(asked)
    check = "the dealer has not answered"
    assert is_refused(lambda: run.ask(asked), check, "coordinator")
    with without(check):
        assert not is_refused(lambda: run.ask(asked), check, "coordinator")
    run.down().confirm()


def test_everybody_hears_one_answer_and_a_stranger_none():
    """A coordinator that asks again hears the same, also with other statements.

    One that signed in for other studies is a stranger.
    """
    run = begun().up().down().up()
    asked = list(run.adding.questions)
    other = SignedIn("sub-1", "st-mary", (64 * "0",))

    async def talk() -> list[list[Frame]]:
        one = AskedAttempt(run.attempt, run.dealing, AUTHORITY.verify, DEALER.sign)
        with pytest.raises(RemoteProtocolError) as found:
            await one.answer(Peer("stranger", "coordinator"), asked)
        assert found.value.culprit == "stranger"
        with pytest.raises(StudyError, match="may ask other studies"):
            await one.answer(Peer("coordinator", "coordinator", other), asked)
        calls = [(COORDINATOR, asked), (Peer("node-0", "node"), []), (COORDINATOR, asked[::-1])]
        return [await one.answer(*each) for each in calls]

    first, *others = asyncio.run(talk())
    assert first and others == [first, first]


def test_whoever_waits_for_another_process_waits_longer():
    """So a node that stalls is named by the coordinator, before anybody names the coordinator."""
    limits = (conductor.ANSWER_SECONDS, server.PATIENCE_SECONDS, dealer_answer.PATIENCE_SECONDS)
    assert 0 < limits[0] < limits[1] < limits[2]


@pytest.mark.parametrize("count", [0, 2])
def test_statements_that_are_too_few_get_no_answer(count):
    run = begun().up().down().up()
    with pytest.raises(RemoteProtocolError) as found:
        run.ask(run.questions([run.total_bytes] * 3)[:count])
    assert found.value.culprit == "coordinator"


@pytest.mark.parametrize("size", [0, 95, 96, 159, 161])
def test_statements_of_another_length_get_no_answer(size):
    run = begun().up().down().up()
    asked = list(run.adding.questions)
    asked[2] = (asked[2] + b"\0")[:size]
    with pytest.raises(UmpcError) as found:
        run.ask(asked)
    assert found.value.culprit == "coordinator"


@pytest.mark.parametrize("exchange", [0, 1])
def test_any_changed_frame_names_its_relay_and_nobody_honest(exchange):
    """Each frame that node-0 gets, with one byte changed, left out, or sent twice.

    Only the signatures of the second exchange may change: nodes take them from the last message.
    """
    honest = begun().up()
    if exchange:
        honest.down().up().ask()
    steps = [frame.step for frame in honest.adding.told(0)]
    for number, step in enumerate(steps):
        kinds = ("short", "missing", "twice", *(("byte", "word") if step != STATEMENT else ()))
        for kind in kinds:
            run = begun().up()
            if exchange:
                run.down().up().ask()
            error = _told_otherwise(run, number, kind)
            assert error is not None and error.culprit == "coordinator", (number, kind)
            no_share(run, (0,))


def _told_otherwise(run: VerifiedRun, number: int, kind: str) -> UmpcError | None:
    """How node-0 ends, all others being honest: at a frame, or with its own check."""
    frames = list(run.adding.told(0))
    frame = frames[number]
    payload = bytes([frame.payload[0] ^ 1]) + frame.payload[1:]
    changed = {
        "byte": [replace(frame, payload=payload)],
        "word": [replace(frame, payload=b"\xff" * len(frame.payload))],
        "short": [replace(frame, payload=frame.payload[:-8])],
        "missing": [],
        "twice": [frame, frame],
    }[kind]
    try:
        for each in [*frames[:number], *changed, *frames[number + 1 :]]:
            run.tables[0].take(each)
        if kind == "missing":
            # the last frame did not come: the node waits, and its step's time runs out
            raise RemoteProtocolError("nothing came", culprit="coordinator")
        for place in (1, 2):
            for each in run.adding.told(place):
                run.tables[place].take(each)
        if run.answered:
            run.tables[0].confirm(run.signatures)
        else:
            run.up()
            run.ask(run.questions([run.total_bytes] * 3))
    except UmpcError as error:
        return error
    return None


def test_a_statement_frame_is_the_nodes_own():
    """A signature that comes under another node's name is no frame that is due."""
    run = begun().up().down()

    def change(place: int, frame: Frame) -> Frame:
        if (place, frame.step) != (LIAR, STATEMENT):
            return frame
        return Frame(STATEMENT, (2,), 0, len(frame.payload), 8, frame.payload)

    with pytest.raises(RemoteProtocolError) as found:
        run.up(change)
    assert found.value.culprit == "node-1"
    no_share(run)
