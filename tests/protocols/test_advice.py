"""Refusals advise what works: whoever follows one, step by step, ends at a study that is accepted.

The advice is read from the refusal's own words, so a refusal that advises nothing fails, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.protocols.u_mpc.test_library import PARAMETERS, columns_of, fields_of
from tests.support.studyfiles import participants
from umpc.coordinator.studyfile import read_study
from umpc.coordinator.studyfile_text import field_entry
from umpc.errors import UmpcError
from umpc.protocols.u_mpc.settings import INSTEAD
from umpc.ustat.statistics import LIBRARY

Entries = dict[str, Any]
(DEALER,) = participants("dealer")
LIARS = {"adversary": "lying_nodes", "max_colluding": 1}
GRID: Entries = {"backend": "grid"}
NO_DEALER: Entries = {"preprocessing": "none", "dealer": None}
WAYS: dict[str, Entries] = {
    "open": {},
    "pairs": {"backend": "shared", "edges": "2n"},
    "grid": GRID,
    "grid, no dealer": {**GRID, **NO_DEALER},
    "grid, levels": {**GRID, "levels": 3},
    "grid, noise": {**GRID, "noise": "in_mpc"},
    "garbled": {"backend": "garbled", "edges": "2n", **NO_DEALER},
    "vector": {"protocol": "vector", "delta": "1e-6"},
    "variance": {"backend": "shared", "edges": "2n", "variance": "private"},
}
STEPS = 3
"""The most pieces of advice that are followed one after the other."""
NAMES = [
    "mean",
    "gini_mean_difference",
    "covariance",
    "kendall_tau",
    "kendall_tau_label",
    "spearman_rho",
    "rand_index",
    "hodges_lehmann",
    "hodges_lehmann_shift",
    "theil_sen",
    "auc",
    "ranking_hinge",
    "triples_skewness",
    "bergsma_dassios_tau_star",
]
"""Statistics of every kind: one to four records, products, signs, classes, medians of pairs."""
OTHER = 'Take a statistic that compares values|protocol = "vector" releases means'
"""Refusals that advise another statistic, or name the ones that are possible."""


def entries_of(name: str) -> Entries:
    found: Entries = {
        "name": "advised",
        "statistic": name,
        "columns": columns_of(name),
        "fields": [field_entry(field) for field in fields_of(name)],
        "epsilon": "1",
        "identity": "coordinator",
        "nodes": participants("north", "south"),
        "dealer": DEALER,
    }
    return found | ({"parameters": PARAMETERS[name]} if name in PARAMETERS else {})


def refusal(entries: Mapping[str, Any]) -> str:
    """Why a study file is refused; empty where it is accepted."""
    given = {key: value for key, value in entries.items() if value is not None}
    try:
        read_study(Path("study.toml"), given).new_study("coordinator")
    except UmpcError as error:
        return error.message
    return ""


SETS = r'backend = "(\w+)" with a number of edges such as edges = "2n"(?:, without (\w+))?'
HONEST = r'(?:take|and) adversary = "honest"'


def advised(told: str, entries: Entries) -> Iterator[Entries]:
    """The files after each piece of advice in a refusal."""
    honest = {**entries, "adversary": None}
    if found := re.search(SETS, told):
        backend, without = found.groups()
        base = honest if re.search(f"{HONEST} and", told) else entries
        yield {**base, "backend": backend, "edges": "2n", **({without: None} if without else {})}
    elif re.search(HONEST, told):
        by_name = {"noise": "distributed", "protocol": "u-mpc", "delta": None, "backend": None}
        yield {**honest, **(by_name if "Take protocol" in told else {})}
    if found := re.search(r", or levels = (\d+)", told):
        yield {**entries, "levels": int(found[1])}
    for key in re.findall(r"[Ll]eave (\w+) out", told):
        named = {"dealer": DEALER} if "name a dealer" in told else {}
        yield {**entries, key: None, **named}
    if "name a dealer" in told and "out and" not in told:
        yield {**entries, "preprocessing": None, "dealer": DEALER}
    for backend in re.findall(r'take(?:s)? backend = "(\w+)"(?:,| with a dealer)', told):
        dealer = {"preprocessing": None, "dealer": DEALER} if "with a dealer" in told else {}
        yield {**entries, "backend": backend, **dealer}
    if "with a statistic of comparisons" in told:
        yield {**honest}


def follow(entries: Entries, steps: int, seen: tuple[str, ...] = ()) -> None:
    told = refusal(entries)
    if not told or re.search(OTHER, told):
        return
    path = "\n→ ".join((*seen, told))
    assert steps, f"the advice has no end:\n{path}"
    nexts = list(advised(told, entries))
    assert nexts, f"no advice:\n{path}"
    for each in nexts:
        follow(each, steps - 1, (*seen, told))


@pytest.mark.parametrize("grade", ["honest", "lying_nodes"])
@pytest.mark.parametrize("name", NAMES)
def test_the_advice_of_a_refusal_leads_to_a_study_that_is_accepted(name, grade):
    for way in WAYS.values():
        follow({**entries_of(name), **(LIARS if grade == "lying_nodes" else {}), **way}, STEPS)


def test_power_advice_that_is_refused_again_is_found():
    told = refusal({**entries_of("theil_sen"), **LIARS, **GRID})
    assert "nothing has it where nodes may lie" in told and len(told) < 700
    wrong = told.replace('take adversary = "honest" and', "take")
    (again,) = advised(wrong, {**entries_of("theil_sen"), **LIARS, **GRID})
    assert refusal(again)


def test_statistics_that_a_refusal_names_are_possible_where_nodes_may_lie():
    pairs, _, grid = INSTEAD.partition("A mean")[0].partition("With backend")
    pairs = re.sub("in place of .*?, (?=[a-z])|covariance or spearman_rho|ranking_hinge", "", pairs)
    named = [name for name in LIBRARY if re.search(rf"\b{name}\b", pairs)]
    assert {"kendall_tau", "auc", "rand_index", "renyi_entropy"} <= set(named)
    for name in named:
        assert refusal({**entries_of(name), **LIARS, **WAYS["pairs"]}) == "", name
    named = [name for name in LIBRARY if re.search(rf"\b{name}\b", grid)]
    assert "gini_mean_difference" in named
    for name in named:
        assert refusal({**entries_of(name), **LIARS, **GRID}) == "", name
