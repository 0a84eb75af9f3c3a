"""A condition on one record, such as age >= 40 and sex = 'f': a small grammar of our own.

    condition   = any ; any = all {"or" all} ; all = term {"and" term}
    term        = "not" term | "(" any ")" | comparison
    comparison  = field ("=" | "!=" | "<" | "<=" | ">" | ">=") constant
                | field ["not"] "in" "(" constant {"," constant} ")"
    field       = name | '"' name '"'      constant = number | "'" word "'"

A field of numbers is compared with numbers, and a field of categories with its words, by `=`, `!=`
and `in`. Values are those that the study computes with: whole steps of the resolution, within the
bounds. All comparisons are of integers, so they are exact.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from umpc.errors import StudyError
from umpc.ustat.schema import FieldSchema, Schema

MOST_CHARACTERS = 2000
MOST_DEPTH = 32
TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?![\w.]))
      | (?P<word>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")+")
      | (?P<name>[^\W\d]\w*)
      | (?P<sign><=|>=|!=|<>|==|=|<|>|\(|\)|,)
    )""",
    re.VERBOSE,
)
KEYWORDS = ("and", "or", "not", "in")
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
SPELLINGS = {"==": "=", "<>": "!="}
EXAMPLE = "write it as in age >= 40 and sex = 'f'"
Constant = Fraction | str
Columns = Mapping[str, NDArray[np.int64]]
Bits = NDArray[np.bool_]


@dataclass(frozen=True)
class FieldComparison:
    """A field compared with a constant."""

    field: str
    sign: str
    constant: Constant

    def __str__(self) -> str:
        return f"{_name(self.field)} {self.sign} {_constant(self.constant)}"


@dataclass(frozen=True)
class Among:
    """A field whose value is one of some constants."""

    field: str
    constants: tuple[Constant, ...]

    def __str__(self) -> str:
        return f"{_name(self.field)} in ({', '.join(map(_constant, self.constants))})"


@dataclass(frozen=True)
class Negation:
    """A condition that does not hold."""

    of: Node

    def __str__(self) -> str:
        return f"not ({self.of})"


@dataclass(frozen=True)
class Junction:
    """Several conditions, joined by "and" or by "or"."""

    word: str
    parts: tuple[Node, ...]

    def __str__(self) -> str:
        return f" {self.word} ".join(
            f"({part})" if isinstance(part, Junction) else str(part) for part in self.parts
        )


Node = FieldComparison | Among | Negation | Junction


@dataclass(frozen=True)
class Condition:
    """A condition over declared fields, checked. Make it with `parse_condition`."""

    root: Node
    schema: Schema

    @property
    def text(self) -> str:
        """The condition in its one canonical spelling."""
        return str(self.root)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that it reads, sorted."""
        return tuple(sorted({each.field for each in _comparisons(self.root)}))

    def holds(self, columns: Columns) -> Bits:
        """Return where it holds.

        Args: columns: (records,) int64 each, in steps of the field's resolution.
        """
        return _holds(self.root, columns, self.schema)


def parse_condition(text: str, schema: Schema) -> Condition:
    """Parse a condition and check it against the study's fields.

    Raises: StudyError, which says where and what to write.
    """
    if len(text) > MOST_CHARACTERS:
        raise StudyError(
            f"where has at most {MOST_CHARACTERS} characters, got {len(text)}; write a column in "
            f"the sites' tables that says it"
        )
    parser = _Parser(text)
    root = parser.whole()
    for each in _comparisons(root):
        _check(each, schema)
    return Condition(root, schema)


def fields_read(text: str | None) -> tuple[str, ...]:
    """Return the fields that a condition reads, sorted, before they are declared.

    Raises: StudyError.
    """
    found = _comparisons(_Parser(text).whole()) if text else ()
    return tuple(sorted({each.field for each in found}))


class _Parser:
    """Recursive descent over the tokens of a text."""

    def __init__(self, text: str):
        self.text = text
        self.tokens = list(_tokens(text))
        self.at = 0
        self.depth = 0

    def whole(self) -> Node:
        found = self.any()
        if self.at < len(self.tokens):
            raise self.expected("`and`, `or` or the end")
        return found

    def any(self) -> Node:
        return self.joined("or", lambda: self.joined("and", self.term))

    def joined(self, word: str, part: Callable[[], Node]) -> Node:
        parts = [part()]
        while self.take_word(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Junction(word, tuple(parts))

    def term(self) -> Node:
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise StudyError(f"where: at most {MOST_DEPTH} levels of brackets are possible")
        try:
            if self.take_word("not"):
                return Negation(self.term())
            if self.take("sign", "("):
                found = self.any()
                self.need(")")
                return found
            return self.comparison()
        finally:
            self.depth -= 1

    def comparison(self) -> Node:
        field = self.field()
        negated = self.take_word("not")
        if self.take_word("in"):
            self.need("(")
            constants = [self.constant()]
            while self.take("sign", ","):
                constants.append(self.constant())
            self.need(")")
            among = Among(field, tuple(constants))
            return Negation(among) if negated else among
        kind, sign = self.peek()
        sign = SPELLINGS.get(sign, sign)
        if negated or kind != "sign" or sign not in COMPARISONS:
            raise self.expected(f"one of {' '.join(COMPARISONS)} or `in`")
        self.at += 1
        return FieldComparison(field, sign, self.constant())

    def field(self) -> str:
        kind, token = self.peek()
        if kind == "name" and token.lower() not in KEYWORDS:
            self.at += 1
            return token
        if kind == "quoted":
            self.at += 1
            return token[1:-1].replace('""', '"')
        raise self.expected("the name of a field")

    def constant(self) -> Constant:
        kind, token = self.peek()
        if kind == "number":
            self.at += 1
            return Fraction(token)
        if kind == "word":
            self.at += 1
            return token[1:-1].replace("''", "'")
        raise self.expected("a number, or a word as in 'f',")

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.at][:2] if self.at < len(self.tokens) else ("end", "")

    def take(self, kind: str, token: str) -> bool:
        found = self.peek() == (kind, token)
        self.at += found
        return found

    def take_word(self, word: str) -> bool:
        kind, token = self.peek()
        found = kind == "name" and token.lower() == word
        self.at += found
        return found

    def need(self, sign: str) -> None:
        if not self.take("sign", sign):
            raise self.expected(f"`{sign}`")

    def expected(self, what: str) -> StudyError:
        came, place = "the end", len(self.text)
        if self.at < len(self.tokens):
            _, token, place = self.tokens[self.at]
            came = f"`{token}`"
        return StudyError(
            f"where: {what} was expected at character {place + 1}, and {came} came; {EXAMPLE}"
        )


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield (kind, token, place). Raises: StudyError."""
    end = len(text.rstrip())
    place = 0
    while place < end:
        found = TOKEN.match(text, place)
        if found is None or found.lastgroup is None:
            place += len(text[place:]) - len(text[place:].lstrip())
            raise StudyError(
                f"where: a field, a number, a word in single quotes or a comparison was expected "
                f"at character {place + 1}, and `{text[place]}` came; {EXAMPLE}"
            )
        yield found.lastgroup, found[found.lastgroup], found.start(found.lastgroup)
        place = found.end()


def _comparisons(node: Node) -> Iterator[FieldComparison | Among]:
    if isinstance(node, FieldComparison | Among):
        yield node
    for part in _parts(node):
        yield from _comparisons(part)


def _parts(node: Node) -> tuple[Node, ...]:
    if isinstance(node, Junction):
        return node.parts
    return (node.of,) if isinstance(node, Negation) else ()


def _check(node: FieldComparison | Among, schema: Schema) -> None:
    """Raises: StudyError for an unknown field, or for a constant that its values never are."""
    names = [field.name for field in schema]
    if node.field not in names:
        raise StudyError(
            f"where: {node.field!r} was expected to be a field of the study, which has "
            f"{', '.join(map(repr, names))}; add it to the study's fields"
        )
    field = schema[node.field]
    constants = node.constants if isinstance(node, Among) else (node.constant,)
    for constant in constants:
        if field.categories:
            _check_word(field, constant, node)
        else:
            _check_number(field, constant, node)


def _check_word(field: FieldSchema, constant: Constant, node: FieldComparison | Among) -> None:
    words = ", ".join(f"'{word}'" for word in field.categories)
    if constant not in field.categories:
        raise StudyError(
            f"where: field {field.name!r} has the categories {words}, and {_constant(constant)} "
            f"came; write one of them in single quotes"
        )
    if isinstance(node, FieldComparison) and node.sign not in ("=", "!="):
        raise StudyError(
            f"where: the categories of field {field.name!r} have no order, and {node.sign} came; "
            f"write =, != or in"
        )


def _check_number(field: FieldSchema, constant: Constant, node: FieldComparison | Among) -> None:
    if isinstance(constant, str):
        raise StudyError(
            f"where: field {field.name!r} holds numbers, and {_constant(constant)} came; write a "
            f"number without quotes"
        )
    if not field.lower <= constant <= field.upper:
        raise StudyError(
            f"where: field {field.name!r} lies from {field.lower} to {field.upper}, and "
            f"{_constant(constant)} came; write a number between them"
        )
    is_exact = isinstance(node, Among) or node.sign in ("=", "!=")
    if is_exact and (constant / field.resolution).denominator != 1:
        raise StudyError(
            f"where: field {field.name!r} has steps of {field.resolution}, so it is never equal to "
            f"{_constant(constant)}; write a multiple of the step, or < and >="
        )


def _holds(node: Node, columns: Columns, schema: Schema) -> Bits:
    if isinstance(node, Junction):
        parts = [_holds(part, columns, schema) for part in node.parts]
        joined = np.logical_and if node.word == "and" else np.logical_or
        return np.asarray(joined.reduce(parts), dtype=np.bool_)
    if isinstance(node, Negation):
        return ~_holds(node.of, columns, schema)
    field, column = schema[node.field], columns[node.field]
    if isinstance(node, Among):
        places = [int(_units(each, field)) for each in node.constants]
        return np.isin(column, np.array(places, dtype=np.int64))
    return _compare(column, node.sign, _units(node.constant, field))


def _units(constant: Constant, field: FieldSchema) -> Fraction:
    """Return a constant in steps of the field's resolution; of a category its place."""
    if isinstance(constant, str):
        return Fraction(field.categories.index(constant))
    return constant / field.resolution


def _compare(column: NDArray[np.int64], sign: str, units: Fraction) -> Bits:
    """Compare integers with a fraction: x < 5/2 as x < 3, and x <= 5/2 as x <= 2."""
    below = units.numerator // units.denominator
    above = -(-units.numerator // units.denominator)
    bound = above if sign in ("<", ">=") else below
    return np.asarray(COMPARISONS[sign](column, np.int64(bound)), dtype=np.bool_)


def _name(field: str) -> str:
    is_plain = re.fullmatch(r"[^\W\d]\w*", field) and field.lower() not in KEYWORDS
    return field if is_plain else '"' + field.replace('"', '""') + '"'


def _constant(constant: Constant) -> str:
    """Return a constant as it is written. A number of the grammar has finitely many digits."""
    if isinstance(constant, str):
        return "'" + constant.replace("'", "''") + "'"
    digits = 0
    while (constant * 10**digits).denominator != 1:
        digits += 1
    scaled = int(abs(constant) * 10**digits)
    text = str(scaled).rjust(digits + 1, "0")
    sign = "-" if constant < 0 else ""
    return sign + (f"{text[:-digits]}.{text[-digits:]}" if digits else text)
