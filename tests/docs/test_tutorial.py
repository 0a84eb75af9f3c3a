"""docs/tutorial.ipynb runs from its first cell, and shows again what it shows in the repository."""

from __future__ import annotations

import json
import re
import runpy
from itertools import groupby
from pathlib import Path

from IPython.core.formatters import SVGFormatter

import umpc
from umpc.counts import COUNTED

DOCS = Path(umpc.__file__).parents[1] / "docs"


def shown(notebook: dict) -> list[list[list[str]]]:
    """For each cell of code, the kinds of what it shows; equal ones in a row once.

    How many parts the prints of a cell come in depends on how long they take.
    """
    kinds = [
        [sorted(output.get("data", [output["output_type"]])) for output in cell["outputs"]]
        for cell in code_of(notebook)
    ]
    return [[kind for kind, _ in groupby(cell)] for cell in kinds]


def code_of(notebook: dict) -> list[dict]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def stored() -> dict:
    return json.loads((DOCS / "tutorial.ipynb").read_text(encoding="utf-8"))


def check_numbers(text: str) -> None:
    """Check the estimate, its interval and its p-value, as the five lines print them."""
    value, low, high, p = map(float, re.findall(r"-?\d[\d.e-]*", text))
    assert low < value < high and 0 < p < 1


def test_the_tutorial_runs_in_a_new_kernel():
    found = runpy.run_path(str(DOCS / "tutorial_run.py"))["executed"]()
    assert shown(found) == shown(stored()), "run `make tutorial`"
    five = code_of(found)[1]
    numbers, picture = five["outputs"]
    check_numbers(numbers["text"])
    assert picture["data"]["image/svg+xml"].startswith("<svg")


def test_five_lines_give_tau_interval_p_value_and_picture(capsys):
    """The first cells without a kernel, so that `make test` stays short."""
    frames, five = ("".join(cell["source"]) for cell in code_of(stored())[:2])
    assert len(list(filter(None, five.splitlines()))) == 5
    lines, _, last = five.rpartition("\n")
    names: dict = {}
    exec(compile(f"{frames}\n{lines}", "tutorial", "exec"), names)
    check_numbers(capsys.readouterr().out)
    assert SVGFormatter()(eval(last, names)).startswith("<svg")


def test_the_tutorial_shows_what_a_statistician_needs():
    code = code_of(stored())
    assert all(cell["execution_count"] for cell in code), "run `make tutorial`"
    text = "".join("".join(cell["source"]) for cell in code)
    for part in ("kendall_tau", "auc", "concordance_index", "umpc.kernel", ".plan(", ".plot("):
        assert part in text, part
    for part in ("auc_difference", "kaplan_meier", "roc", "theil_sen", ".matrix()", "weight="):
        assert part in text, part
    for site in ("north", "south", "east", "west"):
        assert site in text, site


def test_the_tutorial_has_every_statistic_of_counts_and_every_question_to_a_table():
    text = "".join("".join(cell["source"]) for cell in stored()["cells"])
    assert {name for name in COUNTED if name not in text} == set()
    code = "".join("".join(cell["source"]) for cell in code_of(stored()))
    for asked in ("km", "nelson_aalen", "logrank", "gehan", "roc", "ecdf", "quantile", "histogram"):
        assert f".{asked}(" in code, asked
    for asked in ("contingency", "qq", "pair_quantile", "matrix"):
        assert f".{asked}(" in code, asked


def test_the_tutorial_has_every_comparison_and_a_kernel_of_two_samples():
    code = "".join("".join(cell["source"]) for cell in code_of(stored()))
    for statistic in ("auc_difference", "tau_difference", "concordance_difference"):
        assert f'"{statistic}"' in code, statistic
    for part in ("hodges_lehmann_shift", "cramer_von_mises", "tree=", ".holm"):
        assert part in code, part
