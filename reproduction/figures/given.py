"""The tables of data, which are no part of this project, and what stands in for two of them.

`python -m reproduction.figures --data bank=FILE` gives one. The processes that measure find the
file by an environment variable. Without it, the bank and heart data are looked for in the data
folder beside this project, and else made-up tables of the same size take their place. Every stored
point carries the digest of its table, and every file that is written says which table it is of.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from bench.harness import BANK, RECORDS, made_up
from umpc.cli.table import DemoTable, read_csv

EXPECTED = {
    "bank": "bank.csv of Bank Marketing (Moro, Rita & Cortez 2014, UCI, doi 10.24432/C5K306): the "
    "small file of 4,521 rows, with semicolons",
    "heart": "the files processed.cleveland.data, …hungarian.data, …switzerland.data and …va.data "
    "of Heart Disease (Janosi, Steinbrunn, Pfisterer & Detrano 1989, UCI, doi 10.24432/C52P4X), "
    "put together into one in this order; or a CSV file with columns trestbps, chol and num",
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
STAND_INS = ("bank", "heart")
"""Tables in whose place made-up ones of the same size are measured."""
BESIDE = {"bank": BANK, "heart": BANK.parents[1] / "heart" / "heart_sites.csv"}
"""Where tables are looked for that are not given."""
PUBLISHED = {
    "bank": ("dc8d576e9bda0f41ee891251bd84bab9a39ce576cba715aac08adc2374a01fde",),
    "heart": (
        "5186ac5799aaad53250eab4085ab6a91aaf722e8863cdf69fd2e22a4aa9737b3",
        "96e2e895e3b8a717a9efecf583980a9f7857dd5020d84cc747f85636b69f50c4",
    ),
}
"""The sha256 of the published files; of the heart data the four in one, and their six columns."""
MADE_UP = "made up"
"""The digest of a table that is made up."""
HEART_RECORDS = 834
UCI_PLACES = {"trestbps": 3, "chol": 4, "num": 13}
"""Where the columns are in the lines of the published heart data, which have no header."""
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


def found(name: str) -> Path | None:
    """The given file, or the one beside this project; None where there is neither."""
    given = os.environ.get(_PREFIX + name.upper())
    if given:
        return Path(given)
    beside = BESIDE.get(name)
    return beside if beside and beside.is_file() else None


def file_of(name: str) -> Path:
    """The table's file. Raises: SystemExit if there is none."""
    file = found(name)
    if file is None:
        raise SystemExit(f"write --data {name}=FILE: {EXPECTED[name]}")
    return file


def can_be_measured(name: str) -> bool:
    """Whether there is a file of the table, or another table in its place."""
    return name in STAND_INS or found(name) is not None


def digest_of(name: str) -> str:
    """The sha256 of the table's file, so that results of another file are not reused.

    MADE_UP where another table takes its place. Raises: SystemExit if there is neither.
    """
    if name in STAND_INS and found(name) is None:
        return MADE_UP
    return hashlib.sha256(file_of(name).read_bytes()).hexdigest()


def is_made_up(name: str) -> bool:
    return digest_of(name) == MADE_UP


def is_published(name: str) -> bool:
    """Whether the table is the published one, by its digest."""
    return digest_of(name) in PUBLISHED.get(name, ())


def note_of(name: str) -> str:
    """The words on a table in titles, verdicts and CSV files; empty if it is published."""
    if is_published(name):
        return ""
    if is_made_up(name):
        return f"made-up table in place of the {name} data"
    return f"{name} data of a file whose sha256 begins with {digest_of(name)[:16]}"


# --- the two tables of numbers and categories ---


def bank_table(columns: Sequence[str]) -> tuple[DemoTable, str]:
    """Columns of the bank data and the name of their source; made up without a file."""
    file = found("bank")
    if file is not None:
        return read_csv(file, ";", columns), "Bank data"
    rows = [
        {"age": age, "balance": balance, "y": "yes" if int(age) % 8 == 0 else "no", "job": job}
        for (age, balance), (job,) in zip(
            made_up(RECORDS).rows, _made_up_labels(RECORDS, 12), strict=True
        )
    ]
    taken = [tuple(row[name] for name in columns) for row in rows]
    return DemoTable(tuple(columns), taken), "A made-up table of the bank data's size"


def heart_table(columns: Sequence[str]) -> tuple[DemoTable, str]:
    """Columns of the heart data's records that have blood pressure, cholesterol and diagnosis."""
    file, places = found("heart"), list(UCI_PLACES)
    if file is None:
        labels = _made_up_labels(HEART_RECORDS, 5)
        whole = [
            (str(80 + (i * 7919) % 121), str((i * 104_729) % 604), *labels[i])
            for i in range(HEART_RECORDS)
        ]
        source = "A made-up table of the heart data's size"
    else:
        whole, source = _heart_rows(file), "Heart data"
    rows = [tuple(row[places.index(name)] for name in columns) for row in whole]
    return DemoTable(tuple(columns), rows), source


def _heart_rows(file: Path) -> list[tuple[str, ...]]:
    """(trestbps, chol, num) of the complete records, in either form of the file."""
    lines = file.read_text(encoding="utf-8").splitlines()
    if lines and all(name in lines[0].split(",") for name in UCI_PLACES):
        return list(read_csv(file, ",", list(UCI_PLACES)).rows)
    cells = [line.split(",") for line in lines if line.strip()]
    if not cells or any(len(row) <= max(UCI_PLACES.values()) for row in cells):
        raise SystemExit(f"{file}: expected {EXPECTED['heart']}")
    rows = [[row[place].strip() for place in UCI_PLACES.values()] for row in cells]
    return [tuple(str(int(float(each))) for each in row) for row in rows if "?" not in row]


def _made_up_labels(records: int, labels: int) -> list[tuple[str]]:
    return [(str((i * 7919) % (labels * 5) % labels),) for i in range(records)]
