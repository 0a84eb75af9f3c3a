"""A clock outside can tell this of a grid whose nodes may lie: sizes, and nothing of a record.

Steps are lines executed in umpc (`tests/support/steps.py`), from the counting of records to the
release; no clock is asked. Messages are compared in `test_verified.py`.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from tests.protocols.grid.test_grid_run import study_of as library_study_of
from tests.protocols.grid.test_verified import verified_study
from tests.protocols.u_mpc.test_library import tables_of
from tests.support.grid import lying as with_liars
from tests.support.statistical import SeededBits
from tests.support.steps import steps_of
from tests.support.studies import Entropy, table
from tests.support.verified import VerifiedRun
from umpc.simulation import AUTHORITY
from umpc.study.document import Study
from umpc.testing import lying

DEALER = AUTHORITY.credentials("dealer", "dealer")
COUNTS = (3, 0, 11)
KINDS = ("random", "ties", "bounds", "all equal")


SIGNING = "/umpc/crypto/signing.py"
"""A signature is random, and so is the number of its leading zeros: its reading does not count."""


def attempt(run: VerifiedRun) -> None:
    """Everything that nodes do with records, with the coordinator's and the dealer's answers."""
    run.count().up().down().up()
    for frame in list(run.dealing.answer(run.adding.questions, DEALER.sign)):
        for hearing in (*run.tables, run.adding):
            hearing.hear(frame, DEALER.certificate)
    run.down().confirm()
    for node in run.nodes:
        node.release()


def steps(study: Study, tables: Any, label: str) -> str:
    """A digest of the steps of one attempt, with randomness of its own."""
    run = VerifiedRun(study, tables, Entropy(label)).prepare()
    _, found, count = steps_of(lambda bits: attempt(run), SeededBits(label), SIGNING)
    assert count > 1000, "hardly a step was seen"
    return found


def different(study: Study, sets: list[Any], lie: dict[str, Any] | None = None) -> int:
    """The number of different sequences of steps over these tables."""
    with lying("node", **lie) if lie else nullcontext():
        steps(study, sets[0], "caches are filled first")
        return len({steps(study, each, f"steps {n}") for n, each in enumerate(sets)})


STUDIES = {
    "three sums": with_liars(library_study_of("kendall_tau_b", 3)),
    "two classes": with_liars(library_study_of("auc", 3)),
}
PLAIN = verified_study(epsilon="1")
SETS = [
    [table(x, y), table([], []), table([7] * 11, [0] * 11)]
    for x, y in (([0, 0, 0], [0, 0, 0]), ([1, 5, 7], [6, 2, 0]), ([7, 7, 1], [3, 3, 3]))
]
"""Other records of node-0, of the same number."""


def test_the_steps_do_not_depend_on_records():
    assert different(PLAIN, SETS) == 1


@pytest.mark.parametrize("name", STUDIES)
def test_nor_those_of_several_sums_and_of_classes(name):
    study = STUDIES[name]
    sets = [tables_of(study, kind, COUNTS, "steps") for kind in KINDS]
    if study.two_sample:
        # classes are public, so they are equal in all tables
        labels = [each[study.label] for each in sets[0]]
        sets = [
            [{**each, study.label: label} for each, label in zip(tables, labels, strict=True)]
            for tables in sets
        ]
    assert different(study, sets) == 1


@pytest.mark.parametrize("colluding", [0, 1])
def test_nor_those_of_verifiers_and_of_nodes_that_do_not_check(colluding):
    assert different(PLAIN.replaced(max_colluding=colluding), SETS) == 1


def test_power_steps_that_depend_on_sizes_are_seen():
    more = [SETS[0], [table([0] * 5, [0] * 5), *SETS[0][1:]]]
    assert different(PLAIN, more) == 2


def one_by_one(honest: Any, x: Any, cells: Any) -> Any:
    """The inverse of each cell that occurs, once."""
    known = {int(cell): honest(x, np.array([cell], dtype=np.uint64))[0] for cell in set(cells)}
    return np.array([known[int(cell)] for cell in cells], dtype=np.uint64).reshape(-1, 2)


def test_power_a_node_that_inverts_equal_cells_once_is_found():
    """So it would tell how many records are alike."""
    assert different(PLAIN, SETS, {"inverses": one_by_one}) > 1
