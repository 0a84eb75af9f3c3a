"""Real processes of a model-based test, and the random operations on them.

Each operation knows what must follow: the answer on the records of then, and the ledgers. After a
kill several outcomes are allowed; `LedgerModel.learn` says which came about.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from tests.support.node_ledgers import beside, wait_until
from tests.system.conftest import Lab, command
from tests.system.crash import anchors
from tests.system.ledger_model import LedgerModel
from tests.system.model_studies import (
    KERNEL,
    KERNEL_FILE,
    Entries,
    Records,
    check_answer,
    random_records,
    random_study,
    table_of,
)
from tests.system.test_certificates import renew, revoke
from tests.system.test_files_left import FILES, as_listed, files_of
from tests.system.test_prepare import waiting_files
from umpc.coordinator.client import prepare_study, run_study
from umpc.coordinator.studyfile import load_study_file
from umpc.deployment.processes import stop
from umpc.errors import (
    AlreadyReleased,
    CertificateError,
    LedgerError,
    PeerLost,
    PeerUnavailable,
    StudyAborted,
    UmpcError,
)
from umpc.node.audit.reading import rows
from umpc.node.budget.budget_account import BudgetCost
from umpc.node.told_order import order_beside, orders_told
from umpc.study.document import Study

BUDGET, DELTA = "9" + "0" * 14, "0.5"
RULES = "[policy]\nmin_colluding = 0\n"
MOST_PREPARED = 3
"""Studies that wait at one time; a node keeps 4 by default."""
USUAL_SECONDS = 1.0
"""A guess at how long a study takes, before one was measured."""
TEST_FOLDERS = ("new-", "dealer/", "coordinator/", "hub/", "__pycache__/")
"""Other processes' identities, and what this test makes."""
LOST = (PeerLost.exit_code, PeerUnavailable.exit_code, StudyAborted.exit_code)
"""How a study may end whose process was killed."""
DIGITS = 20
"""Decimal digits of a δ that a person states."""
RUNS_ON = ("proposal", "charge")
"""Events of the audit trail after which a run goes on."""


@dataclass
class Answer:
    """The end of one run: its exit code, its report if that is 0, and else the error's text."""

    code: int
    report: dict[str, Any] = field(default_factory=dict)
    error: str = ""


@dataclass
class Known:
    """A study that was asked for.

    records: those of its preparation, or of its finished attempt that not everybody has charged.
    answer: its means, once they are released.
    unsure: a run of it failed, or a certificate changed, so its preparation may be used or not.
    """

    entries: Entries
    records: Records | None = None
    answer: list[float] | None = None
    unsure: bool = False

    @property
    def epsilon(self) -> Fraction:
        return Fraction(self.entries["epsilon"])


class World:
    """Three nodes, a dealer and perhaps a hub, and the model of what they know.

    Args: kinds: of the studies, as in `model_studies.PROTOCOLS`. seed: of every choice.
    """

    def __init__(self, folder: Path, kinds: tuple[str, ...], seed: str, *, hub: bool = False):
        self.rng, self.kinds, self.folder = Random(seed), kinds, folder
        site = folder / "lab"
        names = [f"node-{number + 1}" for number in range(3)]
        self.lab = Lab(site, 3, orders_told(site / f"{name}.csv" for name in names))
        (site / KERNEL_FILE).write_text(KERNEL)
        if hub:
            self.lab.served["hub"] = self.lab.deployment.start_hub()
        self.has_hub = hub
        self.lab.start(BUDGET, f'delta = "{DELTA}"\n{RULES}')
        self.names = self.lab.names
        self.tables: dict[str, list[dict[str, int]]] = {}
        self.ledgers = {name: LedgerModel() for name in self.names}
        self.studies: dict[str, Known] = {}
        self.numbers = itertools.count(1)
        self.usual = USUAL_SECONDS
        self.outcomes: list[str] = []
        for name in self.names:
            self.change_table(name)

    def say(self, text: str) -> None:
        """Note what happens: a failing test prints it."""
        self.outcomes.append(text)
        print(f"{len(self.outcomes):>4} {text}")

    # --- studies

    def new_study(self) -> Known:
        name = f"study-{next(self.numbers)}"
        kind = self.rng.choice(self.kinds)
        known = self.studies[name] = Known(random_study(self.rng, name, kind))
        return known

    def study_of(self, known: Known) -> Study:
        file = self.lab.study_file(**known.entries)
        return load_study_file(file).study("coordinator")

    def ask(self, known: Known) -> Answer:
        """Run a study, with the coordinator in this process or in its own; wait until it ended."""
        name, before = known.entries["name"], self.events(known)
        if self.rng.random() < 0.2:
            started = time.monotonic()
            outcome = self.lab.run(**known.entries)
            self.usual = time.monotonic() - started
            report = outcome.report if outcome.code == 0 else {}
            answer = Answer(outcome.code, report, outcome.error)
        else:
            try:
                answer = Answer(0, self.lab.lead(run_study, **known.entries).to_dict())
            except UmpcError as error:
                answer = Answer(error.exit_code, {}, str(error))
        self.settle(known, before, self.names)
        told = "replayed" if answer.report.get("replayed") else f"code {answer.code}"
        self.say(f"{name}: {told}")
        return answer

    def events(self, known: Known) -> dict[str, list[str]]:
        """Each node's events of a study, the oldest first."""
        name, found = known.entries["name"], {}
        for node in self.names:
            trail = rows(self.ledger(node).with_name(f"{node}-ledger.sqlite.audit"))
            found[node] = [row["event"] for row in trail if row["name"] == name]
        return found

    def settle(self, known: Known, before: dict[str, list[str]], nodes: list[str]) -> None:
        """Wait until the run has ended at these nodes: their audit trails say so."""

        def ended() -> bool:
            now = self.events(known)
            new = {node: now[node][len(before[node]) :] for node in nodes}
            return not any(events and events[-1] in RUNS_ON for events in new.values())

        # a hub expects a coordinator that was killed for its grace time, 30 s
        assert wait_until(ended, 90), f"a node has not ended {known.entries['name']}"

    def records_now(self) -> Records:
        """The tables as the model knows them, in the order of each node's latest attempt."""
        found = []
        for name in self.names:
            order = np.load(order_beside(self.lab.table(name)), allow_pickle=False)
            found.append([self.tables[name][place] for place in order])
        return found

    def check_released(self, known: Known, report: dict[str, Any], records: Records) -> None:
        """Check a first answer by the oracle, and a later one by the first."""
        means = [each["mean"] for each in report["sums"]]
        if known.answer is not None:
            assert means == known.answer, "another answer of one study"
        check_answer(self.study_of(known), known.entries, report, records)
        known.answer, known.records = means, records
        for node in self.names:
            found = beside(self.lab, node)
            self.ledgers[node].charge(known.entries["name"], known.epsilon, found)

    def run(self, known: Known) -> None:
        """Run a study in any state, and check answer and charges."""
        name = known.entries["name"]
        models = self.ledgers.values()
        is_finished = all(each.knows(name) for each in models)
        is_partly_charged = any(name in each.charged for each in models) and not is_finished
        is_prepared = all(name in each.prepared for each in models)
        answer = self.ask(known)
        if is_partly_charged:
            assert answer.code == AlreadyReleased.exit_code, answer.error
            assert "no longer has its part" in answer.error
            self.drop_preparation(known)
            return
        assert answer.code == 0, answer.error
        report = answer.report
        assert report["replayed"] == is_finished
        if not known.unsure and not is_finished:
            assert report["prepared"] == is_prepared
        if not is_finished:
            for each in models:  # nobody had charged it, so another attempt took its place
                each.held.pop(name, None)
        keeps = is_finished or report["prepared"]
        records = known.records if keeps and known.records else self.records_now()
        self.drop_preparation(known)
        self.check_released(known, report, records)

    def drop_preparation(self, known: Known) -> None:
        for each in self.ledgers.values():
            each.prepared.discard(known.entries["name"])
        known.unsure = False

    # --- operations

    def run_new(self) -> None:
        self.run(self.new_study())

    def run_known(self) -> None:
        """A released study is repeated, a held or prepared one finished, a failed one run anew."""
        open_ones = [each for each in self.studies.values() if each.answer is None]
        pool = open_ones if open_ones and self.rng.random() < 0.75 else [*self.studies.values()]
        if pool:
            self.run(self.rng.choice(pool))

    def prepare(self) -> None:
        if len(set().union(*(each.prepared for each in self.ledgers.values()))) >= MOST_PREPARED:
            self.run_known()
            return
        known = self.new_study()
        name = known.entries["name"]
        self.lab.lead(prepare_study, **known.entries)
        self.say(f"{name}: prepared")
        known.records = self.records_now()
        for each in self.ledgers.values():
            each.prepared.add(name)

    def kill(self) -> None:
        """Kill a process at a random moment of a study, and start it again."""
        pool = [each for each in self.studies.values() if each.answer is None and not each.unsure]
        known = self.rng.choice(pool) if pool and self.rng.random() < 0.4 else self.new_study()
        victims = [*self.names, "dealer", "coordinator", *(["hub"] if self.has_hub else [])]
        victim = self.rng.choice(victims)
        name, models = known.entries["name"], self.ledgers.values()
        was_finished = all(each.knows(name) for each in models)
        was_lost = any(name in each.charged for each in models) and not was_finished
        is_prepared = all(name in each.prepared for each in models)
        before, marks = self.events(known), anchors(self.lab)
        coordinator = self.lab.coordinate(self.lab.study_file(**known.entries))
        try:
            if self.rng.random() < 0.5:
                self.wait_for_a_charge(coordinator, marks)
                moment = self.rng.random() * 0.05
            else:
                moment = self.rng.random() * self.usual
            with contextlib.suppress(subprocess.TimeoutExpired):
                coordinator.wait(moment)
            process = coordinator if victim == "coordinator" else self.lab.served[victim].process
            process.kill()
            process.wait()
            if victim == "hub":
                self.start_again(victim)
            output, error = coordinator.communicate(timeout=120)
        finally:
            stop([coordinator])
        ended = f"code {coordinator.returncode}, {'prepared' if is_prepared else 'not prepared'}"
        self.say(f"{name}: {victim} killed, {ended}")
        if victim == "coordinator":
            assert coordinator.returncode in (0, -9)
        elif not was_lost:
            allowed = (0,) if victim == "hub" else (0, *LOST)
            assert coordinator.returncode in allowed, error
        self.settle(known, before, [node for node in self.names if node != victim])
        if victim not in ("coordinator", "hub"):
            self.start_again(victim)
        self.learn(known, was_finished, is_prepared)
        if output:
            answer = Answer(0, json.loads(output))
            assert known.records is not None, "a result without its shares"
            self.check_released(known, answer.report, known.records)

    def wait_for_a_charge(self, coordinator: subprocess.Popen, before: dict[str, bytes]) -> None:
        while coordinator.poll() is None and anchors(self.lab) == before:
            time.sleep(0.001)

    def learn(self, known: Known, was_finished: bool, is_prepared: bool) -> None:
        """Take the outcome of a killed run from the ledgers, and check that it is an allowed one.

        Args: is_prepared: each node had its preparation when the run began.
        """
        name, left = known.entries["name"], {}
        lost = {n for n, each in self.ledgers.items() if name in each.charged}
        for node, model in self.ledgers.items():
            kept = model.charged.get(name) or model.held.get(name)
            if not (was_finished or lost):  # as in `run`: another attempt may take its place
                model.held.pop(name, None)
            left[node] = model.learn(name, known.epsilon, beside(self.lab, node))
            if was_finished:
                assert kept == (model.charged.get(name) or model.held.get(name))
            if name in model.prepared and name not in self.reserved(node):
                model.prepared.discard(name)
        if "charged" in left.values() and not lost:
            assert "nothing" not in left.values(), f"{name}: charged before all were ready: {left}"
        is_finished = "nothing" not in left.values()
        if is_finished and not was_finished and not is_prepared:
            known.records = self.records_now()
        known.unsure = not is_finished and known.records is not None

    def change_table(self, name: str = "") -> None:
        name = name or self.rng.choice(self.names)
        self.tables[name] = random_records(self.rng)
        self.lab.table(name).write_text(table_of(self.tables[name]))
        self.say(f"{name}: another table")

    def renew(self) -> None:
        self.certify(self.rng.choice([*self.names, "dealer", "coordinator"]))

    def certify(self, name: str) -> None:
        """A process gets a certificate for a new key."""
        shutil.rmtree(self.lab.folder / f"new-{name}", ignore_errors=True)
        renew(self.lab, name, name if name in ("dealer", "coordinator") else "node")
        self.say(f"{name}: another certificate")
        self.preparations_are_unsure()

    def revoke(self) -> None:
        """A revoked node takes part in no study until it has a new certificate."""
        name = self.rng.choice(self.names)
        others = [each for each in (*self.names, "dealer", "coordinator") if each != name]
        revoke(self.lab, name, *others, *(["hub"] if self.has_hub else []))
        self.say(f"{name}: revoked")
        known = self.new_study()
        answer = self.ask(known)
        codes = (CertificateError.exit_code, *(LOST if self.has_hub else ()))
        assert answer.code in codes and name in answer.error, answer
        self.certify(name)
        if self.has_hub:  # the hub has refused it for longer than it expects anybody
            stop([self.lab.served[name].process])
            self.start_again(name)
        self.run(known)

    def preparations_are_unsure(self) -> None:
        for known in self.studies.values():
            name = known.entries["name"]
            known.unsure |= any(name in each.prepared for each in self.ledgers.values())

    def restart(self) -> None:
        """A process ends in the usual way and starts again."""
        name = self.rng.choice([*self.names, "dealer", *(["hub"] if self.has_hub else [])])
        stop([self.lab.served[name].process])
        self.start_again(name)
        self.say(f"{name}: started again")

    def start_again(self, name: str) -> None:
        """Start a process that has ended, with the files that it left."""
        deployment, served = self.lab.deployment, self.lab.served[name]
        served.process.wait()
        if name == "hub":
            self.lab.served["hub"] = deployment.start_hub(served.address)
            return
        if name == "dealer":
            place = ["--hub", deployment.hub] if deployment.hub else ["--listen", served.address]
            identity = str(self.lab.folder / name)
            deployment.start(name, ["dealer", "start", "--identity", identity, *place])
        else:
            deployment.start(name, ["node", "start", "--config", str(self.config(name))])
            self.ledgers[name].prepared.clear()
        self.lab.served.update(deployment.wait_until_ready())

    # --- backups

    def config(self, name: str) -> Path:
        return self.lab.folder / f"{name}.toml"

    def ledger(self, name: str) -> Path:
        return self.lab.folder / f"{name}-ledger.sqlite"

    def restore(self) -> None:
        """A node loses its disk and goes on from a backup, with each way to say what is lost."""
        name = self.rng.choice(self.names)
        model, config = self.ledgers[name], ("--config", str(self.config(name)))
        archive = self.folder / f"backup-{next(self.numbers)}.tar"
        command("node", "backup", "--to", str(archive), *config, "--keys", check=True)
        kept, then = set(model.charged), beside(self.lab, name).account
        way = self.rng.choice(["nothing since", "stated", "stated without an anchor", "all"])
        if way != "nothing since":
            self.run_new()
        now = beside(self.lab, name).account
        stop([self.lab.served[name].process])
        self.lose_files(name, keeps_anchor=way in ("nothing since", "stated"))
        words = ("node", "restore", str(archive), *config)
        since = costs(now.spent) if way != "all" else costs(now.total)
        lost = [after - before for after, before in zip(since, costs(then.spent), strict=True)]
        if way != "all":  # a person states a decimal number that is not below the exact one
            lost[1] = Fraction(ceil(lost[1] * 10**DIGITS), 10**DIGITS)
        if way == "nothing since":
            command(*words, check=True)
        else:
            refused = command(*words)
            assert refused.returncode == LedgerError.exit_code, refused.stdout
            stated = ("all",) if way == "all" else (str(lost[0]), "--delta-since", decimal(lost[1]))
            command(*words, "--charged-since", *stated, check=True)
            model.lost.append((lost[0], lost[1]))
        self.say(f"{name}: restored, {way}")
        for study in set(model.charged) - kept:
            del model.charged[study], model.epsilon[study]
        model.held.clear()
        if way == "all":
            self.raise_budget(name, *costs(now.total))
        self.start_again(name)
        self.preparations_are_unsure()

    def lose_files(self, name: str, keeps_anchor: bool) -> None:
        """Remove what a node keeps beside its table, but its configuration."""
        ledger = self.ledger(name).name
        keeps = {f"{ledger}.anchor"} if keeps_anchor else set()
        if self.rng.random() < 0.5:
            keeps |= {f"{ledger}.audit", f"{ledger}.key"}
        for path in self.lab.folder.glob(f"{ledger}*"):
            if path.name not in keeps:
                path.unlink()

    def raise_budget(self, name: str, epsilon: Fraction, delta: Fraction) -> None:
        """A site whose total is spent configures a larger one."""
        raised = {"epsilon": epsilon * 10, "delta": (1 + delta) / 2}
        lines = self.config(name).read_text().splitlines()
        for number, line in enumerate(lines):
            key = line.partition(" ")[0]
            if key in raised:
                lines[number] = f'{key} = "{raised[key]}"'
        self.config(name).write_text("\n".join(lines) + "\n")

    # --- what must hold after each operation

    def reserved(self, name: str) -> set[str]:
        return {each.name for each in beside(self.lab, name).prepared}

    def check(self) -> None:
        """Compare ledgers, reservations, files and processes with the model."""
        for name, model in self.ledgers.items():
            model.check(beside(self.lab, name), self.reserved(name))
            process = self.lab.served[name].process
            assert process.poll() is None, f"{name} has ended"
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            assert children.read_text() == "", f"{name} has left a process"
            if not model.prepared:
                assert wait_until(lambda name=name: not waiting_files(self.lab, name)), (
                    f"{name} keeps material of no study"
                )
        assert wait_until(lambda: not self.unlisted()), f"files are left: {self.unlisted()}"

    def unlisted(self) -> set[str]:
        """Files that docs/operations.md does not list, beside those of this test."""
        found = set()
        for name in files_of(self.lab):
            owner = name.partition("/")[0]
            node = next((each for each in self.names if owner.startswith(each)), "")
            if node and not name.endswith(".order.npy"):
                if as_listed(name, node) not in FILES or name.endswith((".new", ".reading")):
                    found.add(name)
            elif not node and not name.startswith(TEST_FOLDERS):
                found |= {name} - {"study.toml", KERNEL_FILE}
        return found

    def stop(self) -> None:
        self.lab.stop()


def costs(cost: BudgetCost) -> tuple[Fraction, Fraction]:
    return cost.epsilon, cost.delta or Fraction(0)


def decimal(delta: Fraction) -> str:
    return f"{int(delta * 10**DIGITS)}e-{DIGITS}"
