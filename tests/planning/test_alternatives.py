"""One statistic by every protocol: the studies, the recommendation, the output of `umpc plan`."""

from __future__ import annotations

import json
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.support.protocols import OF_CELLS
from tests.support.studies import generator
from umpc.cli.main import umpc
from umpc.coordinator.studyfile import load_study_file
from umpc.coordinator.studyfile_text import field_entry, write_study_file
from umpc.errors import StudyError
from umpc.mpc.backends import predict
from umpc.planning import prediction, seconds
from umpc.planning.alternatives import (
    Alternative,
    Targets,
    alternatives,
    recommended,
    turned,
)
from umpc.planning.prediction import attempt_over, reference_table_of
from umpc.planning.reference_table import PredictedError
from umpc.planning.seconds import Network, Seconds
from umpc.protocols.base.protocol import Variant
from umpc.protocols.registry import PROTOCOLS, protocol_of
from umpc.protocols.u_mpc.theory import edges_for_error, edges_for_noise
from umpc.study.cost import Cost
from umpc.study.document import Study
from umpc.study.parts import FieldText
from umpc.testing import lying
from umpc.ustat import kernel
from umpc_papers.central import messages
from umpc_papers.local.settings import CellSettings

FIELDS = (FieldText("age", "0", "99", whole=True), FieldText("wage", "0", "999", whole=True))
RECORDS = "60,50,40"
ADDRESS = "127.0.0.1:1"
NODES = [{"name": name, "address": ADDRESS} for name in ("north", "south", "west")]


@pytest.fixture(autouse=True)
def short_trials(limit):
    limit(seconds, TRIAL_RECORDS=60)
    limit(seconds, LONG_ENOUGH=1e-4)


@pytest.fixture
def file(tmp_path):
    def write(**changes):
        """A study file of Kendall's tau with other entries; None leaves an entry out."""
        columns = changes.get("columns") or ["age", "wage"]
        entries = {
            "name": "planned",
            "statistic": "kendall_tau",
            "columns": ["age", "wage"],
            "fields": [field_entry(field) for field in FIELDS if field.name in columns],
            "epsilon": "1",
            "identity": "coordinator",
            "nodes": NODES,
        }
        if "protocol" not in changes:
            entries["dealer"] = {"name": "dealer", "address": ADDRESS}
        return write_study_file(tmp_path, entries | changes)

    return write


def table(tmp_path, rows: int = 150):
    rng, path = generator("like"), tmp_path / "like.csv"
    age = rng.integers(0, 100, rows)
    # Some wages are beyond the bounds; the planner clips them.
    wage = (age * 8 + rng.integers(0, 200, rows)).clip(0, 2000)
    path.write_text(
        "age;wage\n" + "\n".join(f"{a};{w}" for a, w in zip(age, wage, strict=True)),
        encoding="utf-8",
    )
    return path


def plan(*options: str) -> tuple[dict, str]:
    ended = CliRunner().invoke(umpc, ["plan", *options, "--format", "json"], catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    return json.loads(ended.stdout), ended.stderr


def turn(path: Path, protocol: str, **entries: str) -> Study:
    """The study of a file, by a variant of a protocol with these entries."""
    return turned(load_study_file(path), PROTOCOLS[protocol], Variant(protocol, entries))


def grade(study: Study) -> str:
    return protocol_of(study).trust(study).grade


CELLS = {
    "protocol": "bell-ldp",
    "bins": {"age": 5, "wage": ["100", "500"]},
    "rounding": "randomised",
}


def test_no_protocol_is_recommended_that_a_constant_beats(file, tmp_path):
    """Records in which nothing goes with anything: 0 is nearer to tau than any noisy answer."""
    like, path = tmp_path / "flat.csv", file(epsilon="1/10", nodes=NODES[:1])
    rows = [f"{age},{wage}" for age in range(0, 50, 10) for wage in range(0, 500, 100)]
    like.write_text("age,wage\n" + "\n".join(rows) + "\n", encoding="utf-8")
    command = (str(path), "--records", "25", "--like", str(like), "--protocols")
    said, _ = plan(*command)
    assert said["mse_of_constant"] == 0 and said["protocols"] and said["recommended"] is None
    shown = CliRunner().invoke(umpc, ["plan", *command], catch_exceptions=False).stdout
    assert "the constant 0 " in shown
    assert shown.rstrip().endswith(
        "recommended: none, for no setting here beats answering with a constant: 0 has error 0"
    )


def test_a_study_whose_answer_is_constant_is_no_alternative(file, tmp_path):
    path = file(protocol="bell-ldp", bins={"age": 1, "wage": 4}, dealer=None)
    said, told = plan(str(path), "--records", RECORDS, "--protocols")
    assert said["mse"] is None and "the same whatever the records are" in told
    for name in OF_CELLS:
        assert "the same whatever the records are" in said["impossible"][name]
    best = next(each for each in said["protocols"] if each["protocol"] == "bell-ldp, best bins")
    assert best["mse"] > 0 and said["mse_of_constant"] is None


def test_a_file_of_cells_is_turned_to_shared_edges(file):
    study = turn(file(**CELLS), "u-mpc")
    assert study.edges.startswith("up to ")
    assert (study.protocol, study.noise, study.delta) == (
        "u-mpc",
        "in_mpc",
        "",
    )
    assert study.dealer is not None and grade(study) == "helpers"


def test_bins_and_rounding_are_carried_over_between_protocols_of_cells(file):
    for protocol in OF_CELLS:
        settings = turn(file(**CELLS), protocol).settings_as(CellSettings)
        assert [bins.count or len(bins.cuts) for bins in settings.bins] == [5, 2]
        assert settings.rounding == "randomised"


def test_a_shuffled_study_has_two_shufflers_even_if_the_file_names_none(file):
    study = turn(file(**CELLS), "ghazi-shuffle")
    assert [each.name for each in study.shufflers] == ["shuffler-1", "shuffler-2"]
    named = [{"name": name, "address": ADDRESS} for name in ("left", "right")]
    path = file(protocol="ghazi-shuffle", shufflers=named)
    assert [each.name for each in turn(path, "ghazi-shuffle").shufflers] == ["left", "right"]
    assert grade(study) == "helpers"


def test_a_file_keeps_its_own_settings_and_another_protocol_takes_its_usual_ones(file):
    noisy = file(noise="skellam", delta="1e-9", edges="3n")
    own = turn(noisy, "u-mpc")
    assert (own.noise, own.delta, own.edges) == ("skellam", "1e-9", "3n")
    pairs = turn(noisy, "bell-2pc")
    assert (pairs.delta, pairs.edges) == ("", "1p")
    curator = turn(noisy, "central", noise="hajek_subsampled")
    assert (curator.delta, curator.edges, grade(curator)) == ("", "2n", "curator")
    with pytest.raises(StudyError, match="auc"):
        turn(noisy, "bell-auc")


def test_a_mean_is_turned_to_gopa_with_the_usual_delta(file):
    study = turn(file(statistic="mean", columns=["age"]), "gopa")
    assert (study.delta, study.edges, study.dealer) == ("1e-9", "all", None)


def test_a_variant_without_a_dealer_keeps_the_edges_and_takes_the_usual_noise(file):
    noisy = file(noise="skellam", delta="1e-9", edges="3n")
    alone = turn(noisy, "u-mpc", backend="garbled", preprocessing="none")
    assert (alone.dealer, alone.noise, alone.edges, grade(alone)) == (
        None,
        "in_mpc",
        "3n",
        "nobody",
    )


def alternative(label: str, error: float, megabytes: float, trust: str = "nobody") -> Alternative:
    cost = Cost(1, (), (round(megabytes * 1e6),), 0)
    return Alternative(
        label,
        None,
        1,
        PredictedError(error),
        0.0,
        cost,
        Seconds(1, 1, megabytes, megabytes),
        trust,
        "",
    )


def test_the_best_that_meets_all_targets_is_recommended():
    found = [
        alternative("exact", 0.0, 50, "curator"),
        alternative("good", 0.1, 20, "helpers"),
        alternative("fair", 0.2, 2),
        alternative("small", 0.5, 0.1),
    ]
    for targets, label in {
        Targets(): "good",
        Targets(trust="curator"): "exact",
        Targets(trust="nobody"): "fair",
        Targets(error=0.3): "fair",
        Targets(error=0.6): "small",
        Targets(error=0.15, trust="nobody"): None,
    }.items():
        best = recommended(found, targets)
        assert (best and best.label) == label, targets


def test_every_protocol_is_planned_or_the_reason_is_given(file, tmp_path):
    like = ("--like", str(table(tmp_path)), "--delimiter", ";")
    asked = ("--records", RECORDS, *like, "--error", "9")
    values, said = plan(str(file(edges="2n")), *asked)
    planned = {entry["protocol"].split(",")[0] for entry in values["protocols"]}
    refused = {label.split(",")[0] for label in values["impossible"]}
    # a planner compares ways to one number of a kernel, from tables at sites
    others = {"vector", "people", "linked", "overlap", "counts"}
    assert (
        planned | refused == set(PROTOCOLS) - others and "planning bell-2pc, pair_laplace" in said
    )
    entries = {entry["protocol"]: entry for entry in values["protocols"]}
    assert entries["u-mpc, as asked for"]["mse"] < 81 and entries["u-mpc"]["edges"] == 300
    even = entries["u-mpc, sampling = noise"]
    assert 0.5 * even["noise"] < even["sampling"] <= even["noise"]
    assert entries["ghazi-ldp"]["bins"] and entries["ghazi-ldp"]["sampling"] == 0
    fewest = min(
        values["protocols"], key=lambda entry: entry["bytes_online"] + entry["bytes_offline"]
    )
    assert values["recommended"] == fewest["protocol"]
    assert (
        values["mse"] == pytest.approx(entries["u-mpc"]["mse"])
        and values["mse"] > values["noise_std"] ** 2
    )


def test_people_see_a_table_and_what_cannot_be(file):
    options = ["--records", RECORDS, "--trust", "nobody", "--error", "0.001"]
    ended = CliRunner().invoke(umpc, ["plan", str(file()), *options])
    assert ended.exit_code == 0, ended.output
    for words in (
        "u-mpc, no dealer",
        "bell-auc: not possible",
        "recommended: none",
        "over uniform records",
    ):
        assert words in ended.output
    ended = CliRunner().invoke(umpc, ["plan", str(file()), "--records", RECORDS, "--protocols"])
    best = [line for line in ended.output.splitlines() if "->" in line]
    assert len(best) == 1 and "recommended: u-mpc" in ended.output


def test_the_error_is_the_noise_where_all_sets_are_taken(file):
    values, _ = plan(str(file(edges="all")), "--records", RECORDS)
    assert values["sampling_std"] == values["bins_bias"] == 0
    assert sqrt(values["mse"]) == pytest.approx(values["noise_std"])


def test_larger_sets_are_planned_as_pairs_are(file):
    values, _ = plan(str(file(statistic="spearman_rho", edges="2n")), "--records", RECORDS)
    assert values["sampling_std"] > 0.5 * values["noise_std"] > 0


def test_a_target_that_more_than_can_be_sampled_would_meet_is_planned_without_drawing(file):
    """Bisection ends where edges can be sampled; the rest is all sets, or nothing."""
    records = "60000,60000,60000"
    study = load_study_file(file(edges="2n")).study("coordinator")
    attempt = attempt_over(study, records)
    like = reference_table_of(attempt, None, ",")
    assert edges_for_noise(attempt.sizes, like) > (1 << 26) - 180_000
    assert edges_for_error(attempt.sizes, like, 0.0005) < 1 << 23
    assert edges_for_error(attempt.sizes, like, 0.00006) == attempt.sizes.sets
    assert edges_for_error(attempt.sizes, like, 1e-9) is None
    large = attempt_over(study.replaced(edges="18000000"), records)
    counts = [cell.count for cell in large.hypergraph.cells.values()]
    assert sum(counts) == 18_000_000 and predict(large).bytes_offline > 10**8


@pytest.mark.parametrize(
    ("records", "reasons"),
    [
        (
            "2,1,0",
            {
                "central, hajek_split": "needs at least 8 records",
                "ghazi-rounds": "at least 50 records",
            },
        ),
        (
            "70000,70000,60000",
            {"central, hajek": "sets, at most", "central, hajek_split": "sets, at most"},
        ),
    ],
)
def test_what_a_run_would_refuse_for_its_numbers_of_records_is_not_possible(file, records, reasons):
    values, _ = plan(
        str(file(edges="all" if records == "2,1,0" else "2n")), "--records", records, "--protocols"
    )
    for label, reason in reasons.items():
        assert reason in values["impossible"][label]
    assert values["recommended"] not in values["impossible"]
    assert records == "2,1,0" or values["recommended"] == "grid"  # three records tell nothing


def test_nothing_is_recommended_where_nothing_is_possible(file):
    path = file(statistic="renyi_entropy", columns=["age"])
    ended = CliRunner().invoke(umpc, ["plan", str(path), "--records", "1,1,0", "--protocols"])
    assert ended.exit_code == 0 and "recommended: none, for no protocol is possible" in ended.output


def test_why_errors_are_not_known_is_said(file):
    values, said = plan(str(file(statistic="kendall_tau_b")), "--records", "2,1,0")
    assert (
        values["noise_std"] is values["mse"] is None
        and "errors are not known: the report is expected" in said
    )


@pytest.mark.parametrize(
    ("entries", "kept"),
    [
        ({"protocol": "gopa", "statistic": "mean", "columns": ["wage"]}, {"delta": "1e-6"}),
        ({"backend": "garbled", "preprocessing": "none", "dealer": None}, {"edges": "3n"}),
        ({"protocol": "bell-2pc", "noise": "randomised_response"}, {"edges": "2p"}),
    ],
    ids=["gopa", "no dealer", "pairs"],
)
def test_the_planned_study_of_the_file_s_own_protocol_is_the_file_s_own(file, entries, kept):
    path = file(**entries, **kept)
    own = load_study_file(path).study("coordinator")
    assert turn(path, own.protocol) == own
    for key, value in kept.items():
        assert getattr(own, key) == value


def every_number(path: Path, records: str) -> dict[str, tuple]:
    """All predicted numbers of all protocols but the seconds, by label."""
    study = load_study_file(path).study("coordinator")
    like = reference_table_of(attempt_over(study, records), None, ",")
    found = alternatives(load_study_file(path), records, like, Network(), 0.05, lambda label: None)
    numbers = {}
    for each in found:
        if isinstance(each, Alternative):
            cost = each.cost
            bytes_sent = (cost.bytes_online, cost.bytes_offline)
            numbers[each.label] = (each.edges, each.error, each.delta, cost.rounds, bytes_sent)
        else:
            numbers[each.label] = (each.reason, (0, 0))
    return numbers


@pytest.mark.parametrize("statistic", ["kendall_tau", "spearman_rho"])
def test_a_fast_plan_says_what_a_slow_one_says(file, statistic, limit):
    """Slow: E is drawn, and no kernel, trial or draw of the curator is shared."""
    path = file(statistic=statistic, edges="9n")
    limit(prediction, MOST_DRAWN=1 << 10)
    limit(prediction, LEAST_A_CELL=8)
    fast = every_number(path, "220,150,130")
    limit(prediction, MOST_DRAWN=1 << 30)
    limit(seconds, NARROWINGS=0)
    for cached in (kernel.kernel_of, messages.usual_std):
        cached.cache_clear()
    slow = every_number(path, "220,150,130")
    assert fast.keys() == slow.keys()
    for label, numbers in fast.items():
        assert numbers[:-1] == slow[label][:-1], label
        assert numbers[-1] == pytest.approx(slow[label][-1], rel=0.05), label
    assert fast["u-mpc"] != slow["u-mpc"], "this E was drawn both times"


def test_narrower_fields_make_a_grids_trial_small_and_tell_of_the_whole(file):
    study = turn(file(edges="all", backend="grid"), "grid")
    cost = protocol_of(study).cost(attempt_over(study, RECORDS))
    whole = cost.most_sent
    narrow, sent = seconds.narrowed(study, whole, whole // 20)
    assert sent <= whole // 20 and int(narrow.fields[1].upper) < 100
    for field, own in zip(narrow.fields, study.fields, strict=True):
        assert field.lower == own.lower and int(field.upper) <= int(own.upper)
    assert seconds.clipped(narrow, {"wage": np.array([5, 999])})["wage"].max() < 100
    cells = turn(file(**CELLS), "bell-ldp")
    assert seconds.narrowed(cells, 10**9, 10**6) == (cells, 10**9)


def test_one_kind_of_edges_takes_one_trial_and_all_protocols_one_pass_over_the_table(file):
    """Trials and passes take most of a plan's time."""
    tried, passed = [], []

    def measured(honest, study):
        tried.append(study.backend)
        return honest(study)

    def blocks(honest, table):
        passed.append(table)
        return honest(table)

    with lying("process", measure_machine=measured, blocks=blocks):
        values, _ = plan(str(file(edges="2n")), "--records", RECORDS, "--error", "9")
    assert tried.count("shared") == 1 and len(passed) == 1
    planned = {entry["protocol"]: entry["seconds"] for entry in values["protocols"]}
    assert planned["u-mpc, triples"] > 0 and planned["u-mpc"] > 0
