"""Files of data that cannot be part of this project.

`python -m bench.figures 001-3 --data diabetes=FILE` gives one. The processes that measure find the
file by an environment variable. A point carries the file's digest, not its place.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

EXPECTED = {
    "diabetes": "a CSV file with one line a hospital stay and a column `readmitted` of <30, >30 "
    "and NO (Strack et al. 2014, Impact of HbA1c measurement on hospital readmission rates: "
    "analysis of 70,000 clinical database patient records; all columns but `encounter_id` and "
    "`patient_nbr` are taken for features)",
    "tripadvisor": "a CSV file with one line a review and columns `rooms` and `cleanliness` of "
    "ratings 0 to 5, -1 or empty where missing; or the data's own files, put together into one: a "
    "review has lines `<Author>…`, `<Rooms>4`, `<Cleanliness>5` (Wang, Lu & Zhai 2010, Latent "
    "aspect rating analysis on review text data)",
}
"""Name → a description of the file."""
_PREFIX = "UMPC_FIGURES_DATA_"


def give(assignments: Sequence[str]) -> None:
    """Take files from the command line, each as NAME=FILE.

    Raises: SystemExit for an unknown name, or for a file that does not exist.
    """
    for assignment in assignments:
        name, _, file = assignment.partition("=")
        if name not in EXPECTED or not file:
            raise SystemExit(
                f"--data {assignment}: expected NAME=FILE, with {' or '.join(EXPECTED)} for NAME"
            )
        if not Path(file).is_file():
            raise SystemExit(f"--data {name}: there is no file {file}; expected {EXPECTED[name]}")
        os.environ[_PREFIX + name.upper()] = str(Path(file).resolve())


def is_given(name: str) -> bool:
    return _PREFIX + name.upper() in os.environ


def file_of(name: str) -> Path:
    """The given file. Raises: SystemExit if it was not given."""
    if not is_given(name):
        raise SystemExit(f"write --data {name}=FILE: {EXPECTED[name]}")
    return Path(os.environ[_PREFIX + name.upper()])


def digest_of(name: str) -> str:
    """A digest of the file's content, so that results of another file are not reused."""
    return hashlib.sha256(file_of(name).read_bytes()).hexdigest()[:16]
