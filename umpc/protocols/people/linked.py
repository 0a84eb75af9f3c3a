"""Columns at different sites: the protocol object.

The rules, the promise and what is said of a study are here. Everything else is of people: two nodes
whose tables are shares, of rows that both have signed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from umpc.protocols.base.protocol import Line
from umpc.protocols.people.protocol import PeopleProtocol
from umpc.protocols.people.settings import LinkedSettings
from umpc.protocols.people.split import split_of
from umpc.protocols.people.terms import key_bytes_of, terms_of
from umpc.study.document import Study
from umpc.study.settings import Settings


class LinkedProtocol(PeopleProtocol):
    """Noisy sums over rows that two sites have in common, each with columns of its own."""

    settings: type[Settings] = LinkedSettings
    counted = "linked rows"
    to, nodes, others = "To each site", "sites", "anybody else"
    kept, value = "every row keeps epsilon for the values at the other site", "a row's values"
    spent = "and the rows must be linked in a new study"
    neighbours = "linked row: with other values of this row at both sites"
    several = "Somebody with several rows has this epsilon once for each row."
    told = (
        "The number of linked rows is public. Each site learns whether the other one has exactly "
        "the same keys, and by trying keys that it knows also which row is missing."
    )

    def read_lists(
        self, entries: Mapping[str, Any], read: Callable[[str], tuple[str, int]]
    ) -> Mapping[str, Any]:
        return entries

    def check(self, study: Study) -> None:
        super().check(study)
        split_of(study)

    def columns_read(self, study: Study, node: str) -> frozenset[str]:
        own = split_of(study).fields[study.index_of(node)]
        return frozenset(field.name for field in own)

    def terms_in_words(self, study: Study) -> Iterator[Line]:
        rows, split = terms_of(study).places, split_of(study)
        yield "linked rows", f"{rows:,}, which both sites have, until {terms_of(study).closes}"
        yield "bytes a row", f"{key_bytes_of(study)} dealt to each site"
        for node, fields, cells in zip(study.nodes, split.fields, split.cells, strict=True):
            names = ", ".join(field.name for field in fields)
            yield f"columns at {node.name}", f"{names}, {cells:,} cells"
