"""docs/tutorial.ipynb runs from its first cell, and shows again what it shows in the repository."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import umpc

DOCS = Path(umpc.__file__).parents[1] / "docs"


def shown(notebook: dict) -> list[list[list[str]]]:
    """For each cell of code, the kinds of what it shows."""
    return [
        [sorted(output.get("data", [output["output_type"]])) for output in cell["outputs"]]
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def test_the_tutorial_runs_in_a_new_kernel(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    tutorial = runpy.run_path(str(DOCS / "tutorial_run.py"))
    stored = json.loads((DOCS / "tutorial.ipynb").read_text(encoding="utf-8"))
    found = tutorial["executed"]()
    assert shown(found) == shown(stored), "run `make tutorial`"
    first, second = [cell for cell in found["cells"] if cell["cell_type"] == "code"][:2]
    assert len(first["source"].splitlines()) == 5, "a tau with its picture in five lines"
    (picture,) = first["outputs"]
    assert picture["data"]["image/svg+xml"].startswith("<svg")
    (told,) = second["outputs"]
    assert "tau = 0." in told["text"] and "p = " in told["text"]


def test_the_tutorial_shows_what_a_statistician_needs():
    stored = json.loads((DOCS / "tutorial.ipynb").read_text(encoding="utf-8"))
    code = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell in code), "run `make tutorial`"
    text = "".join("".join(cell["source"]) for cell in code)
    for part in ("kendall_tau", "auc", "concordance_index", "umpc.kernel", ".plan(", ".plot("):
        assert part in text, part
    for site in ("north", "south", "east", "west"):
        assert site in text, site
