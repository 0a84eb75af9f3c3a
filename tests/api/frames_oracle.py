"""Frames of large libraries, and lifelines' concordance index: `make oracles` runs it.

These libraries are not installed for `make test`.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from lifelines.utils import concordance_index

import umpc

BOUNDS = {"x": (0, 255), "y": (0, 255), "event": ["false", "true"]}


def table() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(9)
    return {
        "x": rng.integers(0, 200, 24),
        "y": rng.integers(0, 200, 24),
        "event": rng.random(24) < 0.7,
    }


def test_frames_of_polars_and_pyarrow_lazy_ones_too():
    own = table()
    found = {
        umpc.estimate(
            "kendall_tau", [frame], ["x", "y"], bounds=BOUNDS, epsilon=10**9, edges="all"
        ).estimate
        for frame in (own, pl.DataFrame(own), pl.DataFrame(own).lazy(), pa.table(own))
    }
    assert len(found) == 1
    missing = pl.DataFrame({"x": [1, None, 3], "y": [1, 2, 3]})
    found = umpc.estimate("kendall_tau", [missing], ["x", "y"], bounds=BOUNDS, epsilon=10**9)
    assert found.report.records == 2


def test_the_concordance_index_is_that_of_lifelines():
    own = table()
    found = umpc.estimate(
        "concordance_index",
        [pl.DataFrame(own)],
        ["x", "y", "event"],
        bounds=BOUNDS,
        epsilon=10**9,
        edges="all",
    )
    theirs = concordance_index(own["y"], -own["x"].astype(float), own["event"])
    assert found.estimate == pytest.approx(theirs)
