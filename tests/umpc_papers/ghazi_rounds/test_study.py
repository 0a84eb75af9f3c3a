"""`ghazi-rounds` in memory, by the real sides: mean, variance, and one answer a record."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.support.local import bins, local_study, local_tables, quantised
from tests.support.moments import ALPHA, passes
from tests.support.protocols import messages_of
from tests.support.statistical import WRONG_SCALES, SeededBits
from tests.support.studies import Entropy
from umpc.errors import EncodingError, TooFewRecords
from umpc.simulation import Simulated, simulate
from umpc.study.document import Study
from umpc_papers.ghazi_rounds.mechanism import groups
from umpc_papers.ghazi_rounds.messages import LEAST_RECORDS

COUNTS = (150, 250)
RUNS = 200
STUDY = local_study("ghazi-rounds", epsilon="3", bins=bins(x=2, y=3))
OF = messages_of(STUDY)


@cache
def ran(seed: str = "ran", study: Study = STUDY) -> Simulated:
    return simulate(study, local_tables(study, COUNTS), Entropy(seed))


def test_whole_studies_have_the_stated_mean_and_variance():
    """And the same runs would tell noise of another scale, and another mean."""
    tables, entropy = local_tables(STUDY, COUNTS), Entropy("moments of ghazi-rounds")
    together = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    mean, deviation = quantised(STUDY, tables), OF.predicted_std(together, 0)
    drawn = [simulate(STUDY, tables, entropy).report.estimate for _ in range(RUNS)]
    said = (
        f"mean {np.mean(drawn):.4g} of {mean:.4g}, std {np.std(drawn):.4g} of {deviation:.4g}, "
        f"{ALPHA}, {entropy!r}"
    )
    assert passes(drawn, mean, deviation**2), said
    for scale in map(float, WRONG_SCALES):
        assert not passes(drawn, mean, (deviation * scale) ** 2), f"no power for × {scale}: {said}"
    assert not passes(drawn, mean + deviation / 2, deviation**2), (
        f"no power for another mean: {said}"
    )


def test_its_own_estimate_of_its_error_is_near():
    tables = local_tables(STUDY, COUNTS)
    together = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    assert ran().report.noise_std == pytest.approx(OF.predicted_std(together, 0), rel=0.3)


def test_no_record_answers_twice():
    """With the same randomness, what is sent depends on each record in one of the two messages
    only, and on all.
    """
    counts, many = (0, 60), 60
    columns = local_tables(STUDY, (many,))[0]

    def sent(of: dict[str, np.ndarray]) -> tuple[bytes, bytes]:
        first = OF.randomise(of, counts, SeededBits("first"))
        return first, OF.answer(of, counts, first, question, SeededBits("second"))

    question = np.array([5.0, -5.0] * (OF.question_bytes // 16), dtype="<f8").tobytes()
    before = sent(columns)
    group = groups(before[0][:32], many)
    assert set(group) == {0, 1, 2}
    told = {0: 0, 1: 0}
    for record in range(many):
        changes = [{**columns, "x": changed(columns["x"], record, x)} for x in range(4)]
        after = [sent(other) for other in changes]
        asked = int(group[record] == 2)
        assert {messages[1 - asked] for messages in after} == {before[1 - asked]}, (
            f"record {record} is in both"
        )
        told[asked] += len({messages[asked] for messages in after}) > 1
    assert min(told.values()) > 0, "no record is seen in one of the messages: the test cannot fail"


def changed(column: np.ndarray, place: int, value: int) -> np.ndarray:
    column = column.copy()
    column[place] = value
    return column


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (b"", "6 cells take 48 bytes, got 0"),
        (bytes(47), "got 47"),
        (bytes(56), "got 56"),
        (np.array([1, 2, np.nan, 4, 5, 6.0]).tobytes(), "not finite"),
        (np.array([1, 2, np.inf, 4, 5, 6.0]).tobytes(), "not finite"),
    ],
    ids=["empty", "short", "long", "nan", "infinity"],
)
def test_a_malformed_question_is_no_question(question, reason):
    columns = local_tables(STUDY, (60,))[0]
    first = OF.randomise(columns, (0, 60), SeededBits("first"))
    with pytest.raises(EncodingError, match=reason):
        OF.answer(columns, (0, 60), first, question, SeededBits("second"))


def test_a_question_of_zeros_is_answered_at_random():
    columns = local_tables(STUDY, (60,))[0]
    first = OF.randomise(columns, (0, 60), SeededBits("first"))
    answer = OF.answer(columns, (0, 60), first, bytes(48), SeededBits("second"))
    OF.check_answer(first, answer, (0, 60))


def test_the_question_follows_from_the_messages_and_no_last_digit_shows():
    """So that another machine, whose sums round otherwise, asks the same: the question is on a
    grid.
    """
    script = ran().transcript
    counts = [(0, count) for count in COUNTS]
    assert OF.question(script.shares, counts) == script.question
    asked = np.frombuffer(script.question, "<f8")
    grid = 2.0 ** (np.frexp(np.abs(asked).max())[1] - 24)
    assert (
        np.array_equal(asked / grid, np.rint(asked / grid))
        and not np.signbit(asked[asked == 0]).any()
    )
    assert script.question != ran("another").transcript.question


def test_messages_of_both_rounds_have_a_length_that_follows_from_the_records():
    lengths = set()
    for number in range(20):
        script = ran(f"length {number}").transcript
        both = [
            len(first) + len(answer)
            for first, answer in zip(script.shares, script.answers, strict=True)
        ]
        assert (
            both == [32 + 19 + 1, 32 + 32 + 1] == [OF.message_bytes((0, count)) for count in COUNTS]
        )
        lengths.add(len(script.shares[0]))
    assert len(lengths) > 1, "groups of one size: the filling was never needed"


def test_few_records_are_refused_before_anything_is_charged():
    with pytest.raises(
        TooFewRecords,
        match=f'at least {LEAST_RECORDS} records in all, and there are 49; take "ghazi-',
    ):
        simulate(STUDY, local_tables(STUDY, (20, 29)), Entropy("few"))
    assert simulate(STUDY, local_tables(STUDY, (20, 30)), Entropy("enough")).report.rounds == 2
