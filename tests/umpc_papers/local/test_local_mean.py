"""A mean in the local model: its exact law, the moments that follow from it, and its refusals."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb, ctx

from tests.support.local import local_study, local_tables
from tests.support.moments import SCHEMA, Scripted, accept_moments, part, records
from tests.support.protocols import messages_of
from tests.support.statistical import SeededBits
from tests.support.studies import Entropy
from umpc.crypto.ring import pack
from umpc.errors import EncodingError, InvalidEpsilon, StudyError
from umpc.protocols.registry import protocol_of
from umpc.simulation import simulate
from umpc.ustat.kernel import Kernel
from umpc_papers.exact_sampling import truth_threshold
from umpc_papers.local.local_mean import MOST_POINTS, LocalMean, PointAnswer, best_answer

EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(3), Fraction(6))
WORDS = 1 << 64


def mean_of(text: str = "a.x", epsilon: Fraction = Fraction(1)) -> LocalMean:
    return LocalMean(epsilon, Kernel.from_text(text, SCHEMA, degree=1))


def word_for(residue: int, bound: int) -> int:
    """A word that `ShakeStream.below` takes at once, and that gives this number."""
    surplus = WORDS % bound
    return surplus + (residue - surplus) % bound


def law_of(answer: PointAnswer, above: int) -> list[Fraction]:
    """The exact chance of every answer of a record: all its coins, through the real code."""
    law = [Fraction(0)] * answer.points
    for drawn in range(answer.span):
        for truth, word in ((True, answer.threshold - 1), (False, answer.threshold)):
            chance = answer.truth if truth else 1 - answer.truth
            weight = chance / answer.span / answer.points
            for lie in range(answer.points):
                words = word_for(drawn, answer.span), word, word_for(lie, answer.points)
                (told,) = answer.tell(np.array([above]), Scripted(*words))
                law[told] += weight
    return law


def answers() -> list[PointAnswer]:
    """The answers of protocols with few values, and some that no ε chooses."""
    chosen = {best_answer(epsilon, span) for epsilon in EPSILONS for span in (1, 2, 3, 5)}
    others = {
        PointAnswer(points, span, truth_threshold(Fraction(2), points))
        for points, span in ((2, 4), (3, 5), (4, 6))
    }
    return sorted(chosen | others, key=lambda each: (each.span, each.points, each.threshold))


def test_the_law_of_every_answer_is_exact_unbiased_and_has_the_stated_variance():
    """Bellet 2021: a record sends a noisy value of its own, and the mean of these is unbiased."""
    tried = answers()
    assert {each.points for each in tried} >= {2, 3, 4, 6}
    for answer in tried:
        variances = []
        for above in range(answer.span + 1):
            law = law_of(answer, above)
            assert sum(law) == 1
            values = [answer.value(Fraction(told)) for told in range(answer.points)]
            mean = sum(p * v for p, v in zip(law, values, strict=True))
            assert mean == above
            square = sum(p * v * v for p, v in zip(law, values, strict=True))
            variances.append(square - mean**2)
            assert answer.variance(above) == variances[-1]
        assert answer.most_variance == max(variances)
        floats = answer.variances(np.arange(answer.span + 1))
        assert floats == pytest.approx([float(each) for each in variances])


def loss_of(answer: PointAnswer) -> arb:
    """The logarithm of the largest ratio of odds of one answer, over all pairs of values."""
    laws = [law_of(answer, above) for above in range(answer.span + 1)]
    ratio = max(max(chances) / min(chances) for chances in zip(*laws, strict=True))
    return (arb(ratio.numerator) / ratio.denominator).log()


def test_no_two_values_odds_differ_by_more_than_e_to_the_epsilon():
    for epsilon, span in product(EPSILONS, (1, 2, 3, 5)):
        answer = best_answer(epsilon, span)
        with ctx.workprec(256):
            limit = arb(epsilon.numerator) / epsilon.denominator
            assert limit * (1 - 1e-9) <= loss_of(answer) <= limit
            # The truth told a little more often is found.
            more = replace(answer, threshold=answer.threshold + (answer.threshold >> 40))
            assert loss_of(more) > limit


def test_the_variance_is_below_that_of_laplace_noise_on_each_value():
    """Bellet 2021 (slides): 2/(nε²) for values in [0, 1]; here at most 0.7 of it up to ε = 60."""
    for span in (2, 5, 100_000):
        for epsilon in map(Fraction, ("1/10", "1", "3/2", "3", "5", "10", "60")):
            answer = best_answer(epsilon, span)
            assert answer.points <= min(MOST_POINTS, span + 1)
            assert answer.most_variance / span**2 <= Fraction(7, 10) * 2 / epsilon**2
    found = [best_answer(Fraction(e), 100_000).points for e in ("1", "3/2", "8/5", "5", "60")]
    assert found == [2, 2, 4, 8, 32]
    # Two points alone would be noisier than Laplace noise.
    two = PointAnswer(2, 100_000, truth_threshold(Fraction(12, 5), 2))
    assert two.most_variance / 100_000**2 > 2 / Fraction(12, 5) ** 2


def test_the_most_variance_is_found_among_many_values():
    for epsilon, span in ((Fraction(2), 97), (Fraction(5), 64), (Fraction(7), 31)):
        answer = best_answer(epsilon, span)
        assert answer.most_variance == max(map(answer.variance, range(span + 1)))


def test_the_estimate_has_the_stated_mean_and_variance():
    """Kernels of one field, of two, and of two values; two nodes; one, two and three bits."""
    data = records(30)
    parts, counts = (part(data, 0, 10), part(data, 10, 30)), [10, 20]
    for text, epsilon in (("a.x", 1), ("a.x * a.y", 3), ("a.x < 12", 1), ("a.y", 5)):
        protocol = mean_of(text, Fraction(epsilon))

        def run(bits: SeededBits, protocol: LocalMean = protocol) -> float:
            return protocol.aggregate([protocol.randomise(p, bits) for p in parts], counts).value

        variance = protocol.predicted_variance(data)
        accept_moments(run, protocol.mean(data), variance, f"local mean {text}")
        assert variance <= protocol.most_std(30) ** 2 * (1 + 1e-12)
        if protocol.span == 1:
            assert variance == pytest.approx(protocol.most_std(30) ** 2)


def test_values_that_are_huge_stay_within_words():
    """x^12 has 31^12 > 2^59 units; points times values would leave int64 beyond eight points."""
    protocol = mean_of("*".join(["a.x"] * 12), Fraction(60))
    assert protocol.span == 31**12 and protocol.span * protocol.answer.points < 1 << 63
    columns = {"x": np.array([0, 31] * 500)}
    estimate = protocol.aggregate([protocol.randomise(columns, SeededBits("huge"))], [1000])
    assert estimate.value == pytest.approx(31**12 / 2)


def test_the_range_of_estimates_is_that_of_all_answers_alike():
    for epsilon in (1, 5):
        protocol = mean_of("a.y", Fraction(epsilon))
        low, high = protocol.possible()
        last, width = protocol.answer.last, protocol.answer.width
        for point, end in ((0, low), (last, high)):
            message = pack(np.full(9, point), width)
            assert protocol.aggregate([message], [9]).value == pytest.approx(end)
            assert low <= protocol.aggregate([message], [9]).value <= high


def test_an_answer_that_is_no_point_is_refused():
    two, three = mean_of("a.x < 12"), mean_of("sign(a.y)", Fraction(3))
    two.check(pack(np.array([1, 0, 1]), 1), 3)
    assert (three.answer.points, three.answer.width) == (3, 2)
    with pytest.raises(EncodingError, match="an answer in the message is not below 3"):
        three.check(pack(np.array([1, 3]), 2), 2)


def test_what_cannot_be_estimated_is_refused():
    with pytest.raises(StudyError, match="the same for all records"):
        mean_of("a.x * 0")
    with pytest.raises(InvalidEpsilon, match="too small"):
        mean_of(epsilon=Fraction(1, 10**20))
    study = local_study("local-mean")
    for changes in ({"kernels": ("sign(a.x - b.x)",), "degree": 2}, {"estimator": "total"}):
        wrong = study.replaced(**changes)
        with pytest.raises(StudyError, match="mean of one kernel over single records"):
            protocol_of(wrong).check(wrong)


def test_the_report_states_the_most_noise_which_is_known_before():
    study = local_study("local-mean", 2, epsilon="5")
    tables = local_tables(study, (40, 60))
    report = simulate(study, tables, Entropy("report")).report
    protocol = messages_of(study).protocol
    assert report.noise_std == protocol.most_std(100)
    together = {"x": np.concatenate([table["x"] for table in tables])}
    assert 0 < messages_of(study).predicted_std(together, 0) <= report.noise_std
