"""`python -m reproduction.baselines`, as a reader would run it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import reproduction.baselines
from reproduction.baselines.__main__ import NAMES, main
from reproduction.baselines.error_tables import textbook
from reproduction.baselines.gain_table import gain

ROOT = Path(reproduction.__file__).parents[1]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "reproduction.baselines", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_every_table_is_printed():
    ended = run("--runs", "3")
    assert ended.returncode == 0, ended.stderr
    titles = ("Textbook", "GOPA", "Median", "Triangles", "Uniformity", "DP-SGD", "Bins")
    computed = ("Collusion", "Amplification", "Accounting", "Cost", "Gain")
    assert all(title in ended.stdout for title in (*titles, *computed))
    assert len(NAMES) == len(titles) + len(computed)


def test_a_single_table_says_what_is_left_of_epsilon():
    """With half of the nodes honest, ε = 1 becomes 1.68 for s = 1 and 3.44 for s = 65,536."""
    ended = run("collusion")
    (line,) = [line for line in ended.stdout.splitlines() if "5 of 10" in line]
    assert re.findall(r"\d\.\d\d", line) == ["1.68", "2.76", "3.44"]
    assert "Cost" not in ended.stdout


def test_local_hajek_projections_gain_where_they_concentrate():
    """With knowledge there is less than Laplace noise from some n on; with the range, never."""
    rows = [[float(cell.replace(",", "")) for cell in row] for row in gain().rows]
    for records, laplace, usual, degenerate, known, coinpress, alone in rows:
        assert usual > laplace, records
        assert (degenerate < laplace) == (records >= 1000), records
        assert (known < laplace) == (records >= 250), records
        assert (coinpress < laplace) == (records >= 500), records
        assert (alone < laplace) == (records >= 1000), records


def test_predicted_and_measured_agree():
    for _, _, predicted, measured in textbook(400).rows:
        assert float(measured) == pytest.approx(float(predicted), rel=0.2)


def test_help_and_unknown_names(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert not ended.value.code and "collusion" in capsys.readouterr().out
    for arguments in (["colusion"], ["--runs", "0"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2


def test_the_map_lists_the_files():
    """The table of the package's docstring names exactly its files."""
    listed = set(re.findall(r"^\| `(\S+\.py)`", reproduction.baselines.__doc__, re.MULTILINE))
    folder = Path(reproduction.baselines.__file__).parent
    assert listed == {path.name for path in folder.glob("*.py")} - {"__init__.py"}
