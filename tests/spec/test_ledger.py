"""A node's ledger on disk lives as the state machine does."""

from __future__ import annotations

import copy
import tempfile
from fractions import Fraction
from pathlib import Path

import pytest

from spec import ledger
from spec.cases.ledger import ONE, OTHER, SHARE, TWO, A, B
from spec.refused import Refused
from tests.spec.replaying import replay_tests
from umpc.errors import UmpcError
from umpc.node.budget.ledger import Ledger


class Life:
    """A ledger in a folder, which is opened again after a crash."""

    def __init__(self, folder: Path, epsilon: Fraction, delta: Fraction, hold_seconds: int):
        self._given = folder / "ledger", "bank", epsilon, delta
        self._hold_seconds = hold_seconds
        self.now = 0
        self.ledger = self._opened()

    def _opened(self) -> Ledger:
        return Ledger(*self._given, hold_seconds=self._hold_seconds, now=lambda: self.now)

    def step(self, name: str, given):
        if name == "restart":
            self.ledger.close()
            self.ledger = self._opened()
            return None
        returned = getattr(self.ledger, name)(*given)
        if name in ("charge", "released"):
            return returned and returned.share
        return returned and returned.answer if name == "answered" else None

    def line(self, name: str, given):
        returned = self.step(name, given)
        balance = self.ledger.balance()
        amounts = {key: getattr(balance, key) for key in ("spent", "reserved", "left")}
        pairs = {key: [each.numerator, each.denominator] for key, each in amounts.items()}
        return {"returned": returned, **pairs}


def run(epsilon, delta, hold_seconds, steps):
    with tempfile.TemporaryDirectory() as folder:
        life = Life(Path(folder), Fraction(*epsilon), Fraction(*delta), hold_seconds)
        try:
            lines = []
            for now, name, *given in steps:
                life.now = now
                values = [Fraction(*each) if isinstance(each, list) else each for each in given]
                lines.append(life.line(name, values))
            return lines
        finally:
            life.ledger.close()


test_good_vectors, test_bad_vectors, test_each_check_is_needed = replay_tests(
    "ledger", {"run": run}
)


STEPS = [
    ["reserve", A, [3, 1], None],
    ["reserve", B, [3, 1], [0, 1]],
    ["reserve_delta", A, [1, 10**12]],
    ["cancel", A],
    ["hold", A, ONE, SHARE],
    ["hold", A, TWO, OTHER],
    ["drop", A],
    ["charge", A, ONE],
    ["charge", A, TWO],
    ["released", A],
    ["restart"],
]
GIVEN = {"epsilon": [5, 1], "delta": [1, 10**9], "hold_seconds": 1000}


def after(state, step):
    """The state after a step, and what it returned. Raises: Refused."""
    name, *given = step
    values = [Fraction(*each) if isinstance(each, list) else each for each in given]
    following = copy.deepcopy(state)
    returned = ledger.TRANSITIONS[name](following, 0, *values)
    return following, returned


def every_transition():
    """Each step in each state that can be reached: the steps before it, the state, the step."""
    first = ledger.new(Fraction(5), Fraction(1, 10**9), 1000)
    paths, waiting = {repr(first): []}, [first]
    for state in waiting:
        path = paths[repr(state)]
        for step in STEPS:
            yield path, state, step
            try:
                following, _ = after(state, step)
            except Refused:
                continue
            if repr(following) not in paths:
                paths[repr(following)] = [*path, step]
                waiting.append(following)


TRANSITIONS = list(every_transition())


def test_no_transition_breaks_the_invariant():
    """A share that left is paid, and is of one attempt; all amounts stay within the total."""
    for _, state, step in TRANSITIONS:
        try:
            following, returned = after(state, step)
        except Refused:
            continue
        amounts = ledger.balance(following)
        assert amounts["left"] >= 0 and following["spent"][1] <= following["delta"]
        assert amounts["spent"] >= ledger.balance(state)["spent"]
        assert amounts["spent"] == 3 * len(following["charged"])
        for study, kept in state["charged"].items():
            assert following["charged"][study] == kept
        if step[0] == "charge":
            assert returned == following["charged"][step[1]][1]
            assert after(following, ["restart"])[0]["charged"] == following["charged"]


def test_the_ledger_on_disk_goes_on_where_the_state_machine_does():
    """umpc's ledger refuses a step in a state exactly if the specification refuses it."""
    assert len(TRANSITIONS) > 80
    for path, state, step in TRANSITIONS:
        steps = [[0, *each] for each in [*path, step]]
        try:
            after(state, step)
        except Refused:
            with pytest.raises(UmpcError):
                run(steps=steps, **GIVEN)
        else:
            assert run(steps=steps, **GIVEN) == ledger.run(steps=steps, **GIVEN)
