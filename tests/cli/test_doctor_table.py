"""`umpc node doctor` and the table: each fault is one red line, and columns that are none."""

from __future__ import annotations

import json

import pytest

from tests.support.examined_site import Examined, the_one


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
