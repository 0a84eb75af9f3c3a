"""Small tables of a site, their records, and what a refusal may tell."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest

from umpc import errors
from umpc.node.records import Records, load_records
from umpc.node.table.batch import complete
from umpc.node.table.reading import read_columns
from umpc.node.table.source import TableSite, TableSource
from umpc.node.table.survey import survey_table
from umpc.ustat.schema import FieldSchema

AGE = FieldSchema("age", Fraction(0), Fraction(127), Fraction(1))
BALANCE = FieldSchema("account balance", Fraction(-10000), Fraction(10000), Fraction(1, 100))
TENTHS = FieldSchema("x", Fraction(-(10**6)), Fraction(10**6), Fraction(1, 10))


def table(folder: Path, text: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def parquet(folder: Path, select: str) -> Path:
    path = folder / "t.parquet"
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"COPY ({select}) TO '{path}' (FORMAT parquet)")
    return path


def load(path: Path, *fields: FieldSchema, **source: object) -> Records:
    return load_records(TableSource(path, **source), fields or (AGE,), node="hospital-a")


def columns(read: Records) -> dict[str, list[int]]:
    assert all(c.dtype == np.int64 and c.shape == (read.count,) for c in read.columns.values())
    return {name: column.tolist() for name, column in read.columns.items()}


def refused(
    cls: type[errors.UmpcError], path: Path, *fields: FieldSchema, **options
) -> errors.UmpcError:
    """Return the refusal, whose message has the node's name and advice, no path, no value."""
    with pytest.raises(errors.UmpcError) as caught:
        load(path, *fields, **options)
    error = caught.value
    assert type(error) is cls
    assert error.message.startswith("node 'hospital-a': ") and error.culprit == "hospital-a"
    assert re.search(
        r"\. (Correct|Put|Export|Rename|Remove|Take|The node's own log)", error.message
    )
    assert str(path.parent) not in error.message and path.name not in error.message
    assert str(path) in error.detail
    assert error.__cause__ is None
    return error


def digits(text: str) -> set[str]:
    return set(re.findall(r"\d+", text))


def check_owners_commands(visits: TableSource) -> None:
    """A site's own commands read the same from four visits of ages 40, none, 50 and 60."""
    site = TableSite("a", visits.path)
    read = complete(read_columns(visits, ["age", "sex"], site))
    found = {name: column.texts.tolist() for name, column in read.items()}
    assert found == {"age": ["60", "50", "40"], "sex": [*"fmf"]}
    survey = survey_table(visits, ["age", "sex"], site)
    assert (survey.rows, survey.columns[0], str(survey.kinds["age"])) == (4, "age", "whole numbers")
    assert survey_table(visits, [], site).rows == 4
