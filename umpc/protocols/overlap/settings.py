"""The settings of a study with protocol = "overlap", its rules, and the law of its noise.

The study is a total over single records: of a field AT_BOTH that no table has, which is 1 for a
person of the first site who is also at the second one, and else 0. So bounds, kernel, interval and
report are those of any study. A node gets each record's person in place of this field.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import msgspec

from umpc.dp.calibration import DistributedLaplace
from umpc.dp.random_bits import RandomBits
from umpc.errors import StudyError
from umpc.study.document import Study
from umpc.study.parts import FieldText
from umpc.study.settings import Settings

AT_BOTH = "at_both_sites"
KERNEL = f"a.{AT_BOTH}"
SITES = 2
DELTA = "1e-12"
LOG_OF_DELTA = Fraction(27632, 1000)
"""Above ln(1/DELTA) = 27.6310."""


class OverlapSettings(
    Settings,
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="protocol",
    tag="overlap",
):
    """How many people two sites share, with noise of both."""

    @property
    def delta(self) -> str:
        return DELTA

    @property
    def made_of_people(self) -> str:
        return AT_BOTH


def check_overlap(study: Study) -> None:
    """Raises: StudyError that says what to do."""
    people = study.people
    made = FieldText(AT_BOTH, "0", "1", whole=True)
    rules = (
        (len(study.nodes) == SITES, "compares two sites; name two nodes"),
        (
            people is not None and people.records == 1,
            "counts each person once; write person = COLUMN, and records_per_person = 1",
        ),
        (study.max_colluding == 1, "adds noise of both sites; leave max_colluding out"),
        (
            (study.kernels, study.degree, study.estimator) == ((KERNEL,), 1, "total"),
            "has one number of its own; leave statistic, kernel and strata out",
        ),
        (
            [each for each in study.fields if each.name == AT_BOTH] == [made],
            f"makes its field {AT_BOTH!r} itself; leave it out of the fields",
        ),
        (
            study.condition is None or AT_BOTH not in study.condition.fields,
            f"has no table with {AT_BOTH!r}; leave it out of `where`",
        ),
    )
    for holds, wrong in rules:
        if not holds:
            raise StudyError(f'a study of protocol = "overlap" {wrong}')


# --- noise ----------------------------------------------------------------------------------------


def noise_of(study: Study) -> DistributedLaplace:
    """The noise of both sites together: each adds a whole discrete Laplace draw."""
    return DistributedLaplace(study.exact_epsilon, 1, SITES, 1)


def most_hidden(study: Study) -> int:
    """t: a site's noise is between −t and t, because it is a number of dummies less t."""
    return ceil(LOG_OF_DELTA / study.exact_epsilon)


def draw_hidden(study: Study, bits: RandomBits) -> int:
    """A site's noise: discrete Laplace, given that it is between −t and t.

    Two numbers that differ by 1 have both ends of this law apart, each with a probability of at
    most e^(−εt) <= DELTA (docs/overlap.md).
    """
    most = most_hidden(study)
    while True:
        # spec/overlap.py, `hidden`
        drawn = noise_of(study).draw(bits)
        if abs(drawn) <= most:
            return drawn


def points_of(study: Study, records: int) -> int:
    """The points of a site with so many people: theirs, and 2t dummies of each site's noise."""
    return records + 2 * SITES * most_hidden(study)
