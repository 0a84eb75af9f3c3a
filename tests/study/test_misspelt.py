"""A misspelt key is named with its line and the nearest known one."""

from __future__ import annotations

import pytest

from umpc.coordinator.studyfile import load_study_file
from umpc.errors import StudyError, UmpcError
from umpc.study.rules import advice, line_of_key, nearest

FILE = """name = "s"
statistic = "gini_mean_difference"
columns = ["age"]
epsilon = 1
identity = "c"
dealer = {name = "dealer", address = "d:1"}
[[fields]]
name = "age"
lower = 0
upper = 127
whole = true
[[nodes]]
name = "north"
address = "n:1"
[[nodes]]
name = "south"
address = "s:1"
"""


def test_a_line_is_named_only_where_it_is_the_only_one():
    text = 'a = 1\n# b = 2\n  "b c" = 3\n[d]\nname = 1\n[[e.f]]\nname = 2\nab = 1\n'
    found = {key: line_of_key(text, key) for key in ("a", "b", "b c", "d", "f", "name", "none")}
    assert found == {"a": 1, "b": 0, "b c": 3, "d": 4, "f": 6, "name": 0, "none": 0}


def test_only_a_like_name_is_suggested():
    assert nearest("epsilom", ["delta", "epsilon"]) == "epsilon"
    assert nearest("zzz", ["delta", "epsilon"]) == ""
    assert advice("", "zzz", ["delta"]) == ""
    assert advice("", "delt", ["delta"]) == " Did you mean `delta`?"


@pytest.mark.parametrize(
    ("wrong", "right", "line", "meant"),
    [
        ("column = ", "columns = ", 3, "columns"),
        ("epsilom = ", "epsilon = ", 4, "epsilon"),
        ("uper = ", "upper = ", 10, "upper"),
        ("seconds_per_stp = 5\nname", "name", 1, "seconds_per_step"),
    ],
)
def test_a_misspelt_key_of_a_study(tmp_path, wrong, right, line, meant):
    file = tmp_path / "study.toml"
    file.write_text(FILE.replace(right, wrong, 1))
    with pytest.raises(StudyError) as caught:
        load_study_file(file)
    assert f"It is in line {line}; did you mean `{meant}`?" in caught.value.message
    assert caught.value.message.startswith(f"{file}: ")
    file.write_text(FILE)
    load_study_file(file)


def test_a_misspelt_statistic_or_column_is_named_with_the_nearest_one(tmp_path):
    file = tmp_path / "study.toml"
    for right, wrong, words in (
        ("gini_mean_difference", "gini_mean_diference", "did you mean 'gini_mean_difference'?"),
        ('["age"]', '["agee"]', "did you mean 'age'?"),
    ):
        file.write_text(FILE.replace(right, wrong, 1))
        with pytest.raises(UmpcError) as caught:
            load_study_file(file).study("coordinator")
        assert words in caught.value.message
