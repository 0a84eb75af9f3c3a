"""A committee's noise without a dealer over real processes: cost and node failures."""

from __future__ import annotations

import pytest

from tests.system.test_demo import FAR, result
from tests.system.test_garbled import GARBLED

STUDY = {"backend": "garbled", "preprocessing": "none", "dealer": None}


@pytest.mark.parametrize(
    "options", [("--nodes", "2"), ("--nodes", "3", "--statistic", "kendall_tau_b")], ids=str
)
def test_a_demo_without_a_dealer_draws_noise_that_nobody_knows_at_its_predicted_cost(options):
    report = result(*GARBLED, *options)
    assert report["noise"] == "in_mpc" and 0 < report["delta"] < 1e-16
    assert report["bytes_offline"] == report["bytes_offline_predicted"]
    assert report["bytes_online"] == report["bytes_online_predicted"]
    assert report["rounds"] == report["rounds_predicted"] == 5
    if len(options) == 2:
        assert abs(report["estimate"] - report["exact_over_edges"]) < FAR * report["noise_std"]


def test_prepared_ahead_the_noise_waits_with_the_rest(lab):
    """With one edge and three nodes, two nodes share no edge, and they connect all the same."""
    here = lab(3).start(dealer=False)
    study = STUDY | {"edges": "1", "name": "ahead"}
    prepared = here.run(command="prepare", **study)
    assert prepared.code == 0, prepared.error
    report = here.run(**study).report
    assert report["prepared"] and report["noise"] == "in_mpc"
    assert report["bytes_offline"] == report["bytes_offline_predicted"] > 0
    assert report["bytes_online"] == report["bytes_online_predicted"]
    here.stop()
    assert all(here.spent(name) == 1 for name in here.names)
