"""umpc.local_consortium: real processes from Python, and the command's JSON of the same study."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import umpc
from umpc.reporting.json_document import check_document


def test_studies_between_processes_that_python_starts():
    rng = np.random.default_rng(5)
    frames = {
        name: {"x": rng.permutation(12), "y": rng.permutation(12) / 20, "g": ["u", "v", "v"] * 4}
        for name in ("north", "south")
    }
    bounds = {"x": (0, 15), "y": (0, 15), "g": ["u", "v"]}
    with umpc.local_consortium(frames, bounds, label=("g", "u"), budget=2 * 10**9) as sites:
        study = sites.study("kendall_tau", ["x", "y"], epsilon=10**9, edges="all")
        result = study.run(progress=False)
        alone = umpc.estimate(
            "kendall_tau", frames, ["x", "y"], bounds=bounds, epsilon=10**9, edges="all"
        )
        x, y = (np.concatenate([frame[name] for frame in frames.values()]) for name in ("x", "y"))
        signs = np.sign(np.subtract.outer(x, x)) * np.sign(np.subtract.outer(y, y))
        # the values of y are decimals between whole bounds
        assert result.estimate == alone.estimate == pytest.approx(signs.sum() / (24 * 23))
        assert result.p_value() == alone.p_value()
        path = study.save(sites.folder)
        command = [sys.executable, "-m", "umpc.cli.main", "study", "run", str(path)]
        said = subprocess.run([*command, "--format", "json"], capture_output=True, check=True)
        printed = json.loads(said.stdout)
        check_document(printed)
        assert printed["replayed"] and printed["estimate"] == result.estimate
        assert printed["inference"]["test"] == result.to_dict()["inference"]["test"]
        auc = sites.estimate("auc", ["x"], epsilon=10**9 - 1, progress=False)
        assert 0 <= auc.estimate <= 1 and auc.report.first_class_by_node == [4, 4]
        with pytest.raises(umpc.errors.InsufficientBudget):
            sites.estimate("kendall_tau", ["x", "y"], epsilon=2, progress=False)


def test_the_owner_of_frames_is_warned_as_by_an_estimate():
    frames = [{"x": [300, 2, 1], "y": [True, False, None]}, {"x": [4, 5], "y": ["TRUE", "x"]}]
    with (
        pytest.warns(UserWarning, match="1 value.s. beyond the bounds") as told,
        umpc.local_consortium(frames, {"x": (0, 9), "y": [False, True]}, budget=10**7) as sites,
    ):
        found = sites.estimate("kendall_tau", ["x", "x"], epsilon=1, progress=False)
        assert found.report.records_by_node == [3, 2]
    assert any("1 value(s) of no category count as the last" in str(each.message) for each in told)
