"""A shuffler that changes its heap gives no estimate."""

from __future__ import annotations

import pytest

from tests.attacks.parties import lying_dealer, lying_shuffler
from tests.support.shuffled import shuffled_study
from tests.support.studies import KENDALL, Entropy, make_study, random_tables
from umpc.errors import ImpossibleResult
from umpc.simulation import simulate
from umpc.study.report import Report


@pytest.mark.attack(
    "a shuffler flips one high bit of its heap", "honest", "noticed: impossible result"
)
@pytest.mark.lies("heap")
def test_a_changed_heap_is_no_result():
    study = shuffled_study(2, max_colluding=0)
    tables = random_tables([20, 20], "heap")
    assert simulate(study, tables, Entropy("honest heap")).report.estimate is not None
    with lying_shuffler(), pytest.raises(ImpossibleResult):
        simulate(shuffled_study(2, max_colluding=0, name="heap-lie"), tables, Entropy("heap"))


@pytest.mark.attack(
    "a dealer shows a bit of a pair in the public sum", "both", "outside: trusted dealer"
)
@pytest.mark.lies("bit")
def test_a_dealer_is_trusted_to_follow_the_protocol():
    """Changed products move the sum by what the opened bits say; only the range bounds that."""
    study = make_study(KENDALL, 2, name="bit-shown", epsilon="1000", noise="distributed")
    try:
        with lying_dealer():
            ended = simulate(study, random_tables([4, 4], "shown"), Entropy("shown")).report
    except ImpossibleResult:
        return
    assert isinstance(ended, Report)
