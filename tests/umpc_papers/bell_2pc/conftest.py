"""All tests of noisy pairs that ask for it remember circuits and laws between runs."""

from __future__ import annotations

import pytest

from tests.support.bell import remembered


@pytest.fixture(scope="module")
def fast():
    with remembered():
        yield
