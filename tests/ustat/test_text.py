"""umpc.ustat.text: canonical text, its inverse, the refusal of everything else; nothing is run."""

from __future__ import annotations

import builtins
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.ustat.expressions import EVERY_KIND, numbers
from umpc.errors import KernelError
from umpc.ustat import expression as ex
from umpc.ustat.text import MAX_DEPTH, MAX_TEXT, from_text, to_text

AWKWARD = [
    "mean radius",
    "if",
    "None",
    "größe",
    "ﬁ",
    "x\\",
    'say "x"',
    "it's",
    "x\ny",
    "\t",
    "\x00",
    "",
    "{x}",
    "🦊",
    "a.b",
    "_",
    "__class__",
]


@settings(max_examples=250)
@given(numbers(size=30))
def test_reading_a_kernels_text_gives_the_kernel_back(node):
    assert from_text(to_text(node)) == node


@settings(max_examples=200)
@given(
    numbers(st.sampled_from(AWKWARD) | st.text(st.characters(codec="utf-8"), max_size=6), size=6)
)
@example(ex.Field(0, '"] + b["'))
def test_any_field_name_survives(node):
    assert from_text(to_text(node)) == node


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_field_names_survive_and_stay_on_one_line(name):
    text = to_text(ex.Field(1, name))
    assert from_text(text) == ex.Field(1, name) and text.isprintable()


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_every_node_kind_survives(kind):
    assert from_text(to_text(EVERY_KIND[kind])) == EVERY_KIND[kind]


@settings(max_examples=150)
@given(numbers(), numbers())
def test_different_kernels_have_different_texts(left, right):
    assert (to_text(left) == to_text(right)) == (left == right)


a, b, c = (ex.Field(0, name) for name in "xyz")


def test_operators_of_bits_bind_as_in_python():
    p, q, r = ex.Less(a, b), ex.Less(b, c), ex.Less(a, c)
    assert from_text("(a.x < a.y) ^ (a.y < a.z) & (a.x < a.z)") == ex.Xor(p, ex.And(q, r))
    assert from_text("(a.x < a.y) | (a.y < a.z) ^ (a.x < a.z)") == ex.Or(p, ex.Xor(q, r))
    assert from_text("(a.x < a.y) ^ (a.y < a.z) | (a.x < a.z)") == ex.Or(ex.Xor(p, q), r)


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (ex.Subtract(a, ex.Subtract(b, c)), "a.x - (a.y - a.z)"),
        (ex.Subtract(ex.Subtract(a, b), c), "a.x - a.y - a.z"),
        (ex.Add(a, ex.Add(b, c)), "a.x + (a.y + a.z)"),
        (ex.Multiply(a, ex.Add(b, c)), "a.x * (a.y + a.z)"),
        (ex.Multiply(a, ex.Multiply(b, c)), "a.x * (a.y * a.z)"),
        (ex.Add(ex.Multiply(a, b), c), "a.x * a.y + a.z"),
        (ex.Constant(Fraction(-3)), "(-3)"),
        (ex.Constant(Fraction(-3, 4)), "(-3/4)"),
        (ex.Constant(Fraction(0)), "0"),
        (ex.Not(ex.Less(a, b)), "(~(a.x < a.y))"),
        (
            ex.Xor(ex.Less(a, b), ex.Or(ex.Less(b, c), ex.Less(a, c))),
            "((a.x < a.y) ^ ((a.y < a.z) | (a.x < a.z)))",
        ),
        (
            ex.Xor(ex.Xor(ex.Less(a, b), ex.Less(b, c)), ex.Less(a, c)),
            "(((a.x < a.y) ^ (a.y < a.z)) ^ (a.x < a.z))",
        ),
        (ex.Multiply(ex.Xor(ex.Less(a, b), ex.Less(b, c)), c), "((a.x < a.y) ^ (a.y < a.z)) * a.z"),
        (ex.Field(7, "x"), "h.x"),
    ],
)
def test_brackets_stand_only_where_they_are_needed(node, text):
    assert to_text(node) == text and from_text(text) == node


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "print(a.x)",
        "a.x.y",
        "a.x.__class__",
        "a.x()",
        "a",
        "x",
        "i.x",
        "ab.x",
        "A.x",
        "a[0]",
        "a['x', 'y']",
        "a[b'x']",
        "a[b.x]",
        "a['x']['y']",
        "a[f'x']",
        "f'{a.x}'",
        "'text'",
        "b'text'",
        "None",
        "True",
        "-True",
        "True/2",
        "1/True",
        "...",
        "1.5",
        "1j",
        "a.x / 2",
        "2 / a.x",
        "1/0",
        "1/-0",
        "a.x // 2",
        "a.x % 2",
        "a.x ** 2",
        "a.x @ b.x",
        "a.x << 2",
        "a.x ^ b.x",
        "-a.x",
        "+a.x",
        "--1",
        "not a.x",
        "~a.x",
        "a.x & b.x",
        "(a.x < b.x) & b.x",
        "(a.x < b.x) ^ b.x",
        "(a.x < b.x) ^ 1",
        "(a.x < b.x) ^ (a.y < b.y) + 1",
        "(a.x < b.x) and (a.y < b.y)",
        "a.x < b.x < 3",
        "a.x <= b.x",
        "a.x > b.x",
        "a.x != b.x",
        "a.x is b.x",
        "a.x in b.x",
        "a.x if a.x < b.x else b.x",
        "select(a.x, 1, 0)",
        "select(a.x < b.x, 1)",
        "select(a.x < b.x, 1, 0, 2)",
        "sign()",
        "sign(a.x, b.x)",
        "sign(a.x, of=b.x)",
        "sign(*a.x)",
        "sign(**a.x)",
        "max(a.x, b.x)",
        "lambda: a.x",
        "(y := a.x)",
        "[a.x]",
        "(a.x,)",
        "{a.x}",
        "{'x': a.x}",
        "[a.x for a in b]",
        "(yield a.x)",
        "await a.x",
        "a.x; b.x",
        "x = a.x",
        "import os",
        "a.x +",
        "",
        " ",
        "\x00",
        "a.\ud800",
        'a["\ud800"]',
        "(" * 300 + "a.x" + ")" * 300,
        "~" * 4000 + "a.x",
        "-" * 4000 + "1",
        "a" + ".x" * 2000,
        "a.x" + " + a.x" * 600,
        "sign(" * 190 + "a.x" + ")" * 190,
        "sign(" * 600 + "a.x" + ")" * 600,
        "a[" * 190 + "1" + "]" * 190,
        "lambda: " * 400 + "1",
        "9" * (MAX_TEXT + 1),
        "a.x" + " " * MAX_TEXT,
    ],
)
def test_everything_else_is_refused(text):
    with pytest.raises(KernelError):
        from_text(text)


@pytest.mark.parametrize("text", [None, 3, b"a.x", bytearray(b"a.x"), ["a.x"], ex.Field(0, "x")])
def test_only_text_is_read(text):
    with pytest.raises(KernelError, match="a kernel is text, got"):
        from_text(text)


@settings(max_examples=300)
@given(
    st.text(alphabet="ab.xy()[]<=&|^~*+-/1 ,'\"\\signabsel:{}", max_size=40) | st.text(max_size=20)
)
def test_any_text_is_read_or_refused_and_what_is_read_has_a_canonical_text(text):
    try:
        node = from_text(text)
    except KernelError:
        return
    assert from_text(to_text(node)) == node


def test_nesting_is_read_up_to_the_limit_and_refused_beyond_it():
    # The tree of sign(…sign(a.x)…) has a level per call.
    # Expression, Attribute, Name and Load are four more.
    inside = MAX_DEPTH - 4
    assert to_text(from_text("sign(" * inside + "a.x" + ")" * inside)).count("sign") == inside
    with pytest.raises(KernelError, match=f"at most {MAX_DEPTH} deep"):
        from_text("sign(" * (inside + 1) + "a.x" + ")" * (inside + 1))


def test_nothing_is_run(monkeypatch):
    def trap(*_, **__):
        raise AssertionError("the kernel's text was run")

    monkeypatch.setattr(builtins, "eval", trap)
    monkeypatch.setattr(builtins, "exec", trap)
    monkeypatch.setattr(builtins, "print", trap)
    assert from_text("a.x - b.x") == ex.Subtract(ex.Field(0, "x"), ex.Field(1, "x"))
    for text in (
        "print(a.x)",
        "[print(1)]",
        "a[print(1)]",
        "f'{print(1)}'",
        "sign(print(1))",
        "1/print(1)",
    ):
        with pytest.raises(KernelError):
            from_text(text)


def test_a_refusal_names_the_offending_part():
    with pytest.raises(KernelError, match=r"may not contain \"os.system\('true'\)"):
        from_text("sign(a.x) + os.system('true')")
    with pytest.raises(
        KernelError, match=r"a condition is expected where the kernel's text has 'a\.x'"
    ):
        from_text("select(a.x, 1, 0)")
    with pytest.raises(KernelError, match="a record is called a, b, c"):
        from_text("z.x")
