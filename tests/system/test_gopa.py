"""`gopa` over real processes: near the exact mean, at the predicted cost, charged once."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.support.node_ledgers import beside, start_again
from tests.system.conftest import Lab
from tests.system.test_demo import result
from umpc.errors import InsufficientBudget, PeerLost

FAR = 6
"""Standard deviations of the noise, which is normal."""
STUDY = {
    **{
        "protocol": "gopa",
        "dealer": None,
        "edges": None,
        "statistic": "mean",
        "columns": ["balance"],
    },
    **{"delta": "1e-10", "max_colluding": 1},
}
RULES = "[policy]\nmin_colluding = 1\n"
EXACT = sum((13 * i) % 90 - 20.5 for i in range(60)) / 60


def test_a_demo_is_near_the_exact_mean_at_the_predicted_cost(bank):
    options = ("--statistic", "mean", "--protocol", "gopa", "--delta", "1e-9")
    report = result(*bank.options("balance"), *options, "--max-colluding", "1")
    exact = pytest.approx(bank.exact["mean"], abs=1e-3)
    assert report["exact"] == report["exact_over_edges"] == exact
    assert abs(report["estimate"] - report["exact"]) < FAR * report["noise_std"]
    # Both tables have about the same range of balances; the noise of a mean falls as 1/n.
    assert report["noise_std"] < 130 * 4521 / bank.records
    sent = sum(report["bytes_online_by_node"])
    assert report["bytes_online"] == report["bytes_online_predicted"] == sent
    assert report["rounds"] == report["rounds_predicted"] == 1
    assert report["bytes_offline"] == report["bytes_offline_predicted"] == 0
    assert (report["epsilon"], report["delta"], report["noise"]) == (1, 1e-9, "gopa")
    assert (report["edges"], report["nodes"], report["max_colluding"]) == (bank.records, 4, 1)
    assert report["records_by_node"] == bank.sizes(4)


def spent(lab: Lab) -> list[tuple[Fraction, Fraction]]:
    accounts = [beside(lab, name).account for name in lab.names]
    assert not any(account.open for account in accounts)
    return [(account.spent.epsilon, account.spent.delta) for account in accounts]


def test_nodes_charge_epsilon_and_delta_once_and_send_the_same_again(lab):
    here = lab(3).start(dealer=False, more=RULES)
    first, again, other = here.run(**STUDY), here.run(**STUDY), here.run(**STUDY, name="other")
    assert [outcome.code for outcome in (first, again, other)] == [0, 0, 0], first.error
    assert abs(first.report["estimate"] - EXACT) < FAR * first.report["noise_std"]
    assert again.report["replayed"] and again.report["estimate"] == first.report["estimate"]
    assert not other.report["replayed"] and other.report["estimate"] != first.report["estimate"]
    assert spent(here) == [(2, Fraction(2, 10**10))] * 3
    assert here.loud_lines() == []
    refused = here.run(**{**STUDY, "delta": "1e-8"}, name="too much")
    assert refused.code == InsufficientBudget.exit_code and "asks for delta" in refused.last_line


def test_a_node_that_dies_is_named_and_what_is_charged_is_said(lab):
    """Without the node's message its shared noise does not cancel, so there is no result."""
    here = lab(3, {"node-2": {"UMPC_FAILPOINT": "before-ready:kill"}}).start(
        dealer=False, more=RULES
    )
    outcome = here.run(**STUDY)
    assert outcome.code == PeerLost.exit_code and "node-2" in outcome.last_line, outcome.error
    assert "no epsilon was charged" in outcome.last_line
    assert (
        here.wait_for_log("node-1", "ended in step") and here.reserved_by_the_living("node-1") == 0
    )
    start_again(here, "node-2", "before-charge", more=RULES)
    outcome = here.run(**STUDY)
    assert (
        outcome.code == PeerLost.exit_code and "some nodes may have charged" in outcome.last_line
    ), outcome.error
    start_again(here, "node-2", more=RULES)
    outcome = here.run(**STUDY)
    assert outcome.code == 0 and outcome.report["replayed"], outcome.error
    here.stop()
    assert [here.spent(name) for name in here.names] == [1, 1, 1]
