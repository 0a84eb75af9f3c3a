"""`bell-ldp` with `bins_epsilon_share`: whole studies, their cost, their error, and refusals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from reproduction.baselines.bins_table import (
    CLASS,
    COUNTS,
    adaptive,
    estimate_adaptive,
    estimate_equal,
    exact_auc,
    skewed,
)
from tests.support.local import bins, local_study, local_tables
from tests.support.moments import passes
from tests.support.protocols import begun_sides, make_node, messages_of, run_own_steps
from tests.support.statistical import SeededBits
from tests.support.studies import AUC, GINI, KENDALL, Entropy, FieldText
from umpc.dp.events import PureEvent
from umpc.errors import EncodingError, StudyError, TooFewRecords
from umpc.planning.alternatives import tune
from umpc.planning.prediction import attempt_over
from umpc.planning.reference_table import ReferenceTable
from umpc.protocols.registry import checked, decode_study, protocol_of
from umpc.simulation import simulate
from umpc_papers.local import bell_ldp_protocol, tuning
from umpc_papers.local.settings import BellLdpSettings

WIDE = tuple(FieldText(name, "0", "999", whole=True) for name in "xy")
STUDY = local_study(
    "bell-ldp", fields=WIDE, epsilon="4", bins=bins(x=3, y=3), bins_epsilon_share="1/4"
)

CLASSES = local_study(
    "bell-ldp",
    kernels=AUC,
    sampling="two_sample",
    x=("0", "999"),
    epsilon="4",
    bins=bins(x=6),
    bins_epsilon_share="1/3",
)


def crowded(count: int, label: str = "crowded") -> dict[str, np.ndarray]:
    """Correlated columns that crowd into the lowest twentieth of the range."""
    rng = np.random.default_rng(len(label))
    one, other = rng.normal(size=(2, count))
    logs = 2.5 + 0.8 * one, 2.5 + 0.8 * (0.8 * one + 0.6 * other)
    return {
        name: np.clip(np.exp(log), 0, 999).astype(np.int64)
        for name, log in zip("xy", logs, strict=True)
    }


def halves(columns: dict[str, np.ndarray], cut: int) -> list[dict[str, np.ndarray]]:
    return [
        {name: column[:cut] for name, column in columns.items()},
        {name: column[cut:] for name, column in columns.items()},
    ]


def found_masses(of, firsts, counts):
    """The masses of leaves that follow from first messages."""
    return of.search.masses(of.search.shares(firsts, counts), sum(counts))


def test_a_whole_study_asks_twice_at_the_predicted_cost_and_says_what_it_found():
    columns = crowded(3000)
    ran = simulate(STUDY, halves(columns, 1000), Entropy("whole"))
    report, script = ran.report, ran.transcript
    cuts = np.frombuffer(script.question, "<i8").reshape(2, 2)
    assert np.all(cuts[:, 0] < 100), "the cut points are where the records are"
    assert report.rounds == report.rounds_predicted == 2 and len(script.question) == 32
    sent = 2 * len(script.question) + sum(map(len, script.shares + script.answers))
    assert report.bytes_online == report.bytes_online_predicted == sent
    # A seed and a bit of each record; then four bits of each.
    assert [len(share) for share in script.shares] == [32 + 125, 32 + 250]
    assert [len(answer) for answer in script.answers] == [500, 1000]
    of = messages_of(STUDY)
    second = of.second(script.question, found_masses(of, script.shares, [1000, 2000]))
    assert abs(report.estimate - second.quantised(columns, 0)) < 6 * report.noise_std
    assert (report.epsilon, report.delta, report.noise) == (4, 0, "local")
    note = report.to_dict()["note"]
    said = " and of ".join(
        f"{name} at {', '.join(map(str, at))}" for name, at in zip("xy", cuts, strict=True)
    )
    assert note.startswith(f"a first answer with epsilon 1 of 4 put the cut points of {said}; ")
    assert "by the answers themselves it is about" in note or "x has 3 bins" in note


def test_two_classes_share_their_cut_points():
    study = CLASSES
    columns = crowded(2400)
    label = (np.arange(2400) % 3 == 0).astype(np.int64)
    columns = {"x": columns["x"] + 20 * (1 - label), "label": label}
    report = simulate(study, halves(columns, 900), Entropy("classes")).report
    above, below = (columns["x"][label == each] for each in (0, 1))
    auc = (np.sign(np.subtract.outer(above, below)).mean() + 1) / 2
    assert auc > 0.8
    assert abs(report.estimate - auc) < 0.05 + 6 * report.noise_std
    equal = simulate(
        study.replaced(bins_epsilon_share=""), halves(columns, 900), Entropy("classes")
    )
    assert abs(equal.report.estimate - auc) > 0.25, "six equal bins cannot tell the classes apart"


def test_given_the_cut_points_the_estimate_has_the_stated_mean_and_variance():
    """The second round is `bell-ldp` with the rest of ε, whatever the question."""
    columns, counts = crowded(40), (0, 40)
    gini = local_study(
        "bell-ldp",
        kernels=GINI,
        x=("0", "999"),
        epsilon="4",
        bins=bins(x=3),
        bins_epsilon_share="1/4",
    )
    for study, cuts in ((STUDY, (500, 501, 998, 999)), (gini, (5, 30))):
        question = np.array(cuts, dtype="<i8").tobytes()
        of = messages_of(study)
        first = of.randomise(columns, counts, SeededBits("first"))
        second = of.second(question, found_masses(of, [first], [40]))
        assert second.protocol.epsilon == 3 and second.protocol.cells.weights
        bits = SeededBits(f"second {cuts}")
        drawn = [
            of.estimate(
                [first], question, [of.answer(columns, counts, first, question, bits)], [counts]
            ).value
            for _ in range(200)
        ]
        mean, variance = second.quantised(columns, 0), second.predicted_std(columns, 0) ** 2
        assert passes(drawn, mean, variance)
        assert not passes(drawn, mean, variance * 2) and not passes(drawn, mean, variance / 2)
        assert not passes(drawn, mean + variance**0.5, variance)


def test_on_skewed_scores_adaptive_bins_gain_and_the_prediction_says_so():
    """`python -m reproduction.baselines bins`: equal bins are off by their bias, whatever ε is."""
    columns, epsilon = skewed(), Fraction(4)
    truth = exact_auc(columns)
    found = [estimate_adaptive(columns, epsilon) for _ in range(3)]
    assert max(abs(each - truth) for each in found) < 0.1
    assert abs(estimate_equal(columns, epsilon) - truth) > 0.15
    second = adaptive(epsilon).without_noise(columns)
    assert abs(second.quantised(columns, CLASS) - truth) < 0.02
    assert second.predicted_std(columns, CLASS) < 0.03
    assert sum(COUNTS) == len(columns["score"])


def test_values_that_crowd_are_weighted_where_they_are():
    """Gini's mean difference of skewed values: the last bin is wide, and its records are not even
    in it.
    """
    wide = {"kernels": GINI, "x": ("0", "9999"), "bins": bins(x=4), "epsilon": "8"}
    study = local_study("bell-ldp", **wide, bins_epsilon_share="1/2")
    rng = np.random.default_rng(7)
    columns = {"x": np.clip(np.exp(rng.normal(4, 1, 6000)), 0, 9999).astype(np.int64)}
    order = np.sort(columns["x"])
    ranks = 2 * np.arange(1, 6001) - 6001
    truth = 2 * float(ranks @ order) / (6000 * 5999)
    errors = {}
    for share in ("", "1/2"):
        ran = simulate(
            study.replaced(bins_epsilon_share=share), halves(columns, 2000), Entropy("gini")
        )
        errors[share] = abs(ran.report.estimate / truth - 1)
    assert errors["1/2"] < 0.5 < 5 < errors[""]
    exact = messages_of(study).without_noise(columns)
    assert exact.quantised(columns, 0) == pytest.approx(truth, rel=0.05)
    unweighted = messages_of(study).second(
        np.array(exact.protocol.cells.axes[0].cuts, dtype="<i8").tobytes()
    )
    assert unweighted.quantised(columns, 0) > 2 * truth


def test_the_plan_predicts_the_gain_and_tunes_the_share():
    """Over a table that crowds a share is worth its ε; over uniform records it is not."""
    errors = {}
    tables = {"crowded": crowded(1500), "uniform": {n: np.arange(1500) * 7919 % 1000 for n in "xy"}}
    tables["uniform"]["y"] = np.roll(tables["uniform"]["x"], 700)
    small = STUDY.replaced(bins=bins(x=2, y=2))
    for name, columns in tables.items():
        for share in ("", "1/4"):
            attempt = attempt_over(small.replaced(bins_epsilon_share=share), "700,800")
            table = ReferenceTable.of(small, columns, attempt.counts)
            errors[name, share] = protocol_of(small).error(attempt, table).mse
    assert errors["crowded", "1/4"] < errors["crowded", ""] / 2
    assert errors["uniform", ""] < errors["uniform", "1/4"]


def test_tuning_compares_shares_and_none(limit):
    """Uniform records need no share. Ties of crowded ones, which equal bins hide, are worth one."""
    limit(tuning, COUNTS=(2, 4))
    limit(bell_ldp_protocol, TRIALS=1)
    ties = "sign(a.x - b.x) * sign(a.x - b.x)"
    for kernel, column, epsilon, has_share in (
        (GINI, np.arange(400) * 7 % 1000, "2", False),
        (ties, crowded(400)["x"], "8", True),
    ):
        study = local_study(
            "bell-ldp",
            kernels=kernel,
            x=("0", "999"),
            bins=bins(x=4),
            bins_epsilon_share="9/10",
            epsilon=epsilon,
        )
        attempt = attempt_over(study, "200,200")
        made = tune(attempt, ReferenceTable.of(study, {"x": column}, attempt.counts))
        found = made.study.settings_as(BellLdpSettings).bins_epsilon_share
        assert bool(found) == has_share and made.error.mse < made.before.mse


def test_the_document_the_description_and_the_ledger_know_both_parts():
    assert checked(STUDY) is STUDY and decode_study(STUDY.encode()) == STUDY
    lines = dict(protocol_of(STUDY).describe(STUDY))
    assert lines["cut points"] == (
        "of x, y, at quantiles: a first answer of every record finds them with epsilon 1, and its "
        "second answer has epsilon 3"
    )
    events = protocol_of(STUDY).known_events(STUDY)
    assert events == (PureEvent(Fraction(1)), PureEvent(Fraction(3)))
    assert sum(event.epsilon for event in events) == STUDY.exact_epsilon
    said = dict(protocol_of(STUDY).describe_run(attempt_over(STUDY, "60,60")))
    assert said["rounds"] == "2: one message of every node, a question, and an answer"
    noted = dict(protocol_of(STUDY).compare_noise(attempt_over(STUDY, "60,60")))
    assert noted == {"epsilon": "1 for the cut points, 3 for the answer"}
    usual = STUDY.replaced(bins_epsilon_share="")
    assert protocol_of(usual).known_events(usual) == ()
    assert "cut points" not in dict(protocol_of(usual).describe(usual))


def test_given_cut_points_and_single_values_stay_as_they_are():
    study = STUDY.replaced(bins=bins(x=3, y=["10", "20"]))
    of = messages_of(checked(study))
    assert [each.field.name for each in of.search.fields] == ["x"] and of.question_bytes == 16
    question = np.array([7, 8], dtype="<i8").tobytes()
    axes = {axis.field.name: axis.cuts for axis in of.second(question).protocol.cells.axes}
    assert axes == {"x": (7, 8), "y": (10, 20)}


def test_settings_that_mean_nothing_are_refused():
    for changes, error in (
        ({"bins_epsilon_share": "0"}, "above 0 and below 1"),
        ({"bins_epsilon_share": "1"}, "above 0 and below 1"),
        ({"bins_epsilon_share": "-1/2"}, "above 0 and below 1"),
        ({"bins_epsilon_share": "much"}, "bins_epsilon_share"),
        ({"rounding": "randomised", "cell_kernel": ""}, 'rounding = "simple"'),
        ({"bins": bins(x=["5"], y=["6"])}, "no field has fewer bins than values"),
        ({"bins": bins(x=1, y=["6"])}, "no field has fewer bins than values"),
    ):
        with pytest.raises(StudyError, match=error):
            checked(STUDY.replaced(**changes))
    with pytest.raises(TooFewRecords, match="at least 100 records in all, and there are 99"):
        simulate(STUDY, halves(crowded(99), 50), Entropy("few"))


def test_a_malformed_question_is_no_question_and_a_malformed_answer_names_its_fault():
    of, columns, counts = messages_of(STUDY), crowded(60), (0, 60)
    first = of.randomise(columns, counts, SeededBits("first"))
    for cuts, reason in (
        ((), "take 32 bytes, got 0"),
        ((1, 2, 3), "take 32 bytes, got 24"),
        ((0, 2, 3, 4), "'x' do not ascend between its bounds"),
        ((1, 2, 3, 1000), "'y' do not ascend between its bounds"),
        ((2, 2, 3, 4), "do not ascend"),
        ((9, 2, 3, 4), "do not ascend"),
        ((1, 2, -3, 4), "do not ascend"),
    ):
        question = np.array(cuts, dtype="<i8").tobytes()
        with pytest.raises(EncodingError, match=reason):
            of.answer(columns, counts, first, question, SeededBits("second"))
    with pytest.raises(EncodingError, match="an answer of 30 bytes was due, 29 came"):
        of.check_answer(first, bytes(29), counts)
    with pytest.raises(EncodingError, match="not below 9"):
        of.check_answer(first, b"\xff" * 30, counts)
    of.check_answer(first, bytes(30), counts)


def test_a_later_process_answers_about_the_records_that_the_ledger_kept():
    """With a huge ε both answers are true, so they are the same; both classes keep their order."""
    columns = crowded(120)
    for study in (STUDY, CLASSES):
        study = study.replaced(epsilon="200", bins_epsilon_share="1/2")
        tables = [{**each, "label": np.arange(60) % 2} for each in halves(columns, 60)]
        coordinator, nodes = begun_sides(study, tables, Entropy("kept"))
        for node in nodes:
            run_own_steps(node)
        rest = nodes[0].rest
        released = [node.release() for node in nodes]
        question = coordinator.ask(released).question
        none = {field.name: np.zeros(0, dtype=np.int64) for field in study.fields}
        later = make_node(study.nodes[0].name, study, none, 0, Entropy("later"))
        later.recall(released[0].share, rest)
        answer = nodes[0].answer(question)
        assert later.answer(question) == answer and len(set(answer)) > 3


def test_the_question_follows_from_the_messages_alone_and_the_usual_fields_have_none():
    tables = halves(crowded(400), 100)
    ran = simulate(STUDY, tables, Entropy("question"))
    counts = [(0, 100), (0, 300)]
    assert messages_of(STUDY).question(ran.transcript.shares, counts) == ran.transcript.question
    usual = local_study("bell-ldp", kernels=KENDALL, epsilon="3")
    ran = simulate(usual, local_tables(usual, (60, 60)), Entropy("usual"))
    assert ran.transcript.question == b"" and ran.report.rounds == 1
