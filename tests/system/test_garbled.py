"""Pairs without a dealer over real processes: exact sums, predicted bytes, node failures."""

from __future__ import annotations

import pytest

from tests.system.conftest import names_who_was_lost
from tests.system.test_demo import FAR, demo, result
from umpc.errors import StudyError

GARBLED = ("--backend", "garbled", "--preprocessing", "none")
STUDY = {"backend": "garbled", "preprocessing": "none", "dealer": None, "noise": "distributed"}


@pytest.mark.parametrize(
    "options",
    [
        ("--nodes", "2", "--edges", "all"),
        ("--nodes", "3", "--edges", "3000", "--statistic", "kendall_tau_b"),
    ],
    ids=str,
)
def test_a_demo_without_a_dealer_is_exact_over_e_at_its_predicted_cost(options, tmp_path):
    report = result(*GARBLED, *options, "--epsilon", "1e9", "--keep", str(tmp_path / "kept"))
    assert report["estimate"] == report["exact_over_edges"]
    assert report["bytes_online"] == report["bytes_online_predicted"]
    assert report["bytes_online_by_node"] == report["bytes_online_by_node_predicted"]
    assert report["bytes_online_by_step"] == report["bytes_online_by_step_predicted"]
    assert report["bytes_offline"] == report["bytes_offline_predicted"]
    assert report["rounds"] == report["rounds_predicted"] == 5
    assert (report["backend"], report["preprocessing"]) == ("garbled", "none")
    assert not list((tmp_path / "kept").glob("dealer*"))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            (*GARBLED, "--statistic", "triples_skewness", "--fields", "mean radius"),
            "edges of three and more",
        ),
    ],
    ids=str,
)
def test_what_needs_a_dealer_is_refused_before_any_process_starts(options, reason):
    ended = demo(*options)
    assert ended.returncode == StudyError.exit_code, ended.stderr
    assert reason in ended.stderr.strip().splitlines()[-1] and "starting" not in ended.stderr


def test_a_study_without_a_dealer_over_many_pairs_is_near_the_exact_value(bank):
    edges = str(2 * bank.records)
    report = result(*bank.options("age", "balance"), *GARBLED, "--nodes", "2", "--edges", edges)
    assert abs(report["estimate"] - report["exact_over_edges"]) < FAR * report["noise_std"]


@pytest.mark.parametrize(
    ("node", "point", "action"),
    [
        ("node-3", "after-set-up", "kill"),
        ("node-3", "after-fields", "kill"),
        ("node-1", "after-fields", "stop"),
    ],
)
def test_a_node_that_fails_after_the_set_up_is_named_and_costs_nothing(lab, node, point, action):
    here = lab(3, {node: {"UMPC_FAILPOINT": f"{point}:{action}"}}).start(dealer=False)
    names_who_was_lost(here.run(**STUDY), node)
    for survivor in set(here.names) - {node}:
        assert node in here.wait_for_log(survivor, "ended in step")
        assert here.reserved_by_the_living(survivor) == 0
    here.stop()
    assert all(here.spent(name) == 0 for name in here.names)


def test_the_same_study_asked_again_gets_the_same_answer_and_a_new_one_runs_beside_it(lab):
    here = lab(2).start(dealer=False)
    first, again, other = here.run(**STUDY), here.run(**STUDY), here.run(**STUDY, name="other")
    assert [outcome.code for outcome in (first, again, other)] == [0, 0, 0], first.error
    assert again.report["replayed"] and again.report["estimate"] == first.report["estimate"]
    assert not other.report["replayed"] and other.report["backend"] == "garbled"
    assert here.loud_lines() == []
