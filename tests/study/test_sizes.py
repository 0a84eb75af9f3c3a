"""umpc.study.sizes: the numbers that follow from the members' counts of records."""

from __future__ import annotations

import pytest

from tests.support.studies import make_study
from umpc.errors import RangeError
from umpc.study.sizes import Sizes


def test_more_groups_of_owners_than_64_bits_can_number_are_refused():
    """234^8 < 2^63 <= 235^8: the ordered groups of 8 owners among so many nodes."""
    sampled = {"degree": 8, "edges": "1"}
    assert Sizes(make_study("1", 234, **sampled), 10).edges == 1
    with pytest.raises(RangeError, match="235 nodes are too many for edges of 8 records"):
        _ = Sizes(make_study("1", 235, **sampled), 10).edges
