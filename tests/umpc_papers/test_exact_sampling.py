"""Streams, exact coins and thresholds: epsilon is claimed for the law that is drawn."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import ctx
from scipy import stats

from tests.support.moments import ALPHA, Scripted
from umpc.dp.events import ball
from umpc.errors import EncodingError, InvalidEpsilon, LocalProtocolError
from umpc_papers.exact_sampling import (
    SEED_BYTES,
    ShakeStream,
    draw_seed,
    respond,
    split_seed,
    truth_threshold,
)
from umpc_papers.local.estimate import check_counts

SEED = bytes(range(SEED_BYTES))
EPSILONS = [Fraction(1, 100), Fraction(1, 2), Fraction(1), Fraction(4), Fraction(30)]


def response_odds(answers: int, threshold: int) -> tuple[Fraction, Fraction]:
    """Exactly: of the truth, and of any other answer."""
    other = Fraction((1 << 64) - threshold, answers << 64)
    return Fraction(threshold, 1 << 64) + other, other


def test_a_stream_does_not_depend_on_how_it_is_read():
    whole = ShakeStream(SEED, "a").bytes(200_000)
    stream = ShakeStream(SEED, "a")
    assert b"".join(stream.bytes(count) for count in (1, 7, 65_528, 65_536, 68_928)) == whole
    assert ShakeStream(SEED, "b").bytes(64) != whole[:64] and "redacted" in repr(stream)
    rows = ShakeStream(SEED, "n").normals(7, 5)
    assert np.array_equal(rows[:3], ShakeStream(SEED, "n").normals(3, 5))


def test_a_seed_is_32_bytes_of_the_source():
    assert draw_seed(lambda count: 5) == (5).to_bytes(SEED_BYTES, "little")
    with pytest.raises(LocalProtocolError, match="256 random bits"):
        draw_seed(lambda count: 1 << 256)
    with pytest.raises(LocalProtocolError, match="32 bytes"):
        ShakeStream(b"short", "a")


def test_a_coin_is_an_integer_comparison():
    assert Scripted(0, 41, 42, 2**64 - 1).coins(42, 4).tolist() == [True, True, False, False]


def test_words_that_would_favour_small_integers_are_drawn_again():
    """2^64 = 3·k + 1, so one word, here 0, is refused; what is left is uniform."""
    assert Scripted(0, 4, 3, 2**64 - 1, 5).below(3, 4).tolist() == [2, 1, 0, 0]
    assert Scripted(0, 2**64 - 1).below(4, 2).tolist() == [0, 3]
    with pytest.raises(LocalProtocolError, match="did not end"):
        Scripted(*[0] * 2000).below(3, 1)


@pytest.mark.parametrize("answers", [2, 3, 64, 2048])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_threshold_is_the_largest_that_keeps_epsilon(epsilon, answers):
    threshold = truth_threshold(epsilon, answers)
    with ctx.workprec(400):
        limit = ball(epsilon).exp()
        for tried, kept in ((threshold, True), (threshold + 1, False)):
            truth, other = response_odds(answers, tried)
            assert (ball(truth / other) <= limit) == kept and (ball(truth / other) > limit) != kept


def test_an_epsilon_that_says_nothing_is_refused_and_a_huge_one_is_cut():
    with pytest.raises(InvalidEpsilon, match="too small"):
        truth_threshold(Fraction(1, 1 << 70), 2)
    assert truth_threshold(Fraction(1000), 2) == 2**64 - 1


def test_responses_have_their_odds():
    """All records say 1 of 3; the same answers reject gains of ×0.7 and ×1.3."""
    threshold, n = truth_threshold(Fraction(1), 3), 20_000
    seen = np.bincount(
        respond(np.ones(n, dtype=np.int64), 3, threshold, ShakeStream(SEED, "odds")), minlength=3
    )
    for scale in (1.0, 0.7, 1.3):
        truth, other = map(float, response_odds(3, round(threshold * scale)))
        p = stats.chisquare(seen, np.array([other, truth, other]) * n).pvalue
        assert (p > ALPHA) == (scale == 1.0), (
            f"scale {scale}: p = {p:.2e}, N = {n}, alpha {ALPHA}, seed {SEED.hex()}"
        )


def test_normals_are_normal():
    drawn = ShakeStream(SEED, "normal").normals(2_000, 5)
    assert (
        stats.kstest(drawn.reshape(-1), "norm").pvalue
        > ALPHA
        > stats.kstest(drawn.reshape(-1) * 1.3, "norm").pvalue
    )
    assert np.abs(np.corrcoef(drawn.T) - np.eye(5)).max() < 0.15


def test_seeds_and_counts_are_checked():
    assert split_seed(bytes(32) + b"x") == (bytes(32), b"x")
    with pytest.raises(EncodingError, match="32 bytes"):
        split_seed(bytes(31))
    for messages, counts in (([b""], [1, 2]), ([b"", b""], [3, -1]), ([b""], [1])):
        with pytest.raises(LocalProtocolError):
            check_counts(messages, counts)
