"""`umpc node doctor` and the table: each fault is one red line, and columns that are none."""

from __future__ import annotations

import json

import duckdb
import pytest
from click.testing import CliRunner

from tests.support.examined_site import Examined, the_one
from tests.support.studies import KENDALL, make_study
from umpc.cli.main import umpc
from umpc.errors import ApprovalPending
from umpc.node.approvals import REJECTED, Approvals, approvals_beside


@pytest.fixture
def site(tmp_path):
    return Examined(tmp_path)


def test_each_fault_of_the_table_is_red(site):
    site.write('[policy]\nfields = ["agee"]\n')
    the_one(site.red(), 22, "the field 'agee'", "did you mean 'age'?", "Correct the policy")
    site.write("[policy]\nmin_records = 4\n")
    the_one(site.red(), 21, "has 3 rows", "asks for 4", "lower min_records")
    site.write()
    for text, code, words in (
        ("age\n", 26, "Put the records"),
        ("", 26, "Put the records"),
        ("a,b\n1,2\n3\n", 21, "Expected Number of Columns: 2 Found: 1"),
        ("age,age\n1,2\n", 0, ""),
    ):
        site.table(text)
        came, lines = site.red()
        assert came == code and all(words in line for line in lines), (text, lines)
        assert len(lines) == bool(code)
    site.write('[policy]\nfields = ["age"]\n')
    the_one(site.red(), 21, "more than once")


def test_the_folder_and_the_key_of_linked_rows_are_looked_at(site):
    site.write('[linked]\nfolder = "rows"\nkey = "city"\n')
    folder = site.folder / "rows"
    assert f"--  linked rows: {folder}: the node makes it" in site.doctor()[1]
    folder.mkdir(mode=0o755)
    the_one(site.red(), 20, "linked rows: ", "has secrets of studies, and mode 755", "chmod 700")
    folder.chmod(0o700)
    (folder / "00.dealt").touch()
    code, output = site.doctor()
    assert code == 0 and f"ok  linked rows: {folder}: 1 studies with keys, " in output
    site.write('[linked]\nfolder = "rows"\nkey = "pseudonym"\n')
    the_one(site.red(), 22, "key = 'pseudonym', and the table has no", "Correct key")


OPEN = "[policy]\nmax_epsilon = 1\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id;crp\na;115,1\nb;63,5\n", ("'crp': 2 of 2 value(s)", "'115,1'", 'decimal = ","')),
        (
            "a;b\n1.234,5;1\n2,5;2\n",
            ("'a': 2 of 2", 'decimal = "," and thousands = "." under [data]'),
        ),
        ("a;b\n1 234;1\n7;2\n", ("'a': 1 of 2", "'1 234'", 'thousands = " "')),
        (
            "a;b\n1,234;1\n7;2\n",
            ('decimal = "," under [data] if \'1,234\' is 1.234, or thousands = "," if it is 1234',),
        ),
        ("a;b\n1,234;1.5\n7;2\n", ('have thousands separators: write thousands = ","',)),
        ("a;b\n1,5;1.5\n7;2\n", ("such as '1.5', do not: write all of them in one way",)),
        ("a\n1\n2\n?\n", ("'?'", 'missing = ["", "nan", "NaN", "NA", "?"] under [data]')),
        ("a\n12 mg\n2\n", ("'12 mg'", "other characters beside the number: remove")),
        ('a\n1\n2\n"3\u00a0€"\n', ("hold other characters", "remove")),
        ("a\n1\n(1.5)\n", ("'(1.5)'", "with a hyphen in front, as -1.5")),
        ("a\n1\n\u22121.5\n", ("negative numbers", "with a hyphen in front, as -1.5")),
        ("a\n1\n2\nforty\n", ("'forty'", "or list them as missing under [data]")),
    ],
)
@pytest.mark.parametrize("policy", [OPEN, "fields"])
def test_numbers_that_are_none_for_the_node_are_red(site, text, words, policy):
    """Also where the policy names no fields: then all columns are looked at."""
    fields = [name for name in text.splitlines()[0].split(";") if name != "id"]
    site.write(OPEN if policy == OPEN else f"[policy]\nfields = {json.dumps(fields)}\n")
    site.table(text)
    the_one(site.red(), 23, "count as a field's lower bound", *words)


def test_all_columns_are_looked_at_where_a_study_may_use_them(site):
    site.write(OPEN)
    rows = [f"w{i},2026-05-0{i},{i},{i}{letter},1\n" for i, letter in enumerate("abcd")]
    site.table(f"id,day,age,house,age\n{''.join(rows)}")
    code, output = site.doctor()
    assert code == 0
    assert (
        "--  columns: [policy] names no fields, so a study may use every column, except" in output
    )
    assert "whose name is there twice: 'age'" in output
    assert (
        "ok  columns: words, which a study uses by its categories: 'id', 'day', 'house'" in output
    )
    site.table("age,crp,city\n1,2.5,Lille\n")
    assert "ok  columns: numbers: 'age', 'crp'\n" in site.doctor()[1]
    wide = [f"c{i}" for i in range(120)]
    site.table(f"{','.join(wide)}\n{','.join('7' for _ in wide)}\n")
    assert "; the first 100 are looked at, or those in fields" in site.doctor()[1]


def test_the_settings_that_doctor_names_make_the_column_numbers(site):
    site.table("crp;n\n1.115,1;1\n63,5;?\n")
    site.write(OPEN)
    assert len(site.red()[1]) == 2
    site.write(OPEN, data='decimal = ","\nthousands = "."\nmissing = ["", "?"]')
    code, output = site.doctor()
    assert code == 0 and "ok  columns: numbers: 'crp', 'n'\n" in output


STUDY = """
name = "s"
statistic = "gini_mean_difference"
columns = ["age"]
epsilon = 1
identity = "nowhere"
[[fields]]
name = "age"
{}
[[nodes]]
name = "north"
address = "127.0.0.1:1"
"""
BOUNDS = "lower = 0\nupper = 30\nwhole = true"


@pytest.mark.parametrize(
    ("field", "values", "code", "words"),
    [
        (BOUNDS, (90, 100, 7), 23, ("7 to 100", "2 value(s) lie outside the study's 0 to 30")),
        (BOUNDS, (9, 100, 7), 0, ()),
        ('categories = ["a", "b"]', ("A", "B", "a"), 23, ("'A', 'B'", "words = {")),
        (BOUNDS, ("x", "y", "z"), 23, ("3 of 3 value(s) are no numbers",)),
    ],
)
def test_a_study_that_does_not_fit_the_table_is_refused_by_its_check(
    site, field, values, code, words
):
    site.write('[policy]\nfields = ["age"]\n')
    site.table("age\n" + "".join(f"{value}\n" for value in values))
    (site.folder / "study.toml").write_text(STUDY.format(field))
    asked = [
        "study",
        "check",
        str(site.folder / "study.toml"),
        "--table",
        str(site.folder / "node.toml"),
    ]
    ended = CliRunner().invoke(umpc, asked)
    assert getattr(ended.exception, "exit_code", ended.exit_code) == code
    assert all(each in ended.output for each in words)


def test_a_study_that_waits_for_approval_is_compared_unasked(site):
    approvals = Approvals(approvals_beside(site.ledger))
    with pytest.raises(ApprovalPending):
        approvals.require(make_study(KENDALL, name="waiting"), "north")
    site.write('[policy]\nfields = ["x", "y"]\n')
    site.table("x,y\n1,2\n2,3\n")
    assert site.red() == (0, [])
    site.table("x,y\n1,200\n2,300\n")
    the_one(site.red(), 23, "'waiting', field 'y'", "2 value(s) lie outside the study's 0 to 3")
    approvals.decide(approvals.entries()[0].hash, REJECTED)
    assert site.red() == (0, [])


def test_infinite_values_and_an_na_are_named_before_any_study(site):
    site.write('[policy]\nfields = ["x"]\n')
    site.table("x\n1\ninf\n2\n-inf\n")
    the_one(site.red(), 23, "'x': 2 of 4 value(s) are infinite, and count as a field's bound")
    site.table('"x"\n1\nNA\n2\n')
    code, output = site.doctor()
    assert code == 0 and "'x': 1 value(s) are NA, and such records are left out" in output
    site.write('[policy]\nfields = ["x"]\n', data='missing = ["", "NA"]')
    assert "are left out" not in site.doctor()[1]


def test_a_column_that_no_study_can_use_is_named(site):
    with duckdb.connect() as connection:
        query = "SELECT 1 AS x, DATE '2020-01-01' AS day"
        connection.execute(f"COPY ({query}) TO '{site.folder}/t.parquet' (FORMAT parquet)")
    site.write(OPEN)
    file = site.folder / "node.toml"
    file.write_text(file.read_text().replace("t.csv", "t.parquet"))
    code, output = site.doctor()
    assert code == 0 and "--  columns: of types that no study can use: 'day (DATE)'" in output
    file.write_text(file.read_text().replace(OPEN, '[policy]\nfields = ["day"]\n'))
    the_one(site.red(), 21, "'day': a column of numbers, booleans or texts", "DATE", "Export it")
