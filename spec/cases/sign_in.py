"""The vectors of `sign_in.py`."""

from __future__ import annotations

from spec.cases.vectors import Bad, Good, counting
from spec.sign_in import uri

STUDY, SECOND = counting(1), counting(2)
WHO = {"person": "8f2c91", "institution": "st-mary"}
ODD = {"person": f"ä b&hash={counting(3).hex()}", "institution": "st mary's #2"}
"""A name that would add a study, if it were written as it is."""


def _proposed(uri: str, study: bytes) -> dict[str, object]:
    return {"uri": uri, "study": study, "coordinator": "alice"}


TWO = uri(**WHO, studies=[STUDY, SECOND])
GOOD: Good = [
    ("uri", "two studies", {**WHO, "studies": [STUDY, SECOND]}),
    ("uri", "no study", {**WHO, "studies": []}),
    ("uri", "a name that must be quoted", {**ODD, "studies": [STUDY]}),
    ("propose", "the first study", _proposed(TWO, STUDY)),
    ("propose", "the second study", _proposed(TWO, SECOND)),
    ("propose", "a name that must be quoted", _proposed(uri(**ODD, studies=[STUDY]), STUDY)),
]
BAD: Bad = [
    ("propose", "another study", _proposed(TWO, counting(3))),
    ("propose", "the beginning of a hash", _proposed(TWO, STUDY[:31])),
    ("propose", "a list of no study", _proposed(uri(**WHO, studies=[]), STUDY)),
    ("propose", "a study in a person's name", _proposed(uri(**ODD, studies=[]), counting(3))),
]
