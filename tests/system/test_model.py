"""Random histories of a consortium, compared with a model after every operation.

Studies of many protocols, preparations, kills, renewals, revocations, changed tables, restored
backups: each answer must be the plain one on the records of then, and each ledger must say what the
model says. `UMPC_MODEL_SEEDS=7,8` and `UMPC_MODEL_OPERATIONS=300` choose other histories. A failing
test prints its history. The seed fixes all choices; at which message a process dies also depends on
the machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.node_ledgers import beside
from tests.system.conftest import command
from tests.system.model_studies import ALONE, DEALT, FIELDS, LOUD, PROTOCOLS, check_answer
from tests.system.model_world import Known, World
from umpc.coordinator.client import prepare_study, run_study
from umpc.deployment.processes import stop

OPERATIONS = int(os.environ.get("UMPC_MODEL_OPERATIONS", "120"))
SEEDS = os.environ.get("UMPC_MODEL_SEEDS", "1").split(",")
FEW = 8
"""Operations of the short history."""
ALL = tuple(PROTOCOLS)
WITHOUT_DEALER = tuple(kind for kind in PROTOCOLS if kind not in DEALT)
USUAL: dict[Callable[[World], None], float] = {
    World.run_new: 3,
    World.run_known: 3,
    World.prepare: 1,
    World.kill: 4,
    World.change_table: 1,
    World.renew: 0.5,
    World.revoke: 0.4,
    World.restart: 0.6,
    World.restore: 0.8,
}
"""Operation → how often it is drawn."""
WAYS: dict[str, tuple[tuple[str, ...], bool, dict[Callable[[World], None], float]]] = {
    "direct": (ALL, False, {}),
    "through a hub": (ALL, True, {World.restart: 1.2}),
    "prepared": ((*WITHOUT_DEALER, "tables"), False, {World.prepare: 5, World.run_known: 5}),
}
"""Way → the kinds of studies, whether there is a hub, and other frequencies."""


def history(world: World, operations: int, often: dict[Callable[[World], None], float]) -> None:
    """Do random operations, and compare the world with the model after each."""
    world.check()
    for _ in range(operations):
        (operation,) = world.rng.choices(list(often), list(often.values()))
        operation(world)
        world.check()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("way", WAYS)
def test_a_long_history(tmp_path: Path, way: str, seed: str) -> None:
    kinds, hub, often = WAYS[way]
    world = World(tmp_path, kinds, f"{way} {seed}", hub=hub)
    try:
        history(world, OPERATIONS, USUAL | often)
    finally:
        world.stop()


def test_a_short_history_and_planted_faults(tmp_path: Path) -> None:
    """Every difference that is planted after a history must be noticed."""
    world = World(tmp_path, ALL, "short")
    try:
        history(world, FEW, USUAL)
        notices_another_table(world)
        notices_a_charge_of_nothing(world)
        notices_a_preparation(world)
        notices_a_file(world)
        notices_a_charge_that_is_gone(world)
    finally:
        world.stop()


def exact_study(name: str) -> Known:
    entries = {"name": name, "statistic": "variance", "columns": ["wide"], "fields": FIELDS}
    return Known(entries | ALONE | {"backend": "garbled", "edges": "all"} | LOUD)


def notices_another_table(world: World) -> None:
    known = exact_study("another-table")
    world.run(known)
    assert known.records is not None
    report = world.ask(known).report
    check_answer(world.study_of(known), known.entries, report, known.records)
    others = [[{**record, "wide": record["wide"] // 2} for record in known.records[0]]]
    others += known.records[1:]
    with pytest.raises(AssertionError, match="on the records as they are"):
        check_answer(world.study_of(known), known.entries, report, others)


def notices_a_charge_of_nothing(world: World) -> None:
    known = exact_study("unknown-to-the-model")
    world.lab.lead(run_study, **known.entries)
    with pytest.raises(AssertionError):
        world.check()
    for node in world.names:
        found = beside(world.lab, node)
        world.ledgers[node].charge(known.entries["name"], known.epsilon, found)
    world.check()


def notices_a_preparation(world: World) -> None:
    known = exact_study("prepared-in-secret")
    world.lab.lead(prepare_study, **known.entries)
    with pytest.raises(AssertionError, match="reserved for"):
        world.check()
    known.unsure = True
    world.run(known)
    world.check()


def notices_a_file(world: World) -> None:
    extra = world.lab.folder / "node-1-ledger.sqlite.extra"
    extra.touch()
    assert world.unlisted() == {extra.name}
    extra.unlink()


def notices_a_charge_that_is_gone(world: World) -> None:
    """A site says that nothing was charged since its backup, although a study was."""
    config, archive = ("--config", str(world.config("node-1"))), world.folder / "old.tar"
    command("node", "backup", "--to", str(archive), *config, "--keys", check=True)
    world.run(exact_study("gone"))
    stop([world.lab.served["node-1"].process])
    for path in world.lab.folder.glob("node-1-ledger.sqlite*"):
        path.unlink()
    command("node", "restore", str(archive), *config, "--charged-since", "0", check=True)
    world.start_again("node-1")
    with pytest.raises(AssertionError):
        world.check()
