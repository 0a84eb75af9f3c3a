"""umpc.study.sizes: the numbers that follow from the members' counts of records."""

from __future__ import annotations

import pytest

from tests.support.studies import make_study
from umpc.errors import RangeError
from umpc.study.sizes import Sizes


def test_too_many_groups_of_owners_are_refused():
    """40 nodes have 76,904,685 groups of 8 owners, which no process could list."""
    study = make_study("1", 40, degree=8)
    with pytest.raises(RangeError, match="groups of owners"):
        _ = Sizes(study, 40, 0, 40).edges
