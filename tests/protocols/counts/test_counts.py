"""`counts`: exact without noise, noise of the joint law, predicted bytes, and every bad input."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.counts import (
    EVENT,
    GROUP,
    LOUD,
    TIME,
    counted_by_numpy,
    counts_study,
    counts_tables,
    only,
)
from tests.support.mpc_studies import ALPHA, homogeneity, uniformity
from tests.support.studies import Entropy
from umpc.api.description import describe_question
from umpc.counts import COUNTED
from umpc.errors import ImpossibleResult, InvalidEpsilon, StudyError, UmpcError
from umpc.node.policy import Policy
from umpc.planning.prediction import attempt_over, reference_table_of
from umpc.protocols.counts.settings import counted, law_of, shapes_of, size_of
from umpc.protocols.registry import checked, delta_of, protocol_of
from umpc.simulation import simulate
from umpc.study.computation import computation_hash
from umpc.study.report import Report
from umpc.study.sizes import Sizes
from umpc.testing import lying

THREE = {"columns": ["time", "event", "group"], "fields": [TIME, EVENT, GROUP]}
VALUES = [x - 0.5 for x in range(21)]
CUTS = [-0.5, 4.5, 9.5, 14.5, 19.5]
TWO = [-0.5, 0.5, 1.5]


def run(study, label="run", tables=None):
    tables = only(study, tables or counts_tables(label))
    return simulate(study, tables, Entropy(label)), tables


# --- the released table ---------------------------------------------------------------------------

EXACT = [
    ({}, [VALUES, TWO]),
    ({"bins": {"time": 4}}, [CUTS, TWO]),
    ({"bins": {"time": [5, 10, 15]}}, [CUTS, TWO]),
    (THREE, [VALUES, TWO, [-0.5, 0.5, 1.5, 2.5]]),
    ({"statistic": "quantiles", "columns": ["time"], "fields": [TIME]}, [VALUES]),
    ({"adversary": "lying_nodes"}, [VALUES, TWO]),
    ({"max_colluding": 0}, [VALUES, TWO]),
    ({"nodes": 1}, [VALUES, TWO]),
    ({"noise": "in_mpc", "epsilon": 30, "bins": {"time": 4}}, [CUTS, TWO]),
]


@pytest.mark.parametrize(("entries", "edges"), EXACT)
def test_without_noise_the_counts_are_exact_at_the_predicted_cost(entries, edges):
    study = counts_study(**entries)
    done, tables = run(study, tables=counts_tables("exact")[: len(study.nodes)])
    report = done.report
    names = [axis.field for axis in report.counts.axes]
    exact = counted_by_numpy(tables, names, edges)
    assert report.counts.values == exact.ravel().tolist()
    assert report.bytes_online == report.bytes_online_predicted > 0
    assert report.bytes_online_by_node == report.bytes_online_by_node_predicted
    assert report.bytes_offline == report.bytes_offline_predicted
    assert report.rounds == report.rounds_predicted == 1
    assert (report.counts.people, report.sums, report.records) == (1, [], exact.sum())
    assert Report.from_dict(report.to_dict()) == report


def test_a_tree_has_the_sums_of_neighbours_level_by_level():
    study = counts_study(tree="time", bins={"time": [1, 2, 5, 9]})
    done, tables = run(study, "tree")
    table = counted_by_numpy(tables, ["time", "event"], [[-1, 0.5, 1.5, 4.5, 8.5, 20], TWO])
    levels = [table]
    for pairs in ([0, 2, 4], [0, 2], [0]):
        levels.append(np.add.reduceat(levels[-1], pairs, axis=0))
    assert done.report.counts.values == [int(x) for each in levels for x in each.ravel()]
    assert shapes_of(study) == ((5, 2), (3, 2), (2, 2), (1, 2))
    assert (done.report.counts.tree, size_of(study)) == (0, 22)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 19), st.integers(0, 1), st.integers(0, 2)), max_size=30),
    cuts=st.sets(st.integers(1, 19), min_size=1, max_size=8),
    tree=st.sampled_from([None, "time"]),
)
def test_any_table_is_counted_as_the_definition_says(rows, cuts, tree):
    study = counts_study(**THREE, bins={"time": sorted(cuts)}, tree=tree)
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    found = counted(study, dict(zip(THREE["columns"], columns, strict=True)))
    shape = shapes_of(study)[0]
    expected = np.zeros(shape, dtype=int)
    for time, event, group in rows:
        expected[sum(cut <= time for cut in cuts), event, group] += 1
    assert found[: expected.size].tolist() == expected.ravel().tolist()
    for level in np.split(found, np.cumsum([np.prod(each) for each in shapes_of(study)])[:-1]):
        assert level.sum() == len(rows)


def test_the_report_says_what_the_cells_are():
    fields = [{"name": "dose", "lower": -1, "upper": 1, "resolution": "0.5"}, EVENT]
    study = counts_study(
        "roc", columns=["dose", "event"], fields=fields, bins={"dose": [0, "0.5"]}, epsilon=2
    )
    tables = [{"dose": np.array([-2, 2]), "event": np.array([0, 1])}] * 3
    report = run(study, tables=tables)[0].report
    dose, event = report.counts.axes
    assert (dose.cuts, dose.words, dose.lower, dose.upper, dose.step) == ([0, 0.5], [], -1, 1, 0.5)
    assert (event.cuts, event.words, event.field) == ([], ["no", "yes"], "event")
    assert (report.counts.statistic, report.counts.noise, report.counts.scale) == (
        "roc",
        "laplace",
        1.0,
    )
    assert report.counts.shape == 3 and "3 bins for 5 values" in report.note
    assert report.interval_covers == "the value on the records' bins"
    settings = {"fields": fields[:1], "bins": {"dose": [0, "0.5"]}, "epsilon": 2}
    within = run(counts_study("ecdf", columns=["dose"], **settings), tables=tables)[0].report
    assert "bins" not in within.note + within.interval_covers, "its intervals reach over each bin"


def test_a_table_without_a_number_has_none_and_says_so():
    report = run(counts_study("counts"))[0].report
    assert report.estimate is None and "table of 40 counts, and no number" in report.note


def test_a_repeated_study_shows_the_same_table(tmp_path):
    """The coordinator's replay has no attempt: it reads the stored shares alone."""
    from umpc.simulation import AUTHORITY
    from umpc.study import messages as m
    from umpc.study.cost import Measured

    study = counts_study(epsilon=1)
    done, tables = run(study)
    counts = [len(table["time"]) for table in tables]
    kept = [
        m.Released(done.attempt.id, share, records, 0)
        for share, records in zip(done.transcript.shares, counts, strict=True)
    ]
    side = protocol_of(study).coordinator(study, AUTHORITY.verify)
    again = side.replay(kept, Measured())
    assert again.counts == done.report.counts and again.joint_seed == ""


# --- noise and privacy ----------------------------------------------------------------------------


def test_the_noise_is_for_a_record_that_leaves_one_cell_for_another():
    for entries, length in (
        ({}, 2),
        ({"tree": "time"}, 12),
        ({"columns": ["time"], "fields": [TIME], "statistic": "ecdf", "tree": "time"}, 10),
        ({"person": "who", "records_per_person": 4}, 8),
        ({"person": "who", "records_per_person": 4, "tree": "time"}, 48),
    ):
        law = law_of(counts_study(epsilon="1/2", **entries))
        assert (law.sensitivity, law.log_ratio) == (length, Fraction(1, 2) / length)
        assert (law.nodes, law.honest) == (3, 1)


def test_neighbours_are_no_further_apart_than_the_noise_covers():
    """All pairs of values of one record, with a tree: the largest change is the sensitivity."""
    study = counts_study("ecdf", columns=["time"], fields=[TIME], tree="time")
    found = [counted(study, {"time": np.array([time, 3])}) for time in range(20)]
    apart = [np.abs(one - other) for one in found for other in found]
    assert max(each.sum() for each in apart) == law_of(study).sensitivity == 10
    assert max((each**2).sum() for each in apart) == 10  # 2 for each level but the last


def test_a_delta_alone_takes_the_law_with_less_noise():
    narrow = counts_study(epsilon=1, delta="1e-6")
    wide = counts_study(epsilon=1, delta="1e-6", tree="time", **THREE)
    assert (narrow.noise, narrow.delta) == ("distributed", "")
    assert (wide.noise, wide.delta) == ("gaussian", "1e-6")
    laplace = law_of(wide.replaced(noise="distributed", delta=""))
    assert law_of(wide).std < laplace.std and delta_of(Sizes(wide, 21, 0, 3)) == Fraction(1, 10**6)


@pytest.mark.parametrize(
    "entries",
    [
        {"epsilon": 1},
        {"epsilon": 1, "max_colluding": 1},
        {"epsilon": 3, "noise": "gaussian", "delta": "0.01"},
        {"epsilon": 1, "noise": "in_mpc"},
    ],
)
def test_the_noise_of_runs_has_the_stated_law(entries):
    study = counts_study(**entries)
    seen = []
    for number in range(12):
        done, tables = run(study, f"law {number}")
        exact = counted_by_numpy(tables, ["time", "event"], [VALUES, TWO]).ravel()
        seen.append((np.array(done.report.counts.values) - exact) / law_of(study).std)
    noise = np.array(seen)
    # 480 numbers of variance 1, whose fourth moment is at most 6
    assert abs((noise**2).mean() - 1) < 5.5 * (5 / noise.size) ** 0.5
    assert abs(noise.mean()) < 5.5 / noise.size**0.5


def test_a_committees_finite_bits_cost_a_delta_for_each_count():
    study = counts_study(epsilon=1, noise="in_mpc")
    sizes = Sizes(study, 21, 0, 3)
    assert delta_of(sizes) == 40 * law_of(study).delta > 0
    few = replace(sizes, study=study.replaced(max_colluding=0))
    assert delta_of(few) == delta_of(sizes)  # three nodes are all members


def test_a_site_sees_and_allows_the_statistic_by_its_name():
    study = counts_study(epsilon=1)
    Policy(statistics=frozenset({"kaplan_meier"})).check(study, "node-0")
    for other in ("roc", "logrank"):
        with pytest.raises(UmpcError, match="under \\[policy\\]"):
            Policy(statistics=frozenset({other})).check(study, "node-0")
    others = [
        counts_study(epsilon=1, tree="time"),
        counts_study(epsilon=1, bins={"time": 4}),
        counts_study("roc", epsilon=1, columns=["time", "event"]),
    ]
    hashes = {computation_hash(each) for each in (study, *others[:2])}
    assert len(hashes) == 3 and computation_hash(others[2]) == computation_hash(study)


def test_a_liar_moves_the_table_by_its_own_numbers_and_no_more():
    """A node that adds numbers of its own is refused, or seen; the others keep their noise."""
    study = counts_study(epsilon=1, adversary="lying_nodes")

    def adds(number):
        def lie(honest, node, records):
            (found,) = honest(node, records)
            found[3] += number * (node.index == 2)
            return [found]

        return lying("node", edge_values=lie)

    with adds(1000), pytest.raises(ImpossibleResult) as caught:
        run(study)
    assert "every possible count lies in" in caught.value.message
    honest = run(study)[0].report
    with adds(20):
        report = run(study)[0].report
    # the noise of all nodes is what it was, and only the liar's own number is added
    moved = np.array(report.counts.values) - honest.counts.values
    assert report.adversary == "lying_nodes" and moved.tolist() == [0, 0, 0, 20, *[0] * 36]


# --- what leaves a node ---------------------------------------------------------------------------

VIEWS = 320
"""Studies over either data set."""


def shares_of_two_tables(seed):
    """The last bits of two counts' shares of node-0, for two records that it may have."""
    study, samples = counts_study(columns=["event"], fields=[EVENT], statistic="counts"), []
    for event in (0, 1):
        entropy, seen = Entropy(f"{seed} {event}"), []
        for _ in range(VIEWS):
            tables = [{"event": np.array(own)} for own in ([event], [1 - event], [])]
            done = simulate(study, tables, entropy)
            size = len(done.transcript.shares[0]) // 2
            first, second = (done.transcript.shares[0][at] & 3 for at in (0, size))
            seen.append(first | second << 2)
            assert done.report.counts.values == [1, 1]
        samples.append(np.array(seen))
    return samples


def test_a_nodes_share_is_uniform_given_the_sum_whatever_its_records_are():
    """Both counts at once: their last two bits are 16 categories, and the sum is the same."""
    samples = shares_of_two_tables("views")
    p = min(homogeneity(*samples), *(uniformity(sample, 16) for sample in samples))
    assert p > ALPHA, f"p = {p:.1e}, N = {VIEWS} for each record"


@pytest.mark.parametrize(
    "zeros", [lambda honest, *given: [0] * given[-1], lambda honest, *given: honest(*given)[:1] * 2]
)
def test_power_shares_without_zero_shares_or_with_one_for_all_counts_are_found(zeros):
    with lying("node", zero_shares=zeros):
        samples = shares_of_two_tables("power")
    assert min(homogeneity(*samples), uniformity(samples[0], 16)) < ALPHA


# --- the plan -------------------------------------------------------------------------------------


def plan_lines(study, records):
    return dict(protocol_of(study).compare_noise(attempt_over(study, records)))


def test_a_plan_says_the_noise_of_a_count_and_of_other_laws():
    told = plan_lines(counts_study(epsilon=1, delta="1e-6", tree="time", **THREE), "99,99,99")
    assert "standard deviation" in told["noise of a count"]
    assert set(told) == {"noise of a count", 'noise = "in_mpc"', 'noise = "distributed"'}


def test_a_plan_says_that_records_of_one_person_allow_no_p_value():
    persons = counts_study("logrank", person="who", records_per_person=3, **THREE)
    assert "no p-value" in plan_lines(persons, "99,99,99")["persons"]
    assert "persons" not in plan_lines(counts_study("logrank", **THREE), "99,99,99")


def test_a_plan_offers_no_committee_where_nodes_lie():
    told = plan_lines(counts_study(epsilon=1, adversary="lying_nodes"), "99,99,99")
    assert 'noise = "in_mpc"' not in told


def test_who_approves_reads_of_the_table_and_of_what_a_record_changes():
    lines = list(describe_question(counts_study(epsilon=1)))
    assert not {"kernel", "  range"} & {label for label, _ in lines}
    assert not any("sum(s)" in text for _, text in lines)
    told = dict(lines)
    assert told["  changes by"] == (
        "one record replaced changes two cells by 1 each; the table gets all of epsilon 1"
    )
    assert next(text for label, text in lines if label == "  cells of").startswith("'time': cells")
    many = counts_study("quantiles", columns=["time"], fields=[TIME], tree="time", epsilon=2)
    assert "in each of" in dict(describe_question(many))["  changes by"]
    persons = counts_study(epsilon=1, person="who", records_per_person=3)
    assert (
        "one person's 3 records replaced change cells by 6 in sum"
        in (dict(describe_question(persons))["  changes by"])
    )


def test_a_plan_says_which_epsilon_would_tell_something():
    told = plan_lines(counts_study(epsilon="0.01"), "9,9,12")
    assert "no count is told from another" in told["too much noise"]
    assert "too much noise" not in plan_lines(counts_study(epsilon=2), "900,900,1200")


COLUMNS = {
    "contingency": ["event", "group"],
    "roc": ["time", "event"],
    "kaplan_meier": ["time", "event"],
    "nelson_aalen": ["time", "event"],
    "logrank": ["time", "event", "group"],
    "gehan": ["time", "event", "group"],
    "qq": ["time", "event"],
}
"""Columns of statistics of several fields; the others take the first one."""
OF_NAME = {"time": TIME, "event": EVENT, "group": GROUP}


def of_statistic(name: str, **entries):
    columns = COLUMNS.get(name, ["time"])
    fields = [OF_NAME[each] for each in columns]
    return counts_study(name, **{"columns": columns, "fields": fields, **entries})


@pytest.mark.parametrize("name", COUNTED)
def test_a_plan_of_every_statistic_says_what_is_of_no_use(name):
    told = plan_lines(of_statistic(name, epsilon="0.001"), "1,1,2")
    assert "about epsilon = " in told["too much noise"] and "many counts" in told
    assert not {"too much noise", "many counts"} & set(
        plan_lines(of_statistic(name, epsilon=2), "900,900,1200")
    )


CUTS_OF_NO_USE = [
    ([20], "above the upper bound"),
    ([0, 5], "must ascend, above the lower bound"),
    ([5, 5], "must ascend"),
    ([9, 5], "must ascend"),
]


@pytest.mark.parametrize("name", [name for name in COUNTED if name != "contingency"])
def test_cut_points_that_do_not_fit_are_refused_for_every_statistic(name):
    for cuts, reason in CUTS_OF_NO_USE:
        with pytest.raises(StudyError, match=reason):
            of_statistic(name, bins={"time": cuts})


@pytest.mark.parametrize("name", ["counts", "histogram"])
def test_one_cell_is_refused(name):
    fields = [{"name": "who", "categories": ["a"]}]
    with pytest.raises(StudyError, match=r"one cell.*more values or bins"):
        counts_study(name, columns=["who"], fields=fields)


def test_more_cells_than_records_are_allowed_and_said():
    attempt = attempt_over(counts_study(epsilon=1), "9,9,12")
    said = dict(protocol_of(attempt.study).describe_run(attempt))
    assert said["counts"] == "40 of 30 records"
    assert said["many counts"].startswith("40, more than there are records")
    few = attempt_over(attempt.study, "90,90,120")
    assert "many counts" not in dict(protocol_of(few.study).describe_run(few))


def test_a_predicted_error_is_that_of_the_statistics_number():
    study = counts_study("quantiles", columns=["time"], fields=[TIME], epsilon=4)
    attempt = attempt_over(study, "400,400,400")
    table = reference_table_of(attempt, None, ",")
    protocol = protocol_of(study)
    report = protocol.expected_report(attempt, table)
    assert report.low <= report.estimate <= report.high
    assert protocol.error(attempt, table).noise == report.noise_std
    plain = counts_study("counts", epsilon=4)
    over = attempt_over(plain, "400,400,400")
    assert protocol.error(over, reference_table_of(over, None, ",")).noise == law_of(plain).std


# --- bad input ------------------------------------------------------------------------------------

WIDE = {"name": "time", "lower": 0, "upper": 99_999, "whole": True}
REFUSED = [
    ({"columns": ["time", "time"]}, "1 to 3 different fields"),
    ({"columns": ["time", "age"]}, "uses field 'age'.*add the field"),
    (
        {"columns": ["time"], "fields": [TIME]},
        "curve: the columns time, event, .* were expected; got",
    ),
    ({"statistic": "roc", **THREE}, "ROC curve: the columns score, label were"),
    ({"columns": ["event", "time"]}, "curve: numbers were expected as time, and"),
    ({"columns": ["time", "group"], "fields": [TIME, GROUP]}, "has two values, and 'group' has 3"),
    ({"fields": [WIDE, EVENT]}, "100,000 values.*bins = {time = 100}"),
    ({"fields": [WIDE, EVENT], "bins": {"time": 10_000}}, "20,000 cells.*fewer bins"),
    ({"fields": [WIDE, EVENT], "bins": {"time": 50_000}}, "at most 16,384 cells"),
    ({"bins": {"time": [25]}}, "above the upper bound"),
    ({"bins": {"time": [0, 5]}}, "must ascend, above the lower bound"),
    ({"bins": {"time": [5, 5]}}, "must ascend"),
    ({"bins": {"time": [9, 5]}}, "must ascend"),
    ({"bins": {"time": ["2.5"]}}, "not a multiple of the resolution"),
    ({"bins": {"time": 1}}, "number of bins from 2 on"),
    ({"bins": {"time": 21}}, "20 values and cannot have 21 bins"),
    ({"bins": {"event": 2}}, "categories have no order"),
    ({"bins": {"age": 2}}, "bins are of fields of the table"),
    ({"tree": "age"}, "tree is a field of the table"),
    ({"tree": "event"}, "categories of 'event' have none"),
    ({"tree": "age", "delta": "1e-6"}, "tree is a field of the table"),
    ({"noise": "gaussian"}, "delta goes with"),
    ({"noise": "distributed", "delta": "1e-6"}, "delta goes with"),
    ({"noise": "skellam"}, "must be one of distributed, gaussian, in_mpc"),
    ({"noise": "gaussian", "delta": "2"}, "between 0 and 1"),
    ({"noise": "in_mpc", "nodes": 1}, "takes at least two nodes"),
    ({"noise": "in_mpc", "adversary": "lying_nodes"}, "no promise if nodes lie"),
    (
        {"noise": "in_mpc", "fields": [WIDE, EVENT], "bins": {"time": 8000}, "epsilon": 1},
        "at most 4096 counts",
    ),
    ({"sampling": "two_sample"}, "a label that is private|label that is public"),
    ({"sampling": "uniform"}, "table counts single records"),
    ({"strata": "event"}, "name its field as a further column"),
    ({"split": ["1/2", "1/2"]}, "all counts share epsilon"),
    ({"variance": "private"}, "has no `variance`"),
    ({"parameters": {"t": 1}}, "has no `parameters`"),
    ({"estimator": "ratio"}, "has no `estimator`"),
    ({"statistics": [{"statistic": "roc", "columns": ["time", "event"]}]}, "ask for one of them"),
    ({"protocol": "u-mpc"}, "read off a table of counts.*leave protocol out"),
    ({"protocol": "grid"}, "read off a table of counts.*leave protocol out"),
    ({"edges": "2n"}, "`edges` is not a key of a study of protocol = 'counts'"),
    ({"statistic": "survival", "protocol": "counts"}, "statistic must be one of counts"),
    ({"epsilon": 0}, "epsilon must be positive"),
    (
        {"fields": [TIME, {**EVENT, "public": True}]},
        "no field of a table is public",
    ),
    (
        {
            "statistic": "counts",
            "columns": ["who"],
            "fields": [{"name": "who", "categories": ["a"]}],
        },
        "one cell",
    ),
]


@pytest.mark.parametrize(("entries", "reason"), REFUSED)
def test_every_bad_input_is_refused_with_what_to_do(entries, reason):
    nodes = entries.get("nodes", 3)
    with pytest.raises(UmpcError, match=reason):
        counts_study(**{key: each for key, each in entries.items() if key != "nodes"}, nodes=nodes)


def test_a_document_of_another_kernel_or_of_no_cells_is_refused():
    study = counts_study()
    for changes, reason in (
        ({"kernels": ("(a.time == 1)",)}, "table of its own"),
        ({"cells": ()}, "1 to 3 different fields"),
        ({"cells": ("time", "event", "group")}, "group came"),
        ({"estimator": "total"}, "table of its own"),
    ):
        with pytest.raises(StudyError, match=reason):
            checked(study.replaced(**changes))


def test_an_epsilon_too_small_to_be_drawn_is_refused():
    with pytest.raises(InvalidEpsilon):
        counts_study(epsilon="1e-90")


def test_a_group_with_no_record_at_one_site_and_no_event_are_tables_like_others():
    tables = counts_tables("groups")
    tables[0]["group"][:] = 2
    for table in tables:
        table["event"][:] = 0
    report = run(counts_study(epsilon=LOUD, **THREE), tables=tables)[0].report
    values = np.array(report.counts.values).reshape(20, 2, 3)
    assert values[:, 1].sum() == 0 and values.sum() == 21 and report.estimate is None
