"""A study file as a person writes it, and the study that it describes."""

from __future__ import annotations

from pathlib import Path

from umpc.coordinator.studyfile import load_study_file
from umpc.study.document import Study
from umpc.study.parts import FieldBins
from umpc_papers.local.settings import CellSettings

GOOD = """\
name = "kendall-2026"
statistic = "kendall_tau"
columns = ["age", "balance"]
epsilon = 0.1
edges = "3n"
identity = "coordinator"
max_colluding = 0
seconds_per_step = 30

[[fields]]
name = "age"
lower = 0
upper = 127
whole = true

[[fields]]
name = "balance"
lower = -1000.0
upper = "1e3"
resolution = 0.01

[dealer]
name = "dealer"
address = "dealer.example.org:7100"

[[nodes]]
name = "north"
address = "north.example.org:7100"

[[nodes]]
name = "south"
address = "south.example.org:7100"
"""
BALANCE = GOOD[GOOD.index('[[fields]]\nname = "balance"') : GOOD.index("[dealer]")]
"""The entry of a field that a study of age alone may not have."""


def load(folder: Path, text: str):
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return load_study_file(path)


def study(folder: Path, text: str = GOOD) -> Study:
    return load(folder, text).study("hospitals")


def replaced(old: str, new: str) -> str:
    assert GOOD.count(old) >= 1
    return GOOD.replace(old, new, 1)


def participant(name: str, address: str) -> dict[str, str]:
    return {"name": name, "address": address}


def bins_of(study: Study) -> tuple[FieldBins, ...]:
    return study.settings_as(CellSettings).bins
