"""The settings of adaptive bins: ε of a record's two answers, and the fields that are searched."""

from __future__ import annotations

from fractions import Fraction

from umpc.errors import StudyError
from umpc.study.document import Study
from umpc.study.parts import exact
from umpc_papers.local.bin_search import SearchedField
from umpc_papers.local.settings import BellLdpSettings


def is_adaptive(study: Study) -> bool:
    """Whether a first answer of every record finds the cut points of the study's bins."""
    return bool(study.settings_as(BellLdpSettings).bins_epsilon_share)


def searched_fields(study: Study) -> tuple[SearchedField, ...]:
    """The fields whose cut points are searched, in the order of the study's bins."""
    settings = study.settings_as(BellLdpSettings)
    found = [(study.schema[bins.field], bins.count) for bins in settings.bins]
    return tuple(
        SearchedField(field, count)
        for field, count in found
        if not field.categories and 1 < count <= field.upper_units - field.lower_units
    )


def split_epsilon(study: Study) -> tuple[Fraction, Fraction]:
    """ε of the first answer, and of the second one: they add up to the study's. Raises: StudyError.

    The study must have a `bins_epsilon_share`.
    """
    text = study.settings_as(BellLdpSettings).bins_epsilon_share
    share = exact(text, "bins_epsilon_share")
    if not 0 < share < 1:
        raise StudyError(
            f'bins_epsilon_share must be above 0 and below 1, such as "1/4"; got {text!r}'
        )
    first = study.exact_epsilon * share
    return first, study.exact_epsilon - first


def check_search(study: Study) -> None:
    """The rules of `bins_epsilon_share`, beside those of cells. Raises: StudyError."""
    if not is_adaptive(study):
        return
    split_epsilon(study)
    if study.settings_as(BellLdpSettings).rounding != "simple":
        raise StudyError(
            'bins_epsilon_share finds cut points of bins; write rounding = "simple", or leave '
            "bins_epsilon_share out"
        )
    if not searched_fields(study):
        raise StudyError(
            "bins_epsilon_share finds cut points, and no field has fewer bins than values and a "
            "number of bins; leave bins_epsilon_share out, or write a number under [bins]"
        )
