"""`gopa` in memory, by the real sides: shared noise cancels, and each view has its stated law."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from tests.support.gopa import (
    gopa_study,
    numbers,
    protocol_of,
    ring_of_sessions,
    sums,
    tables_of,
    uncovered,
)
from tests.support.released import released_by
from tests.support.statistical import ALPHA, WRONG_SCALES
from tests.support.studies import Entropy, FieldText, make_members
from umpc.errors import EncodingError, RangeError, StudyError, TooFewRecords
from umpc.protocols.base.one_message_protocol import cost_of_messages
from umpc.protocols.registry import attempt_of
from umpc.simulation import simulate
from umpc.study.attempt import commit
from umpc_papers.gopa.messages import LEAST_STEPS

COUNTS = (4, 0, 7, 1, 30)
STUDY = gopa_study(5, colluding=2)
TABLES = tables_of(COUNTS)
OF = protocol_of(STUDY)
RUNS = 550


@cache
def views() -> dict[str, np.ndarray]:
    """The views of many runs, each minus the exact value, in standard deviations of its law."""
    exact, entropy, own, pairwise = (
        sums(STUDY, TABLES),
        Entropy("gopa views"),
        OF.noise.own,
        OF.noise.pairwise,
    )
    found = {"sum": [], "coalition": [], "message": []}
    for _ in range(RUNS):
        run = simulate(STUDY, TABLES, entropy)
        seen = uncovered(run)
        found["sum"].append((sum(numbers(run)) - sum(exact)) / (5 * own) ** 0.5)
        found["coalition"].append((sum(seen) - sum(exact[2:])) / (3 * own) ** 0.5)
        found["message"].append((seen[0] - exact[2]) / (own + 2 * pairwise) ** 0.5)
    return {name: np.array(values) for name, values in found.items()}


@pytest.mark.parametrize("view", ["sum", "coalition", "message"])
def test_what_each_sees_has_the_stated_law(view):
    """Each view has noise of so many parameters.

    - The sum of all messages: N parameters that do not cancel.
    - The honest nodes' sum, when the coalition has taken away all that it knows: h parameters,
      which suffice for ε.
    - One honest node's message, seen by the coalition: its own noise, and all that it shares with
      honest nodes.

    Parameters are so large that the law is normal to many digits.
    """
    assert OF.noise.own > 1 << 40
    assert (OF.noise.nodes, OF.noise.honest) == (5, 3) and OF.noise.epsilon(STUDY.exact_delta) <= 1
    for scale in (1.0, *map(float, WRONG_SCALES)):
        seen = np.histogram(stats.norm.cdf(views()[view] / scale), bins=10, range=(0, 1))[0]
        p = stats.chisquare(seen).pvalue
        assert (p > ALPHA) == (scale == 1.0), f"scale × {scale}: p = {p:.1e} of {RUNS} runs"


def test_what_two_nodes_share_cancels_exactly():
    nodes = ring_of_sessions(STUDY, TABLES, Entropy("cancels"))
    pairs = [(i, j) for i in range(5) for j in range(5) if i != j]
    shared = {(i, j): nodes[i].shared_noise(nodes[i].attempt, j) for i, j in pairs}
    assert all(shared[i, j] == -shared[j, i] != 0 for i, j in combinations(range(5), 2))
    assert len({abs(value) for value in shared.values()}) == 10, "two pairs share the same noise"
    own = [
        node.noise - sum(shared[i, j] for j in range(5) if j != i) for i, node in enumerate(nodes)
    ]
    assert sum(node.noise for node in nodes) == sum(own)
    assert max(map(abs, own)) < 10 * OF.noise.own**0.5 < min(abs(node.noise) for node in nodes)


def test_another_attempt_shares_other_noise():
    """The seed is bound to the attempt, even where the keys are the same."""
    members, openings = make_members(STUDY, COUNTS)
    node = ring_of_sessions(STUDY, TABLES, Entropy("a"))[0]
    other_opening = bytes(32)
    commitment = commit(STUDY.hash, members[0].name, other_opening)
    others = [replace(members[0], commitment=commitment), *members[1:]]
    first = attempt_of(STUDY, members, openings)
    second = attempt_of(STUDY, others, [other_opening, *openings[1:]])
    assert [each.public_key for each in first.members] == [
        each.public_key for each in second.members
    ]
    assert node.shared_noise(first, 1) == node.shared_noise(first, 1)
    assert node.shared_noise(first, 1) != node.shared_noise(second, 1)


def test_the_report_says_the_noise_the_cost_and_the_participants():
    run = simulate(STUDY, TABLES, Entropy("report"))
    report, exact = run.report, np.concatenate([table["x"] for table in TABLES]).mean()
    assert report.noise_std == pytest.approx((5 * OF.noise.own) ** 0.5 / OF.scale / 42)
    assert abs(report.estimate - exact) < 6 * report.noise_std
    assert (report.epsilon, report.delta, report.noise, report.protocol) == (
        1,
        1e-9,
        "gopa",
        "gopa",
    )
    assert (report.rounds, report.edges, report.records, report.nodes, report.max_colluding) == (
        1,
        42,
        42,
        5,
        2,
    )
    assert report.records_by_node == list(COUNTS) and report.max_degree == 1
    assert report.bytes_online_by_node == report.bytes_online_by_node_predicted
    assert (
        report.bytes_online
        == report.bytes_online_predicted
        == sum(OF.message_bytes((0, n)) for n in COUNTS)
    )
    assert (
        report.bytes_offline == report.bytes_offline_predicted == 0 and run.transcript.online == []
    )


@pytest.mark.parametrize(
    ("changes", "exact"),
    [
        ({"kernels": "a.x * a.y - 3"}, lambda x, y: x * y - 3),
        ({"kernels": "a.x * (1/4)"}, lambda x, y: x / 4),
        ({"kernels": "a.x < 2"}, lambda x, y: x < 2),
        ({"x": ("0", "3"), "kernels": "a.x * 10000000000"}, lambda x, y: x * 1e10),
    ],
    ids=lambda value: value["kernels"] if isinstance(value, dict) else "",
)
def test_the_mean_of_any_kernel_of_one_record(changes, exact):
    study = gopa_study(3, colluding=0, epsilon="1000000", **changes)
    tables = tables_of((20, 30, 0))
    report = simulate(study, tables, Entropy("kernel")).report
    together = {name: np.concatenate([table[name] for table in tables]) for name in "xy"}
    value = exact(together["x"], together["y"]).mean()
    assert 0 < report.noise_std < 1e-2 * max(1, abs(value))
    assert abs(report.estimate - value) < 6 * report.noise_std
    of = protocol_of(study)
    assert of.noise.steps == of.kernel.sensitivity_units * of.scale >= LEAST_STEPS
    assert of.quantised(together, 0) == pytest.approx(value)


def test_steps_are_no_finer_than_they_must_be():
    of = protocol_of(gopa_study(3))
    assert LEAST_STEPS <= of.noise.steps < 2 * LEAST_STEPS and of.scale == 1 << 23
    coarse = protocol_of(gopa_study(3, fields=(FieldText("x", "0", str(1 << 30), whole=True),)))
    assert (coarse.scale, coarse.noise.steps) == (1, 1 << 30)


def test_large_values_add_up_exactly():
    """Beyond what 64 bits hold together."""
    top = 1 << 40
    of = protocol_of(
        gopa_study(2, kernels="a.x * a.y", x=(f"-{top}", f"{top}"), y=("0", "2097152"))
    )
    for sign in (1, -1):
        columns = {
            "x": sign * np.array([top] * 40 + [-top, 1, top - 1]),
            "y": np.full(43, (1 << 21) - 1),
        }
        columns["y"][-1] = 1
        exact = sum(int(x) * int(y) for x, y in zip(columns["x"], columns["y"], strict=True))
        assert of.total(columns) == exact and abs(exact) > 1 << 65 and of.kernel.unit == 1
    assert of.total({name: column[:0] for name, column in columns.items()}) == 0


def test_a_constant_kernel_is_refused():
    with pytest.raises(StudyError, match="nothing to estimate"):
        simulate(gopa_study(2, kernels="a.x * 0 + 1"), tables_of((2, 2)), Entropy("constant"))


def test_a_message_holds_its_number_and_nothing_larger():
    counts, columns = (0, 7), TABLES[2]
    exact, bound = sums(STUDY, TABLES)[2], OF.bound((0, 7))
    for noise in (0, bound - exact, -bound - exact):
        message = OF.message(columns, counts, noise)
        OF.check(message, counts)
        assert (
            len(message) == OF.message_bytes(counts)
            and int.from_bytes(message, "little", signed=True) == exact + noise
        )
    for noise in (bound - exact + 1, -bound - exact - 1):
        with pytest.raises(RangeError, match="does not fit its message"):
            OF.message(columns, counts, noise)


@pytest.mark.parametrize("how", ["short", "long", "empty", "too large", "too small"])
def test_a_malformed_message_is_refused(how):
    counts, bound = (0, 7), OF.bound((0, 7))
    size = OF.message_bytes(counts)
    largest = (1 << 8 * size - 1) - 1
    assert largest > bound, "every number fits: nothing could be too large"
    bad = {
        "short": bytes(size - 1),
        "long": bytes(size + 1),
        "empty": b"",
        "too large": (bound + 1).to_bytes(size, "little", signed=True),
        "too small": (-bound - 1).to_bytes(size, "little", signed=True),
    }[how]
    with pytest.raises(EncodingError):
        OF.check(bad, counts)


def test_no_records_are_refused_before_any_opening():
    with pytest.raises(TooFewRecords):
        released_by(STUDY, tables_of((0,) * 5), (0,) * 5)


def test_the_cost_is_every_nodes_number():
    cost = cost_of_messages(OF, [(0, 5), (0, 0), (0, 10**9)])
    assert cost.revealed == tuple(OF.message_bytes((0, n)) for n in (5, 0, 10**9))
    assert cost.rounds == 1
    assert cost.revealed[0] < cost.revealed[2] <= cost.revealed[0] + 4 and cost.bytes_offline == 0
