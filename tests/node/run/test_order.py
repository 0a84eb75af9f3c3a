"""umpc.node.run.study: the order of rules, reservation and table."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.ledgers import opened
from tests.support.node_talks import run_of
from tests.support.sites import site_of
from tests.support.studies import make_study
from umpc.errors import AlreadyRunning, InsufficientBudget, PolicyRefused, StudyAborted, UmpcError
from umpc.node.budget.ledger import Ledger
from umpc.node.records import Records
from umpc.node.run.study import run_study
from umpc.node.server import public_error
from umpc.study import messages as m
from umpc.study.document import Study

STUDY = make_study(nodes=1)


class Steps:
    """A node's parts that write down what they are asked."""

    def __init__(self, ledger: Ledger, refusing: str = ""):
        self.seen: list[str] = []
        self._refusing = refusing
        self._ledger = ledger
        self.site = replace(
            site_of(ledger),
            admit=self._step("admit"),
            load=self._step("load", Records(self._columns(), 3, 0)),
            permit_delta=self._step("permit_delta"),
        )

    @staticmethod
    def _columns() -> dict[str, np.ndarray]:
        return {name: np.arange(3, dtype=np.int64) for name in ("x", "y")}

    def _step(self, name: str, result: Any = None) -> Callable[[Any], Any]:
        def act(_: Any) -> Any:
            self.seen.append(f"{name}, epsilon {self._ledger.balance().reserved} reserved")
            if name == self._refusing:
                raise PolicyRefused(f"node-0 refuses at {name}")
            return result

        return act

    def run(self, study: Study) -> tuple[UmpcError, list[m.NodeMessage]]:
        """Run a study until the coordinator ends it after *prepared*."""
        sent: list[m.NodeMessage] = []

        async def receive() -> m.CoordinatorMessage:
            if not sent:
                return m.Propose(study.encode(), False)
            last = sent[-1]
            if isinstance(last, m.Accepted):
                return m.Agree((last.member,))
            if isinstance(last, m.Opened):
                return m.Begin((last.opening,), (last.signature,))
            raise StudyAborted("the coordinator ended the study")

        async def send(message: m.NodeMessage) -> None:
            sent.append(message)

        run = run_of(self.site, study.coordinator, receive, send)
        with pytest.raises(UmpcError) as caught:
            asyncio.run(run_study(run))
        return caught.value, sent


def test_the_rules_come_first_then_the_reservation_then_the_table(path: Path):
    with opened(path) as ledger:
        steps = Steps(ledger)
        error, _ = steps.run(STUDY)
        assert isinstance(error, StudyAborted)
        assert steps.seen == [
            "admit, epsilon 0 reserved",
            "load, epsilon 1 reserved",
            "permit_delta, epsilon 1 reserved",
        ]
        assert ledger.balance().reserved == 0


def test_an_exhausted_budget_ends_a_study_before_the_table_is_read(path: Path):
    """A coordinator once read the maximum of a column in 17 proposals without any budget."""
    with opened(path, total=Fraction(1, 2)) as ledger:
        steps = Steps(ledger)
        error, sent = steps.run(STUDY)
        assert isinstance(error, InsufficientBudget) and not sent
        assert [each.partition(",")[0] for each in steps.seen] == ["admit"]


@pytest.mark.parametrize("step", ["admit", "load", "permit_delta"])
def test_a_refusal_at_any_step_gives_the_reservation_back(path: Path, step: str):
    with opened(path) as ledger:
        error, sent = Steps(ledger, refusing=step).run(STUDY)
        assert isinstance(error, PolicyRefused)
        assert len(sent) == {"admit": 0, "load": 0, "permit_delta": 2}[step]
        assert ledger.balance().reserved == 0


def test_a_second_run_at_the_same_time_is_told_so_and_leaves_the_first_alone(path: Path):
    with opened(path) as ledger:
        ledger.reserve(STUDY.hash, STUDY.exact_epsilon, name=STUDY.name)
        error, sent = Steps(ledger).run(STUDY)
        public = public_error(error, "node-0")
        assert isinstance(public, AlreadyRunning) and public.message.startswith(
            f"node-0: another run of the study of hash {STUDY.hash.hex()[:16]}… is under way"
        )
        assert sent == [] and ledger.balance().reserved == STUDY.exact_epsilon
