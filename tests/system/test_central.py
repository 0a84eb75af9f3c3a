"""A trusted curator over real processes: only where every site allows it, and one number."""

from __future__ import annotations

import pytest

from tests.system.conftest import Lab
from tests.system.test_demo import result
from tests.system.test_policy import rules
from umpc.errors import PeerLost, PolicyRefused

FAR = 12
STUDY = {"protocol": "central", "dealer": None, "edges": None}
ALLOWED = "[policy]\ntrusted_curator = true\n"
"""A policy that allows it. Both nodes have the same 60 records, 120 in all."""


def value(here: Lab) -> float:
    """Compute Kendall's tau of both tables together, without noise."""
    lines = [
        line.split(",")
        for name in here.names
        for line in here.table(name).read_text().splitlines()[1:]
    ]
    rows = [(float(age), float(balance)) for age, balance in lines]
    sign = lambda number: (number > 0) - (number < 0)  # noqa: E731
    pairs = [(one, other) for i, one in enumerate(rows) for other in rows[:i]]
    return sum(sign(a[0] - b[0]) * sign(a[1] - b[1]) for a, b in pairs) / len(pairs)


@pytest.mark.parametrize("noise", ["laplace", "hajek"])
def test_the_same_study_asked_again_gives_the_same_number_and_pays_once(lab, noise):
    here = lab(2).start(dealer=False, more=ALLOWED)
    study = STUDY | {"noise": noise, "epsilon": "5"}
    first, again, other = here.run(**study), here.run(**study), here.run(**study, name="other")
    assert [outcome.code for outcome in (first, again, other)] == [0, 0, 0], first.error
    assert abs(first.report["estimate"] - value(here)) < FAR * first.report["noise_std"] < 12
    assert first.report["bytes_online"] == first.report["bytes_online_predicted"]
    assert again.report["replayed"] and not other.report["replayed"]
    for key in ("estimate", "noise_std", "low", "high", "edges", "max_degree"):
        assert again.report[key] == first.report[key], key
    assert other.report["estimate"] != first.report["estimate"]
    for name in here.names:
        said = (
            "RAW RECORDS leave: age, balance of all 60 records, "
            "shown to coordinator, a trusted curator"
        )
        assert here.log(name).count(said) == 3
    rules(here, "node-2", "trusted_curator = false")
    refused = here.run(**study)
    assert (
        refused.code == PolicyRefused.exit_code
        and "node-2 allows no trusted curator" in refused.last_line
    )
    here.wait_for_log("node-2", "ended in step release")
    assert here.log("node-2").count("RAW RECORDS leave") == 3
    here.stop()
    assert [here.spent(name) for name in here.names] == [10, 10]


def test_no_site_does_it_unless_its_administrator_says_so(lab):
    here = lab(2).start(dealer=False)
    outcome = here.run(**STUDY)
    assert (
        outcome.code == PolicyRefused.exit_code
        and "trusted_curator under [policy]" in outcome.last_line
    )
    assert (
        "show all records of these fields to the coordinator 'coordinator': 'age', 'balance'"
        in outcome.last_line
    )
    assert outcome.last_line.endswith("no epsilon was charged in this run.")
    rules(here, "node-1", "trusted_curator = true")
    outcome = here.run(**STUDY)
    assert outcome.code == PolicyRefused.exit_code and "node-2 allows no" in outcome.last_line
    assert "RAW RECORDS" not in here.log("node-1") + here.log("node-2")
    here.stop()
    assert [here.spent(name) for name in here.names] == [0, 0]


def test_a_run_that_fails_before_the_charge_costs_nothing_and_shows_nothing(lab):
    here = lab(2, {"node-2": {"UMPC_FAILPOINT": "before-ready:kill"}}).start(
        dealer=False, more=ALLOWED
    )
    outcome = here.run(**STUDY)
    assert outcome.code == PeerLost.exit_code and "no epsilon was charged" in outcome.last_line
    here.wait_for_log("node-1", "ended in step")
    assert "RAW RECORDS" not in here.log("node-1")
    here.stop()
    assert [here.spent(name) for name in here.names] == [0, 0]


def test_a_demo_over_all_pairs_is_near_the_exact_value(bank):
    """The run over the bank data's 10.2 million pairs must end within the demo's time limit."""
    options = ("--nodes", "2", "--protocol", "central", "--noise", "hajek")
    report = result(*bank.options("age", "balance"), *options)
    exact = pytest.approx(bank.exact["kendall_tau"], abs=1e-12)
    assert report["exact"] == report["exact_over_edges"] == exact
    assert abs(report["estimate"] - report["exact"]) < FAR * report["noise_std"]
    assert report["noise_std"] < 0.005 * 4521 / bank.records
    # A record of two fields takes at most three bytes.
    assert report["bytes_online"] == report["bytes_online_predicted"] < 3.1 * bank.records
    assert (report["rounds"], report["edges"]) == (1, bank.pairs)
    assert report["max_degree"] == bank.records - 1
