"""`python -m reproduction.baselines.ranking`, the example of DP-SGD, as somebody would run it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import umpc

ROOT = Path(umpc.__file__).parents[1]


def test_it_ranks_a_made_up_table_and_worse_with_more_noise(tmp_path):
    command = [
        sys.executable,
        "-m",
        "reproduction.baselines.ranking",
        "--csv",
        str(tmp_path / "absent.csv"),
        "--runs",
        "1",
    ]
    ended = subprocess.run(
        [*command, "--epsilon", "1/100", "8"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    assert "a made-up table: logistic loss of pairs, 2,261 records" in ended.stdout
    lines = [
        re.split(r"\s*│\s*", line.strip("│ "))
        for line in ended.stdout.splitlines()
        if line.startswith("│")
    ]
    (_, loud, *_), (_, soft, found, *_), (name, zero, best, *_) = lines
    assert float(loud) > 20 * float(soft) > 0 == float(zero) and name == "none"
    assert float(found) > 0.75 and float(best) > 0.8
    assert "108,528 bytes to the curator, once" in ended.stdout
