"""Noisy pairs over real processes: sums with noise, predicted bytes, no dealer, node failures."""

from __future__ import annotations

import pytest

from tests.system.conftest import SURVIVE_SECONDS
from tests.system.test_demo import demo, result
from umpc.errors import PeerLost, StudyError

BELL = ("--protocol", "bell-2pc")
STUDY = {"protocol": "bell-2pc", "dealer": None, "edges": "1p"}
FAR = 6
"""Standard deviations of a mean of many pairs' noise. It is nearly normal, so it lies beyond with a
probability below 1e-8.
"""


def check_cost(report: dict, rounds: int) -> None:
    assert report["bytes_online"] == report["bytes_online_predicted"] > 0
    assert report["bytes_offline"] == report["bytes_offline_predicted"] > 0
    assert report["rounds"] == report["rounds_predicted"] == rounds
    assert (report["protocol"], report["backend"], report["preprocessing"]) == (
        "bell-2pc",
        "garbled",
        "none",
    )


def test_the_study_of_one_pairing_over_four_nodes(bank):
    report = result(*BELL, "--edges", "1p", *bank.options("age", "balance"), "--nodes", "4")
    check_cost(report, rounds=4)
    pairs = bank.records // 2
    assert (report["edges"], report["max_degree"], report["records"]) == (pairs, 1, bank.records)
    assert abs(report["estimate"] - report["exact_over_edges"]) < FAR * report["noise_std"]
    # The noise of one pair has the standard deviation √2·Δf/ε, with Δf = 2 and ε = 1.
    assert report["noise_std"] == pytest.approx(2**1.5 / pairs**0.5, rel=0.03)
    assert report["noise"] == "pair_laplace" and 0 < report["delta"] < 1e-10


def test_responses_that_are_certain_are_exact_over_the_pairs_and_no_dealer_runs(tmp_path):
    kept = tmp_path / "kept"
    certain = (
        "--noise",
        "randomised_response",
        "--epsilon",
        "1e9",
        "--edges",
        "2p",
        "--nodes",
        "3",
    )
    report = result(*BELL, *certain, "--keep", str(kept))
    check_cost(report, rounds=4)
    assert report["estimate"] == pytest.approx(report["exact_over_edges"], abs=1e-9)
    assert (report["edges"], report["max_degree"], report["delta"]) == (2 * 284, 2, 0)
    assert not list(kept.glob("dealer*"))


def test_groups_of_pairs_leave_with_one_noise_of_each_owner(bank):
    """A demo of two pairings in groups of 8; the noise that is stated is an upper bound."""
    groups = ("--noise", "group_laplace", "--group", "8", "--edges", "2p")
    report = result(*BELL, *groups, *bank.options("age", "balance"), "--nodes", "3")
    check_cost(report, rounds=5)
    assert report["edges"] == 2 * (bank.records // 2) and report["delta"] == 0
    assert abs(report["estimate"] - report["exact_over_edges"]) < FAR * report["noise_std"]
    alone = 2 * 2**1.5 / report["edges"] ** 0.5
    assert report["noise_std"] < 0.6 * alone


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--statistic", "triples_skewness", "--fields", "mean radius"), "is of pairs"),
        (("--noise", "in_mpc"), "must be one of pair_laplace, randomised_response"),
        (("--backend", "shared"), "--backend is not a setting of --protocol bell-2pc"),
    ],
    ids=str,
)
def test_what_is_no_study_of_noisy_pairs_is_refused_before_any_process_starts(options, reason):
    ended = demo(*BELL, *options)
    assert ended.returncode == StudyError.exit_code, ended.stderr
    assert reason in ended.stderr.strip().splitlines()[-1] and "starting" not in ended.stderr


def test_a_demo_of_a_large_epsilon_has_the_budget_that_its_finite_bits_take():
    """The demo's nodes allow as much δ as their study costs."""
    report = result(*BELL, "--epsilon", "10", "--edges", "1p", "--nodes", "2")
    assert (
        report["delta"] < 1e-6
        and abs(report["estimate"] - report["exact_over_edges"]) < FAR * report["noise_std"]
    )


def test_a_node_that_is_killed_in_the_middle_is_named_and_nothing_is_charged(lab):
    here = lab(3, {"node-2": {"UMPC_FAILPOINT": "after-fields:kill"}}).start(dealer=False)
    outcome = here.run(**STUDY)
    assert outcome.code == PeerLost.exit_code, outcome.error
    assert "node-2" in outcome.last_line and "no epsilon was charged" in outcome.last_line
    assert outcome.output == "" and outcome.seconds < 2 * SURVIVE_SECONDS
    for survivor in ("node-1", "node-3"):
        assert "node-2" in here.wait_for_log(survivor, "ended in step")
        assert here.reserved_by_the_living(survivor) == 0
    here.stop()
    assert all(here.spent(name) == 0 for name in here.names)


def test_a_replayed_study_costs_nothing_and_is_charged_once(lab):
    here = lab(2).start(dealer=False)
    first, again = here.run(**STUDY), here.run(**STUDY)
    assert [outcome.code for outcome in (first, again)] == [0, 0], first.error
    assert again.report["replayed"] and again.report["estimate"] == first.report["estimate"]
    assert first.report["edges"] == 60 and first.report["max_degree"] == 1
    assert here.loud_lines() == []
    here.stop()
    assert [here.spent(name) for name in here.names] == [1, 1]
