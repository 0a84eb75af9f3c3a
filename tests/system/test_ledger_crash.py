"""A node is killed at any durable step of a study.

Its ledger must verify, count every share that left, and answer again. The coordinator's result
shows whether node-2's share left. The charge is read from the ledgers beside the running nodes.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from fractions import Fraction

import pytest

from tests.support.node_ledgers import beside, held_by, kinds, settled, share_of, start_again
from tests.system.conftest import Lab, Outcome, running
from umpc.deployment.processes import stop
from umpc.errors import InsufficientBudget, PeerLost
from umpc.node.budget.ledger import Ledger

EPSILON = Fraction(1, 10)
BEFORE = [
    "before-reserve",
    "after-reserve",
    "after-reserve-delta",
    "before-ready",
    "hold-before-commit",
    "hold-after-commit",
    "after-hold",
    "after-ready",
    "release-asked",
    "before-charge",
    "charge-before-commit",
]
"""A node that is killed at these points has charged nothing."""
AFTER = [
    "charge-after-commit",
    "charge-anchor-drafted",
    "charge-anchored",
    "after-charge",
    "before-send",
    "after-send",
]
"""A node that is killed at these points has charged; its share may have left or not."""


@pytest.fixture(scope="module")
def here(tmp_path_factory) -> Iterator[Lab]:
    """Provide one dealer and two nodes for all points; node-2 is killed and restarted."""
    with running(tmp_path_factory, 2) as lab:
        yield lab


@pytest.mark.parametrize("point", [*BEFORE, *AFTER])
def test_killed_at(here, point):
    spent = beside(here, "node-2").account.spent
    start_again(here, "node-2", point)
    first = here.run(name=point, epsilon="0.1")
    assert here.served["node-2"].process.wait(10) == -signal.SIGKILL, "the point was not reached"
    assert first.code == 0 or (first.code == PeerLost.exit_code and "node-2" in first.last_line), (
        first.error
    )

    stored = share_of(here, "node-2", point)
    assert (stored is not None) == (point in AFTER)
    assert first.code != 0 or stored is not None, "a share left that was not charged"

    start_again(here, "node-2")
    account = beside(here, "node-2").account
    charged = point in AFTER
    assert account.spent.epsilon == spent.epsilon + charged * EPSILON
    assert (account.spent.delta > spent.delta) == charged
    asked_again(here, point, first)
    settled(here)
    assert beside(here, "node-2").account.spent.epsilon == spent.epsilon + EPSILON
    assert share_of(here, "node-2", point) == stored or stored is None


def asked_again(lab: Lab, name: str, first: Outcome) -> None:
    """Run the study again, and check the outcome by what the nodes charged and hold.

    If every node has charged or holds the attempt, the run finishes it with the same bytes. If
    nobody charged and somebody holds nothing, it is a new run.
    """
    shares = {node: share_of(lab, node, name) or held_by(lab, node, name) for node in lab.names}
    finished = all(share is not None for share in shares.values())
    again = lab.run(name=name, epsilon="0.1")
    assert again.code == 0, again.error
    assert again.report["replayed"] == finished
    if finished:
        assert {node: share_of(lab, node, name) for node in lab.names} == shares
    other = first if first.code == 0 else lab.run(name=name, epsilon="0.1")
    assert other.report["estimate"] == again.report["estimate"]


def test_stopped_between_charge_and_send_nothing_left(lab):
    """If a share left before its charge is on disk, there would be a result here."""
    here = lab(2, {"node-2": {"UMPC_FAILPOINT": "charge-anchored:stop"}}).start()
    outcome = here.run()
    assert outcome.code == PeerLost.exit_code and outcome.output == "", outcome.error
    assert share_of(here, "node-2", "lab") is not None


# --- two studies at once


@pytest.mark.parametrize(
    ("epsilon", "delta", "missing"),
    [("1.5", "1e-9", "epsilon"), ("10", None, "delta")],
    ids=["epsilon", "delta"],
)
def test_two_studies_at_once_against_a_budget_for_one(lab, epsilon, delta, missing):
    """node-2 can pay for one study, node-1 for both: one runs, and the other names the reason."""
    here = lab(2)
    here.start()
    if delta is None:  # what one study costs, and half of it more
        assert here.run(name="measure").code == 0
        cost = beside(here, "node-2").account.spent.delta
        assert cost > 0
        delta = f"{float(cost) * 2.5:.20f}"  # of which the first is spent
    stop([here.served["node-2"].process])
    here.deployment.start_node("node-2", here.table("node-2"), epsilon, more=f'delta = "{delta}"\n')
    here.served.update(here.deployment.wait_until_ready())
    before = beside(here, "node-2").account.spent
    files = [
        here.study_file(name=name).rename(here.folder / f"{name}.toml") for name in ("one", "two")
    ]
    running = [here.coordinate(file) for file in files]
    try:
        ended = [process.communicate(timeout=60) for process in running]
    finally:
        stop(running)
    codes = sorted(process.returncode for process in running)
    assert codes == [0, InsufficientBudget.exit_code], ended
    refusal = next(
        error for process, (_, error) in zip(running, ended, strict=True) if process.returncode
    )
    assert f"asks for {missing} " in refusal.strip().splitlines()[-1]
    settled(here)
    after = beside(here, "node-2").account
    assert after.spent.epsilon == before.epsilon + 1
    assert after.spent.delta <= after.total.delta and after.spent.epsilon <= after.total.epsilon
    assert beside(here, "node-1").account.spent.epsilon == before.epsilon + 1


def test_a_study_whose_delta_does_not_suffice_is_refused_before_anything_is_computed(lab):
    here = lab(2).start(more='delta = "1e-30"\n')
    outcome = here.run()
    assert outcome.code == InsufficientBudget.exit_code, outcome.error
    assert "asks for delta " in outcome.last_line and "no epsilon was charged" in outcome.last_line
    settled(here)
    assert all(kinds(here, name) == ["genesis", "total"] for name in here.names)
    assert here.run(name="without", noise="distributed").code == 0


def test_an_older_ledger_put_back_stops_the_node(lab):
    """An older copy of the whole file replaces the ledger between two runs of the node."""
    here = lab(1)
    here.table("node-1").write_text("age,balance\n1,2\n2,3\n3,5\n")
    start_again(here, "node-1")
    path = here.folder / "node-1-ledger.sqlite"
    stop([here.served["node-1"].process])
    yesterday = path.read_bytes()
    start_again(here, "node-1")
    assert here.run(noise="distributed").code == 0
    stop([here.served["node-1"].process])
    path.write_bytes(yesterday)
    with pytest.raises(Exception, match="an older copy was put back"):
        start_again(here, "node-1")
    with pytest.raises(Exception, match="an older copy was put back"):
        Ledger(path, "node-1", Fraction(10))
