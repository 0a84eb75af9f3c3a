"""umpc.coordinator.studyfile: a kernel of one's own is traced here.

A refusal points at the line and says what to write instead.
"""

from __future__ import annotations

import pytest

from umpc.coordinator.studyfile import load_kernel
from umpc.errors import KernelError
from umpc.ustat.text import to_text

SOURCE = """\
from umpc.ustat.tracing import select

def close_in_age(a, b):
    near = (a.age - b.age < 5) & (b.age - a.age < 5)
    return select(near, abs(a.balance - b.balance), 0)

def branching(a, b):
    if a.age < b.age:
        return 1
    return 0

def broken(a, b):
    return 1 / 0

number = 3
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "kernels.py").write_text(SOURCE)
    return tmp_path


def test_a_function_becomes_the_expression_that_it_computes(folder):
    (expression,) = load_kernel("kernels.py:close_in_age", folder).expressions
    text = to_text(expression)
    assert (
        text == "select(((a.age - b.age < 5) & (b.age - a.age < 5)), abs(a.balance - b.balance), 0)"
    )


def test_a_branch_on_data_is_refused_with_its_line_and_what_to_write_instead(folder):
    with pytest.raises(
        KernelError, match=r"select\(condition, then, otherwise\).*\(kernels\.py, line 8\)"
    ):
        load_kernel("kernels.py:branching", folder)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("kernels.py:broken", r"ZeroDivisionError.*\(kernels\.py, line 13\)"),
        ("kernels.py:absent", "no function 'absent'"),
        ("kernels.py:number", "no function 'number'"),
        ("elsewhere.py:kernel", "a Python file was expected"),
        ("close_in_age", "FILE:FUNCTION"),
        ("kernels.py:", "FILE:FUNCTION"),
    ],
)
def test_what_is_no_kernel_is_refused_with_a_reason(folder, place, words):
    with pytest.raises(KernelError, match=words):
        load_kernel(place, folder)


def test_a_file_that_is_no_python_is_refused_with_its_line(tmp_path):
    (tmp_path / "kernels.py").write_text("def kernel(a, b)\n    return 1\n")
    with pytest.raises(KernelError, match=r"SyntaxError.*\(kernels\.py, line 1\)"):
        load_kernel("kernels.py:kernel", tmp_path)


def test_a_function_of_several_values_and_records_gives_several_sums(tmp_path):
    (tmp_path / "kernels.py").write_text(
        "def two(a, b, c):\n    return a.x * b.x * c.x, a.x + b.x + c.x\n"
    )
    traced = load_kernel("kernels.py:two", tmp_path)
    assert traced.degree == 3
    assert [to_text(of) for of in traced.expressions] == ["a.x * b.x * c.x", "a.x + b.x + c.x"]
