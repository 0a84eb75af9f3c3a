"""One-message protocols over real processes: near the records' own value at the predicted cost, stored, paid once."""

from __future__ import annotations

import pytest

from tests.system.test_demo import BANK, BANK_OPTIONS, demo, result
from umpc.errors import PeerLost, StudyError

FAR = 6
"""Standard deviations of the randomisation."""
AUC = (*BANK_OPTIONS[:-1], "balance", "--statistic", "auc", "--label", "y=yes")
STUDY = {
    "protocol": "bell-ldp",
    "dealer": None,
    "edges": None,
    "bins": {"age": 2, "balance": ["0", "30"]},
}

if BANK.exists():

    @pytest.mark.parametrize(
        ("options", "sent", "exact"),
        [
            ((*BANK_OPTIONS, "--protocol", "bell-ldp"), 1130 + 1131, 0.05058429394389604),
            (
                (*BANK_OPTIONS, "--protocol", "ghazi-ldp", "--bins", "balance=100,500,1500"),
                2 * (32 + 283),
                0.05058,
            ),
            ((*AUC, "--protocol", "bell-auc", "--levels", "2"), None, 0.571387),
        ],
        ids=lambda value: value[-1] if isinstance(value, tuple) else "",
    )
    def test_a_demo_on_the_bank_data(options, sent, exact):
        report = result(*options, "--nodes", "2")
        assert report["exact"] == pytest.approx(exact, abs=1e-5)
        assert abs(report["estimate"] - report["quantised"]) < FAR * report["noise_std"]
        assert report["bytes_online"] == report["bytes_online_predicted"]
        assert sent in (None, report["bytes_online"])
        assert report["rounds"] == report["rounds_predicted"] == 1
        assert report["bytes_offline"] == report["bytes_offline_predicted"] == 0
        assert (report["epsilon"], report["delta"], report["noise"], report["edges"]) == (
            1,
            0,
            "local",
            report["sets"],
        )


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
    here.stop()
    assert [here.spent(name) for name in here.names] == [2, 2]
