"""The first round of adaptive bins: its law, the estimated shares, and the joint law of both."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb, ctx

from tests.support.local import bins, local_study
from tests.support.moments import SCHEMA, Scripted, odds_of_one, part, passes, records
from tests.support.protocols import messages_of
from tests.support.statistical import SeededBits
from umpc.errors import EncodingError, InvalidEpsilon, OutOfBounds
from umpc_papers import exact_sampling
from umpc_papers.exact_sampling import SEED_BYTES, respond
from umpc_papers.local.adaptive_messages import AdaptiveMessages
from umpc_papers.local.bin_search import BinSearch, SearchedField
from umpc_papers.local.hadamard import tell
from umpc_papers.local.search_settings import split_epsilon
from umpc_papers.testing import lying

X, Y = SearchedField(SCHEMA["x"], 4), SearchedField(SCHEMA["y"], 3)
SEARCH = BinSearch(Fraction(1), (X, Y))
SMALL = local_study("bell-ldp", epsilon="2", bins=bins(x=2, y=4), bins_epsilon_share="1/4")
"""x from 0 to 3 has two bins, whose one cut point is searched; y has a bin for each value."""


@pytest.fixture(autouse=True)
def short_streams(limit):
    """Expand streams by a KiB: few records take few of the usual 64."""
    limit(exact_sampling, CHUNK_BYTES=1024)


def test_every_record_is_asked_once_about_all_topics_evenly():
    for count in (0, 1, 7, 100):
        asked = SEARCH.questions(bytes(SEED_BYTES), count)
        assert sorted(int(r) for records, *_ in asked for r in records) == list(range(count))
        sizes = [len(found) for found, *_ in asked]
        assert max(sizes) - min(sizes) <= 1
        topics = [(each.field.name, level) for _, each, level, _ in asked]
        assert topics == [("x", level) for level in range(1, 6)] + [
            ("y", level) for level in range(1, 6)
        ]
        assert all(np.all(index < 1 << level) for _, _, level, index in asked)
    first = Counter(
        next(n for n, (found, *_) in enumerate(SEARCH.questions(bytes([s]) * 32, 1)) if len(found))
        for s in range(200)
    )
    assert set(first) == set(range(10)), "a single record is asked about any topic"


def test_the_estimated_shares_have_the_stated_mean_and_variance():
    """Each of a level's m records contributes ±1/(g m) with mean [the part is its own]/m."""
    data = records(200)
    parts, counts, seeds = (part(data, 0, 60), part(data, 60, 200)), [60, 140], SeededBits("shares")
    exact = SEARCH.exact_shares(data)
    drawn = [
        SEARCH.shares([SEARCH.randomise(each, seeds) for each in parts], counts) for _ in range(150)
    ]
    for name in ("x", "y"):
        for level in (1, 3):
            of = [shares[name][level - 1] for shares in drawn]
            # The fields and levels have 20 records each, and a share's square is about 1/(g² m).
            variance = 1 / (SEARCH.truth**2 * 20)
            for place in range(1 << level):
                share = exact[name][level - 1][place]
                spread = variance - share**2 / 20
                assert passes([each[place] for each in of], share, spread), (name, level, place)


def test_with_a_huge_epsilon_cuts_are_near_the_records_own_quantiles():
    rng = np.random.default_rng(5)
    columns = {"x": np.minimum(rng.geometric(0.2, 20_000), 31), "y": rng.integers(-8, 9, 20_000)}
    search = BinSearch(Fraction(40), (X, Y))
    message = search.randomise(columns, SeededBits("cuts"))
    found = search.cuts(search.masses(search.shares([message], [20_000]), 20_000))
    exact = search.cuts(search.masses(search.exact_shares(columns)))
    for one, other in zip(found, exact, strict=True):
        assert np.abs(np.subtract(one, other)).max() <= 1
    share = np.searchsorted(np.sort(columns["x"]), exact[0]) / 20_000
    assert np.abs(share - [0.25, 0.5, 0.75]).max() < 0.1
    assert exact[0] != (8, 16, 24), "the cut points follow the records"


def test_a_message_that_does_not_decode_or_a_value_out_of_bounds_is_refused():
    message = SEARCH.randomise(part(records(10), 0, 10), SeededBits("message"))
    assert len(message) == SEARCH.message_bytes(10) == 34
    SEARCH.check(message, 10)
    for wrong, count in ((message, 17), (message[:20], 10), (message[:-1] + b"\xff", 10)):
        with pytest.raises(EncodingError):
            SEARCH.check(wrong, count)
    with pytest.raises(OutOfBounds):
        SEARCH.randomise({"x": np.array([32]), "y": np.array([0])}, SeededBits("out"))
    with pytest.raises(InvalidEpsilon):
        BinSearch(Fraction(1, 10**25), (X,))


# --- the law of both answers together -------------------------------------------------------------


def law_of_bit(messages: AdaptiveMessages, value: int, level: int, index: int) -> Fraction:
    """The exact chance that a record with this x sends 1, through the real code."""
    (searched,) = messages.search.fields
    prefix = np.array([value >> (searched.levels - level)])
    threshold = messages.search.threshold
    return odds_of_one(lambda stream: tell(np.array([index]), prefix, threshold, stream), threshold)


def law_of_cell(messages: AdaptiveMessages, cut: int, x: int, y: int) -> list[Fraction]:
    """The exact law of a record's second answer, between these cut points."""
    question = np.array([cut], dtype="<i8").tobytes()
    protocol = messages.second(question).protocol
    t, threshold = protocol.cells.size, protocol.threshold
    columns = {"x": np.array([x]), "y": np.array([y])}
    truth = protocol.cells.draw(columns, Scripted())
    law = [Fraction(0)] * t
    for fair, coin in product(range(t), (threshold - 1, threshold)):
        (told,) = respond(truth, t, threshold, Scripted(coin, t + fair))
        law[told] += Fraction(threshold if coin < threshold else (1 << 64) - threshold, t << 64)
    return law


def largest_loss(messages: AdaptiveMessages) -> arb:
    """The largest log-ratio of both answers together, over all pairs of records.

    The question may be any function of the first answer, so each bit goes with its worst cut.
    """
    (searched,) = messages.search.fields
    topics = [
        (level, index) for level in range(1, searched.levels + 1) for index in range(1 << level)
    ]
    values = list(product(range(4), repeat=2))
    cells = {(cut, x, y): law_of_cell(messages, cut, x, y) for cut in (1, 2, 3) for x, y in values}
    bits = {(topic, x): law_of_bit(messages, x, *topic) for topic in topics for x in range(4)}
    largest = Fraction(0)
    for (x, y), (u, v) in product(values, repeat=2):
        bit = max(
            max(bits[topic, x] / bits[topic, u], (1 - bits[topic, x]) / (1 - bits[topic, u]))
            for topic in topics
        )
        cell = max(
            one / other
            for cut in (1, 2, 3)
            for one, other in zip(cells[cut, x, y], cells[cut, u, v], strict=True)
        )
        largest = max(largest, bit * cell)
    return (arb(largest.numerator) / largest.denominator).log()


def test_both_answers_of_a_record_together_are_within_epsilon():
    """All laws are exact. A second answer with all of ε, or either share rounded up, is found."""
    limit = arb(2)
    with ctx.workprec(256):
        assert limit * (1 - 1e-9) <= largest_loss(messages_of(SMALL)) <= limit
        for broken in (
            lambda honest, study: (honest(study)[0], study.exact_epsilon),
            lambda honest, study: (study.exact_epsilon, honest(study)[1]),
            lambda honest, study: (honest(study)[0] + Fraction(1, 10**9), honest(study)[1]),
        ):
            with lying("everybody", split_epsilon=broken):
                assert largest_loss(messages_of(SMALL)) > limit


def test_the_parts_of_epsilon_add_up_exactly():
    for epsilon, share in (("2", "1/4"), ("0.1", "0.3"), ("1/3", "1/7"), ("60", "999/1000")):
        study = SMALL.replaced(epsilon=epsilon, bins_epsilon_share=share)
        first, second = split_epsilon(study)
        assert (
            first + second == study.exact_epsilon
            and 0 < first == study.exact_epsilon * Fraction(share)
        )
        messages = messages_of(study)
        assert messages.search.epsilon == first
        question = np.array([2], dtype="<i8").tobytes()
        assert messages.second(question).protocol.epsilon == second == messages.rest


def test_no_pair_of_cut_points_is_left_out_of_the_law():
    """The small domain has one cut point of three places: `largest_loss` tries all of them."""
    messages = messages_of(SMALL)
    for cut in range(-1, 6):
        question = np.array([cut], dtype="<i8").tobytes()
        if cut in (1, 2, 3):
            assert messages.second(question).protocol.cells.size == 8
        else:
            with pytest.raises(EncodingError, match="do not ascend"):
                messages.second(question)
