"""umpc.cli.table: the demo's table, its description, its parts, and the exact value."""

from __future__ import annotations

import csv
import gzip
import sys
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from tests.support.protocols import one_node_study
from umpc.cli import table as module
from umpc.cli.demo_options import given_bounds, named_value
from umpc.cli.kernel_options import field_of, label_of, listed
from umpc.cli.table import (
    BREAST_CANCER,
    DIAGNOSIS,
    DemoTable,
    breast_cancer,
    exact_over_all,
    exact_value,
    pooled,
    read_csv,
    usual_columns,
)
from umpc.errors import ConfigError, DataError, EmptyTable
from umpc.node.table.conversions import NumberFormat
from umpc.protocols.registry import checked
from umpc.study.document import Study
from umpc.study.parts import FieldText
from umpc.ustat.cell_rows import SampledCell
from umpc.ustat.hypergraph import Hypergraph
from umpc.ustat.statistics import LIBRARY

ROWS = [("1", "0.5"), ("2", "-1.25"), ("2", "3"), ("7", "0"), ("1", "0.5")]
TABLE = DemoTable(("age", "the balance"), ROWS)


KENDALL = 'sign(a.age - b.age) * sign(a["the balance"] - b["the balance"])'


def is_used(field: FieldText, kernels: Sequence[str]) -> bool:
    return field.public or not kernels or any(field.name in kernel for kernel in kernels)


def study(table: DemoTable, *kernels: str, **changes) -> Study:
    fields = [each for each in table.fields() if is_used(each, kernels)]
    return checked(one_node_study(fields, kernels or (KENDALL,), **changes))


def written(folder: Path, text: str) -> Path:
    path = folder / "table.csv"
    path.write_bytes(text.encode())
    return path


# --- reading ---


@pytest.mark.parametrize(("delimiter", "quote"), [(",", ""), (";", ""), ("\t", ""), (",", '"')])
def test_the_chosen_columns_are_read_in_the_chosen_order(tmp_path, delimiter, quote):
    lines = [["x", "note", "y"], ["1", "a", "2"], ["3", "b", "4"]]
    text = "\n".join(delimiter.join(quote + cell + quote for cell in line) for line in lines)
    found = read_csv(written(tmp_path, text), delimiter, ["y", "x"])
    assert read_csv(tmp_path / "table.csv", None, ["y", "x"]) == found
    assert found == DemoTable(("y", "x"), [("2", "1"), ("4", "3")])


def test_rows_with_an_empty_cell_are_left_out_and_those_of_another_length_are_refused(tmp_path):
    path = written(tmp_path, "x,y\n1,2\n,3\n4,\n5, \n7,8\n6,NA\n")
    assert read_csv(path, ",", ["x", "y"]).rows == [("1", "2"), ("7", "8")]
    assert read_csv(path, ",", ["x"]).rows == [("1",), ("4",), ("5",), ("7",), ("6",)]
    with pytest.raises(ConfigError, match="whose rows have as many values as its header"):
        read_csv(written(tmp_path, "x,y\n1,2\n7,8,9\n"), ",", ["x", "y"])


@pytest.mark.parametrize("columns", [None, [], ["z"], ["x", "z"]])
def test_columns_must_be_named_and_exist(tmp_path, columns):
    with pytest.raises(DataError, match="--fields must name columns of the table, which are x, y"):
        read_csv(written(tmp_path, "x,y\n1,2\n"), ",", columns)


@pytest.mark.parametrize("text", ["x,y\n", "x,y\n1,\n,2\n"])
def test_a_table_without_a_complete_row_is_refused(tmp_path, text):
    with pytest.raises(EmptyTable, match="no row has all of x, y"):
        read_csv(written(tmp_path, text), ",", ["x", "y"])


def test_an_empty_file_an_absent_one_and_wrong_bytes_are_refused_with_the_path(tmp_path):
    with pytest.raises(DataError, match=r"table\.csv"):
        read_csv(written(tmp_path, ""), ",", ["x"])
    latin = tmp_path / "latin.csv"
    latin.write_bytes(b"x\n\xe9\n")
    for path in (tmp_path / "absent.csv", tmp_path, latin):
        with pytest.raises(ConfigError, match=r"a CSV file .*was expected") as refusal:
            read_csv(path, ",", ["x"])
        assert str(path) in str(refusal.value)


@pytest.mark.parametrize("delimiter", ["", ",,", "\n", '"'])
def test_a_delimiter_that_is_no_single_character_is_refused(tmp_path, delimiter):
    with pytest.raises(ConfigError, match="delimiter"):
        read_csv(written(tmp_path, "x,y\n1,2\n"), delimiter, ["x"])


def test_the_demos_own_table_is_real_and_refuses_unknown_columns():
    table = breast_cancer(None)
    assert table.columns == ("mean radius", "mean texture") and len(table.rows) == 569
    assert table.rows[0] == ("17.99", "10.38")
    assert breast_cancer(["mean area"]).columns == ("mean area",)
    with pytest.raises(DataError, match="no column area, mean volume; it has mean radius"):
        breast_cancer(["area", "mean volume"])


def test_the_demos_own_table_is_that_of_scikit_learn():
    from sklearn.datasets import load_breast_cancer

    expected = load_breast_cancer()
    assert tuple(expected.feature_names) == BREAST_CANCER
    found = breast_cancer(BREAST_CANCER).rows
    assert [[float(text) for text in row] for row in found] == expected.data.tolist()
    diagnoses = [row[0] for row in breast_cancer([DIAGNOSIS]).rows]
    assert diagnoses == expected.target_names[expected.target].tolist()


def test_a_statistic_has_columns_of_the_demos_own_table():
    assert usual_columns(LIBRARY["kendall_tau"]) == (["mean radius", "mean texture"], None)
    assert usual_columns(LIBRARY["auc_private"]) == (["mean radius", DIAGNOSIS], None)
    assert usual_columns(LIBRARY["auc"]) == (["mean radius"], f"{DIAGNOSIS}=malignant")
    for statistic in LIBRARY.values():
        assert len(usual_columns(statistic)[0]) == len(statistic.arguments)


def test_the_event_of_a_survival_table_counts_by_its_second_number(tmp_path):
    """R's survival writes 1 for censored and 2 for dead."""
    path = written(tmp_path, "age,time,status\n1,9,1\n2,4,2\n3,2,2\n")
    table = read_csv(path, ",", ["age", "time", "status"])
    labelled = replace(table, classes={"status": 2})
    *_, status = labelled.fields()
    assert status == FieldText.of_categories("status", ["1", "2"])


def test_without_scikit_learn_the_demo_asks_for_a_table(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ConfigError, match=r"\[demo\].* Or name a table with --csv"):
        breast_cancer(None)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16"])
def test_a_byte_order_mark_compression_and_encodings_as_at_nodes(tmp_path, encoding):
    text = "\ufeff" * (encoding == "utf-8") + "größe;b\r\nsüß;1\n\r\n?;2\rnan;3\n"
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(text.encode(encoding)))
    found = read_csv(path, ";", ["größe", "b"], missing=["?"], encoding=encoding)
    assert found.rows == [("süß", "1")]


def test_an_encoding_that_nobody_knows_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="--encoding must be the name of a text encoding"):
        read_csv(written(tmp_path, "x\n1\n"), ",", ["x"], encoding="latin-9000")


def test_a_decimal_comma_and_thousands_separators_become_plain_numbers(tmp_path):
    path = written(tmp_path, "x;y\n1.234,5;2\n-0,25;3\n")
    table = read_csv(path, ";", ["x", "y"], numbers=NumberFormat(",", "."))
    assert table.rows == [("1234.5", "2"), ("-0.25", "3")]
    assert [field.resolution for field in table.fields()] == ["0.01", ""]
    marked = written(tmp_path, "x\n1.234,5\n?\n")
    with pytest.raises(DataError, match=r"column 'x' holds numbers.*--missing '\?'"):
        read_csv(marked, ";", ["x"], numbers=NumberFormat(",", ".")).fields()


# --- describing and splitting ---


@pytest.mark.parametrize(
    ("values", "lower", "upper", "resolution"),
    [
        (["1", "2", "7"], 1, 7, 1),
        (["0.5", "-1.25", "3"], Fraction(-5, 4), 3, Fraction(1, 100)),
        (["1.50", "2.00"], Fraction(3, 2), 2, Fraction(1, 10)),
        (["1e3", "20"], 20, 1000, 1),
        (["1e-3"], Fraction(1, 1000), Fraction(1, 1000), Fraction(1, 1000)),
        ([" 4 ", "4"], 4, 4, 1),
        (["0", "-0"], 0, 0, 1),
    ],
)
def test_a_column_is_described_by_its_own_bounds_and_digits(values, lower, upper, resolution):
    (field,) = DemoTable(("x",), [(value,) for value in values]).fields()
    schema = field.schema()
    assert (schema.lower, schema.upper, schema.resolution) == (lower, upper, resolution)


@pytest.mark.parametrize(
    ("value", "message"), [("NaN", "numbers.*--missing 'NaN'"), ("-inf", "NaN or infinity")]
)
def test_a_column_of_anything_else_is_refused_by_name(value, message):
    with pytest.raises(DataError, match=f"column 'x' holds {message}"):
        DemoTable(("x",), [("1",), (value,)]).fields()


@pytest.mark.parametrize("parts", range(1, 8))
def test_the_parts_are_the_table_in_order_and_even(tmp_path, parts):
    paths = TABLE.split(tmp_path, parts)
    read = []
    for path in paths:
        with path.open(newline="") as file:
            read.append([tuple(row) for row in csv.reader(file)])
    assert [path.name for path in paths] == [f"node-{i + 1}.csv" for i in range(parts)]
    assert all(part[0] == TABLE.columns for part in read)
    assert [row for part in read for row in part[1:]] == ROWS
    sizes = [len(part) - 1 for part in read]
    assert max(sizes) - min(sizes) <= 1


# --- the exact value ---


def by_hand(rows) -> Fraction:
    """Kendall's tau-a by a loop over the pairs of the text."""
    numbers = [tuple(Fraction(cell) for cell in row) for row in rows]
    signs = [
        ((p[0] > q[0]) - (p[0] < q[0])) * ((p[1] > q[1]) - (p[1] < q[1]))
        for p, q in combinations(numbers, 2)
    ]
    return Fraction(sum(signs), len(signs))


@pytest.mark.parametrize("parts", [1, 2, 3])
@pytest.mark.parametrize("at_once", [1, 3, 1 << 20])
def test_the_exact_value_is_the_same_however_the_table_is_split(tmp_path, limit, parts, at_once):
    limit(module, EDGES_AT_ONCE=at_once)
    tables = pooled(study(TABLE), TABLE.split(tmp_path, parts))
    assert np.concatenate([table["age"] for table in tables]).tolist() == [1, 2, 2, 7, 1]
    assert exact_over_all(study(TABLE), tables) == pytest.approx(float(by_hand(ROWS)))


def test_the_exact_value_is_in_the_fields_own_unit(tmp_path):
    gini = study(TABLE, 'abs(a["the balance"] - b["the balance"])')
    values = [Fraction(row[1]) for row in ROWS]
    expected = sum(abs(x - y) for x, y in combinations(values, 2)) / 10
    assert exact_over_all(gini, pooled(gini, TABLE.split(tmp_path, 2))) == pytest.approx(
        float(expected)
    )


def test_too_many_pairs_have_no_exact_value(limit):
    one = [{"age": np.array([1]), "the balance": np.array([2])}]
    limit(module, EXACT_EDGES=2)
    assert exact_over_all(study(TABLE), one * 3) is None
    assert exact_over_all(study(TABLE), one * 2) == 0.0


def test_the_value_over_a_set_of_edges_is_in_the_kernels_own_values():
    tables = [{"x": np.array(values)} for values in ([1, 5], [2, 9])]
    gini = study(DemoTable(("x",), [("0",), ("5",)]), "abs(a.x - b.x) * 3")
    sampled = SampledCell(np.array([[0, 1, 1], [0, 0, 1]]))
    graph = Hypergraph((2, 2), 2, 3, {(0, 1): sampled})
    assert exact_value(gini, tables, graph) == pytest.approx(3 * (1 + 3 + 4) / 3)


def test_a_ratio_of_nothing_has_no_exact_value():
    table = DemoTable(("x", "y"), [("0", "0"), ("0", "1")])
    gamma = study(
        table,
        "sign(a.x - b.x) * sign(a.y - b.y)",
        "((~(a.x == b.x)) & (~(a.y == b.y)))",
        estimator="ratio",
    )
    values = {"x": np.array([0, 0]), "y": np.array([0, 1])}
    assert exact_over_all(gamma, [values]) is None


def test_a_public_label_splits_the_records_into_two_classes(tmp_path):
    rows = [("3", "no"), ("5", "yes"), ("1", "no"), ("5", "no")]
    table = DemoTable(("x", "y"), rows, ("y", "yes"))
    auc = study(table, "(sign(a.x - b.x) + 1) * (1/2)", sampling="two_sample")
    assert auc.fields[1] == FieldText("y", "0", "1", "1", ("no", "yes"), True)
    tables = pooled(auc, table.split(tmp_path, 2))
    assert exact_over_all(auc, tables) == pytest.approx(1 - 2.5 / 3), "a is of the first class"


@pytest.mark.parametrize(
    "values", [("yes", "no", "maybe"), ("no", "no"), ("yes", "yes"), ("no", "never")]
)
def test_a_label_has_two_values_of_which_one_is_first(values):
    first = "yes"
    with pytest.raises(
        DataError, match=f"--label y={first}: the column must hold two different values"
    ):
        DemoTable(("y",), [(value,) for value in values], ("y", first)).fields()


def test_a_column_of_words_becomes_categories_in_order():
    (field,) = DemoTable(("colour",), [("red",), ("blue ",), ("red",), ("3",)]).fields()
    assert field == FieldText("colour", "0", "2", "1", ("3", "blue", "red"))


def test_a_column_of_too_many_words_is_no_category():
    with pytest.raises(DataError, match="column 'name' holds 4097 different texts"):
        DemoTable(("name",), [(f"n{number}",) for number in range(4097)]).fields()


@pytest.mark.parametrize(
    ("text", "name", "bounds"),
    [
        ("age=0:127", "age", ("0", "127")),
        ('"a b,c=d"=0:5:1', "a b,c=d", ("0", "5", "1")),
        ('y="lo,1",mid, hi', "y", ["lo,1", "mid", "hi"]),
        ('y="a:b","say ""c"""', "y", ["a:b", 'say "c"']),
        ('5" pipe=a,b', '5" pipe', ["a", "b"]),
    ],
)
def test_names_and_categories_in_quotes_keep_their_commas(text, name, bounds):
    assert given_bounds(text) == (name, bounds)
    if isinstance(bounds, list):
        assert field_of(text).categories == tuple(bounds) and field_of(text).name == name


def test_a_list_of_columns_and_a_label_may_have_commas_too():
    assert listed('age,"a b,c=d", balance') == ["age", "a b,c=d", "balance"]
    assert named_value("--label", '"x=y"="a,b"') == ("x=y", "a,b")
    assert [each.categories for each in (label_of('y="a,b",c'), label_of("y=a,b"))] == [
        ("a,b", "c"),
        ("a", "b"),
    ]
    for wrong in ("", "=", "x=", "=1"):
        with pytest.raises(ConfigError, match="is given as NAME=VALUE"):
            named_value("--label", wrong)
