"""Noise from transfers in studies with a dealer, over real processes: cost, failures, no dealer."""

from __future__ import annotations

import pytest

from tests.system.test_demo import FAR, result
from umpc.mpc.masked.compiler import FEW_EDGES

SINGLE = {"statistic": "mean", "columns": ["age"], "edges": "all"}


@pytest.mark.parametrize(
    ("options", "coins"),
    [
        (("--nodes", "2"), "transfers"),
        (("--nodes", "4"), "transfers"),
        (("--coins", "dealt"), "dealt"),
    ],
    ids=["2 nodes", "4 nodes", "dealt"],
)
def test_a_demo_draws_noise_of_either_kind_at_its_predicted_cost(options, coins):
    report = result(*options)
    assert (report["noise"], report["coins"], report["backend"]) == ("in_mpc", coins, "shared")
    assert report["bytes_offline"] == report["bytes_offline_predicted"]
    assert report["bytes_online"] == report["bytes_online_predicted"]
    rounds = 3 if report["edges"] <= FEW_EDGES else 4
    assert report["rounds"] == report["rounds_predicted"] == rounds
    assert abs(report["estimate"] - report["exact_over_edges"]) < FAR * report["noise_std"]


def test_prepared_ahead_the_noise_waits_with_the_material(lab):
    here = lab(3).start()
    prepared = here.run(command="prepare", name="ahead")
    assert prepared.code == 0, prepared.error
    report = here.run(name="ahead").report
    assert report["prepared"] and (report["noise"], report["coins"]) == ("in_mpc", "transfers")
    assert report["bytes_offline"] == report["bytes_offline_predicted"] > 0
    assert report["bytes_online"] == report["bytes_online_predicted"]


def test_a_study_of_single_records_runs_while_its_dealer_is_away(lab):
    here = lab(2).start(dealer=False)
    report = here.run(**SINGLE).report
    assert (report["noise"], report["coins"]) == ("in_mpc", "transfers")
    assert report["bytes_offline"] == report["bytes_offline_predicted"]
