"""Section 5: the test of uniformity and the share of triangles."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from reproduction.baselines.triangles import TriangleDensity, triangle_terms
from tests.support.curated import SeededBits, accept_law, accept_moments, audited, draws, heavy_cdf
from umpc.dp.events import PureEvent
from umpc.errors import InvalidEpsilon, StudyError, TooFewRecords
from umpc_papers.central.hajek import reweight, tuning_of
from umpc_papers.central.terms import CompleteFamily, kernel_terms, sums
from umpc_papers.central.uniformity import UniformityTest

ONE = Fraction(1)
TEST = UniformityTest("x", 8, ONE, 800, Fraction(2))


def sample(odds: np.ndarray, records: int, seed: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(seed).choice(len(odds), records, p=odds / odds.sum())}


UNIFORM, FAR = np.ones(8), 1 + np.array([1, -1] * 4)

# --- uniformity -----------------------------------------------------------------------------------


def test_it_tells_uniform_from_far():
    """Three samples of either hypothesis; the bound of a wrong answer is below 1/5."""
    assert max(TEST.error_bound(Fraction(0)), TEST.error_bound(ONE)) < 0.2
    assert TEST.error_bound(Fraction(3, 4)) == 1
    for seed in range(3):
        assert TEST.decide(sample(UNIFORM, 800, seed), SeededBits(f"uniform {seed}")).uniform
        assert not TEST.decide(sample(FAR, 800, seed), SeededBits(f"far {seed}")).uniform


@pytest.mark.parametrize("odds", [UNIFORM, FAR, 1 + np.array([1, 1, 1, 1, -1, -1, -1, -1]) / 2])
def test_the_concentration_holds_under_both_hypotheses(odds):
    """All records are good and L = 0, so the noise is the predicted one."""
    table = sample(odds, 800, 5)
    terms, family = kernel_terms(TEST.estimator.kernel, table), CompleteFamily(800, 2)
    tuning = tuning_of(terms, family, TEST.concentration, TEST.epsilon)
    assert reweight(terms, family, tuning.bound).level == 0


def test_the_variance_of_the_statistic():
    """Lemma A.18, from samples of 12 records of 3 categories."""
    odds = np.array([0.5, 0.3, 0.2])
    small = UniformityTest("x", 3, ONE, 12, ONE)
    x = np.random.default_rng(6).choice(3, (4000, 12), p=odds)
    found = np.mean([x[:, i] == x[:, j] for i, j in combinations(range(12), 2)], axis=0)
    square, cube = (Fraction(str(round((odds**power).sum(), 6))) for power in (2, 3))
    accept_moments(found, float(square), small.statistic_variance(square, cube))


def test_a_nearly_uniform_class_needs_less_noise():
    assert replace(TEST, nearly=Fraction(0)).concentration < TEST.concentration
    assert TEST.threshold == Fraction(7, 4) / 8 and TEST.event == PureEvent(Fraction(2))


def test_the_loss_of_the_test_is_at_most_epsilon():
    test = UniformityTest("x", 2, ONE, 8, ONE)
    tables = [{"x": np.array([0] * 7 + [last])} for last in (0, 1)]
    assert (
        audited(*(lambda b, t=t: test.decide(t, b).statistic for t in tables), 100, "uniformity")
        <= 1
    )
    loud = replace(test, epsilon=Fraction(500))
    assert (
        audited(
            *(lambda b, t=t: loud.decide(t, b).statistic for t in tables), 100, "loud uniformity"
        )
        > 1
    )


@pytest.mark.parametrize(
    "change",
    [
        {"categories": 1},
        {"records": 3},
        {"distance": Fraction(0)},
        {"distance": 0.5},
        {"nearly": Fraction(2)},
        {"failure": ONE},
    ],
)
def test_uniformity_refuses(change):
    with pytest.raises(StudyError):
        replace(TEST, **change)
    with pytest.raises(StudyError):
        TEST.decide(sample(UNIFORM, 10, 1), SeededBits("unused"))
    with pytest.raises(InvalidEpsilon):
        replace(TEST, epsilon=1.0)


# --- triangles ------------------------------------------------------------------------------------


def geometric(nodes: int, radius: float, seed: int) -> np.ndarray:
    """Points on a sphere, connected within a distance."""
    points = np.random.default_rng(seed).normal(size=(nodes, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    near = np.linalg.norm(points[:, None] - points[None], axis=2) < radius
    np.fill_diagonal(near, False)
    return near


def test_triangles_are_counted():
    graph = geometric(30, 0.7, 1)
    whole, at = sums(triangle_terms(graph), CompleteFamily(30, 3))
    cubes = np.linalg.matrix_power(graph.astype(np.int64), 3)
    assert (
        whole == cubes.trace() // 6
        and at.tolist() == (cubes.diagonal() // 2).tolist()
        and whole > 0
    )


def test_the_error_is_noise_of_the_predicted_size():
    """Eight connected nodes: all H_i are 1. The scale follows from the noisy number of edges."""
    graph, protocol = (
        ~np.eye(8, dtype=bool),
        TriangleDensity(Fraction(200), grid=Fraction(1, 1 << 14)),
    )
    found = draws(lambda bits: protocol.estimate(graph, bits), 900, "triangles")
    accept_law(found - 1, heavy_cdf, protocol.noise_variance(28, 8) ** 0.5)


def test_sparse_graphs_need_less_noise():
    protocol = TriangleDensity(ONE)
    sparse, dense = (protocol.noise_variance(edges, 1000) for edges in (500, 250_000))
    assert sparse < dense / 2
    assert protocol.concentration(-10, 50) > 0 and protocol.event == PureEvent(ONE)


def test_the_loss_of_the_triangles_is_at_most_epsilon():
    """A node with all edges against one with none."""
    full = ~np.eye(8, dtype=bool)
    lonely = full.copy()
    lonely[0] = lonely[:, 0] = False
    protocol = TriangleDensity(Fraction(2))
    assert (
        audited(*(lambda b, g=g: protocol.estimate(g, b) for g in (full, lonely)), 100, "triangles")
        <= 2
    )
    loud = TriangleDensity(Fraction(1000))
    assert (
        audited(
            *(lambda b, g=g: loud.estimate(g, b) for g in (full, lonely)), 300, "loud triangles"
        )
        > 2
    )


def test_triangles_refuse():
    graph = geometric(5, 1.0, 3)
    loop, oneway = graph.copy(), graph.copy()
    loop[0, 0], oneway[0, 1] = True, not graph[1, 0]
    for bad in (graph.astype(int), graph[:4], loop, oneway, graph[0]):
        with pytest.raises(StudyError):
            triangle_terms(bad)
    with pytest.raises(TooFewRecords):
        triangle_terms(graph[:3, :3])
    for failure in (0.5, Fraction(0), ONE):
        with pytest.raises(StudyError):
            TriangleDensity(ONE, failure)
    with pytest.raises(InvalidEpsilon):
        TriangleDensity(0)
