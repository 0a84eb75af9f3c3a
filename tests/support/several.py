"""Studies of several values: several means over pairs, or means inside strata."""

from __future__ import annotations

from tests.support.fields import number_field
from tests.support.protocols import flat_study
from umpc.study.document import Study
from umpc.study.parts import FieldText, Participant, StudyPart
from umpc.ustat.estimators import VECTOR
from umpc.ustat.strata import restricted
from umpc.ustat.text import from_text, to_text

STRATA = ("f", "m", "o")


def several(
    statistics: dict[str, str], strata: tuple[str, ...] = STRATA, high: int = 2, **changes
) -> Study:
    """Means of these kernels; inside the categories of `s` if there are any. Not checked."""
    degree = changes.setdefault("degree", 2)
    kernels: list[str] = []
    parts: list[StudyPart] = []
    for name, text in statistics.items():
        for number, stratum in enumerate(strata or ("",)):
            found, estimator = (from_text(text),), "mean"
            if strata:
                found, estimator = restricted(found, "mean", "s", number, degree)
            kernels += map(to_text, found)
            parts.append(StudyPart(name, name, estimator, len(found), stratum))
    names = [name for name in ("x", "y") if any(f".{name}" in text for text in kernels)]
    fields = [number_field(name, "0", str(high)) for name in names]
    if strata:
        fields.append(FieldText.of_categories("s", strata))
        changes["strata"] = "s"
    facts = {
        "name": "several",
        "statistic": "several",
        "kernels": tuple(kernels),
        "parts": tuple(parts),
        "estimator": VECTOR,
        "fields": tuple(fields),
        "epsilon": "1",
        "edges": "all",
        "noise": "distributed",
        "max_colluding": 1,
        "coordinator": "coordinator",
        "dealer": Participant("dealer", "dealer:1"),
        "nodes": (Participant("north", "north:1"), Participant("south", "south:1")),
    }
    return flat_study(**{**facts, **changes})
