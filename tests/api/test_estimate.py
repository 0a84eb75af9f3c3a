"""umpc.estimate, umpc.kernel and the frames that they take, in one process by the real protocol."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest
from IPython.core.formatters import HTMLFormatter
from scipy import stats

import umpc
from umpc.api.fields import columns_at, field_of
from umpc.api.in_memory import frame_table

BOUNDS = {"age": (0, 127), "balance": (-500, 500, "1")}
LOUD = 10**9
"""An ε without noise."""


def columns(records: int = 14, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    age = rng.permutation(np.arange(20, 20 + 3 * records, 3))
    balance = (age - 40) * 3 + rng.permutation(records) * 7
    return {"age": age, "balance": balance, "sex": np.where(rng.random(records) < 0.5, "f", "m")}


def test_import_of_the_package_loads_nothing_of_it():
    program = (
        "import sys, umpc; "
        "assert not {'numpy', 'grpc', 'narwhals', 'duckdb', 'umpc.api'} & set(sys.modules); "
        "assert 'estimate' in dir(umpc) and umpc.errors.StudyError.exit_code == 10"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    program = (
        "import sys, umpc.api.study; "
        "assert not {'narwhals', 'duckdb', 'umpc.simulation', 'click'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    with pytest.raises(AttributeError, match="nothing"):
        _ = umpc.nothing


def test_every_kind_of_frame_gives_the_exact_value_without_noise():
    import pandas as pd

    first, second = columns(seed=1), columns(9, seed=2)
    both = {name: np.concatenate([first[name], second[name]]) for name in first}
    tau = stats.kendalltau(both["age"], both["balance"], variant="c").statistic
    pairs = len(both["age"]) * (len(both["age"]) - 1) / 2
    signs = [np.sign(np.subtract.outer(both[name], both[name])) for name in BOUNDS]
    exact = (signs[0] * signs[1]).sum() / 2 / pairs
    assert abs(exact - tau) < 0.2
    rows = np.stack([second["age"], second["balance"]], axis=1)
    record = np.array(list(map(tuple, rows)), dtype=[("age", int), ("balance", float)])
    listed = {name: second[name].tolist() for name in second}
    for frame in (second, listed, pd.DataFrame(second), rows, record):
        found = umpc.estimate(
            "kendall_tau", [pd.DataFrame(first), frame], list(BOUNDS), bounds=BOUNDS, epsilon=LOUD
        )
        assert found.estimate == pytest.approx(exact, abs=1e-12)


def test_missing_values_are_left_out_and_others_are_told():
    frame = {"age": [30.0, np.nan, 50.0, 70.0, 40.0], "balance": [1, 2, 900, None, -3]}
    with pytest.warns(UserWarning, match="1 value.s. beyond the bounds"):
        found = umpc.estimate(
            "kendall_tau", [frame, columns(5)], list(BOUNDS), bounds=BOUNDS, epsilon=LOUD
        )
    assert found.report.records_by_node == [3, 5]


def test_two_classes_and_a_kernel_of_ones_own():
    frames = [columns(12, seed=3), columns(11, seed=4)]
    both = {name: np.concatenate([frame[name] for frame in frames]) for name in frames[0]}
    first, second = (both["age"][both["sex"] == sex] for sex in "fm")
    auc = stats.mannwhitneyu(first, second).statistic / (len(first) * len(second))
    found = umpc.estimate(
        "auc", frames, ["age"], bounds=BOUNDS, label=("sex", "f"), epsilon=LOUD, max_colluding=0
    )
    assert found.estimate == pytest.approx(auc, abs=1e-12)

    @umpc.kernel
    def older_gap(a, b):
        return umpc.select(a.age > 50, abs(a.age - b.age), 0)

    assert older_gap.degree == 2 and older_gap(*2 * [_Age(3)]) is not None
    asymmetric = umpc.kernel(estimator="ratio")(lambda a, b: (abs(a.age - b.age), a.age + b.age))
    found = umpc.estimate(asymmetric, frames, bounds=BOUNDS, epsilon=LOUD)
    gaps = np.abs(np.subtract.outer(both["age"], both["age"])).sum() / 2
    sums = np.add.outer(both["age"], both["age"])
    assert found.estimate == pytest.approx(gaps / (sums.sum() / 2 - both["age"].sum()))
    with pytest.raises(umpc.errors.KernelError):

        @umpc.kernel
        def branches(a, b):
            return 1 if a.age > b.age else 0


class _Age:
    """A record of plain numbers, on which a kernel may be called."""

    def __init__(self, age: int):
        self.age = umpc.api.maximum(age, age)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"bounds": None}, "StudyError", "bounds for 'age', 'balance' were expected"),
        ({"bounds": {"age": 3, "balance": (0, 1)}}, "StudyError", "bounds of 'age' are"),
        ({"columns": None}, "StudyError", "columns were expected: kendall_tau takes x, y"),
        ({"columns": ["age", "nowhere"]}, "UnknownField", "the frame has none"),
        ({"frames": "table.csv"}, "StudyError", "a list of frames"),
        ({"frames": []}, "StudyError", "at least one frame"),
        ({"frames": [7]}, "DataError", "got int"),
        ({"epsilon": -1}, "InvalidEpsilon", "epsilon"),
        ({"statistic": "kendal"}, "KernelError", "there is no statistic"),
        ({"edges": "half"}, "StudyError", "edges"),
        ({"frames": [{"age": [np.nan], "balance": [1]}]}, "EmptyTable", "complete record"),
    ],
)
def test_a_wrong_argument_is_named(changes, error, words):
    given = {
        "statistic": "kendall_tau",
        "frames": [columns()],
        "columns": list(BOUNDS),
        "bounds": {**BOUNDS, "nowhere": (0, 1)},
        "epsilon": 1,
    }
    with pytest.raises(getattr(umpc.errors, error), match=words):
        umpc.estimate(**{**given, **changes})


def test_bounds_become_fields_that_follow_from_them_alone():
    whole, half = (
        columns_at(frame_table({"x": each}, ["x"], "a"), ["x"])["x"] for each in ([1.0, 2], [1.5])
    )
    assert field_of("x", (0, 9), [whole]).whole
    assert field_of("x", (0, 9), [half]).resolution == "0.000001"
    assert field_of("x", (0.05, 3), [half]).schema().lower <= 0.05
    assert field_of("x", ["a", "b"], None).categories == ("a", "b")
    assert field_of("x", (0, "9", 0.5), None).resolution == "0.5"


def test_values_that_are_elsewhere_are_never_taken_for_whole_ones():
    """A column of decimals would be rounded in silence otherwise."""
    with pytest.raises(umpc.errors.StudyError, match=r"write \(0, 127, 1\) for whole numbers"):
        field_of("age", (0, 127), None)
    assert not field_of("age", (0, 127, 1), None).whole


def test_columns_of_all_sorts_become_numbers_or_texts():
    import pandas as pd

    frame = pd.DataFrame(
        {
            "whole": pd.array([1, None], dtype="Int64"),
            "text": ["a ", None],
            "flag": [True, False],
            "kind": pd.Categorical(["u", "v"]),
        }
    )
    names = list(frame.columns)
    found = columns_at(frame_table(frame, names, "north"), names)
    assert found["whole"].numbers[0] == 1 and np.isnan(found["whole"].numbers[1])
    assert found["text"].texts.tolist() == ["a", None]
    assert found["flag"].texts.tolist() == ["true", "false"]
    assert found["kind"].texts.tolist() == ["u", "v"]


def test_the_noise_is_new_in_every_call():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = {
            umpc.estimate(
                "kendall_tau", [columns()], list(BOUNDS), bounds=BOUNDS, epsilon="0.0001"
            ).estimate
            for _ in range(3)
        }
    assert len(found) == 3


def test_a_condition_keeps_the_records_for_which_it_holds():
    first, second = columns(seed=1), columns(9, seed=2)
    where = "age >= 35 and sex in ('f')"
    bounds = {**BOUNDS, "sex": ["m", "f"]}
    kept = []
    for site in (first, second):
        rows = (site["age"] >= 35) & (site["sex"] == "f")
        kept.append({name: site[name][rows] for name in BOUNDS})
    settings = {"bounds": bounds, "epsilon": LOUD, "edges": "all"}
    for backend in ("grid", "shared"):
        settings["backend"] = backend
        names = list(BOUNDS)
        found = umpc.estimate("kendall_tau", [first, second], names, where=where, **settings)
        alone = umpc.estimate("kendall_tau", kept, names, **settings)
        assert found.estimate == alone.estimate
        assert found.report.records_by_node == alone.report.records_by_node
        assert found.report.where == "age >= 35 and sex in ('f')" and not alone.report.where
    assert "only where age &gt;= 35 and sex in" in HTMLFormatter()(found)
    assert found.to_dict()["where"] == where
    with pytest.raises(umpc.errors.EmptyTable, match="where age > 120, and there is none"):
        umpc.estimate("kendall_tau", [first], names, where="age > 120", **settings)
    with pytest.raises(umpc.errors.StudyError, match="lies from 0 to 127"):
        umpc.estimate("kendall_tau", [first], names, where="age > 200", **settings)


def test_a_missing_value_leaves_a_record_out_whatever_the_condition_says_and_it_is_told():
    """SQL and R would keep the person of 70 years without a meal."""
    table = {"meal": [1200, None, 900], "age": [40, 70, 65]}
    bounds = {"meal": (0, 2000), "age": (0, 100)}
    found = umpc.estimate(
        "mean", [table], ["age"], bounds=bounds, epsilon=1e9, where="meal > 1000 or age > 60"
    )
    assert found.report.records == 2 and found.estimate == pytest.approx((40 + 65) / 2)
    form = found.to_html()
    assert "complete in all 2 columns of the study; only where" in form
    assert "is left out, whatever the condition says of the others" in form


def test_statistics_together_say_that_all_columns_decide():
    table = {"x": [1, 2, 3, 4, 5, 6], "y": [2, 1, 4, 3, 6, 5], "z": [1, None, 3, None, 5, None]}
    asked = [("kendall_tau", ["x", "y"]), ("kendall_tau", ["x", "z"])]
    bounds = {name: (0, 9) for name in "xyz"}
    found = umpc.estimate(asked, [table], bounds=bounds, epsilon=1e9, edges="all")
    assert found.report.records == 3
    told = "complete in all 3 columns of the study, for each of its values"
    assert told in found.to_html()


# --- one spelling of a value through data, categories and label ---------------------------------


def value(statistic: str, frames: list[object], names: list[str], **given: object) -> float | None:
    """The value without noise, over all sets."""
    found = umpc.estimate(statistic, frames, names, epsilon=LOUD, edges="all", **given)
    return found.estimate


@pytest.mark.parametrize("bounds", [{"x": (0, 9)}, {"x": (0, 9), "y": [False, True]}, "data"])
@pytest.mark.parametrize("first", [True, "true", "TRUE", False])
def test_a_logical_is_the_same_in_data_categories_and_label(bounds, first):
    """Three of four pairs of a true and a false one are in order."""
    import pandas as pd

    plain = {"x": [1, 4, 3, 5], "y": [True, False, True, False]}
    nullable = pd.DataFrame(
        {"x": [1, 4, 3, 5, 9], "y": pd.array([*plain["y"], None], dtype="boolean")}
    )
    for frame in (plain, nullable, {**plain, "y": ["TRUE", "False", "true", "FALSE"]}):
        found = value("auc", [frame], ["x"], bounds=bounds, label=("y", first), max_colluding=0)
        assert found == (1 if first is False else 0)


@pytest.mark.parametrize("bounds", [None, (0, 1), (0, 1, 1), ["0", "1"]])
@pytest.mark.parametrize("first", [1, 1.0, "1", np.int64(1)])
def test_a_label_may_be_a_whole_number(bounds, first):
    given = {"x": (0, 9)} if bounds is None else {"x": (0, 9), "smoke": bounds}
    for smoke in ([1, 0, 1, 0], [1.0, 0.0, 1.0, 0.0], ["1", "0", "1", "0"]):
        frame = {"x": [5, 1, 7, 6], "smoke": smoke}
        label = ("smoke", first)
        found = value("auc", [frame], ["x"], bounds=given, label=label, max_colluding=0)
        assert found == 0.75


def test_categories_that_are_numbers_keep_all_digits():
    codes = [1234567, 1234568, 1234567, 7654321]
    bounds = {"c": ["1234567", "1234568", "7654321"]}
    for values in (codes, np.array(codes, float), list(map(str, codes))):
        assert value("duplicate_pair_ratio", [{"c": values}], ["c"], bounds=bounds) == 1 / 6


def test_people_with_large_numbers_stay_apart():
    people = np.array([2**53, 2**53 + 1, 2**53 + 2, 2**53 + 3, 2**53 + 3])
    frame = {"x": [1, 2, 3, 4, 5], "y": [1, 2, 3, 4, 5], "id": people}
    listed = {**frame, "id": [*people.tolist()[:-1], None]}
    for each in (frame, listed):
        found = umpc.estimate(
            "kendall_tau",
            [each],
            ["x", "y"],
            bounds={"x": (0, 9), "y": (0, 9)},
            epsilon=LOUD,
            person="id",
            records_per_person=1,
        )
        assert found.report.records == 4


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"bounds": {"y": ["no", "yes"]}}, "no value is in any; there are 'false', 'true'"),
        ({"bounds": {"y": ["true ", "false"]}}, "a category without blanks at its ends"),
        ({"frames": [{"y": ["a", "b"]}], "bounds": {"y": (0, 1)}}, "give a list of its categories"),
    ],
)
def test_a_column_of_which_no_value_fits_is_refused(given, words):
    usual = {"frames": [{"y": [True, False]}], "names": ["y"], **given}
    with pytest.raises((umpc.errors.NotNumeric, umpc.errors.StudyError), match=words):
        value("duplicate_pair_ratio", **usual)


def test_frames_that_cannot_be_read_have_our_own_errors():
    import pandas as pd

    twice = pd.DataFrame([[1, 2, 3], [4, 5, 6]], columns=["x", "y", "x"])
    bounds = {"x": (0, 9), "y": (0, 9)}
    with pytest.raises(umpc.errors.DataError, match="two columns of the frame have one name"):
        value("kendall_tau", [twice], ["x", "y"], bounds=bounds)
    with pytest.raises(umpc.errors.DataError, match="should be a sequence of values"):
        value("kendall_tau", [{"x": 5, "y": [1]}], ["x", "y"], bounds=bounds)
    for label in ("y", ("y",), ("y", "a", "b"), (1, "a")):
        with pytest.raises(umpc.errors.StudyError, match="label should be a pair of a column"):
            value("auc", [twice], ["x"], bounds=bounds, label=label)


def test_infinite_values_are_told():
    frame = {"x": [1, 2, np.inf, -np.inf, 300], "y": [1, 2, 3, 4, 5]}
    with pytest.warns(UserWarning, match=r"3 value\(s\) beyond the bounds, 2 of them infinite"):
        value("kendall_tau", [frame], ["x", "y"], bounds={"x": (0, 9), "y": (0, 9)})
