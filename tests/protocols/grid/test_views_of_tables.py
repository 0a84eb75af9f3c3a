"""All four tables of a small domain: the frames of honest parties have one law, in both grades.

The observer is the coordinator with node-1. Besides the words of each frame it tries what would
tell a cell if a mask or a random value were known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import pytest

from tests.protocols.grid.test_views import SMALL, no_mask, no_zero_share
from tests.support.grid import cells_of, grid_study
from tests.support.mpc_studies import ALPHA, homogeneity
from tests.support.studies import KENDALL, Entropy, table
from umpc.crypto import field
from umpc.crypto.field_transforms import weights_at
from umpc.crypto.prg import Stream, derive
from umpc.protocols.grid import lookup_proof as proofs
from umpc.protocols.grid.lookup_proof import ANSWER, INVERSES, LIST, OPENING, PROOF, STATEMENT
from umpc.protocols.grid.masked_form import HISTOGRAM, TOTAL, masked_forms
from umpc.simulation import Simulated, simulate
from umpc.study.settings import HONEST, LYING_NODES
from umpc.testing import lying

DOMAIN = [(0, 0), (0, 1), (1, 0), (1, 1)]
"""Node-0's one record: each is a table."""
OTHERS = (table([1], [0]), table([0], [1]))
RUNS = {HONEST: 60, LYING_NODES: 40}
"""Studies over each table."""
FEW = 10
"""Studies over each table that find a mutant."""
NONE = len(DOMAIN)
"""No cell."""
X = np.arange(NONE, dtype=np.uint64)
View = dict[str, int]


def frames(run: Simulated, step: str) -> np.ndarray:
    """The words of a step that node-0 sends; of the total; of the answer about node-0."""
    said = run.transcript.online + run.transcript.told
    ends = {TOTAL: ("coordinator", "node-1"), ANSWER: ("dealer", "node-1")}
    sender, receiver = ends.get(step, ("node-0", "coordinator"))
    owners = (0,) if step == ANSWER else None
    found = [
        frame
        for source, to, frame in said
        if (source, to, frame.step) == (sender, receiver, step) and owners in (None, frame.key[2])
    ]
    return cells_of(found, run.attempt.ring.bits if step in (HISTOGRAM, TOTAL) else 64)


def without_a_part(run: Simulated, known: int) -> int:
    """Node-0's cell, if its share less a part that is known shows one."""
    ring = run.attempt.ring
    (form,) = masked_forms(run.attempt.grid, ring)
    total, own = (frames(run, step).astype(ring.dtype) for step in (TOTAL, HISTOGRAM))
    image = form.image(total)
    share = int.from_bytes(run.transcript.shares[0], "little")
    rest = share - known - form.public(total, image) + 2 * ring.inner(own, image)
    small = [abs(decoded(run, rest - 2 * int(each))) < SMALL for each in image]
    return small.index(True) if any(small) else NONE


def decoded(run: Simulated, value: int) -> int:
    """The small integer that an element stands for."""
    size = field.P if run.attempt.study.adversary == LYING_NODES else 1 << run.attempt.ring.bits
    return (value + size // 2) % size - size // 2


def observe(run: Simulated) -> View:
    """Small categories by name."""
    node = run.nodes[0]
    share = int.from_bytes(run.transcript.shares[0], "little")
    found = {
        **{f"masked cell {cell}": int(frames(run, HISTOGRAM)[cell]) & 3 for cell in range(NONE)},
        "share": share & 7,
        "share and masked cell": share & 3 | (int(frames(run, HISTOGRAM)[0]) & 3) << 2,
        "share, its part of the products known": without_a_part(run, node.table.numbers[0]),
        "share, its zero share known": without_a_part(run, node.zeros[0]),
    }
    is_proved = run.attempt.study.adversary == LYING_NODES
    return {**found, **observe_proof(run)} if is_proved else found


def cell_where(is_it: Callable[[np.ndarray], bool]) -> int:
    """The first cell for which something holds. Args: is_it: of the list with this cell."""
    found = [is_it(X[cell : cell + 1]) for cell in range(NONE)]
    return found.index(True) if any(found) else NONE


def known(label: str, count: int) -> np.ndarray:
    """The mask of a dealer that draws it from a seed that everybody knows."""
    return field.field_elements(Stream(derive(bytes(32), label, b"")), count)


def observe_proof(run: Simulated) -> View:
    """Frames of lists, of the proof, and of the dealer's answer."""
    transcript, answer = run.nodes[1].table.transcript, run.nodes[1].table.answer
    said, root = transcript.said[0], answer.statements[0].root
    x, r = proofs.challenge_x(root), proofs.challenge_r(run.attempt.id, answer.coin)
    powers = field.powers(proofs.challenge_rho(root, 0, said.inverses_digest), 1)
    inverse, proof = frames(run, INVERSES).reshape(-1, 2), frames(run, PROOF).reshape(-1, 2)
    bare = field.subtract(inverse, known("verified inverses", 2).reshape(-1, 2))
    bare_proof = field.subtract(proof, known("verified proof", 2 * said.shape.size).reshape(-1, 2))
    sent = proofs.left_factors(x, said.cells.values, powers, proofs.CLEAR), inverse, proof
    wire = field.add(proofs.read_at(said.shape, *sent, r), answer.opened(0))[0]
    _, of_factor = weights_at(said.shape.places, r)

    def left(cells: np.ndarray) -> np.ndarray:
        return proofs.left_factors(x, cells, powers, proofs.CLEAR)

    def proves(cells: np.ndarray) -> bool:
        given = left(cells), proofs.inverses(x, cells), bare_proof[: 2 * said.shape.wires]
        return np.array_equal(proofs.make_proof(said.shape, *given), bare_proof)

    def opens(cells: np.ndarray) -> bool:
        return np.array_equal(field.times(of_factor, left(cells)[0]), wire)

    words = {"list": LIST, "inverse": INVERSES, "proof": PROOF, "answer": ANSWER}
    octets = {"opening": OPENING, "statement": STATEMENT}
    return {
        **{name: int(frames(run, step)[0]) & 7 for name, step in words.items()},
        **{f"last word of {name}": int(frames(run, step)[-1]) & 7 for name, step in words.items()},
        **{name: int(frames(run, step)[-1]) & 7 for name, step in octets.items()},
        "digest of a table": said.opening.table[0] & 7,
        "wire": int(wire[0]) & 7,
        "inverse, its mask known": cell_where(
            lambda cells: np.array_equal(proofs.inverses(x, cells), bare)
        ),
        "proof, its mask known": cell_where(proves),
        "wire, its random value known": cell_where(opens),
    }


def views(grade: str, seed: str, count: int) -> dict[str, list[np.ndarray]]:
    """Some studies over each table: per name the samples."""
    study = grid_study(KENDALL, 3, x=("0", "1"), y=("0", "1"), adversary=grade)
    samples = []
    for x, y in DOMAIN:
        entropy = Entropy(f"{seed} {grade} {x} {y}")
        runs = (simulate(study, [table([x], [y]), *OTHERS], entropy) for _ in range(count))
        samples.append([observe(run) for run in runs])
    return {
        name: [np.array([seen[name] for seen in sample]) for sample in samples]
        for name in samples[0][0]
    }


@pytest.mark.parametrize("grade", [HONEST, LYING_NODES])
def test_frames_of_honest_parties_have_one_law_for_all_tables(grade):
    for name, samples in views(grade, "tables", RUNS[grade]).items():
        p = homogeneity(*samples)
        assert p > ALPHA, f"{name} tells the tables apart: p = {p:.1e}, N = {RUNS[grade]} each"


@contextmanager
def of_mask(label: str) -> Iterator[None]:
    """One mask serves all attempts."""

    def same(honest: Any, seed: bytes, name: str, context: bytes) -> bytes:
        return honest(bytes(32), name, b"") if name == label else honest(seed, name, context)

    with lying("node", derive=same), lying("dealer", derive=same):
        yield


def no_random_values() -> AbstractContextManager[None]:
    """Wires have zeros where their random values stand."""

    def make_proof(honest: Any, shape: Any, left: Any, right: Any, random: Any) -> Any:
        return honest(shape, left, right, np.zeros_like(random))

    return lying("node", make_proof=make_proof)


MUTANTS = [
    (HONEST, no_mask, "masked cell 0"),
    (HONEST, no_zero_share, "share, its part of the products known"),
    (LYING_NODES, no_zero_share, "share, its part of the products known"),
    (LYING_NODES, lambda: of_mask("verified list"), "list"),
    (LYING_NODES, lambda: of_mask("verified inverses"), "inverse, its mask known"),
    (LYING_NODES, lambda: of_mask("verified proof"), "proof, its mask known"),
    (LYING_NODES, no_random_values, "wire, its random value known"),
]


@pytest.mark.parametrize(
    ("grade", "mutant", "finder"), MUTANTS, ids=[f"{each[0]} {each[2]}" for each in MUTANTS]
)
def test_power_a_grid_without_a_protection_is_found(grade, mutant, finder):
    with mutant():
        p = homogeneity(*views(grade, "power", FEW)[finder])
    assert p < ALPHA, f"the mutant passes with p = {p:.1e}, N = {FEW} each"
