"""One-message protocols over real processes: near the exact value, stored, and paid once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.system.test_demo import demo, result
from umpc.errors import PeerLost, StudyError

FAR = 6
"""Standard deviations of the randomisation."""
STUDY = {
    "protocol": "bell-ldp",
    "dealer": None,
    "edges": None,
    "bins": {"age": 2, "balance": ["0", "30"]},
}


@dataclass(frozen=True)
class Case:
    """A demo of one protocol: its options, its statistic, and the bytes of a node's message."""

    statistic: str
    fields: tuple[str, ...]
    options: tuple[str, ...]
    message_bytes: Callable[[int], int] | None


CASES = {
    # 16 cells: a record takes four bits.
    "bell-ldp": Case("kendall_tau", ("age", "balance"), (), lambda records: -(-records // 2)),
    # A seed, and one bit of each record.
    "ghazi-ldp": Case(
        "kendall_tau",
        ("age", "balance"),
        ("--bins", "balance=100,500,1500"),
        lambda records: 32 + -(-records // 8),
    ),
    "bell-auc": Case("auc", ("balance",), ("--label", "y=yes", "--levels", "2"), None),
    # At epsilon = 1 a record answers with one of two points.
    "local-mean": Case("mean", ("balance",), (), lambda records: -(-records // 8)),
}


@pytest.mark.parametrize("protocol", CASES)
def test_a_demo_is_near_the_exact_value_at_the_predicted_cost(protocol, bank):
    case = CASES[protocol]
    options = ("--protocol", protocol, "--statistic", case.statistic, *case.options)
    report = result(*bank.options(*case.fields), *options, "--nodes", "2")
    tolerance = 1e-3 if case.statistic == "mean" else 1e-5
    assert report["exact"] == pytest.approx(bank.exact[case.statistic], abs=tolerance)
    near = report["exact" if case.statistic == "mean" else "quantised"]
    assert abs(report["estimate"] - near) < FAR * report["noise_std"]
    assert report["bytes_online"] == report["bytes_online_predicted"]
    if case.message_bytes:
        assert report["bytes_online"] == sum(map(case.message_bytes, bank.sizes(2)))
    assert report["rounds"] == report["rounds_predicted"] == 1
    assert report["bytes_offline"] == report["bytes_offline_predicted"] == 0
    assert (report["epsilon"], report["delta"], report["noise"]) == (1, 0, "local")
    assert report["edges"] == report["sets"]


def test_a_demo_of_the_auc_by_cells_has_public_labels_and_the_average_kernel(bank):
    """Eight bins of the balance: a record takes three bits, each class in bytes of its own."""
    options = ("--statistic", "auc", "--label", "y=yes", "--bins", "balance=8")
    report = result(
        *bank.options("balance"), "--protocol", "bell-ldp", *options, "--nodes", "2", "--epsilon=4"
    )
    assert report["exact"] == pytest.approx(bank.exact["auc"], abs=1e-5)
    assert abs(report["estimate"] - report["quantised"]) < FAR * report["noise_std"]
    assert report["bytes_online"] == report["bytes_online_predicted"]
    assert (report["rounds"], report["epsilon"], report["delta"]) == (1, 4, 0)
    assert "balance has 8 bins for" in report["note"]


def test_what_cannot_be_is_refused_before_any_process_starts():
    ended = demo("--protocol", "ghazi-ldp", "--bins", "mean radius=0")
    assert ended.returncode == StudyError.exit_code and "starting" not in ended.stderr
    assert "bins are possible" in ended.stderr.strip().splitlines()[-1]


def test_nodes_pay_once_and_nothing_for_a_run_that_failed(lab):
    here = lab(2, {"node-2": {"UMPC_FAILPOINT": "before-ready:kill"}}).start(dealer=False)
    outcome = here.run(**STUDY)
    assert outcome.code == PeerLost.exit_code and "node-2" in outcome.last_line, outcome.error
    assert "no epsilon was charged" in outcome.last_line
    assert (
        here.wait_for_log("node-1", "ended in step") and here.reserved_by_the_living("node-1") == 0
    )
    here.stop()
    assert [here.spent(name) for name in here.names] == [0, 0]


def test_the_same_study_asked_again_gets_the_same_messages(lab):
    here = lab(2).start(dealer=False)
    first, again, other = here.run(**STUDY), here.run(**STUDY), here.run(**STUDY, name="other")
    assert [outcome.code for outcome in (first, again, other)] == [0, 0, 0], first.error
    assert again.report["replayed"] and again.report["estimate"] == first.report["estimate"]
    assert not other.report["replayed"] and other.report["estimate"] != first.report["estimate"]
    assert here.loud_lines() == []
    here.stop()
    assert [here.spent(name) for name in here.names] == [2, 2]
