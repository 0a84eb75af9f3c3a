"""Settings: the base of what a study says of its own protocol.

Every protocol has one frozen `msgspec.Struct` that derives from `Settings`. Its tag is the
protocol's name, so the settings say which protocol a study runs, and a setting of another protocol
cannot be written. Each field carries its description; help texts and options are made from it.

    class MySettings(ProtocolSettings, frozen=True, kw_only=True, tag="my-protocol"):
        delta: Annotated[str, describe("δ of the release, such as 1e-9")]

The properties are the facts that reports, policies and site administrators see of every study. A
protocol that lets a study choose one of them has a field of that name instead.

*Grades.* The grades of promise: what a study promises if its participants lie.

A study names its grade as `adversary`, a site's policy may ask for one, and the report repeats it.
docs/privacy.md proves each promise, and the protocol's object writes it in words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar, get_args

import msgspec

from umpc.decoding import convert
from umpc.errors import StudyError
from umpc.study.parts import FieldBins, Participant
from umpc.ustat.kernel import Kernel
from umpc.ustat.ranges import Interval
from umpc.ustat.schema import Schema

TAG_FIELD = "protocol"


WRONG_TYPE = re.compile(
    r"Expected `(?P<expected>[^`]*)`, got `(?P<came>[^`]*)`(?: - (?:at|in) `\$\.?(?P<key>[^`]*)`)?"
)
"""The text of msgspec for a value of a wrong type."""
KINDS = {
    "int": "a whole number",
    "float": "a number with a fraction",
    "str": "a text in quotes",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "list": "a list",
    "dict": "a table",
    "date": "a date",
    "time": "a time",
    "datetime": "a date",
    "null": "nothing",
}
"""msgspec's word for a type → ours."""


class Settings:
    """The settings of a study's own protocol."""

    __slots__ = ()

    @property
    def newer(self) -> tuple[str, ...]:
        """Settings that studies under tag 2 did not have. Their defaults are what was done then."""
        return ()

    @property
    def added(self) -> tuple[str, ...]:
        """Settings that came when studies had their hashes already.

        A study that does not use them has the hash that it always had.
        """
        return ()

    @property
    def protocol(self) -> str:
        """The protocol's name, which is the tag of the struct."""
        return name_of(type(self))

    @property
    def fixed(self) -> tuple[str, ...]:
        """Settings of a base class that have one value here, so that no study writes them."""
        return ()

    @property
    def shares_tables(self) -> bool:
        """Whether all nodes hold shares of one table, and each says how many records it has."""
        return False

    @property
    def made_of_people(self) -> str:
        """The field that no table has: a node gets each record's person in its place. Or empty."""
        return ""

    def computed(self, kernels: tuple[str, ...]) -> tuple[str, ...]:
        """The texts that stand for the kernels in a computation's hash (`computation.py`)."""
        return kernels

    def has_usual_bins(self, bins: FieldBins, schema: Schema) -> bool:
        """Whether these are the bins that a field has where the study names none."""
        return False

    @property
    def proves_tables(self) -> bool:
        """Whether what liars put in is proved to be records, so that no edge has another value."""
        return False

    def delta_of_proofs(self, adversary: str, nodes: int, records: int) -> Fraction:
        """The probability with which a false table passes for one, whatever liars hash."""
        return Fraction(0)

    @property
    def edges(self) -> str:
        """The sets of records that are averaged over: "all", "2n", "1p" or a number."""
        return "all"

    @property
    def is_joint(self) -> bool:
        """Whether all sums have one ε together, by one joint sensitivity, and no sum a part."""
        return False

    @property
    def noise(self) -> str:
        """The name of the law by which noise is added."""
        return self.protocol

    @property
    def delta(self) -> str:
        """The δ that the study asks for, as exact text; empty for none."""
        return ""

    @property
    def coins(self) -> str:
        """The source of a committee's coins: "transfers" or "dealt"; "none" without one."""
        return "none"

    @property
    def coins_used(self) -> str:
        """`coins`, or "none" for a law of noise that no committee draws."""
        return self.coins

    @property
    def backend(self) -> str:
        """How edges of several owners are evaluated; "none" where there are no such edges."""
        return "none"

    @property
    def preprocessing(self) -> str:
        """The maker of correlated randomness: "dealer" or "none"."""
        return "none"

    @property
    def dealer(self) -> Participant | None:
        """The dealer, where there is one."""
        return None

    @property
    def shufflers(self) -> tuple[Participant, ...]:
        """The shufflers, where there are some."""
        return ()


class ProtocolSettings(
    Settings, msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field=TAG_FIELD
):
    """The base of the settings of one protocol, whose name is their tag."""


Kind = TypeVar("Kind", bound=Settings)


def describe(text: str, *choices: str) -> msgspec.Meta:
    """The description of one setting, and its possible values where these are few."""
    return msgspec.Meta(description=text, extra={"choices": choices})


def name_of(kind: type[Settings]) -> str:
    """The protocol whose settings these are."""
    return str(kind.__struct_config__.tag)  # type: ignore[attr-defined]  # all kinds are Structs


def keys_of(kind: type[Settings]) -> Mapping[str, msgspec.Meta]:
    """The settings that a study of this protocol may write, with their descriptions."""
    any_kind: Any = kind  # a class is hashable by identity, whatever its instances are
    return _keys_of(any_kind)


@cache  # every study and every node's policy asks, and annotations are text to be evaluated
def _keys_of(kind: Any) -> Mapping[str, msgspec.Meta]:
    found = {}
    fixed = kind().fixed
    for field in msgspec.structs.fields(kind):
        if field.name in fixed:
            continue
        described = [part for part in get_args(field.type) if isinstance(part, msgspec.Meta)]
        found[field.name] = described[0] if described else msgspec.Meta(description="")
    return MappingProxyType(found)


def read_settings(kind: type[Kind], entries: Mapping[str, Any]) -> Kind:
    """Settings from a file's entries. A whole number stands for its text where text is expected.

    Raises: StudyError that names a key of another protocol, or a value of a wrong type.
    """
    known = keys_of(kind)
    for key in entries:
        if key not in known:
            raise StudyError(
                f"`{key}` is not a setting of protocol = {name_of(kind)!r}, which has "
                f"{named(known)}. Remove it"
            )
    numbers = _numbers_as_text(kind)
    values = {key: _as_text(value) if key in numbers else value for key, value in entries.items()}
    try:
        return convert({TAG_FIELD: name_of(kind), **values}, kind)
    except msgspec.ValidationError as error:
        raise StudyError(f"{in_words(error)}. Correct the key there") from error


def in_words(error: msgspec.ValidationError) -> str:
    """Return what was expected at which key of a file, and what came."""
    found = WRONG_TYPE.fullmatch(str(error))
    if found is None:
        return str(error)
    return wrong_type(str(found["key"]), found["expected"], found["came"])


def wrong_type(key: str, expected: str, came: str) -> str:
    """Return what was expected and what came. Args: expected, came: as msgspec or Python says."""
    words = " or ".join(KINDS.get(kind, kind) for kind in expected.split(" | "))
    # a file's numbers with a fraction are read as texts, so that they stay exact
    word = "a text or a number with a fraction" if came == "str" else KINDS.get(came, came)
    return f"`{key}`: {words} was expected, and {word} came"


def without_addresses(settings: Kind) -> Kind:
    """These settings, with participants that have names only."""
    changed: dict[str, Any] = {}
    for key in keys_of(type(settings)):
        value = getattr(settings, key)
        if isinstance(value, Participant):
            changed[key] = Participant(value.name, "")
        elif isinstance(value, tuple) and value and isinstance(value[0], Participant):
            changed[key] = tuple(Participant(each.name, "") for each in value)
    return msgspec.structs.replace(settings, **changed)  # type: ignore[type-var]


def unused_additions(settings: Settings) -> list[str]:
    """The later settings that have their defaults, so that a study's hash leaves them out."""
    usual = type(settings)()
    return [key for key in settings.added if getattr(settings, key) == getattr(usual, key)]


def named(keys: Mapping[str, Any] | Sequence[str]) -> str:
    """Keys in one line, or a word for none."""
    return ", ".join(keys) or "no settings of its own"


def _numbers_as_text(kind: type[Settings]) -> set[str]:
    """The settings whose text may be a number: all text, except a choice between names."""
    found = set()
    for key, described in keys_of(kind).items():
        choices = (described.extra or {}).get("choices", ())
        if isinstance(getattr(kind(), key), str) and not choices:
            found.add(key)
    return found


def _as_text(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value


# --- grades ---------------------------------------------------------------------------------------

HONEST = "honest"
LYING_NODES = "lying_nodes"
ADVERSARIES = (HONEST, LYING_NODES)
"""The grades, the weakest promise first."""


def edge_change(kernel: Kernel, adversary: str) -> Fraction:
    """The most that one edge's value changes when one record of an honest node is replaced.

    Raises: KernelError, RangeError for a kernel that the grade does not allow.
    """
    return kernel.robust.change if adversary == LYING_NODES else kernel.interval.width


def edge_interval(kernel: Kernel, adversary: str) -> Interval:
    """An interval of one edge's value, whatever the grade's adversary does to opened bits.

    Raises: as `edge_change`.
    """
    return kernel.robust.interval if adversary == LYING_NODES else kernel.interval
