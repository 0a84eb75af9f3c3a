"""A trial over narrower fields, for studies whose messages have a number for each value of them.

A grid's nodes send a number for every cell, and work in proportion to the cells. A trial of a few
cells tells the time of many. The bytes of a message say how many times more there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from umpc.errors import UmpcError
from umpc.planning.prediction import attempt_over
from umpc.protocols.registry import checked, protocol_of
from umpc.study.document import Study
from umpc.study.parts import FieldText
from umpc.ustat.clear import Columns

TRIAL_BYTES = (1 << 15, 1 << 21)
"""The most bytes that a node of two trials sends, where narrower fields make them fewer."""
FEWEST_VALUES = 16
"""A field keeps so many values."""
NARROWINGS = 4
"""How often a field is narrowed, at most."""


def narrowed(study: Study, sent: int, most: int) -> tuple[Study, int]:
    """The study over narrower fields, and the bytes that a node of it sends.

    Where they are few, or do not depend on the fields' bounds, it is the study itself.

    Args: sent: the bytes that a node of the study sends. most: so many are few.
    """
    narrow, now = study, sent
    for _ in range(NARROWINGS):
        if now <= most:
            break
        trial = narrow.replaced(fields=_narrower(narrow.fields, now / most))
        found = most_sent_over_few(trial)
        if found is None or found >= now:
            break
        narrow, now = trial, found
    return narrow, now


def clipped(study: Study, columns: Columns) -> Mapping[str, np.ndarray]:
    """Columns whose values are at most the upper bounds of the study's fields."""
    return {
        name: np.minimum(column, study.schema[name].upper_units) for name, column in columns.items()
    }


def most_sent_over_few(study: Study) -> int | None:
    """Bytes of the node that sends most, over few records; None where such a study cannot be."""
    try:
        attempt = attempt_over(
            checked(study), ",".join(["4+4" if study.two_sample else "8"] * len(study.nodes))
        )
        return protocol_of(study).cost(attempt).most_sent
    except UmpcError:
        return None


def _narrower(fields: Sequence[FieldText], times: float) -> tuple[FieldText, ...]:
    """The fields, of which the one with the most values has so many times fewer."""
    schemas = [field.schema() for field in fields]
    widths = [0 if field.categories else field.upper_units - field.lower_units for field in schemas]
    widest = widths.index(max(widths))
    width = min(widths[widest], max(FEWEST_VALUES, int(widths[widest] / times)))
    field, schema = fields[widest], schemas[widest]
    upper = schema.lower + width * schema.resolution
    changed = FieldText(field.name, field.lower, str(upper), field.resolution, whole=field.whole)
    return (*fields[:widest], changed, *fields[widest + 1 :])
