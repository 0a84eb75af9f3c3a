"""Studies of noisy pairs: values of ε without noise, and changed facts."""

from __future__ import annotations

from tests.support.protocols import with_facts
from umpc.protocols.registry import checked
from umpc.study.document import Study

SILENT = 30
"""ε0 over the kernel's range: one coin of each sign is left, and falls with a probability of e^-30.
"""
CERTAIN = "1e6"
"""An ε at which a response is wrong with a probability of 2^-46 for each wrong value."""


def changed(study: Study, **changes) -> Study:
    """The study with other facts, checked as a whole."""
    return checked(with_facts(study, **changes))
