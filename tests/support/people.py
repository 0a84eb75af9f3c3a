"""Studies of people with one value each, in one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tests.support.studies import KENDALL, make_study
from umpc.protocols.people.in_memory import counting, made_up_terms
from umpc.protocols.people.settings import LinkedTerms
from umpc.protocols.people.terms import terms_of
from umpc.simulation import AUTHORITY
from umpc.study.document import Study


def people_study(kernels: str | Sequence[str] = KENDALL, **changes: Any) -> Study:
    """A study of people that is not closed yet, with 64 places."""
    facts = {"protocol": "people", "max_colluding": 1, "people": made_up_terms(64)}
    return make_study(kernels, 2, **(facts | changes))


def linked_study(kernels: str | Sequence[str] = KENDALL, **changes: Any) -> Study:
    """A study of 40 linked rows, whose column x lies at the first site."""
    linked = LinkedTerms(("x",), 40, "2099-12-31T00:00:00Z")
    facts = {"protocol": "linked", "max_colluding": 1, "linked": linked}
    return make_study(kernels, 2, **(facts | changes))


def with_terms(study: Study, **changes: Any) -> Study:
    """The study with other terms."""
    terms = msgspec.structs.replace(terms_of(study), **changes)
    return study.replaced(**{study.protocol: terms})


def closed(study: Study, n: int) -> Study:
    """The study that counts n people, as both aggregators signed."""
    return counting(study, n, [AUTHORITY.credentials(node.name) for node in study.nodes], bytes(32))
