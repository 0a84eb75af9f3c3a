"""The sets of fields that coordinators have asked a node about, in the Store of its ledger.

For each set of fields a node tells its number of complete records, and for a public label also the
number of records of each class. With a condition it counts the records for which that holds, so
each condition makes another set. These numbers cost no ε. Every further set tells a little more
about which values are missing together, so a node answers for at most MOST sets. The count survives
a restart. Without a condition no number depends on bounds, resolutions or categories. A condition
sees values after these, so they count for the fields that it reads.

`umpc budget fields --forget` lets the count begin anew, also while the node runs.
"""

from __future__ import annotations

from umpc.crypto.prg import digest
from umpc.errors import TooManySchemas
from umpc.node.budget.ledger import Ledger
from umpc.study.document import Study

MOST = 32
"""Largest number of different sets of fields for which a node tells numbers of records."""


def count_fields(ledger: Ledger, study: Study, node: str) -> None:
    """Count the study's fields, on disk when this returns. Raises: TooManySchemas, LedgerError."""
    if not ledger.count_fields(digest_of(study), MOST):
        raise TooManySchemas(
            f"{node} was asked about {MOST} different sets of fields, and each tells how many of "
            "its records have these fields; propose one of those sets, or have its administrator "
            "begin the count anew",
            culprit=node,
            detail="run `umpc budget fields --config node.toml --forget` to begin the count anew; "
            "no restart is needed",
        )


def digest_of(study: Study) -> bytes:
    """Return 32 bytes for all of a study that a number of records depends on."""
    parts = []
    for field in sorted(study.fields, key=lambda each: each.name):
        classes = field.categories if field.public else ()
        parts.append(digest(b"umpc field 1", field.name.encode(), *map(str.encode, classes)))
    if study.condition is not None:
        read = set(study.condition.fields)
        seen = [field.schema() for field in study.fields if field.name in read]
        schemas = sorted(repr(schema).encode() for schema in seen)
        parts.append(digest(b"umpc condition 2", study.condition.text.encode(), *schemas))
    if study.people is not None:
        people = study.people
        parts.append(digest(b"umpc person 1", people.column.encode(), b"%d" % people.records))
    return digest(b"umpc field set 1", *parts)
