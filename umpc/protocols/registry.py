"""The registry: every protocol by its name, and the questions that are asked of a study's protocol.

The protocols of umpc itself have one line here. All others come through entry points
(`loading.py`). Node sides and coordinator sides do not import this file; the processes and commands
do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

from umpc.errors import StudyError
from umpc.protocols.base.protocol import StudyProtocol
from umpc.protocols.loading import ProtocolPlace, Protocols
from umpc.study.attempt import Attempt
from umpc.study.decoding import decode_document
from umpc.study.document import Study
from umpc.study.field_rules import check_fields
from umpc.study.grades import ADVERSARIES
from umpc.study.rules import (
    check_common,
    check_people,
    check_rest,
    check_several,
    check_variance,
)
from umpc.study.settings import keys_of
from umpc.study.sizes import Member, Sizes
from umpc.study.survivors import check_missing, fewest_survivors
from umpc.ustat.schema import check_words

PROTOCOLS = Protocols(
    {
        "u-mpc": ProtocolPlace("umpc.protocols.u_mpc.protocol", "UMpc"),
        "grid": ProtocolPlace("umpc.protocols.grid.protocol", "GridProtocol", {"backend": "grid"}),
        "vector": ProtocolPlace("umpc.protocols.vector.protocol", "VectorProtocol"),
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
    names |= {type(protocol).__module__.rpartition(".")[0] for protocol in PROTOCOLS.values()}
    for name in sorted(names):
        package = import_module(name)
        for found in walk_packages(package.__path__, f"{name}."):
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
    `checked`. Nodes ask it before they admit a study, and coordinators when all nodes have answered
    (`StudyFile.check_new_run`).

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
