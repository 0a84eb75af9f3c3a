"""umpc.planning.prediction: the numbers of records that a person writes for a plan."""

from __future__ import annotations

import pytest

from tests.support.studies import AUC, KENDALL, make_study
from umpc.cli.plan import plan
from umpc.cli.study import check
from umpc.errors import StudyError, TooFewRecords
from umpc.planning.prediction import attempt_over

TWO_CLASSES = make_study(AUC, 2, edges="2n", sampling="two_sample")
FIRST, SECOND = TWO_CLASSES.schema[TWO_CLASSES.label].categories


@pytest.mark.parametrize("records", ["540,320", "540", "1+2", "1+2,3+4,5+6", "1+2;3+4"])
def test_records_of_two_classes_in_another_form_are_refused_with_an_example(records):
    with pytest.raises(StudyError) as caught:
        attempt_over(TWO_CLASSES, records)
    for words in (
        f"FIRST+SECOND (the records with {TWO_CLASSES.label} = {FIRST!r}, and those with",
        f"{SECOND!r}) per node, 2 here and separated by commas, and {records!r} came",
        "Write it as 180+120,180+120",
    ):
        assert words in caught.value.message


def test_records_of_one_class_in_another_form_are_refused_with_an_example():
    study = make_study(KENDALL, 5, edges="2n")
    with pytest.raises(StudyError, match=r"takes one number per node, 5 .* 300,300,300,…"):
        attempt_over(study, "180+120,150+150")


def test_the_first_number_is_of_the_first_class():
    assert attempt_over(TWO_CLASSES, "18+12,15+14").sizes.classes == (33, 26)
    with pytest.raises(TooFewRecords, match=f"none has {TWO_CLASSES.label} = '{SECOND}'"):
        attempt_over(TWO_CLASSES, "18+0,15+0")


@pytest.mark.parametrize("command", [plan, check])
def test_help_explains_the_form_for_two_classes(command):
    (option,) = [each for each in command.params if each.name == "records"]
    assert "FIRST+SECOND per node, as 180+120,150+150" in option.help
