"""`umpc demo` over real processes: the first minute of a new user."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import time
from math import exp, sqrt
from pathlib import Path

import pytest

from tests.system.forked import Forked
from umpc.deployment.processes import UMPC, stop
from umpc.errors import DataError, InvalidEpsilon, KernelError, StudyError

KEYS = {
    *(
        "statistic",
        "estimate",
        "epsilon",
        "delta",
        "edges",
        "max_degree",
        "noise_std",
        "nodes",
        "rounds",
    ),
    *("bytes_online", "bytes_online_predicted", "bytes_offline", "bytes_offline_predicted"),
    *("seconds_online", "seconds_offline", "seconds_total", "exact", "exact_over_edges"),
}
STALLED = {"UMPC_FAILPOINT": "before-charge:stop"}
"""Each node of the demo stops itself before it charges, so that the demo cannot end."""
FAR = 12
"""Standard deviations beyond which a discrete Laplace sum lies with a probability below 1e-6."""


def demo(*options: str, popen: type[subprocess.Popen] = Forked) -> subprocess.CompletedProcess:
    arguments = [*UMPC, "demo", *options]
    with popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            output, errors = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            stop([process])
            raise
    return subprocess.CompletedProcess(arguments, process.returncode, output, errors)


def result(*options: str) -> dict:
    ended = demo(*options, "--format", "json")
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_the_default_demo_needs_no_data_and_tells_the_whole_story():
    ended = demo(popen=subprocess.Popen)
    assert ended.returncode == 0, ended.stderr
    assert "leaked" not in ended.stderr
    for words in (
        "private estimate",
        "exact, all pairs",
        "error from noise",
        "epsilon",
        "|E|",
        "bytes online",
        "predicted",
    ):
        assert words in ended.stdout
    assert "evaluate: 4 of 4" in ended.stderr


@pytest.mark.parametrize("nodes", [2, 16])
def test_the_noise_of_a_private_demo_is_what_the_report_says(nodes):
    report = result("--nodes", str(nodes))
    assert report.keys() >= KEYS
    assert abs(report["estimate"] - report["exact_over_edges"]) < FAR * report["noise_std"]
    assert report["bytes_online"] == report["bytes_online_predicted"]
    assert report["bytes_online_by_node"] == report["bytes_online_by_node_predicted"]
    assert report["bytes_online_by_step"] == report["bytes_online_by_step_predicted"]
    assert report["bytes_offline"] == report["bytes_offline_predicted"]
    assert (report["nodes"], report["rounds"], report["edges"], report["max_degree"]) == (
        nodes,
        4,
        1138,
        4,
    )


@pytest.mark.parametrize(
    ("options", "factor"),
    [
        (("--noise", "in_mpc", "--nodes", "5"), 1),
        (("--noise", "distributed", "--nodes", "4", "--max-colluding", "2"), 4 / 2),
    ],
)
def test_the_noise_of_a_demo_has_the_formulas_standard_deviation(options, factor):
    """The noise is discrete Laplace of ratio q = exp(−ε/s) with s = δ_max·Δf.

    Where every node adds its own noise, the variance is N/h times as large.
    """
    report = result(*options)
    q = exp(-1 / (2 * report["max_degree"]))
    expected = sqrt(factor * 2 * q) / (1 - q) / report["edges"]
    assert report["noise_std"] == pytest.approx(expected, rel=1e-9)
    assert report["delta"] == pytest.approx(0 if "distributed" in options else 4e-18, rel=0.2)
    assert abs(report["estimate"] - report["exact_over_edges"]) < FAR * report["noise_std"]


def test_a_demo_against_lying_nodes_has_the_noise_of_the_robust_sensitivity():
    """Kendall's tau: 6 in the place of 2, and the noise of h = N − t nodes alone must suffice."""
    options = ("--adversary", "lying_nodes", "--nodes", "4", "--max-colluding", "2")
    report = result(*options)
    for name, change in (("noise_std", 6), ("noise_std_if_honest", 2)):
        q = exp(-1 / (change * report["max_degree"]))
        expected = sqrt(4 / 2 * 2 * q) / (1 - q) / report["edges"]
        assert report[name] == pytest.approx(expected, rel=1e-9)
    assert (report["adversary"], report["noise"], report["delta"]) == (
        "lying_nodes",
        "distributed",
        0,
    )
    assert "up to 2 of 4 nodes may send anything" in report["promise"]
    assert abs(report["estimate"] - report["exact_over_edges"]) < FAR * report["noise_std"]


@pytest.mark.parametrize(
    "options",
    [
        ("--nodes", "1"),
        ("--nodes", "4", "--edges", "5000"),
        ("--nodes", "3", "--edges", "all"),
        ("--nodes", "3", "--statistic", "gini_mean_difference"),
    ],
)
def test_without_noise_the_sum_over_e_is_exact(options):
    report = result(*options, "--epsilon", "1e9")
    assert report["estimate"] == report["exact_over_edges"]
    if "all" in options:
        assert report["estimate"] == report["exact"]


def test_a_demo_reads_a_real_file_and_says_which_resolution_it_took(tmp_path):
    rows = [f"1.{100 + 7 * i},{i % 10}5;{i * i % 17},{i % 5}\n" for i in range(30)]
    text = "\ufeffsize;weight\r\n" + "".join(rows) + "?;1\r\n"
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    given = ("--csv", str(path), "--delimiter", ";", "--fields", "size,weight", "--decimal", ",")
    options = (*given, "--thousands", ".", "--nodes", "2", "--edges", "all", "--epsilon", "1e9")
    refused = demo(*options)
    assert refused.returncode == DataError.exit_code and "add --missing '?'" in refused.stderr
    ended = demo(*options, "--missing", "?", "--format", "json")
    assert ended.returncode == 0, ended.stderr
    assert "field 'size': " in ended.stderr and "in steps of 0.01; this resolution" in ended.stderr
    report = json.loads(ended.stdout)
    assert report["records"] == 30 and report["estimate"] == report["exact"]
    assert [field["resolution"] for field in report["fields"]] == ["0.01", "0.1"]


def test_an_impossible_request_is_refused_before_any_process_starts():
    cases = [
        (("--epsilon", "0"), InvalidEpsilon),
        (("--fields", "mean radius,shoe size"), DataError),
    ]
    cases.append((("--edges", "many"), StudyError))
    lying = ("--adversary", "lying_nodes")
    cases.append(((*lying, "--statistic", "covariance"), KernelError))
    cases.append(((*lying, "--noise", "in_mpc"), StudyError))
    cases.append(((*lying, "--protocol", "bell-2pc"), StudyError))
    for options, error in cases:
        ended = demo(*options)
        assert ended.returncode == error.exit_code, ended.stderr
        assert ended.stderr.strip().splitlines()[-1].startswith("error: ")


def test_an_event_of_1_and_2_counts_by_its_second_number(tmp_path):
    """R's survival, SAS and SPSS write events so."""
    table = tmp_path / "survival.csv"
    rows = [(70, 2, 2), (65, 5, 1), (60, 4, 2), (55, 9, 2), (58, 3, 1), (72, 8, 1)]
    lines = ["age,time,status", *(",".join(map(str, row)) for row in rows)]
    table.write_text("\n".join(lines) + "\n")
    options = ("--statistic", "concordance_index", "--nodes", "2", "--edges", "all")
    found = result("--csv", str(table), "--fields", "age,time,status", *options)
    comparable = [
        (score, other)
        for score, time, status in rows
        for other, until, _ in rows
        if status == 2 and until > time
    ]
    ordered = sum((score > other) + (score == other) / 2 for score, other in comparable)
    assert found["exact"] == pytest.approx(ordered / len(comparable))
    assert "'2' is the event" in found["classes"]["status"]


def test_settings_that_follow_from_others_need_not_be_said():
    options = ("--nodes", "2", "--edges", "50", "--quiet")
    for more, backend in (
        (("--statistic", "spearman_rho", "--preprocessing", "none"), "triples"),
        (("--preprocessing", "none"), "garbled"),
        (("--backend", "garbled"), "garbled"),
        (("--statistic", "auc"), "shared"),
    ):
        assert result(*options, *more)["backend"] == backend


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_stops_every_process_it_started(number, tmp_path):
    kept = tmp_path / "kept"
    process = subprocess.Popen(
        [*UMPC, "demo", "--keep", str(kept)],
        env=os.environ | STALLED,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        started = _started(process.pid)
        os.kill(process.pid, number)
        assert process.wait(20) == 130
        _wait_until(lambda: not [pid for pid in started if _alive(pid)], seconds=10)
    finally:
        stop([process])


def test_processes_of_a_demo_that_is_killed_end_by_themselves(tmp_path):
    kept = tmp_path / "kept"
    process = subprocess.Popen(
        [*UMPC, "demo", "--keep", str(kept)], env=os.environ | STALLED, stderr=subprocess.DEVNULL
    )
    try:
        started = _started(process.pid)
        process.kill()
        process.wait()
        _wait_until(lambda: not [pid for pid in started if _alive(pid)], seconds=20)
    finally:
        stop([process])


def test_all_pairs_with_the_same_job_are_counted_exactly(bank):
    options = ("--statistic", "duplicate_pair_ratio", "--edges", "all", "--epsilon", "1e9")
    report = result(*bank.options("job"), *options)
    same = bank.exact["duplicate_pair_ratio"] * bank.pairs
    assert report["estimate"] * bank.pairs == pytest.approx(round(same), abs=1e-3)


@pytest.mark.parametrize("nodes", [2, 4])
def test_the_study_of_age_and_balance_has_the_known_exact_value(nodes, bank):
    report = result(*bank.options("age", "balance"), "--nodes", str(nodes), "--edges", "40000")
    assert report["exact"] == pytest.approx(bank.exact["kendall_tau"], abs=1e-12)
    assert abs(report["estimate"] - report["exact_over_edges"]) < FAR * report["noise_std"]


def _wait_until(condition, seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _started(demo: int) -> list[int]:
    """Return the fork server, the dealer and four nodes of a demo, once all of them run."""
    _wait_until(lambda: len(_children(demo)) >= 6, seconds=60)
    return _children(demo)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
