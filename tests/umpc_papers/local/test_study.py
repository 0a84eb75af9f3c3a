"""Local studies in memory, by the real sides: near the records' own value, as predicted."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.local import ALONE, SHAPES, bins, local_study, local_tables, quantised
from tests.support.protocols import ASKS, OF_CELLS, ONE_MESSAGE, messages_of
from tests.support.studies import GINI, Entropy, FieldText
from umpc.cli.table import exact_over_all
from umpc.errors import InvalidEpsilon, RangeError, StudyError
from umpc.protocols.base.one_message import check_size, uniform_std
from umpc.protocols.registry import PROTOCOLS
from umpc.simulation import simulate
from umpc.study.messages import MAX_PAYLOAD
from umpc_papers.local.settings import MOST_CELLS, MOST_LEVELS

FAR = 6
"""Standard deviations of the randomisation."""
COUNTS = {1: (700,), 2: (300, 401), 5: (2, 0, 300, 1, 450)}
by_protocol = pytest.mark.parametrize("protocol", ONE_MESSAGE)


def run(study, counts, label="run"):
    tables = local_tables(study, counts, label)
    return simulate(study, tables, Entropy(f"{label} {study.protocol} {counts}")), tables


@pytest.mark.parametrize("nodes", COUNTS)
@by_protocol
def test_the_estimate_is_near_the_records_own_value_at_the_predicted_cost(protocol, nodes):
    """Bins are single values, and ties count as the library counts them."""
    study = local_study(protocol, nodes, epsilon="3")
    ran, tables = run(study, COUNTS[nodes])
    report, value = ran.report, exact_over_all(study, tables)
    assert quantised(study, tables) == pytest.approx(value, abs=1e-12)
    assert abs(report.estimate - value) < FAR * report.noise_std and 0.001 < report.noise_std < 0.2
    script = ran.transcript
    asked = len(script.question) * len(study.nodes)
    asks = protocol == ASKS
    assert PROTOCOLS[protocol].questions == asks and len(script.question) == 8 * 16 * asks
    sent = asked + sum(map(len, script.shares + script.answers))
    assert report.bytes_online == report.bytes_online_predicted == sent
    assert report.bytes_online_by_node == report.bytes_online_by_node_predicted
    assert report.bytes_online_by_step == report.bytes_online_by_step_predicted
    assert report.rounds == report.rounds_predicted == 1 + asks
    assert report.bytes_offline == report.bytes_offline_predicted == 0
    assert ran.transcript.online == ran.transcript.offline == []
    assert (report.protocol, report.noise, report.backend, report.preprocessing) == (
        protocol,
        "local",
        "none",
        "none",
    )
    assert (report.epsilon, report.delta, report.sampling_std_bound, report.edges) == (
        3,
        0,
        0,
        report.sets,
    )
    possible = study.parsed_kernels[0].interval
    assert possible.low <= report.low < report.high <= possible.high


@pytest.mark.parametrize("protocol", ["bell-ldp", "bell-auc"])
def test_with_a_huge_epsilon_every_answer_is_true(protocol):
    """bell-ldp then counts the cells; bell-auc still asks for one level and one index."""
    study = local_study(protocol, 2, epsilon="60")
    ran, tables = run(study, COUNTS[2])
    tolerance = 1e-9 if protocol == "bell-ldp" else FAR * ran.report.noise_std
    assert ran.report.estimate == pytest.approx(quantised(study, tables), abs=tolerance)


@pytest.mark.parametrize("protocol", [each for each in OF_CELLS if each in ONE_MESSAGE])
@pytest.mark.parametrize(
    "changes",
    [
        {"kernels": GINI, "bins": bins(x=2)},
        {"bins": bins(x=["1", "3"], y=2)},
        {"rounding": "randomised", "bins": bins(y=2, x=["2"])},
        {"kernels": "a.job == b.job", "fields": (FieldText.of_categories("job", "abc"),)},
        {"kernels": "a.x * b.x * a.y * b.y", "estimator": "mean"},
    ],
    ids=str,
)
def test_any_symmetric_kernel_of_pairs_on_any_cells(protocol, changes):
    study = local_study(protocol, 2, epsilon="3", **changes)
    rng = np.random.default_rng(1)
    tables = [
        {f.name: rng.integers(0, int(f.upper) + 1, 200) for f in study.fields} for _ in study.nodes
    ]
    report = simulate(study, tables, Entropy("any")).report
    assert abs(report.estimate - quantised(study, tables)) < FAR * report.noise_std


@by_protocol
def test_with_two_different_seeds_two_messages_and_with_one_the_same(protocol):
    study = local_study(protocol)
    tables = local_tables(study, (50, 60))
    sent = [simulate(study, tables, Entropy(seed)).transcript.shares for seed in ("a", "a", "b")]
    assert sent[0] == sent[1] and all(
        one != other for one, other in zip(sent[0], sent[2], strict=True)
    )


@pytest.mark.parametrize("protocol", ALONE)
def test_the_length_of_a_message_says_nothing_that_was_not_told_before(protocol):
    study = local_study(protocol)
    both = simulate(study, local_tables(study, (50, 60), "one"), Entropy("a"))
    messages = messages_of(study)
    for node, share in zip(both.nodes, both.transcript.shares, strict=True):
        assert len(share) == messages.message_bytes(node.accept().classes)


@by_protocol
def test_a_message_beyond_a_mebibyte_is_refused_with_the_nodes_name(protocol):
    of = messages_of(local_study(protocol))
    many = 8 * MAX_PAYLOAD + 2
    advice = "fewer records" if protocol == "local-mean" else "fewer bins"
    message = f"message of north would have .* at most 1 MiB .* {advice}, or split"
    with pytest.raises(RangeError, match=message) as e:
        check_size(of, "north", (many // 2, many // 2))
    assert e.value.culprit == "north"
    check_size(of, "north", (MAX_PAYLOAD, MAX_PAYLOAD // 2))


def test_an_epsilon_that_says_nothing_is_refused():
    with pytest.raises(InvalidEpsilon, match="too small"):
        messages_of(local_study("bell-ldp", epsilon="1e-20"))


def test_bins_that_leave_nothing_of_the_kernel_are_refused_before_the_release():
    """With one bin of x all records tie."""
    study = local_study("ghazi-ldp", bins=bins(x=1, y=4))
    with pytest.raises(StudyError, match="zero between all cells; there is nothing to estimate"):
        run(study, COUNTS[2])


def test_the_limits_of_a_study_are_those_of_the_protocols():
    from umpc_papers.local import bell_auc
    from umpc_papers.local import quantisation as cells

    assert (MOST_CELLS, MOST_LEVELS) == (cells.MOST_CELLS, bell_auc.MOST_LEVELS)
    assert tuple(SHAPES) == ONE_MESSAGE and set(ONE_MESSAGE) < set(PROTOCOLS)


@by_protocol
def test_the_error_for_uniform_records_is_the_librarys(protocol):
    """Against a run over uniform records: its own estimate of its error is near."""
    study, rng = local_study(protocol, 1, epsilon="2"), np.random.default_rng(5)
    table = {name: rng.integers(0, 4, 20_000) for name in "xy"} | {
        "label": rng.integers(0, 2, 20_000)
    }
    report = simulate(study, [table], Entropy("uniform")).report
    first = report.first_class_by_node[0]
    predicted = uniform_std(study, [(first, 20_000 - first)], messages_of(study))
    assert predicted == pytest.approx(report.noise_std, rel=0.25)


def test_five_ratings_have_a_bin_each_and_fewer_bins_are_named_in_the_report():
    """4 bins for 5 ratings gave .23 to .31 for .435, and the report said nothing of it."""
    ratings = tuple(FieldText(name, "1", "5", whole=True) for name in "xy")
    rng = np.random.default_rng(5)
    x = rng.choice(5, 400, p=(0.05, 0.05, 0.1, 0.3, 0.5)) + 1
    y = np.where(rng.random(400) < 0.5, x, rng.permutation(x))
    tables = [{"x": x[:200], "y": y[:200]}, {"x": x[200:], "y": y[200:]}]
    for protocol in set(OF_CELLS) & set(ONE_MESSAGE):
        usual_bins = local_study(protocol, fields=ratings, epsilon="8")
        report = simulate(usual_bins, tables, Entropy("ratings")).report
        assert report.to_dict()["note"] == "" and "bins" not in report.interval_covers
        assert abs(report.estimate - exact_over_all(usual_bins, tables)) < FAR * report.noise_std
        for rounding in ("simple", "randomised"):
            few = usual_bins.replaced(bins=bins(x=4, y=4), rounding=rounding)
            said = simulate(few, tables, Entropy("ratings")).report.to_dict()
            assert said["interval_covers"] == "the value on the records' bins"
            assert "the bins' own error is not in the interval" in said["note"]
            assert "x has 4 bins for 5 values, y has 4 bins for 5 values" in said["note"]
