"""`ghazi-rounds` over real processes: charged once, answered once, and no process waits forever."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from tests.support.node_ledgers import beside, settled, share_of, start_again
from tests.system.conftest import SURVIVE_SECONDS, Lab, running
from tests.system.test_demo import result
from umpc.api.study import run_now
from umpc.coordinator.client import run_study
from umpc.coordinator.studyfile import load_study_file
from umpc.dp.events import PureEvent
from umpc.errors import AlreadyReleased, PeerLost, RemoteProtocolError
from umpc.study import messages as m
from umpc.transport.identity import load_identity
from umpc_papers.testing import lying

FAR = 6
"""Standard deviations of the randomisation."""
STUDY = {
    "protocol": "ghazi-rounds",
    "dealer": None,
    "edges": None,
    "epsilon": "0.1",
    "bins": {"age": 2, "balance": 2},
}
NOT_ANSWERED = ["after-charge", "after-send", "before-answer", "answer-before-commit"]
"""A node that is killed at these points has charged, and has no answer yet."""
ANSWERED = ["answer-after-commit", "answer-anchored", "after-answer", "after-told"]


@pytest.fixture(scope="module")
def here(tmp_path_factory) -> Iterator[Lab]:
    """Provide two nodes for all tests; node-2 is killed and started again."""
    with running(tmp_path_factory, 2, "100", dealer=False) as lab:
        yield lab


def spent(lab: Lab) -> list[float]:
    return [float(beside(lab, name).account.spent.epsilon) for name in lab.names]


def rows_of(lab: Lab, name: str, study: str) -> list[str]:
    """Return the kinds of a study's rows in a node's ledger."""
    rows = beside(lab, name).rows
    hashes = {row.study for row in rows if row.kind == "charge" and row.note == study}
    return [row.kind for row in rows if row.study in hashes]


def lead(lab: Lab, **changes):
    """Run a study whose coordinator is this process."""
    study = load_study_file(lab.study_file(**STUDY, **changes)).study("coordinator")
    return run_now(run_study(study, load_identity(lab.folder / "coordinator", "coordinator")))


def test_a_demo_is_near_the_records_own_value_at_the_predicted_cost(bank):
    options = ("--protocol", "ghazi-rounds", "--nodes", "2", "--bins", "balance=100,500,1500")
    report = result(*bank.options("age", "balance"), *options)
    assert abs(report["estimate"] - report["quantised"]) < FAR * report["noise_std"]
    # Each node sends a seed of 32 bytes, one bit per record, and the coordinator a question of
    # 16 numbers; the node's answer is one byte.
    answers = sum(32 + -(-records // 8) + 1 for records in bank.sizes(2))
    question = 2 * 8 * 16
    assert report["bytes_online"] == report["bytes_online_predicted"] == answers + question
    assert report["bytes_online_by_step"] == {"reveal": answers, "question": question}
    assert report["rounds"] == report["rounds_predicted"] == 2
    assert (report["epsilon"], report["delta"], report["noise"]) == (1, 0, "local")
    assert report["edges"] == report["sets"]


def test_the_same_study_asked_again_gets_the_same_answers_at_no_cost(here):
    before = spent(here)
    first, again, other = (here.run(**STUDY, name=name) for name in ("once", "once", "twice"))
    assert [outcome.code for outcome in (first, again, other)] == [0, 0, 0], first.error
    assert again.report["replayed"] and again.report["estimate"] == first.report["estimate"]
    assert not other.report["replayed"] and other.report["estimate"] != first.report["estimate"]
    assert spent(here) == pytest.approx([value + 0.2 for value in before])
    for name in here.names:
        assert rows_of(here, name, "once") == ["charge", "answer"]


@pytest.mark.parametrize("point", [*NOT_ANSWERED, *ANSWERED])
def test_a_node_killed_between_its_messages_is_named_charged_once_and_answers_when_it_is_back(
    here, point
):
    before = spent(here)
    start_again(here, "node-2", point, "100")
    outcome = here.run(**STUDY, name=point)
    assert here.served["node-2"].process.wait(10) == -signal.SIGKILL, "the point was not reached"
    if point != "after-told" or outcome.code:
        assert outcome.code == PeerLost.exit_code and "node-2" in outcome.last_line, outcome.error
        assert "have charged" in outcome.last_line and "Run the study again" in outcome.last_line
    assert outcome.seconds < SURVIVE_SECONDS
    start_again(here, "node-2", epsilon="100")
    settled(here)
    assert ("answer" in rows_of(here, "node-2", point)) == (point in ANSWERED)
    first = {name: share_of(here, name, point) for name in here.names}
    again = here.run(**STUDY, name=point)
    assert again.code == 0 and again.report["replayed"], again.error
    last = here.run(**STUDY, name=point)
    assert last.report["estimate"] == again.report["estimate"]
    assert spent(here) == pytest.approx([value + 0.1 for value in before])
    for name in here.names:
        assert rows_of(here, name, point) == ["charge", "answer"]
        assert first[name] in (None, share_of(here, name, point))


def test_a_node_whose_table_has_changed_answers_about_the_former_records(here):
    """The ledger kept them. A refusal would tell the coordinator that the table has changed."""
    start_again(here, "node-2", "before-answer", "100")
    assert here.run(**STUDY, name="changed").code == PeerLost.exit_code
    table = here.table("node-2")
    text = table.read_text()
    table.write_text("\n".join(text.splitlines()[:9]) + "\n")
    try:
        start_again(here, "node-2", epsilon="100")
        again = here.run(**STUDY, name="changed")
    finally:
        table.write_text(text)
    assert again.code == 0 and again.report["replayed"], again.error
    assert rows_of(here, "node-2", "changed") == ["charge", "answer"]


@pytest.mark.parametrize("action", ["kill", "stop"])
def test_nodes_wait_for_no_coordinator_that_fails_before_its_question(here, action):
    before, name = spent(here), f"coordinator-{action}"
    here.arm("coordinator", f"before-ask:{action}")
    logs = [len(here.log(node)) for node in here.names]
    coordinator = here.coordinate(here.study_file(**STUDY, name=name))
    try:
        deadline = time.monotonic() + SURVIVE_SECONDS + 5
        for node, length in zip(here.names, logs, strict=True):
            while "ended in step" not in (log := here.log(node)[length:]):
                assert time.monotonic() < deadline, f"{node} still waits: {log}"
                time.sleep(0.05)
            assert "coordinator" in log.partition("ended in step")[2]
    finally:
        coordinator.kill()
        coordinator.communicate()
        here.disarm()
    again = here.run(**STUDY, name=name)
    assert again.code == 0 and again.report["replayed"], again.error
    assert spent(here) == pytest.approx([value + 0.1 for value in before])
    assert here.run(**STUDY, name=f"{name}-anew").code == 0


def test_a_node_that_stands_still_once_its_answer_is_on_disk_has_told_nothing(here):
    """If the answer left before it is on disk, there would be a result here."""
    start_again(here, "node-2", epsilon="100")
    here.arm("node-2", "answer-anchored:stop")
    stopped = here.served["node-2"].process
    stopped.terminate()
    stopped.wait(10)
    here.deployment.start_node("node-2", here.table("node-2"), "100")
    here.served.update(here.deployment.wait_until_ready())
    outcome = here.run(**STUDY, name="stands still")
    assert outcome.code == PeerLost.exit_code and outcome.output == "", outcome.error
    assert "answer" in rows_of(here, "node-2", "stands still")
    here.served["node-2"].process.kill()
    start_again(here, "node-2", epsilon="100")
    again = here.run(**STUDY, name="stands still")
    assert again.code == 0 and again.report["replayed"], again.error


def test_adaptive_bins_cost_epsilon_once_for_both_answers(here):
    """`bell-ldp` with `bins_epsilon_share`: both parts stand in the ledger, and add up to ε."""
    before = spent(here)
    adaptive = {**STUDY, "protocol": "bell-ldp", "epsilon": "2", "bins_epsilon_share": "1/4"}
    first, again = (here.run(**adaptive, name="adaptive") for _ in range(2))
    assert first.code == again.code == 0, first.error + again.error
    assert "epsilon 1/2 of 2 put the cut points of age at " in first.report["note"]
    assert first.report["rounds"] == 2
    assert first.report["bytes_online"] == first.report["bytes_online_predicted"]
    assert again.report["replayed"] and again.report["estimate"] == first.report["estimate"]
    assert again.report["note"] == first.report["note"]
    assert spent(here) == pytest.approx([value + 2 for value in before])
    for name in here.names:
        assert rows_of(here, name, "adaptive") == ["charge", "answer"]
        mechanisms = beside(here, name).account.mechanisms.values()
        assert (PureEvent(Fraction(1, 2)), PureEvent(Fraction(3, 2))) in mechanisms


def test_another_question_gets_no_answer(here):
    assert not lead(here, name="asked").replayed
    before = spent(here)

    def another(honest, side, answers):
        return m.Ask(honest(side, answers).question[::-1])

    refused = pytest.raises(AlreadyReleased, match=r"released .*it answered another question then")
    with lying("coordinator", ask=another), refused:
        lead(here, name="asked")
    assert lead(here, name="asked").replayed and spent(here) == before


def test_a_malformed_question_is_refused_and_leaves_the_answer_to_a_sound_one(here):
    def malformed(honest, side, answers):
        return m.Ask(np.full(len(honest(side, answers).question) // 8, np.nan).tobytes())

    before = spent(here)
    message = "malformed question: a number of the question is not finite"
    refused = pytest.raises(RemoteProtocolError, match=message)
    with lying("coordinator", ask=malformed), refused as e:
        lead(here, name="nan")
    assert e.value.culprit == "coordinator"
    assert lead(here, name="nan").replayed
    assert spent(here) == pytest.approx([value + 0.1 for value in before])
