"""The places of a study of people, and the people whom it counts: read from it, and checked.

Dealer, coordinator and both aggregators check it, each for itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from umpc.crypto.signing import Verify, is_signature
from umpc.errors import CertificateError, RemoteProtocolError, StudyError
from umpc.mpc.arrays import Words
from umpc.mpc.fss.point import key_bytes
from umpc.people.messages import Survey, check_counted, opened_statement
from umpc.protocols.grid.binding import grid_of
from umpc.protocols.grid.operators import Axis, Grid
from umpc.protocols.people.settings import (
    CountedPeople,
    LinkedTerms,
    PeopleTerms,
    SharesSettings,
)
from umpc.study.document import Study
from umpc.study.settings import HONEST
from umpc.study.sizes import Counted, Member
from umpc.ustat.clear import Columns
from umpc.ustat.normal_form import FieldAtom

SHARE = "share"
"""The column of an aggregator: its share of the table, (cells,) of 64-bit words."""
TAGS = "tags"
"""Where aggregators may lie, another column: its share of the table times α, as `SHARE`."""


def columns_of(shares: Words) -> dict[str, NDArray[np.int64]]:
    """An aggregator's columns. Args: shares: (cells,), or (2, cells) of share and tags."""
    rows = shares.view(np.int64).reshape(-1, shares.shape[-1])
    return dict(zip((SHARE, TAGS), rows, strict=False))


def key_bytes_of(study: Study) -> int:
    """Bytes of the dealt keys of one place."""
    return key_bytes(messages_of(study).cells, study.adversary != HONEST)


def terms_of(study: Study) -> PeopleTerms | LinkedTerms:
    """Return the terms: who may come and when, or which rows are linked."""
    return study.settings_as(SharesSettings).terms


def survey_of(study: Study) -> Study:
    """The study as people saw it, before anybody was counted. Its hash is in all their messages."""
    return with_counted(study, "")


def with_counted(study: Study, counted: str) -> Study:
    """The study with another list, as `PeopleTerms.counted`."""
    terms = msgspec.structs.replace(terms_of(study), counted=counted)
    return study.replaced(**{study.protocol: terms})


def cells_of(study: Study, columns: Columns) -> list[int]:
    """Each person's cell. Args: columns: field → (people,) int64, in steps of the field."""
    found: list[int] = grid_of(study).cell_of(columns).tolist()
    return found


@lru_cache(maxsize=16)
def messages_of(study: Study) -> Survey:
    """All that messages of people are made of. Args: study: before or after it is closed."""
    people = terms_of(study)
    return Survey(survey_of(study).hash, grid_of(study).cells, people.places, people.fewest)


def counted_of(study: Study) -> CountedPeople:
    """Whom a study counts. Raises: StudyError for one that is not closed yet."""
    signed = terms_of(study).signed
    if signed is None:
        raise StudyError(
            f"the study {study.name!r} is not closed yet: no list of people is signed; "
            "`umpc study run` asks both aggregators for it, from the closing time on"
        )
    return signed


def points_of(
    study: Study, certificates: Sequence[bytes], verify: Verify, blamed: str
) -> list[bytes]:
    """The public keys of both aggregators. Args: blamed: who brought the certificates.

    Raises: CertificateError.
    """
    holders = [verify(each) for each in certificates]
    shown = [f"{each.role} {each.name!r}" for each in holders]
    if shown != [f"node {node.name!r}" for node in study.nodes]:
        raise CertificateError(
            f"{blamed} brought certificates of {' and '.join(shown)}, and those of the study's two "
            "aggregators were expected: send nothing, and tell the organiser",
            culprit=blamed,
        )
    return [each.key for each in holders]


def check_box_keys(study: Study, opened: Sequence[Any], verify: Verify, blamed: str) -> None:
    """Both nodes signed their box keys for this study.

    Args: opened: box_key, certificate and signature of each. blamed: who brought them.

    Raises: CertificateError, RemoteProtocolError.
    """
    points = points_of(study, [each.certificate for each in opened], verify, blamed)
    for side, (node, each) in enumerate(zip(study.nodes, opened, strict=True)):
        text = opened_statement(messages_of(study), side, each.box_key)
        if not is_signature(points[side], text, each.signature):
            raise RemoteProtocolError(
                f"{node.name} was expected to sign the key of its boxes with its certificate, and "
                "another signature came: do not use the study; ask its administrator",
                culprit=node.name,
                step="open",
            )


def check_count(study: Study, named: Mapping[str, Counted]) -> None:
    """Each aggregator says as many people as both signed. Raises: RemoteProtocolError."""
    n = counted_of(study).n
    # spec/people.py, `check_members`
    for name, said in named.items():
        if said.records != n:
            raise RemoteProtocolError(
                f"{name} says that it counts {said.records} people, and both aggregators signed "
                f"{n}; nothing was computed, and the study ends",
                culprit=name,
                step="agree",
            )


def check_signed(study: Study, members: Sequence[Member], keys: Sequence[bytes]) -> None:
    """Both aggregators signed whom the study counts, and say so many.

    Args: keys: by the members' certificates.

    Raises: StudyError where the study is not closed; RemoteProtocolError.
    """
    # spec/people.py, `check_counted`
    check_count(study, {member.name: member for member in members})
    signed = counted_of(study)
    check_counted(messages_of(study), signed.statement, keys, signed.signatures, study.coordinator)


def form_of(study: Study) -> dict[str, Any]:
    """All that a device without a grid needs to make a cell of values, for JSON.

    A cell is a number in mixed radix, with a digit for each axis. An axis is a polynomial of the
    fields, less its lowest value; for most kernels it is one field. A field with cut points counts
    as the number of those that it reaches, and any other field as its steps.

    Raises: StudyError where an axis is no such polynomial.
    """
    grid = cast(Grid, grid_of(study))  # it has no levels
    cuts = grid.cuts.points
    fields = []
    for each, schema in zip(study.fields, study.schema, strict=True):
        step, name = schema.resolution, each.name
        fields.append(
            msgspec.structs.asdict(each)
            | {
                "hint": "choice" if schema.categories else "whole" if step == 1 else "decimal",
                "step": each.step,
                "ratio": [str(step.numerator), str(step.denominator)],
                "least": schema.lower_units,
                "most": schema.upper_units,
                "cuts": list(cuts[name]) if name in cuts else None,
            }
        )
    return {"fields": fields, "axes": [_axis_of(each) for each in grid.layout.axes]}


def _axis_of(axis: Axis) -> dict[str, Any]:
    """Its size, and terms whose sum is its digit: a coefficient and fields, one for each power."""
    terms = [[str(-axis.low)]]
    for monomial, coefficient in axis.form.terms:
        names = [
            each.name
            for each, power in monomial
            for _ in range(power)
            if isinstance(each, FieldAtom)
        ]
        if len(names) != sum(power for _, power in monomial):
            raise StudyError(
                f"a cell of this study is made of {axis.text}, and only sums and products of "
                "fields have a form in a browser: people answer by `umpc people submit`"
            )
        terms.append([str(coefficient), *names])
    return {"size": axis.size, "terms": terms}
