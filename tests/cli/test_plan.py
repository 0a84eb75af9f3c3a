"""`umpc plan` prints the plan's own cost, and counts delays and bytes by its documented table.

The table is in the docstring of `umpc/planning/seconds.py`.
"""

from __future__ import annotations

import json
import re
import time

import pytest
from click.testing import CliRunner

from tests.support.studies import Entropy
from tests.support.studyfiles import participants, planned_file
from umpc.cli.main import umpc
from umpc.cli.study import print_prediction
from umpc.coordinator.studyfile import load_study_file
from umpc.errors import StudyError, TooFewRecords
from umpc.mpc.backends import predict
from umpc.planning import seconds as planning
from umpc.planning.prediction import attempt_over, reference_table_of
from umpc.planning.seconds import (
    FIXED,
    LINK_SECONDS,
    Machine,
    Network,
    Seconds,
    predict_memory,
    predict_seconds,
    predict_trial_seconds,
)
from umpc.protocols.registry import protocol_of
from umpc.study.attempt import Attempt
from umpc.study.document import Study
from umpc.study.sizes import Sizes
from umpc.testing import lying

NOTHING = Machine(0.0, 0.0)
STAR = "bergsma_dassios_tau_star"


@pytest.fixture
def file(tmp_path):
    def write(**changes):
        """u-mpc over three sites; a study of another protocol has no settings but its own."""
        usual = {}
        if "protocol" not in changes:
            (dealer,) = participants("dealer")
            usual = {"edges": "2n", "dealer": dealer, "noise": "distributed"}
        return planned_file(tmp_path, ("north", "south", "west"), **(usual | changes))

    return write


def planned(file, *options: str) -> dict:
    ended = CliRunner().invoke(
        umpc, ["plan", str(file), "--records", "30,40,50", "--format", "json", *options]
    )
    assert ended.exit_code == 0, ended.output
    return json.loads(ended.output)


def study_of(file) -> Study:
    return load_study_file(file).study("coordinator")


def test_rounds_and_bytes_are_those_of_the_plan(file):
    path = file()
    attempt = attempt_over(study_of(path), "30,40,50")
    cost, values = predict(attempt), planned(path)
    assert (values["rounds"], values["bytes_online"], values["bytes_offline"]) == (
        cost.rounds,
        cost.bytes_online,
        cost.bytes_offline,
    )
    assert values["edges"] == 240 and values["memory"] == predict_memory(attempt, cost)
    assert values["seconds_total"] > values["seconds_offline"] + values["seconds_online"] > 0


def test_a_plan_has_half_the_interval_where_it_is_known(file):
    tau, tighter = planned(file(edges="all")), planned(file(edges="all", epsilon="4"))
    assert 1.5 * tau["noise_std"] < tau["half_width"] < 4 * tau["noise_std"]
    assert tighter["half_width"] < tau["half_width"] / 3
    # of a table of counts: the mean over its cells
    table = {"protocol": "counts", "statistic": "counts", "columns": ["age"]}
    counts = planned(file(**table, bins={"age": 8}))
    assert 1.5 * counts["noise_std"] < counts["half_width"] < 2.5 * counts["noise_std"]
    assert planned(file(protocol="bell-ldp"))["half_width"] is None


SCORES = {name: {"name": name, "lower": 0, "upper": 19, "whole": True} for name in "xyzw"}
SCORES["label"] = {"name": "label", "categories": ["no", "yes"]}


@pytest.mark.parametrize(
    ("statistic", "columns", "more"),
    [
        ("auc_difference", ["x", "y", "label"], {}),
        ("tau_difference", ["x", "y", "z"], {}),
        ("concordance_difference", ["x", "y", "z", "label"], {}),
        ("hodges_lehmann", ["x"], {"edges": "all"}),
        ("hodges_lehmann", ["x"], {"edges": None, "backend": "grid"}),
        ("theil_sen", ["x", "y"], {}),
        ("kendall_tau", ["x", "y"], {"weight": "w"}),
        ("kendall_tau", ["x", "y", "z"], {"protocol": "vector", "matrix": True, "delta": "1e-6"}),
    ],
)
def test_too_little_epsilon_is_told_with_one_that_would_do(file, statistic, columns, more):
    """The epsilon that is named has a tenth of the noise that fills the range."""
    names = [*columns, "w"] if "weight" in more else columns
    (dealer,) = participants("dealer")
    own = {"dealer": dealer, "edges": "2n", "fields": [SCORES[name] for name in names], **more}

    def lines(epsilon: str) -> dict[str, str]:
        path = file(statistic=statistic, columns=columns, epsilon=epsilon, **own)
        study = load_study_file(path).study("coordinator")
        return dict(protocol_of(study).compare_noise(attempt_over(study, "30,40,50")))

    found = re.search("about epsilon = ([0-9.]+) would", lines("0.001")["too much noise"])
    assert found and "too much noise" not in lines(found[1])
    assert "too much noise" in lines(f"{float(found[1]) / 20:.9f}")


def test_the_plan_says_what_the_grade_costs(file):
    honest = planned(file())
    assert not {"noise_std_if_honest", "noise_std_if_honest_usual"} & honest.keys()
    lying = planned(file(adversary="lying_nodes", noise=None))
    assert lying["noise_std_if_honest"] == honest["noise_std"]
    assert lying["noise_std"] == pytest.approx(3 * honest["noise_std"], rel=1e-2)
    assert lying["noise_std_if_honest_usual"] == planned(file(noise=None))["noise_std"]
    assert lying["noise_std_if_honest_usual"] < honest["noise_std"]


def seconds(file, network: Network, **changes):
    attempt = attempt_over(study_of(file(**changes)), "30,40,50")
    return attempt, predict(attempt), predict_seconds(attempt, predict(attempt), NOTHING, network)


def test_delays_are_counted_as_the_table_says(file):
    attempt, _, once = seconds(file, Network(1.0))
    assert once.offline == pytest.approx(FIXED[1] + 1 + 8 + 8 + 1)
    assert once.online == pytest.approx(FIXED[2] + (1 + 2 + 1 + 2)) and attempt.rounds == 3
    assert once.total == pytest.approx(FIXED[0] + 14 + once.offline + once.online)
    drawn, _, committee = seconds(file, Network(1.0), noise="in_mpc", coins="dealt")
    assert committee.offline == pytest.approx(once.offline + drawn.noise_plan.rounds)
    drawn, cost, committee = seconds(file, Network(1.0), noise="in_mpc")
    set_up = 3 + 2 * LINK_SECONDS / 2
    assert committee.offline == pytest.approx(once.offline + set_up + drawn.toss_plan.rounds)
    assert 0 < cost.bytes_dealt < cost.bytes_offline
    garbled = {"dealer": None, "backend": "garbled", "preprocessing": "none"}
    _, _, alone = seconds(file, Network(1.0), **garbled)
    assert alone.offline == pytest.approx(FIXED[1] + 1 + 8 + 3 + 2 * LINK_SECONDS / 2 + 1)
    tossing, _, together = seconds(file, Network(1.0), **garbled, noise="in_mpc")
    assert together.offline == pytest.approx(alone.offline + tossing.toss_plan.rounds)


def test_a_following_study_sets_up_no_transfers(file):
    attempt, _, once = seconds(file, Network(1.0))
    assert once.following == pytest.approx(once.total)
    drawn, _, three = seconds(file, Network(1.0), noise="in_mpc")
    assert three.following == pytest.approx(once.following + drawn.toss_plan.rounds)
    path = file(noise="in_mpc", nodes=[{"name": f"n{i}", "address": f"n{i}:1"} for i in range(2)])
    pair = attempt_over(study_of(path), "30,40")
    found = predict_seconds(pair, predict(pair), NOTHING, Network(1.0))
    assert found.following == pytest.approx(
        once.following + pair.toss_plan.rounds + pair.rounds - attempt.rounds
    )
    assert found.with_work(2.0, 3.0).following == found.following + 5.0


@pytest.mark.parametrize(
    ("changes", "saved"),
    [
        ({"backend": "garbled"}, 3 + LINK_SECONDS),
        ({"backend": "triples"}, 0),
        ({"backend": "triples", "noise": "in_mpc"}, 0),
        ({"backend": "grid", "edges": "all"}, 0),
    ],
)
def test_only_some_studies_without_a_dealer_leave_channels_to_the_next(file, changes, saved):
    """Edges by triples and grids set theirs up each time."""
    _, _, found = seconds(file, Network(1.0), dealer=None, preprocessing="none", **changes)
    assert found.total - found.following == pytest.approx(saved)


def test_bytes_pass_a_line(file):
    _, cost, with_line = seconds(file, Network(0.0, 1e4))
    assert with_line.online == pytest.approx(FIXED[2] + cost.bytes_online / 3 / 1e4)
    assert with_line.offline == pytest.approx(FIXED[1] + cost.bytes_offline / 1e4)


def test_the_dealer_does_all_dealing_and_the_owners_share_the_edges(file):
    path = file()
    attempt = attempt_over(study_of(path), "30,40,50")
    shared = sum(cell.count for cell in attempt.hypergraph.shared_cells.values())
    machine, cost = Machine(1.0, 3.0), predict(attempt)
    apart = predict_seconds(attempt, cost, machine, Network())
    assert apart.offline - FIXED[1] == pytest.approx(shared)
    assert apart.online - FIXED[2] == pytest.approx(3 * shared * 2 / 3)


@pytest.mark.parametrize("protocol", ["u-mpc", "bell-2pc"])
def test_the_trial_runs_the_studys_own_kernels(file, protocol, limit):
    limit(planning, TRIAL_RECORDS=60)
    changes = {"protocol": protocol} if protocol != "u-mpc" else {}
    machine = planning.measure_machine(study_of(file(**changes)))
    assert machine.evaluating > 0 and machine.dealing >= 0


def test_a_statistic_of_single_records_is_planned_too(file):
    """Its trial has as many records as sets: 400 would be too few."""
    values = planned(file(statistic="mean", columns=["age"], edges="all"))
    assert (values["sets"], values["edges"], values["rounds"]) == (120, 120, 1)
    assert values["seconds_total"] > 0


@pytest.mark.parametrize(
    ("protocol", "sent"), [("bell-ldp", 15 + 20 + 25), ("ghazi-ldp", 3 * 32 + 4 + 5 + 7)]
)
def test_of_one_message_protocols_rounds_bytes_and_an_error(file, protocol, sent, capsys):
    values = planned(file(protocol=protocol))
    assert (values["rounds"], values["bytes_online"], values["bytes_offline"], values["sets"]) == (
        1,
        sent,
        0,
        7140,
    )
    assert 0.1 < values["noise_std"] < 5 and values["sampling_std"] == 0
    assert values["seconds_total"] > 0.1
    finer = planned(file(protocol=protocol, bins={"age": 8, "balance": ["0", "500"]}))
    assert finer["noise_std"] > values["noise_std"]
    study = study_of(file(protocol=protocol))
    print_prediction(study, "30,40,50")
    said = capsys.readouterr().out
    assert f"{sent} to the coordinator" in said and "all 7,140 pairs of 120 records" in said
    bins = "simple rounding to bins: 4 of 'age', 4 of 'balance'"
    assert ("bins", bins) in protocol_of(study).describe(study)
    ended = CliRunner().invoke(
        umpc, ["plan", str(file(protocol=protocol)), "--records", "30,40,50"]
    )
    assert ended.exit_code == 0 and "bins bias (over uniform records)" in ended.output


def test_of_a_protocol_that_asks_the_question_counts_too(file, capsys):
    """The questions are three times 16 cells of eight bytes.

    A node sends one byte beside its records' bits and its seed.
    """
    values = planned(file(protocol="ghazi-rounds"))
    sent = 3 * (32 + 1 + 128) + 4 + 5 + 7
    assert (values["rounds"], values["bytes_online"], values["bytes_offline"], values["sets"]) == (
        2,
        sent,
        0,
        7140,
    )
    assert values["noise_std"] > 0.1
    print_prediction(study_of(file(protocol="ghazi-rounds")), "30,40,50")
    said = capsys.readouterr().out
    assert "2: one message of every node, a question, and an answer" in said
    assert f"{sent} to and from the coordinator" in said


def test_of_gopa_the_noise_is_known_and_there_is_nothing_else(file, capsys):
    options = {
        "statistic": "mean",
        "columns": ["age"],
        "delta": "1e-9",
        "max_colluding": 1,
        "protocol": "gopa",
    }
    values = planned(file(**options))
    assert (values["rounds"], values["bytes_offline"], values["sets"], values["edges"]) == (
        1,
        0,
        120,
        120,
    )
    assert values["bytes_online"] in (12, 15, 18) and values["sampling_std"] == 0
    assert values["bins_bias"] == pytest.approx(0, abs=1e-9)
    assert values["mse"] == pytest.approx(values["noise_std"] ** 2)
    print_prediction(study_of(file(**options)), "30,40,50")
    said = capsys.readouterr().out
    assert f"standard deviation {values['noise_std']:.4g}\n" in said and "all 120 records" in said
    assert "1: one message of every node\n" in said
    assert f"{values['bytes_online']} to the coordinator" in said


def test_of_a_shuffled_study_too_with_its_delta_and_refused_for_too_few_records(file, capsys):
    path = file(protocol="ghazi-shuffle", shufflers=participants("one", "two"))
    values, study = planned(path), study_of(path)
    assert (values["rounds"], values["bytes_offline"], values["sets"]) == (2, 0, 7140)
    assert 0.01 < values["noise_std"] < 0.5
    print_prediction(study, "30,40,50")
    said = capsys.readouterr().out.replace(",", "")
    heaps, messages = (int(number) for number in re.findall(r"(\d+) to the", said))
    assert heaps + messages == values["bytes_online"] and abs(heaps / messages - 2) < 0.01
    assert "delta        3.38e-12" in said
    with pytest.raises(TooFewRecords, match="without the 2 node"):
        print_prediction(study, "18,40,50")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--delay", "-1"), "at least 0"),
        (("--bandwidth", "0"), "above 0"),
        (("--records", "1,2"), "3 here"),
    ],
)
def test_what_cannot_be_planned_is_refused(file, options, said):
    ended = CliRunner().invoke(umpc, ["plan", str(file()), "--records", "30,40,50", *options])
    assert isinstance(ended.exception, StudyError) and said in ended.exception.message


def predicted_from_a_trial(path, records: str) -> tuple[Attempt, Seconds]:
    """The attempt of a study whose nodes work alone, and the seconds that follow from its trial."""
    attempt = attempt_over(study_of(path), records)
    protocol = protocol_of(attempt.study)
    trial = protocol.trial(attempt.study, attempt.sizes.records)
    columns = reference_table_of(attempt, None, ",").columns
    cost = protocol.cost(attempt)
    return attempt, predict_trial_seconds(attempt, cost, trial, columns, Network())


def test_a_curators_seconds_follow_the_sets_that_its_mechanism_takes(file, monkeypatch):
    """Disjoint sets: half as many as records. All sets: half the square. Both from one trial."""
    monkeypatch.setattr(time, "process_time", iter([0.0, 1.0] * 2).__next__)
    online = {}
    for noise in ("coinpress_naive", "laplace"):
        path = file(protocol="central", noise=noise)
        online[noise] = predicted_from_a_trial(path, "3000,3000,4000")[1].online
    assert online["coinpress_naive"] - FIXED[2] == pytest.approx(10)
    assert online["laplace"] - FIXED[2] == pytest.approx(100, rel=0.01)


@pytest.mark.parametrize("option", [("--delay", "nan"), ("--delay", "inf"), ("--bandwidth", "nan")])
def test_a_line_is_described_by_numbers(file, option):
    with pytest.raises(StudyError, match="both numbers"):
        CliRunner().invoke(
            umpc, ["plan", str(file()), "--records", "3,4,5", *option], catch_exceptions=False
        )


CURATED = {"protocol": "central"}
SHUFFLED = {"protocol": "ghazi-shuffle", "shufflers": participants("one", "two")}


@pytest.mark.parametrize(
    ("changes", "records", "tried"),
    [
        ({**CURATED, "noise": "laplace", "statistic": "spearman_rho"}, ["400"] * 3, (150, 185)),
        ({**CURATED, "noise": "hajek_split", "statistic": STAR}, ["80"] * 3, (110, 145)),
        ({**CURATED, "noise": "coinpress_naive"}, ["400"] * 3, (1000, 1001)),
        (SHUFFLED, ["40"] * 60, (1140, 1141)),
    ],
    ids=["triples", "quadruples", "disjoint", "shuffled"],
)
def test_a_trial_is_small_and_as_large_as_the_study_needs(file, changes, records, tried):
    """A trial over all triples of 1,000 records took half a minute.

    Shuffling needs 19 records of each node, which 1,000 records of 60 nodes do not have.
    """
    simulated = []
    nodes = participants(*(f"node-{number}" for number in range(len(records))))
    with lying("process", simulate=lambda _, study, tables, *__: simulated.append((study, tables))):
        attempt, _ = predicted_from_a_trial(file(nodes=nodes, **changes), ",".join(records))
    ((study, tables),) = simulated
    sizes = [len(next(iter(table.values()))) for table in tables]
    assert Sizes(study, sum(sizes)).edges <= 1 << 20 or study.edges == "all"
    assert tried[0] <= sum(sizes) < tried[1] and max(sizes) <= min(sizes) + 1, sizes
    if study.shufflers:
        few = [{name: column[:19] for name, column in table.items()} for table in tables]
        assert planning.simulate(attempt.study, few, Entropy("trial"))


def test_people_at_two_sites_are_told_in_numbers(file):
    """120 records of 100 people: 1 − C(100, 2)/C(120, 2) of the pairs have two of one person."""
    lines = planned(file(), "--shared", "20")["shared"]
    assert "n counts 20 people twice: its 120 records are of 100 people" in lines[0]
    assert "2 epsilon = 2; to everybody else epsilon = 1" in lines[1]
    assert "at most 31 % of its kernel's range" in lines[2]
    assert "shared" not in planned(file())
    shown = CliRunner().invoke(
        umpc, ["plan", str(file()), "--records", "30,40,50", "--shared", "20"]
    )
    assert lines[1] in shown.stdout
    refused = CliRunner().invoke(
        umpc, ["plan", str(file()), "--records", "30,40,50", "--shared", "61"]
    )
    assert "at most half of the 120 records" in str(refused.exception)
