"""Columns at different sites: the protocol object.

The rules, the promise and what is said of a study are here. Everything else is of people: two nodes
whose tables are shares, of rows that both have signed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from umpc.protocols.base.promise import PromiseTerms, Trust
from umpc.protocols.base.protocol import Line
from umpc.protocols.people.protocol import PeopleProtocol
from umpc.protocols.people.settings import LinkedSettings
from umpc.protocols.people.split import split_of
from umpc.protocols.people.terms import key_bytes_of, terms_of
from umpc.study.document import Study
from umpc.study.settings import HONEST, Settings


class LinkedProtocol(PeopleProtocol):
    """Noisy sums over rows that two sites have in common, each with columns of its own."""

    settings: type[Settings] = LinkedSettings
    counted = "linked rows"
    neighbours = "linked row: with other values of this row at both sites"
    several = "Somebody with several rows has this epsilon once for each row."
    told = (
        "The number of linked rows is public. Each site learns whether the other one has exactly "
        "the same keys."
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

    def promise_to_sites(self, terms: PromiseTerms) -> str:
        if terms.adversary != HONEST:
            return (
                "To each site: if the dealer follows the protocol and colludes with nobody, the "
                f"coordinator and up to {terms.max_colluding} of {terms.nodes} sites may send "
                "anything: every row keeps epsilon for the values at the other site. A lie about "
                "the table is found before any share of a result is made. Nobody is named then, "
                "and the rows must be linked in a new study; so it is if a line is cut at that "
                "moment. A liar can spoil the result."
            )
        return (
            "To each site: if everybody follows the protocol, the coordinator and up to "
            f"{terms.max_colluding} of {terms.nodes} sites may pool what they see: every row keeps "
            "epsilon for the values at the other site. The dealer may collude neither with a site "
            "nor with the coordinator. The dealer, each site and the coordinator could read a "
            "row's value if it changed its program, and nobody would notice."
        )

    def trusted(self, terms: PromiseTerms) -> Trust:
        if terms.adversary != HONEST:
            return super().trusted(terms)
        return Trust("helpers", "dealer, both sites, coordinator")
