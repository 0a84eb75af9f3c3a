"""The tests that take long: they run in `make long` and `make contract`, not in `make test`.

`make test` ends within ten minutes on two cores. So the functions of `long_tests.txt` leave it.
Every sixteenth case of a function with many cases stays, chosen by a checksum of its name; no
other case stays. Every kind of test that is named there has shorter relatives in `make test`.
"""

from __future__ import annotations

import os
from pathlib import Path
from zlib import crc32

ALONE = "UMPC_LONG"
"""If this variable is set, only the long tests run. `make long` sets it."""
AUDIT = "UMPC_AUDIT_RUNS"
"""If this variable is set, nothing is left out. `make audit` and `make contract` set it."""
STAYS = 16
"""One of so many cases of a long function stays in `make test`."""
WHOLE = "whole"
"""The word after a function of which no case stays, because each case is long."""
LINES = [
    line.rpartition("::")
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]


def _by_file(lines: list[tuple[str, str, str]]) -> dict[str, tuple[str, ...]]:
    """Return file → the beginnings of its functions' names."""
    files = {file: [] for file, _, _ in lines}
    for file, _, rest in lines:
        files[file].append(rest.removesuffix(WHOLE).rstrip())
    return {file: tuple(names) for file, names in files.items()}


LONG = _by_file(LINES)
"""File → the beginnings of its long functions' names."""
NONE_STAYS = _by_file([line for line in LINES if line[-1].endswith(f" {WHOLE}")])


def runs_now(test: str) -> bool:
    """Whether a test runs under the variables that are set. Args: test: its full name."""
    if AUDIT in os.environ:
        return True
    is_left_out = is_long(test) and not stays(test)
    return is_left_out == (ALONE in os.environ)


def is_long(test: str) -> bool:
    return _is_in(LONG, test)


def stays(test: str) -> bool:
    """Whether this case of a long function stays in `make test`."""
    has_cases = "[" in test.partition("::")[2]
    return has_cases and not _is_in(NONE_STAYS, test) and crc32(test.encode()) % STAYS == 0


def _is_in(names: dict[str, tuple[str, ...]], test: str) -> bool:
    file, _, function = test.partition("::")
    return function.startswith(names.get(file, ())) if file in names else False
