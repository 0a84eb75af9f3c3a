"""`umpc train` over real processes: a model at the predicted cost, charged once for all steps."""

from __future__ import annotations

import json
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest

from tests.support.studies import generator
from umpc.deployment.processes import UMPC, stop
from umpc.node.budget.ledger_place import Place
from umpc.node.budget.ledgerfile import read_beside


def write_table(path: Path) -> None:
    """200 records: the label follows from x, and z is noise."""
    rng = generator("train")
    x, z = rng.integers(0, 100, (2, 200))
    rows = [f"{a},{b},{'yes' if a + b % 20 > 55 else 'no'}" for a, b in zip(x, z, strict=True)]
    path.write_text("\n".join(["x,z,y", *rows]) + "\n", encoding="utf-8")


def test_training_writes_a_model_near_the_pooled_fit_and_pays_once(tmp_path):
    write_table(tmp_path / "table.csv")
    arguments = [*UMPC, "train", "--csv", str(tmp_path / "table.csv"), "--fields", "x,z"]
    arguments += ["--label", "y=yes", "--nodes", "2", "--steps", "2", "--epsilon", "30"]
    arguments += ["--keep", str(tmp_path / "kept"), "--model", str(tmp_path / "model.json")]
    with subprocess.Popen(
        arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            stop([process])
            raise
    assert process.returncode == 0, errors
    model = json.loads((tmp_path / "model.json").read_text())
    pooled = float(output.partition("without privacy has AUC ")[2].partition(";")[0])
    assert pooled > 0.9 and set(model["weights"]) == {"x", "z"}
    assert model["steps"][-1]["auc"] > pooled - 0.1
    assert [step["bytes"] for step in model["steps"]] == [
        step["bytes_predicted"] for step in model["steps"]
    ]
    assert (model["steps_done"], model["epsilon"], model["auc_on"]) == (2, 30, "50 public records")
    assert model["steps"][1]["epsilon"] == pytest.approx(30, abs=0.01)
    for node in ("node-1", "node-2"):
        rows = read_beside(Place.of(tmp_path / "kept" / f"{node}-ledger.sqlite"))
        assert [row.kind for row in rows.rows][-2:] == ["course", "step"]
        assert rows.account.spent.epsilon == 30
        assert rows.account.spent.delta == Fraction(1, 10**6)
