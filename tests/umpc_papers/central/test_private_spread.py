"""A private spread: near the truth, private whatever the records are, and paid from epsilon."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.support.central import central_study
from tests.support.curated import EQUAL, SeededBits, audited, columns, random_columns
from tests.support.protocols import assert_refused, with_facts
from tests.support.studies import Entropy
from umpc.errors import StudyError, TooFewRecords
from umpc.protocols.registry import checked, decode_study, protocol_of
from umpc.simulation import simulate
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import FieldSchema, Schema
from umpc_papers.central.central_mechanisms import Choice
from umpc_papers.central.hajek import bernstein_concentration
from umpc_papers.central.private_spread import FAILURE, PrivateSpread, differences
from umpc_papers.central.terms import kernel_terms
from umpc_papers.testing import lying

ONE = Fraction(1)
WIDE = Schema([FieldSchema("x", Fraction(0), Fraction(1 << 16), ONE)])
SUM = Kernel.from_text("a.x + b.x", WIDE)


def test_the_scale_of_normal_values_in_a_wide_range_is_near_their_deviation():
    """Between 1.5 and 6 standard deviations, as the module says; far below half of the range."""
    draw = np.random.default_rng(1)
    for deviation in (40, 90, 300):
        x = (30_000 + deviation * draw.standard_normal(2_000)).astype(np.int64)
        found = PrivateSpread(SUM, ONE).scale({"x": x}, SeededBits(f"scale {deviation}"))
        assert 1.5 < float(found) / (deviation * 2**0.5) < 6
        assert found < SUM.interval.width / 100


def test_the_variance_is_a_bound_as_often_as_it_says_and_never_above_that_of_the_range():
    """Wrong in at most 1 of 100 runs. None of 60 is wrong; a third of it would be wrong always."""
    n = 400
    counts = np.bincount(random_columns(n, 5)["x"], minlength=4) / n
    chance = float((counts**2).sum())
    variance = chance * (1 - chance)
    bits = SeededBits("variance")
    given = random_columns(n, 5)
    found = [float(PrivateSpread(EQUAL, ONE).variance(given, bits)) for _ in range(60)]
    assert min(found) > variance * 0.98 and max(found) <= 0.25
    rare = columns([0] * 3_000)
    assert float(PrivateSpread(EQUAL, 4 * ONE).variance(rare, bits)) < 0.02


def test_one_record_changes_one_difference():
    given = random_columns(12, 3)
    other = {name: column.copy() for name, column in given.items()}
    other["x"][4] = 3 - other["x"][4]
    before, after = (
        differences(kernel_terms(EQUAL, each), SeededBits("order")) for each in (given, other)
    )
    assert len(before) == 3 and (before != after).sum() <= 1
    with pytest.raises(TooFewRecords, match="needs at least 4 records, 3 came"):
        differences(kernel_terms(EQUAL, random_columns(3, 1)), SeededBits("few"))


def test_a_scale_keeps_epsilon_and_the_same_runs_find_too_little_noise():
    """One group, whose difference is 0 or nearly the range."""
    kernel = Kernel.from_text("a.x + b.x", Schema([FieldSchema("x", ONE * 0, ONE * 3, ONE)]))
    tables = {"x": np.array([0, 0, 0, 0])}, {"x": np.array([0, 0, 0, 3])}

    def loss(epsilon: Fraction) -> float:
        runs = [lambda bits, t=t: PrivateSpread(kernel, epsilon).scale(t, bits) for t in tables]
        return audited(*runs, 600, "private scale")

    assert loss(ONE) <= 1

    def less(honest, exact, _, e, bits):
        return honest(exact, 1, 2 * e, bits)

    with lying("everybody", discrete_laplace=less):
        assert loss(ONE) > 1, "an eighth of the noise, twice"


@pytest.mark.parametrize(
    ("noise", "facts"),
    [
        ("coinpress_all", {"spread": "private"}),
        ("hajek_split", {"spread": "private", "spread_share": "1/5"}),
        ("hajek", {"concentration": "private"}),
    ],
)
def test_a_study_pays_for_it_from_its_epsilon(noise, facts):
    study = checked(with_facts(central_study(noise, kernels="a.x == b.x"), **facts))
    assert decode_study(study.encode()) == study
    share = Fraction(facts.get("spread_share", "1/4"))
    choice = protocol_of(study).messages(study).choice(40)
    assert choice.event.epsilon == study.exact_epsilon
    assert choice.protocol.epsilon == study.exact_epsilon * (1 - share)
    given = [{"x": random_columns(20, seed)["x"]} for seed in (1, 2)]
    run = simulate(study, given, Entropy("private parameter"))
    most = protocol_of(study).messages(study).usual_std(40)
    assert 0 < run.report.noise_std <= most
    told = dict(protocol_of(study).compare_noise(run.attempt))["against laplace"]
    assert f"follows from a private estimate: at most {most:.4g}" in told
    pooled = {"x": np.concatenate([each["x"] for each in given])}
    _, settled = choice.release(pooled, SeededBits("settled"))
    assert settled.protocol.epsilon == study.exact_epsilon * (1 - share)
    assert not settled.private


def test_a_private_concentration_gains_where_few_pairs_are_equal():
    """With many records of 64 values: v is near 1/64 where the range alone says 1/4."""
    field = FieldSchema("x", Fraction(0), Fraction(63), ONE)
    kernel = Kernel.from_text("a.x == b.x", Schema([field]))
    x = {"x": np.random.default_rng(3).integers(0, 64, 1_200)}
    choice = Choice("hajek", kernel, ONE, private="concentration", private_share=Fraction(1, 4))
    settled = choice.settled(x, SeededBits("gain"))
    known = bernstein_concentration(1_200, 2, ONE, ONE / 4, FAILURE)
    assert settled.concentration < known


def test_what_does_not_go_together_is_refused():
    for noise, facts, message in (
        ("coinpress_subsampled", {"spread": "private"}, "over all or disjoint sets"),
        ("laplace", {"spread": "private"}, "spread goes with noise"),
        ("coinpress_all", {"spread": "private", "spread_share": "1"}, "above 0 and below 1"),
        ("coinpress_all", {"spread": "1", "spread_share": "1/2"}, "spread_share goes with"),
    ):
        assert_refused(with_facts(central_study(noise), **facts), StudyError, message)
