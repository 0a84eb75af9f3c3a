"""train.toml, and a training whose studies run in memory."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.support.studies import Entropy
from tests.support.vector import vector_tables
from umpc.cli.main import umpc
from umpc.errors import ConfigError, StudyError
from umpc.protocols.registry import protocol_of
from umpc.simulation import simulate
from umpc_papers.training.trainfile import load_train_file
from umpc_papers.training.training import PublicTable, train

TEXT = """
name = "bank"
loss = "LOSS"
epsilon = 1000
delta = "1e-6"
steps = 2
edges = "20"
identity = "coordinator"
dealer = { name = "dealer", address = "dealer:1" }
nodes = [
    { name = "one", address = "one:1" },
    { name = "two", address = "two:1" },
    { name = "three", address = "three:1" },
]
fields = [
    { name = "a", lower = 0, upper = 20, whole = true, centre = 8, scale = "5" },
    { name = "b", lower = -4, upper = 4, resolution = "0.5", centre = 0, scale = 2 },
    { name = "y", categories = ["yes", "no"], public = PUBLIC },
]
"""


def write(path: Path, loss: str = "auc_hinge", **changed: str) -> Path:
    text = TEXT.replace("LOSS", loss).replace("PUBLIC", str(loss == "auc_hinge").lower())
    for old, new in changed.items():
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_training_in_memory_learns_and_ends_where_noise_hides_the_gradient(tmp_path):
    tables = vector_tables("training")
    for table in tables:  # the first class has the larger a
        table["a"] = np.where(table["y"] == 0, 14, 6) + table["a"] % 5
    public = PublicTable(
        {"a": np.array([15.0, 16, 3, 9]), "b": np.zeros(4)}, np.array([True, True, False, False])
    )
    for loss in ("auc_hinge", "contrastive"):
        file = load_train_file(write(tmp_path / "train.toml", loss))
        studies, told = [], []

        async def run(study, studies=studies):
            studies.append(study)
            return simulate(study, tables, Entropy(study.name)).report

        model = asyncio.run(train(file, "coordinator", run, told.append, public))
        assert (model.steps_done, model.stopped_early, len(told)) == (2, False, 2)
        courses = [protocol_of(study).course(study) for study in studies]
        assert len({each.id for each in courses}) == 1 and [c.step for c in courses] == [1, 2]
        assert len({study.hash for study in studies}) == 2
        assert told[-1].auc == 1.0 and abs(model.weights["a"]) > abs(model.weights["b"]) / 10
        assert [step.bytes for step in told] == [step.bytes_predicted for step in told]
        assert told[0].epsilon < told[-1].epsilon <= 1000
        model.write(tmp_path / f"{loss}.json")
        stored = json.loads((tmp_path / f"{loss}.json").read_text())
        assert stored["weights"] == model.weights and stored["auc_on"] == "4 public records"
    quiet = load_train_file(
        write(
            tmp_path / "q.toml", **{"= 1000": '= "1/100"\npatience = 1', "steps = 2": "steps = 9"}
        )
    )
    model = asyncio.run(train(quiet, "coordinator", run, told.append))
    over = load_train_file(write(tmp_path / "o.toml", **{"= 1000": '= "1/100"\npatience = 2'}))
    ended = asyncio.run(train(over, "coordinator", run, told.append))
    assert ended.steps_done == 2 and not ended.stopped_early, "all steps were taken"
    last = model.steps[-1]
    assert model.stopped_early and last.auc is None and last.gradient < 2 * last.noise


def test_a_file_that_does_not_fit_is_refused(tmp_path):
    for changed, reason in (
        (
            {'categories = ["yes", "no"], public = true': "lower = 0, upper = 1, whole = true"},
            "label",
        ),
        ({'"1e-6"': '"1e-6"\nrate = 0'}, "rate must be above 0"),
        ({", centre = 0, scale = 2": ""}, "for every field"),
        ({"steps = 2": "steps = 2\nspeed = 1"}, "speed"),
        ({'"auc_hinge"': '"logistic"'}, "loss must be one of"),
        (
            {"steps = 2": "steps = 2.5"},
            "`steps`: a whole number was expected, and a text or a number with a fraction",
        ),
        ({"steps = 2": 'steps = "2"'}, "`steps`: a whole number was expected, and a text"),
    ):
        with pytest.raises(StudyError, match=reason):
            load_train_file(write(tmp_path / "train.toml", **changed)).coordinates()


def test_the_command_refuses_what_does_not_go_together(tmp_path):
    file, there = str(write(tmp_path / "train.toml")), tmp_path / "there.json"
    there.write_text("{}", encoding="utf-8")
    new = str(tmp_path / "new.json")
    for arguments, reason in (
        ([file, "--model", str(there)], "exists already"),
        ([file, "--model", str(tmp_path / "absent/m.json")], "the model could not be written"),
        ([file, "--model", "/proc/m.json"], "could not be written there .* and nothing was done"),
        ([file, "--model", new, "--csv", "x.csv"], "has no FILE"),
        (["--model", new, "--evaluate", "x.csv"], "goes with FILE"),
        (["--model", new], "takes --csv"),
    ):
        ended = CliRunner().invoke(umpc, ["train", *arguments])
        assert isinstance(ended.exception, ConfigError)
        assert re.search(reason, ended.exception.message), ended.exception.message
