"""Strata and private classes: all four tables of a record have one law of frames, in both grades.

The observer is the coordinator, which sees all that node-0 sends and what the dealer answers about
it. It takes those words of each step in which the record would show without a mask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.protocols.grid.test_grid_run import study_of as library_study_of
from tests.support.grid import cells_of
from tests.support.mpc_studies import ALPHA, homogeneity, uniformity
from tests.support.several import several
from tests.support.studies import KENDALL, Columns, Entropy, compiled_once
from umpc.protocols.grid.binding import grid_of
from umpc.protocols.grid.lookup_proof import ANSWER, INVERSES, LIST, PROOF
from umpc.protocols.grid.masked_form import HISTOGRAM
from umpc.protocols.registry import checked
from umpc.simulation import Simulated, simulate
from umpc.study.document import Study
from umpc.study.parts import Participant
from umpc.study.settings import HONEST, LYING_NODES

NODES = tuple(Participant(f"node-{place}", f"node-{place}:1") for place in range(3))
RUNS, FEW = 32, 10
"""Studies over each table, and those that find equal masks in all attempts."""
VALUES = 4
"""The low bits of a word."""
PROVED = (LIST, INVERSES, PROOF, ANSWER)
Views = dict[str, list[np.ndarray]]
"""A sample over each table, by the step or the share."""


def stratified(grade: str) -> Study:
    """Kendall's tau inside each of two strata: two sums."""
    facts = {"protocol": "grid", "backend": "grid", "nodes": NODES, "max_colluding": 2}
    return checked(several({"tau": KENDALL}, ("f", "m"), high=1, **facts, adversary=grade))


def private_classes(grade: str) -> Study:
    return library_study_of("auc_private", 3).replaced(adversary=grade)


def columns(*rows: Sequence[int], names: Sequence[str]) -> Columns:
    found = zip(names, zip(*rows, strict=True), strict=True)
    return {name: np.array(values, dtype=np.int64) for name, values in found}


STUDIES: dict[str, tuple[Callable[[str], Study], list[tuple[int, ...]]]] = {
    "strata": (stratified, [(0, 0, 0), (0, 0, 1), (1, 1, 0), (1, 1, 1)]),
    "private classes": (private_classes, [(-5, 0), (-5, 1), (6, 0), (6, 1)]),
}
"""The study, and node-0's record in each table: its last value is the stratum or the class."""


def observe(run: Simulated, cells: Sequence[int]) -> dict[str, int]:
    """The low bits of a word of each step, of these cells, and of the share."""
    sent = run.transcript.online + run.transcript.told

    def words(step: str, owners: tuple[int, ...], bits: int) -> np.ndarray:
        mine = [
            frame
            for sender, to, frame in sent
            if (frame.step, frame.key[2]) == (step, owners) and "node-0" in (sender, to)
        ]
        return cells_of(mine, bits)

    table = words(HISTOGRAM, (), run.attempt.ring.bits)
    found = {f"masked cell {cell}": int(table[cell]) for cell in cells}
    found["share"] = int.from_bytes(run.transcript.shares[0], "little")
    if run.attempt.study.adversary == LYING_NODES:
        found |= {step: int(words(step, (0,), 64)[0]) for step in PROVED}
    return {name: value % VALUES for name, value in found.items()}


def views(name: str, grade: str, runs: int, *, is_masked: bool = True) -> Views:
    """Args: is_masked: otherwise everybody's randomness is the same in all attempts."""
    make, records = STUDIES[name]
    study = make(grade)
    names = [field.name for field in study.fields]
    others = [columns(row, names=names) for row in records[1:3]]
    cells = grid_of(study).cell_of(columns(*records, names=names)).tolist()
    samples = []
    for row in records:
        tables = [columns(row, names=names), *others]
        entropy = Entropy(f"classes {name} {grade} {row}")
        drawn = (entropy if is_masked else Entropy("equal masks") for _ in range(runs))
        samples.append([observe(simulate(study, tables, each), cells) for each in drawn])
    return {
        seen: [np.array([each[seen] for each in sample]) for sample in samples]
        for seen in samples[0][0]
    }


@pytest.fixture(autouse=True, scope="module")
def fast():
    with compiled_once():
        yield


@pytest.mark.parametrize("grade", [HONEST, LYING_NODES])
@pytest.mark.parametrize("name", STUDIES)
def test_frames_have_one_law_for_all_strata_and_classes_of_a_record(name, grade):
    for seen, samples in views(name, grade, RUNS).items():
        p = homogeneity(*samples)
        assert p > ALPHA, f"{seen} tells the tables apart: p = {p:.1e}, N = {RUNS} each"
        p = uniformity(np.concatenate(samples), VALUES)
        assert p > ALPHA, f"{seen} is not uniform: p = {p:.1e}"


@pytest.mark.parametrize("grade", [HONEST, LYING_NODES])
@pytest.mark.parametrize("name", STUDIES)
def test_power_masks_that_are_the_same_in_all_attempts_are_found(name, grade):
    found = views(name, grade, FEW, is_masked=False)
    told = {seen for seen, samples in found.items() if homogeneity(*samples) < ALPHA}
    assert sum(each.startswith("masked cell") for each in told) == len(STUDIES[name][1])
    if grade == LYING_NODES:
        assert told >= {LIST, INVERSES}
