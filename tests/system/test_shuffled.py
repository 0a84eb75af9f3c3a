"""`ghazi-shuffle` over real processes: near the exact value at the predicted cost.

Shufflers that fail or hang are named, and cost nothing before the charge. After the charge the
stored messages give a result in another run.
"""

from __future__ import annotations

import os
import re
import signal

import pytest

from tests.system.conftest import SHUFFLERS, SURVIVE_SECONDS, Lab, command
from tests.system.test_demo import result
from umpc.errors import PeerLost, PeerUnavailable, RemoteProtocolError, TooFewRecords

FAR = 8
"""Standard deviations of the noise."""
RULES = "[policy]\nmin_colluding = 0\n"


def run(here: Lab, **changes):
    shufflers = [(name, here.served[name].address) for name in SHUFFLERS]
    facts = {
        "protocol": "ghazi-shuffle",
        "dealer": None,
        "edges": None,
        "bins": {"age": 2, "balance": ["0", "30"]},
    }
    return here.run(**{**facts, "shufflers": shufflers, **changes})


def start(lab, nodes: int = 2, environment=None) -> Lab:
    return lab(nodes, environment).start(dealer=False, shufflers=True)


def restart(here: Lab, *names: str) -> None:
    """Start dead shufflers again, without failpoints."""
    here.disarm()
    for name in names:
        here.deployment.start_shuffler(name)
    here.served.update(here.deployment.wait_until_ready())


def test_a_demo_is_near_the_exact_value_at_the_predicted_cost(bank):
    fields = bank.options("age", "balance")
    report = result(*fields, "--protocol", "ghazi-shuffle", "--nodes", "2")
    assert report["exact"] == pytest.approx(bank.exact["kendall_tau"], abs=1e-5)
    assert abs(report["estimate"] - report["quantised"]) < FAR * report["noise_std"]
    # The noise does not grow with the number of records, so that of the mean falls as 1/n.
    assert report["noise_std"] < 0.02 * 4521 / bank.records
    for measure in (
        "bytes_online",
        "bytes_online_by_node",
        "bytes_online_by_step",
        "bytes_online_by_shuffler",
    ):
        assert report[measure] == report[f"{measure}_predicted"] != 0
    by_process = report["bytes_online_by_node"] + report["bytes_online_by_shuffler"]
    assert report["bytes_online"] == sum(by_process)
    assert (report["rounds"], report["rounds_predicted"], report["bytes_offline"]) == (2, 2, 0)
    assert (report["noise"], report["edges"]) == ("shuffled", report["sets"])
    assert 0 < report["delta"] < 1e-11


def test_the_same_study_is_shuffled_again_from_what_is_stored_and_costs_nothing(lab):
    here = start(lab, 3)
    first, again = run(here), run(here)
    assert (first.code, again.code) == (0, 0), first.error + again.error
    assert again.report["replayed"] and again.report["estimate"] == first.report["estimate"]
    other = run(here, name="other")
    assert not other.report["replayed"] and other.report["estimate"] != first.report["estimate"]
    for name in SHUFFLERS:
        assert here.log(name).count("is shuffled") == 3
    assert here.loud_lines() == []
    here.stop()
    assert [here.spent(name) for name in here.names] == [2, 2, 2]


@pytest.mark.parametrize(
    ("shuffler", "point"),
    [
        ("shuffler-1", "before-open:kill"),
        ("shuffler-1", "greeted:kill"),
        ("shuffler-2", "greeted:stop"),
    ],
)
def test_a_shuffler_that_fails_before_the_charge_is_named_and_costs_nothing(lab, shuffler, point):
    here = start(lab, 2, {shuffler: {"UMPC_FAILPOINT": point}})
    outcome = run(here)
    assert outcome.code == PeerLost.exit_code, outcome.error
    assert shuffler in outcome.last_line and "no epsilon was charged" in outcome.last_line
    assert outcome.output == "" and outcome.seconds < SURVIVE_SECONDS
    for name in here.names:
        assert shuffler in here.wait_for_log(name, "ended in step")
        assert here.reserved_by_the_living(name) == 0
    here.stop()
    assert [here.spent(name) for name in here.names] == [0, 0]


@pytest.mark.parametrize(
    ("shuffler", "point"),
    [
        ("shuffler-2", "during-deliver:kill"),
        ("shuffler-1", "before-heap:kill"),
        ("shuffler-1", "during-deliver:stop"),
    ],
)
def test_after_a_shuffler_died_with_the_messages_another_run_gives_the_result_at_no_further_cost(
    lab, shuffler, point
):
    here = start(lab, 2, {shuffler: {"UMPC_FAILPOINT": point}})
    outcome = run(here)
    assert outcome.code == PeerLost.exit_code, outcome.error
    assert (
        shuffler in outcome.last_line and "some nodes may have charged epsilon" in outcome.last_line
    )
    assert outcome.output == "" and outcome.seconds < SURVIVE_SECONDS
    for name in here.names:
        here.wait_for_log(name, "charged, the share leaves")
    restart(here, shuffler)
    again = run(here)
    assert again.code == 0 and again.report["replayed"], again.error
    here.stop()
    assert [here.spent(name) for name in here.names] == [1, 1]


@pytest.mark.parametrize("point", ["after-charge", "during-delivery"])
def test_a_node_that_dies_at_the_release_leaves_no_result_until_it_is_back(lab, point):
    """A shuffler gives nothing until all nodes have delivered.

    The node had charged, so another run delivers its message again.
    """
    here = start(lab, 2, {"node-2": {"UMPC_FAILPOINT": f"{point}:kill"}})
    outcome = run(here)
    assert outcome.code == PeerLost.exit_code and "node-2" in outcome.last_line, outcome.error
    if point == "after-charge":
        for name in SHUFFLERS:
            assert "is shuffled" not in here.wait_for_log(name, "ended: PeerLost")
    # its connections are closed before the kernel has unlocked its ledger
    assert here.served["node-2"].process.wait(60) == -signal.SIGKILL
    here.disarm()
    here.deployment.start_node("node-2", here.table("node-2"), "10")
    here.served.update(here.deployment.wait_until_ready())
    again = run(here)
    assert again.code == 0 and again.report["replayed"], again.error
    here.stop()
    assert [here.spent(name) for name in here.names] == [1, 1]


def test_a_shuffler_that_is_away_and_one_that_is_another_are_named(lab):
    here = start(lab)
    first, second = ((name, here.served[name].address) for name in SHUFFLERS)
    outcome = run(here, shufflers=[first, ("shuffler-2", "127.0.0.1:1")])
    assert outcome.code == PeerUnavailable.exit_code, outcome.error
    assert "shuffler-2" in outcome.last_line and "127.0.0.1:1" in outcome.last_line
    exchanged = run(here, shufflers=[("shuffler-1", second[1]), ("shuffler-2", first[1])])
    assert (
        exchanged.code not in (0, RemoteProtocolError.exit_code)
        and "shuffler" in exchanged.last_line
    )
    assert run(here).code == 0
    here.stop()
    assert [here.spent(name) for name in here.names] == [1, 1]


def test_a_check_says_which_shuffler_answers(lab):
    here = start(lab)
    assert run(here).code == 0
    file = here.folder / "study.toml"
    said = command("study", "check", str(file), "--contact", "--records", "60,60").stdout
    for name in (*SHUFFLERS, *here.names):
        assert re.search(rf"^{name} +answers, protocol", said, re.MULTILINE), said
    assert re.search(
        r"^shufflers +shuffler-1 and shuffler-2; neither may collude", said, re.MULTILINE
    )
    assert "delta        3.38e-12" in said
    os.kill(here.served["shuffler-2"].process.pid, signal.SIGKILL)
    ended = command("study", "check", str(file), "--contact")
    assert ended.returncode == PeerUnavailable.exit_code and "'shuffler-2' at" in ended.stdout


def test_too_few_records_to_shuffle_are_refused_before_the_charge(lab):
    here = lab(2)
    names, here.names = here.names, []
    here.start(dealer=False, shufflers=True)
    here.names = names
    for name, rows in zip(names, (61, 19), strict=True):
        here.table(name).write_text(
            "\n".join(["age,balance", *(f"{i},{i}" for i in range(rows - 1))]) + "\n"
        )
        here.deployment.start_node(name, here.table(name), "10", more=RULES)
    here.served.update(here.deployment.wait_until_ready())
    outcome = run(here)
    assert outcome.code == TooFewRecords.exit_code, outcome.error
    assert "18 records are left" in outcome.last_line and "lower max_colluding" in outcome.last_line
    assert run(here, max_colluding=0).code == 0
    here.stop()
    assert [here.spent(name) for name in here.names] == [1, 1]
