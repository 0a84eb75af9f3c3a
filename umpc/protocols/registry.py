"""The registry: every protocol by its name, and the questions that are asked of a study's protocol.

The protocols of umpc itself have one line here. All others come through entry points.

*Loading.* Protocols by name: umpc's own, and those that a package brings through an entry point.

    [project.entry-points."umpc.protocols"]
    my-protocol = "my_package.protocol:MyProtocol"

Each is loaded when it is first asked for, because a command needs one protocol or two. A process
that serves studies loads all that it may run before it is ready, so that no study waits for that.

Protocols of umpc's own wheel are always there. Those of other packages are code that somebody
installed: a node runs one of them only if its node.toml names it.

*Decoding.* A study from the bytes that came: in canonical form, of this protocol, or refused.

*Left open.* Whether a study file leaves the choice between the grid and pairs open; `auto.py` then
chooses.

Most files do not, and then no command loads the grid to ask.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from pkgutil import walk_packages
from types import MappingProxyType
from typing import Any, NamedTuple, Union

import msgspec

from umpc.crypto.signing import Verify
from umpc.decoding import convert, decode
from umpc.errors import EncodingError, StudyError
from umpc.protocol_version import PROTOCOL
from umpc.protocols.base.protocol import StudyProtocol
from umpc.study.attempt import Attempt, check_missing, fewest_survivors
from umpc.study.document import Study
from umpc.study.rules import (
    check_cells,
    check_common,
    check_fields,
    check_people,
    check_rest,
    check_several,
    check_variance,
    check_version,
)
from umpc.study.settings import ADVERSARIES, Settings, keys_of
from umpc.study.sizes import Member, Sizes
from umpc.ustat.schema import check_words

GROUP = "umpc.protocols"
"""The group of entry points."""


class ProtocolPlace(NamedTuple):
    """Where a protocol's class is. chosen_by: the class's own, which nobody loads it to ask for."""

    module: str
    attribute: str
    chosen_by: Mapping[str, str] = MappingProxyType({})


class Protocols(Mapping[str, StudyProtocol]):
    """Name → protocol, in the order of the places; those of entry points follow.

    A protocol is loaded by a look at it, but not by a look at the names.
    """

    def __init__(self, places: Mapping[str, ProtocolPlace]):
        self._own = dict(places)
        self._loaded: dict[str, StudyProtocol] = {}
        self._allowed: frozenset[str] | None = None

    def allow(self, names: Collection[str]) -> None:
        """Use no protocols of other packages but these, and those of other calls."""
        self._allowed = (self._allowed or frozenset()).union(names)
        self.__dict__.pop("_places", None)

    @cached_property
    def _places(self) -> dict[str, ProtocolPlace]:
        found = {name: _place(point) for name, point in sorted(own_points(GROUP).items())}
        others = {name: _place(point) for name, point in sorted(_foreign_points().items())}
        allowed = others if self._allowed is None else self._allowed
        return {
            **self._own,
            **found,
            **{name: place for name, place in others.items() if name in allowed},
        }

    def __getitem__(self, name: str) -> StudyProtocol:
        place = self._places[name]
        if name not in self._loaded:
            kind = getattr(import_module(place.module), place.attribute)
            self._loaded.setdefault(name, kind())  # another thread may have been faster
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._places))

    def __len__(self) -> int:
        return len(self._places)

    def chosen_by(self, name: str) -> Mapping[str, str]:
        """The settings of the usual protocol that choose this one; empty where none do."""
        return self._places[name].chosen_by


def own_points(group: str) -> dict[str, EntryPoint]:
    """The entry points of umpc's own wheel, by name; none where umpc is not installed."""
    try:
        own = distribution("umpc").entry_points
    except PackageNotFoundError:
        return {}
    return {point.name: point for point in own if point.group == group}


def _foreign_points() -> dict[str, EntryPoint]:
    """The entry points that other packages bring, by name."""
    own = own_points(GROUP)
    points = entry_points(group=GROUP)
    return {point.name: point for point in points if point.name not in own}  # none replaces ours


def _place(point: EntryPoint) -> ProtocolPlace:
    return ProtocolPlace(point.module, point.attr)


PROTOCOLS = Protocols(
    {
        "u-mpc": ProtocolPlace("umpc.protocols.u_mpc.protocol", "UMpc"),
        "grid": ProtocolPlace("umpc.protocols.grid.protocol", "GridProtocol", {"backend": "grid"}),
        "people": ProtocolPlace("umpc.protocols.people.protocol", "PeopleProtocol"),
        "linked": ProtocolPlace("umpc.protocols.people.linked", "LinkedProtocol"),
        "vector": ProtocolPlace("umpc.protocols.vector.protocol", "VectorProtocol"),
        "overlap": ProtocolPlace("umpc.protocols.overlap.protocol", "OverlapProtocol"),
        "counts": ProtocolPlace("umpc.protocols.counts.protocol", "CountsProtocol"),
    }
)
"""The protocols by name, in the order in which a planner shows them. Each is loaded when used."""
USUAL = "u-mpc"
"""The protocol of a study file that names none."""


@lru_cache(maxsize=1)
def load_all() -> None:
    """Load every protocol with both of its sides, and every way to evaluate a kernel.

    A process that serves studies does so before it is ready, so that no study waits for it.
    """
    names = {"umpc.mpc", "umpc.protocols"}
    names |= {type(protocol).__module__.rsplit(".", 1)[0] for protocol in PROTOCOLS.values()}
    for name in sorted(names):
        package = import_module(name)
        # a module that is in no package has no path
        for found in walk_packages(getattr(package, "__path__", ()), f"{name}."):
            import_module(found.name)


def find_protocol(name: str) -> StudyProtocol:
    """The protocol of this name. Raises: StudyError."""
    if name not in PROTOCOLS:
        raise StudyError(f"protocol must be one of {', '.join(PROTOCOLS)}, got {name!r}")
    return PROTOCOLS[name]


def chosen_protocol(name: str, entries: Mapping[str, Any]) -> StudyProtocol:
    """The protocol that a study file means by its name and its settings. Raises: StudyError.

    A protocol may be chosen by a setting of the usual protocol, such as its backend.
    """
    if name == USUAL:
        for other in PROTOCOLS:
            chosen = PROTOCOLS.chosen_by(other).items()
            if chosen and all(entries.get(key) == value for key, value in chosen):
                return PROTOCOLS[other]
    return find_protocol(name)


def protocol_of(study: Study) -> StudyProtocol:
    """The protocol that a study runs."""
    return find_protocol(study.protocol)


def checked(study: Study) -> Study:
    """The study, if it fulfils all rules that need no data. Raises: StudyError and its kinds.

    A study that may miss nodes fulfils them with the fewest nodes, too.
    """
    check_missing(study)
    _check_rules(study)
    fewest = fewest_survivors(study)
    if fewest is not None:
        try:
            _check_rules(fewest)
        except StudyError as error:
            error.message = f"with {len(fewest.nodes)} nodes, as may_miss allows: {error.message}"
            error.args = (error.message,)
            raise
    return study


def _check_rules(study: Study) -> None:
    check_common(study)
    protocol = protocol_of(study)
    check_people(study, is_possible=protocol.protects_people)
    check_several(study, is_possible=protocol.takes_several)
    check_variance(study, is_possible=protocol.estimates_variance)
    check_cells(study, is_possible=protocol.shares_cells)
    protocol.check_grade(study)
    protocol.check_sampling(study)
    protocol.check(study)
    check_rest(study)
    if study.most_missing and protocol.course(study) is not None:
        raise StudyError("a step of a training needs all its nodes; leave may_miss out")


def check_new_run(study: Study) -> None:
    """The rules for a study that no node has released or holds.

    A study that was released is repeated whatever these rules say. A rule that refuses studies
    which ran before therefore belongs here or into `StudyProtocol.check_new_run`, and not into
    `checked`. Nodes ask it before they admit a study, coordinators when all nodes have answered.

    Raises: StudyError and its kinds.
    """
    for field in study.fields:
        check_words(field.name, field.categories)
    check_fields(study)
    protocol_of(study).check_new_run(study)


@lru_cache(maxsize=2)
def decode_study(data: bytes, *, stored: bool = False) -> Study:
    """A study from its canonical bytes, checked.

    Args: stored: as of `decode_document`.
    Raises: EncodingError where the bytes are not a study, or not canonical; else as `checked`.
    """
    kinds = [protocol.settings for protocol in PROTOCOLS.values()]
    return checked(decode_document(data, kinds, stored=stored))


def allowed_as(study: Study) -> bytes:
    """The hash under which a person, or a certificate, allows a study, 32 bytes.

    All steps of a course have one, and a study of people has one whoever comes.
    """
    protocol = protocol_of(study)
    course = protocol.course(study)
    return course.id if course else protocol.approved_as(study).whole.hash


class _OfStudy(msgspec.Struct):
    """The part of evidence that says of which study it is."""

    study: bytes


def proven_lie(evidence: bytes, verify: Verify, dealer: bytes) -> tuple[Study, str, str]:
    """Study, node and lie of signed evidence. Args, Raises: as of `StudyProtocol.proven_lie`."""
    try:
        study = decode_study(decode(evidence, _OfStudy).study)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise EncodingError(f"this is no evidence of a lie: {error}") from error
    return study, *protocol_of(study).proven_lie(study, evidence, verify, dealer)


def possible_values(key: str) -> tuple[str, ...]:
    """The values that one fact of a study may have, over all protocols.

    Args: key: "protocol", "noise", "coins", "backend", "preprocessing" or "adversary".
    """
    return ADVERSARIES if key == "adversary" else _values_of(key, tuple(PROTOCOLS))


@lru_cache(maxsize=16)  # a node reads its policy several times in each study
def _values_of(key: str, names: tuple[str, ...]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for name in names:
        protocol = PROTOCOLS[name]
        described = keys_of(protocol.settings).get(key)
        choices = (described.extra or {}).get("choices", ()) if described else ()
        found.update(dict.fromkeys(choices or (getattr(protocol.settings(), key),)))
    return tuple(found)


def attempt_of(study: Study, members: Sequence[Member], openings: Sequence[bytes]) -> Attempt:
    """The attempt that these members and openings define. Raises: RemoteProtocolError."""
    return protocol_of(study).attempt(study, members, openings)


def delta_of(sizes: Sizes) -> Fraction:
    """δ of a study's release."""
    return protocol_of(sizes.study).delta(sizes)


# --- decoding -------------------------------------------------------------------------------------

MAX_BYTES = 1 << 20


def decode_document(data: bytes, kinds: Sequence[type[Settings]], *, stored: bool = False) -> Study:
    """A study from its canonical bytes, of one of these protocols; its rules are not checked yet.

    Args: stored: a site stored the bytes, perhaps under a former version of the protocol.
    Raises: EncodingError where the bytes are not a study, or not canonical; VersionMismatch.
    """
    if len(data) > MAX_BYTES:
        raise EncodingError(f"a study has at most {MAX_BYTES} bytes, got {len(data)}")
    union: Any = Union[tuple(kinds)]  # noqa: UP007  # made at run time
    try:
        version = decode(data, _Version).version
        if not stored:
            check_version(version)
        study = decode(data, Study, lambda _, value: convert(value, union))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise EncodingError(f"the study's bytes do not decode: {error}") from error
    if study.encode() != data:
        raise EncodingError(
            "the study's bytes are not in canonical form; install the same version of umpc "
            "everywhere"
        )
    return study.replaced(version=PROTOCOL) if stored else study


class _Version(msgspec.Struct):
    version: str


# --- left open ------------------------------------------------------------------------------------

AUTO = "auto"


def is_open(name: str | None, entries: Mapping[str, Any]) -> bool:
    """Whether a study file leaves the choice open.

    It does with backend = "auto". It also does if it names no protocol, backend or preprocessing,
    and no edges but "all".

    Args: name: the protocol, where the file names one. entries: the file's settings.
    """
    if entries.get("backend") == AUTO:
        return name in (None, USUAL)
    named = [key for key in ("backend", "preprocessing") if key in entries]
    return name is None and not named and entries.get("edges", "all") == "all"
