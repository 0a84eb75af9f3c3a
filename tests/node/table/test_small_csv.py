"""umpc.node.table.small_csv: a small file gives what DuckDB gives, or DuckDB says what is wrong."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.site_tables import let_duckdb_read_all
from umpc.errors import UmpcError
from umpc.node.records import Records, load_records
from umpc.node.table.number_format import NumberFormat
from umpc.node.table.small_csv import SMALL_BYTES, is_small, read_small
from umpc.node.table.source import TableSite, TableSource
from umpc.study.parts import Person
from umpc.ustat.schema import FieldSchema

HALF = FieldSchema("x", Fraction(-50), Fraction(50), Fraction(1, 2))
KIND = FieldSchema("kind", Fraction(0), Fraction(2), Fraction(1), ("a", "b", "no answer"))
FIELDS = (HALF, KIND)
PERSON = Person("who", 2)
SAFE = (
    *("", " ", "0", "1", "-1.5", "+2", ".5", "5.", "1e1", "1E+2", "1e999", "-1e999", "1e-999"),
    *("inf", "-Infinity", "INF", "nan", "NaN", "NA", "n/a", "1_0", "0x1F", "１２", "1 2", "e1"),
    *("a", "b", " a", "b\t", "no answer", "A", "é", "\u2028", "\v", "\x85", '"1,5"', '"a\nb"'),
    *('""', '"a"', 'a"b', "'", "#", "\\", "\ufeff", "-", '" "', '"a""b"', "inf ", "nan "),
    *("9" * 30, "0." + "1" * 40, "4.35", "2.675", "1e22", "1e23", "179769313486231570e291"),
)
"""Values of one row: no reader refuses any of them."""
WORDS = st.sampled_from([*SAFE, ' "40"', '"', '"a"b', "\r", "\x00", "1,5", "1.234,5"])
LINES = st.lists(st.lists(WORDS, min_size=2, max_size=4).map(",".join), min_size=1, max_size=5)
WHOLE = st.lists(st.lists(WORDS, min_size=3, max_size=3).map(",".join), min_size=1, max_size=5)
COMMA = NumberFormat(",", ".")


def outcome(source: TableSource, fields, person) -> Records | str:
    try:
        return load_records(source, fields, node="a", person=person)
    except UmpcError as error:
        return f"{type(error).__name__}: {error} {error.detail}"


def by_duckdb(source: TableSource, fields, person) -> Records | str:
    with pytest.MonkeyPatch.context() as patch:
        let_duckdb_read_all(patch)
        return outcome(source, fields, person)


def assert_alike(source: TableSource, fields=FIELDS, person: Person | None = PERSON) -> None:
    here, there = outcome(source, fields, person), by_duckdb(source, fields, person)
    if isinstance(here, str) or isinstance(there, str):
        assert here == there
        return
    assert (here.count, here.dropped, here.cohort) == (there.count, there.dropped, there.cohort)
    assert [*map(str, here.misfits)] == [*map(str, there.misfits)]
    for name, column in there.columns.items():
        assert np.array_equal(here.columns[name], column) and here.columns[name].dtype == np.int64


def source_of(folder: Path, text: str | bytes, **settings) -> TableSource:
    path = folder / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return TableSource(path, **settings)


def test_every_word_counts_as_with_duckdb_in_every_column(tmp_path):
    rows = [f"{word},a,p" for word in SAFE] + [f"1,{word},p" for word in SAFE]
    rows += [f"1,a,{word}" for word in SAFE]
    source = source_of(tmp_path, "x,kind,who\n" + "\n".join(rows) + "\n")
    assert is_small(source, TableSite("a", source.path))
    assert_alike(source)
    assert_alike(source, person=None)
    assert read_small(source, FIELDS, TableSite("a", source.path), "who") is not None


@given(lines=LINES | WHOLE, end=st.sampled_from(["", "\n", "\r\n", "\n\n"]))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_text_counts_as_with_duckdb_or_has_its_error(tmp_path, lines: list[str], end: str):
    assert_alike(source_of(tmp_path, "x,kind,who\n" + "\n".join(lines) + end))


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("x;kind;who\n1.234,5;a;p\n12,5;b;p\n1.5;b;q\ninf;a;q\n", {"numbers": COMMA}),
        ("x|kind|who\n1|a|p\n\n2|b|\n", {"delimiter": "|"}),
        ("x,kind,who\n1,é,p\n2,a,ü\n".encode("latin-1"), {"encoding": "latin-1"}),
        ("x,kind,who\n1,é,p\n".encode("latin-1"), {}),
        ("\ufeffx,kind,who\r\n1,a,p\r2,b,p\n", {}),
        ("x,kind,who\n ,a,p\n,a,p\nweg,a,p\n7,b,p\n", {"missing": ("weg",)}),
        ('"x","kind",who\n"1","a","p\nq"\n', {}),
        ("x,X,kind,who\n1,2,a,p\n", {}),
        ("x,x,kind,who\n1,2,a,p\n", {}),
        ("y,kind,who\n1,a,p\n", {}),
        ("x,kind,who\n", {}),
        ("\nx,kind,who\n1,a,p\n", {}),
        ("x,kind,who\n1,a\n", {}),
        ("x,kind,who\n1,a,p,\n", {}),
        ('x,kind,who\n"1,a,p\n', {}),
        ('x,kind,who\n "40",a,p\n41, "b",q\n42,a,\t"r"\n', {}),
        ('x;kind;who\n1;  "a";p\n', {"delimiter": ";"}),
        ("", {}),
    ],
)
def test_formats_and_faults_are_those_of_duckdb(tmp_path, text, settings):
    assert_alike(source_of(tmp_path, text, **settings))


@pytest.mark.parametrize("text", ["x\n1\n\n2\n", "x\n\n", "x\n 3 \n\t\n", "x\n1\n2"])
def test_blank_lines_of_one_column_are_missing_values(tmp_path, text):
    assert_alike(source_of(tmp_path, text), FIELDS[:1], None)


def test_no_record_decides_how_the_others_are_read(tmp_path):
    """With a blank before a quote the readers differ, and one letter or NUL chose between them."""
    head, row = "x,note\n", ' "40",a\n'
    rows = row * ((SMALL_BYTES - len(head)) // len(row) - 2)
    found = [
        load_records(source_of(tmp_path, head + rows + f"1,{note}\n"), FIELDS[:1], node="n")
        for note in ("a", "b" * 500, "c\0")
    ]
    for records in found:
        assert records.columns["x"][:-1].tolist() == found[0].columns["x"][:-1].tolist()


def test_only_a_short_file_of_its_own_is_small(tmp_path):
    source = source_of(tmp_path, "x\n" + "1\n" * (SMALL_BYTES // 2 - 1))
    site = TableSite("a", source.path)
    assert is_small(source, site)
    assert not is_small(source_of(tmp_path, "x\n" + "1\n" * (SMALL_BYTES // 2)), site)
    assert not is_small(TableSource(tmp_path / "*.csv", is_pattern=True), site)
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(b"\x1f\x8b")
    assert not is_small(TableSource(packed), site)


def test_a_process_reads_a_small_file_without_duckdb(tmp_path):
    source = source_of(tmp_path, "x\n1\n")
    script = (
        "import sys; from fractions import Fraction as F; from pathlib import Path\n"
        "from umpc.node.records import TableSource, load_records\n"
        "from umpc.ustat.schema import FieldSchema\n"
        "field = FieldSchema('x', F(0), F(1), F(1))\n"
        "print(load_records(TableSource(Path(sys.argv[1])), [field], node='a').count)\n"
        "assert 'duckdb' not in sys.modules"
    )
    run = [sys.executable, "-c", script, str(source.path)]
    assert subprocess.run(run, check=True, capture_output=True, text=True).stdout == "1\n"
