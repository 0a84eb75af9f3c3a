"""`umpc study check --table`: what a table's owner hears, in these words."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from umpc.cli.main import umpc
from umpc.errors import (
    ConfigError,
    DataError,
    EmptyTable,
    NotNumeric,
    StudyError,
    UnknownField,
)

STUDY = """
name = "s"
statistic = "kendall_tau"
columns = ["age", "balance"]
epsilon = 1
identity = "nowhere"
[[fields]]
name = "age"
lower = 0
upper = 99
whole = true
[[fields]]
name = "balance"
lower = -10
upper = 10
resolution = "0.1"
[[nodes]]
name = "north"
address = "127.0.0.1:1"
"""
STATED = 'resolution = "0.1"\n'


def check(folder: Path, table: str, study: str = STUDY, name: str = "t.csv"):
    (folder / "study.toml").write_text(study)
    (folder / name).write_text(table)
    arguments = ["study", "check", str(folder / "study.toml"), "--table", str(folder / name)]
    return CliRunner().invoke(umpc, arguments)


def test_a_table_that_fits(tmp_path):
    ended = check(tmp_path, "age,balance\n30,1.5\n31,-0.1\n")
    assert ended.exit_code == 0, ended.output
    assert ended.output.splitlines() == [
        "field 'age': 30 to 31; the study's whole = true holds every value",
        "field 'balance': -0.1 to 1.5; the study's resolution = 0.1 holds every value",
    ]


def test_decimals_that_the_studys_resolution_rounds(tmp_path):
    ended = check(tmp_path, "age,balance\n30.5,1.51\n31,1.52\n")
    assert ended.exit_code == 0
    assert ended.output.splitlines() == [
        "field 'age': 30.5 to 31; the study's whole = true rounds values and makes 0 different "
        'ones equal; resolution = "0.1" holds every value',
        "field 'balance': 1.51 to 1.52; the study's resolution = 0.1 rounds values and makes 1 "
        'different ones equal; resolution = "0.01" holds every value',
    ]


@pytest.mark.parametrize(
    ("table", "advice"),
    [
        ("age,balance\n30,1.25\n", 'resolution = "0.01" holds every value'),
        ("age,balance\n30,-3\n", "whole = true holds every value"),
    ],
)
def test_a_field_without_a_resolution_gets_one_and_the_study_is_refused(tmp_path, table, advice):
    ended = check(tmp_path, table, STUDY.replace(STATED, ""))
    assert f"the study states no resolution; {advice}" in ended.output
    assert isinstance(ended.exception, StudyError) or ended.exit_code == StudyError.exit_code


def test_bounds_words_and_marks(tmp_path):
    (tmp_path / "id").mkdir()
    ended = check(tmp_path, "age,balance\n130,1\n?,2\nforty,3\n,4\n")
    (line, _) = ended.output.splitlines()
    assert isinstance(ended.exception, NotNumeric)
    assert "2 of 3 value(s) are no numbers as they are written, and count as the lower" in line
    assert "1 value(s), such as '?', often stand for a missing value" in line
    assert 'missing = ["", "nan", "NaN", "NA", "?"] under [data]' in line
    assert "1 value(s), such as 'forty', are words: correct the table" in line
    assert "1 value(s) lie outside the study's 0 to 99 and count as the nearer bound" in line


def test_categories(tmp_path):
    study = STUDY.replace("lower = 0\nupper = 99\nwhole = true\n", 'categories = ["a", "b"]\n')
    ended = check(tmp_path, "age,balance\na,1\nc,2\n", study)
    assert "1 of 2 value(s) are none of the study's categories, such as 'c'" in ended.output
    assert "every value is one of" in check(tmp_path, "age,balance\na,1\n", study).output


def test_a_nodes_configuration_says_how_its_table_is_read(tmp_path):
    for name in ("ca.pem", "cert.pem", "key.pem"):
        (tmp_path / name).write_text("")
    (tmp_path / "t.csv").write_bytes("age;balance;é\n30;1,5;x\nNA;3;x\n".encode("latin-1"))
    node = """
name = "north"
identity = "."
[data]
path = "t.csv"
encoding = "latin-1"
decimal = ","
missing = ["NA"]
[budget]
epsilon = 1
"""
    ended = check(tmp_path, node, name="node.toml")
    assert ended.exit_code == 0, ended.output
    assert "field 'balance': 1.5 to 1.5; the study's resolution = 0.1 holds" in ended.output


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("age;balance\n30;1,5\n31;2\n32;-1,5\n", 'a decimal comma: write decimal = "," under'),
        ("age;balance\n30;1 mg\n31;2 mg\n", "hold other characters beside the number: remove"),
        ("age;balance\n30;x\n31;y\n", "2 value(s), such as 'x', are words: correct the table"),
    ],
)
def test_a_field_that_is_mostly_no_numbers_says_why_and_fails(tmp_path, table, words):
    ended = check(tmp_path, table)
    assert ended.output.startswith("field 'age': 3") and words in ended.output
    assert isinstance(ended.exception, NotNumeric)
    assert "values that fit were expected in 'balance', and most" in str(ended.exception)


@pytest.mark.parametrize(
    ("table", "error", "words"),
    [
        ("age,balance\n1\n", DataError, "Expected Number of Columns: 2 Found: 1"),
        ("age,balance\n", EmptyTable, "at least one row with a value in each field"),
        ("age,balance\n1,\n", EmptyTable, "at least one row with a value in each field"),
        ("", EmptyTable, "the data file is empty"),
        ("age,balances\n1,2\n", UnknownField, "did the study mean 'balances'?"),
        (None, ConfigError, "there is no such file. Correct the path"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_without_a_node(tmp_path, table, error, words):
    ended = check(tmp_path, table or "")
    if table is None:
        (tmp_path / "t.csv").unlink()
        arguments = ["--table", str(tmp_path / "t.csv")]
        ended = CliRunner().invoke(
            umpc, ["study", "check", str(tmp_path / "study.toml"), *arguments]
        )
    assert type(ended.exception) is error, ended.exception
    told = ended.exception.message
    assert words in told and str(tmp_path / "t.csv") in told
    assert "node '" not in told and "log" not in told and not ended.exception.detail


def test_a_table_that_this_user_may_not_read_is_refused_with_what_to_do(tmp_path, monkeypatch):
    honest = Path.open

    def refused(path, *given, **named):
        if path.name == "t.csv" and "mode" not in named:
            raise PermissionError(13, "Permission denied")
        return honest(path, *given, **named)

    monkeypatch.setattr(Path, "open", refused)
    result = check(tmp_path, "age,balance\n1,2\n")
    assert isinstance(result.exception, DataError)
    assert "this user may not read it: check its owner and mode" in str(result.exception)
    assert "Errno" not in str(result.exception)


ALIVE = STUDY.replace("lower = 0\nupper = 99\nwhole = true\n", 'categories = ["false", "true"]\n')
MMOL = STUDY.replace("upper = 99", "upper = 30")


@pytest.mark.parametrize(
    ("study", "values", "words"),
    [
        (MMOL, (90, 105, 126), ("90 to 126", "3 value(s) lie outside the study's 0 to 30", "unit")),
        (MMOL, ("inf", "-inf", 5), ("2 value(s) are infinite, and count as a bound",)),
        (ALIVE, ("WAHR", "FALSCH", "true"), ("2 of 3", "'FALSCH', 'WAHR'", "words = {")),
        (ALIVE, (0, 1, 1), ("3 of 3 value(s) are none", 'words = {"0" = "false"}')),
    ],
)
def test_a_field_of_which_most_values_do_not_fit_ends_with_23(tmp_path, study, values, words):
    ended = check(tmp_path, "age,balance\n" + "".join(f"{value},1\n" for value in values), study)
    line = ended.output.splitlines()[0]
    assert all(word in line for word in words), line
    assert isinstance(ended.exception, NotNumeric) and "'age'" in str(ended.exception)


def test_a_spelling_of_booleans_and_an_na_of_r_fit(tmp_path):
    ended = check(tmp_path, "age,balance\nTRUE,1\nFALSE,NA\nTrue,2\nNA,1\n", ALIVE)
    assert ended.exit_code == 0, ended.output
    assert "field 'age': every value is one of the study's categories" in ended.output
    assert "field 'balance': 1 to 2" in ended.output


def test_a_nodes_words_and_names_of_columns_count(tmp_path):
    for name in ("ca.pem", "cert.pem", "key.pem"):
        (tmp_path / name).write_text("")
    (tmp_path / "t.csv").write_text("alive,CRP_mg_l,balance\nWAHR,1.5,x\nFALSCH,2,y\n")
    data = '[data]\npath = "t.csv"\nwords = {WAHR = "true", FALSCH = "false"}\n'
    more = 'columns = {age = "alive", balance = "CRP_mg_l"}\n'
    node = 'name = "north"\nidentity = "."\n' + "{}[budget]\nepsilon = 1\n"
    ended = check(tmp_path, node.format(data + more), ALIVE, "node.toml")
    assert ended.exit_code == 0, ended.output
    assert "field 'balance': 1.5 to 2" in ended.output
    for wrong, error, told in (
        ('columns = {age = "lives"}\n', UnknownField, "the column that columns under [data] names"),
        ("words = {WAHR = true}\n", ConfigError, "all of them texts"),
        ('columns = {a = "x", b = "x"}\n', ConfigError, "another column of the table for each"),
    ):
        kept = data if "words" not in wrong else '[data]\npath = "t.csv"\n'
        ended = check(tmp_path, node.format(kept + wrong), ALIVE, "node.toml")
        assert isinstance(ended.exception, error) and told in str(ended.exception)


@pytest.mark.parametrize(
    ("categories", "error", "told"),
    [
        ('["f ", "m"]', StudyError, "a category without blanks at its ends was expected"),
        ('["NA", "DE"]', ConfigError, "marks a missing value at this site"),
    ],
)
def test_categories_that_no_value_can_have_are_refused(tmp_path, categories, error, told):
    study = ALIVE.replace('["false", "true"]', categories)
    ended = check(tmp_path, "age,balance\nf,1\n", study)
    assert isinstance(ended.exception, error) and told in str(ended.exception)


def test_texts_of_decimals_beside_typed_numbers_and_a_decimal_comma(tmp_path):
    """A site's decimal comma is about texts: numbers of a Parquet file have a type."""
    for name in ("ca.pem", "cert.pem", "key.pem"):
        (tmp_path / name).write_text("")
    with duckdb.connect() as connection:
        query = "SELECT 1.5::DOUBLE AS balance, '30,0' AS age"
        connection.execute(f"COPY ({query}) TO '{tmp_path}/t.parquet' (FORMAT parquet)")
    node = 'name = "n"\nidentity = "."\n[data]\npath = "t.parquet"\ndecimal = ","\n'
    ended = check(tmp_path, node + "[budget]\nepsilon = 1\n", name="node.toml")
    assert ended.exit_code == 0, ended.output
    assert "field 'balance': 1.5 to 1.5" in ended.output and "'age': 30.0 to 30.0" in ended.output


LINKED = """
name = "s"
statistic = "kendall_tau"
columns = ["age", "balance"]
epsilon = 1
identity = "nowhere"
protocol = "linked"
fields = [
  {name = "age", lower = 0, upper = 99, whole = true},
  {name = "balance", lower = -10, upper = 10, resolution = "0.1"},
]
[bins]
balance = [0, 5]
[dealer]
name = "dealer"
address = "127.0.0.1:3"
[[nodes]]
name = "west"
address = "127.0.0.1:1"
[[nodes]]
name = "east"
address = "127.0.0.1:2"
[linked]
first = ["age"]
rows = 40
closes = "2099-12-31T00:00:00Z"
"""


def test_a_site_of_linked_rows_compares_its_own_columns(tmp_path):
    for name in ("ca.pem", "cert.pem", "key.pem"):
        (tmp_path / name).write_text("")
    (tmp_path / "east.csv").write_text("key,balance\na,1.5\nb,-0.1\n")
    node = (
        'name = "east"\nidentity = "."\nlisten = "127.0.0.1:2"\n[data]\npath = "east.csv"\n'
        '[linked]\nfolder = "linked"\nkey = "key"\n[budget]\nepsilon = 1\n'
    )
    ended = check(tmp_path, node, LINKED, "east.toml")
    assert ended.exit_code == 0, ended.output
    assert ended.output.splitlines() == [
        "field 'balance': -0.1 to 1.5; the study's resolution = 0.1 holds every value"
    ]
    ended = check(tmp_path, "key,balance\na,1.5\n", LINKED)
    assert isinstance(ended.exception, ConfigError)
    assert "a node's configuration was expected" in str(ended.exception)
