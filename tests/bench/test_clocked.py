"""`make profile`: every function that it clocks exists."""

from __future__ import annotations

from importlib import import_module
from operator import attrgetter

import pytest

from bench.clocked import CATEGORIES


@pytest.mark.parametrize("place", [place for places in CATEGORIES.values() for place in places])
def test_a_clocked_function_exists(place):
    module, _, name = place.partition(":")
    assert callable(attrgetter(name)(import_module(f"umpc.{module}")))
