"""Garbled pairs over real processes: exact, and a node that lies in transfers is named."""

from __future__ import annotations

import sys
from itertools import combinations

import numpy as np
import pytest

from tests.system.conftest import TABLE, costs_what_was_predicted
from tests.system.forked import Forked
from umpc.coordinator.client import run_study
from umpc.deployment.processes import UMPC
from umpc.errors import RemoteProtocolError


def test_transfers_are_exact_and_name_an_evaluator_that_lies(lab, tmp_path):
    """The second study takes the channel that the first one left, and lies in its first message."""
    lies = tmp_path / "lies"
    here = lab(2, {"node-2": {"UMPC_LIES": str(lies)}})

    def popen(words, **options):
        liar = [sys.executable, "-m", "tests.support.lying_evaluator"]
        is_node_2 = any(word.endswith("node-2.toml") for word in words)
        return Forked([*liar, *words[len(UMPC) :]] if is_node_2 else words, **options)

    here.deployment.popen = popen
    here.start("10000000000", dealer=False)
    changes = {
        "backend": "garbled",
        "preprocessing": "none",
        "dealer": None,
        "noise": "distributed",
        "edges": "all",
        "epsilon": "1e9",
    }
    report = here.lead(run_study, name="honest", **changes)
    assert report.estimate == pytest.approx(tau_of_both(), abs=1e-6)
    costs_what_was_predicted(report, rounds=5)
    lies.touch()
    with pytest.raises(RemoteProtocolError, match="do not fit together") as caught:
        here.lead(run_study, name="lie", **changes)
    assert (caught.value.culprit, caught.value.step) == ("node-2", "ot_extend")
    here.stop()
    assert [here.spent(name) for name in here.names] == [10**9, 10**9]


def tau_of_both() -> float:
    """Kendall's tau over all pairs of the records of two nodes, which have the same table."""
    rows = [tuple(map(float, line.split(","))) for line in TABLE.splitlines()[1:]] * 2
    signs = [np.sign(a - c) * np.sign(b - d) for (a, b), (c, d) in combinations(rows, 2)]
    return float(np.mean(signs))
