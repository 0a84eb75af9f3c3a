"""The long audits run in `make audit` only, so that `make test` ends within ten minutes.

Every kind of release keeps an audit in `make test`, and every mutant is tried in `make audit`.
"""

from __future__ import annotations

import os

import pytest

LONG = (
    "test_audit.py::test_the_real_code_keeps_its_promise_and_the_same_runs_find_broken_code[degree 1",
    "test_audit.py::test_the_real_code_keeps_its_promise_and_the_same_runs_find_broken_code[two sums, d",
    "find_broken_code[degree 2, sampled E",
    "find_broken_code[degree 2, ordinary",
    "find_broken_code[degree 2, in_mpc",
    "find_broken_code[degree 3, in_mpc",
    "find_broken_code[degree 3, distributed",
    "find_broken_code[two samples, two sums",
    "find_broken_code[pair_laplace, P",
    "find_broken_code[pair_laplace, range",
    "find_broken_code[randomised_response, P",
    "test_gopa.py::test_the_honest_nodes_noise",
    "test_onemessage.py::test_a_records_answer_keeps_its_promise_and_the_same_runs_find_one_that_does_"
    "not[bell-auc",
    "test_repeated.py::",
    "test_parts.py::test_coins_are_known_to_nobody",
    "test_parts.py::test_a_single_share",
    "find_too_little_noise[hajek_split",
)
"""Parts of the names of the long audits."""


def is_long(item: pytest.Item) -> bool:
    return any(part in item.nodeid for part in LONG)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long audits out, unless `make audit` says how many runs it takes."""
    if "UMPC_AUDIT_RUNS" in os.environ:
        return
    long = [item for item in items if "tests/audit/" in item.nodeid and is_long(item)]
    chosen = set(long)
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if item not in chosen]
