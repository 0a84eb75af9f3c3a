"""The files of several data sets of a site, which may not be shared.

A table under two names would have two budgets, and each would protect its records alone: together
they would cost the sum. A ledger of two data sets would mix their budgets. Shared paths are
refused here. `umpc node doctor` also compares the content of the tables.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import Protocol, TypeVar

from umpc.errors import ConfigError
from umpc.node.budget.ledger_place import Place
from umpc.node.table.source import TableSource
from umpc.transport.files import digest_of


class HasPlaces(Protocol):
    """The places of one data set, as `SitePlaces` of the configuration has them."""

    @property
    def file(self) -> Path: ...
    @property
    def dataset(self) -> str: ...
    @property
    def ledger(self) -> Path: ...
    @property
    def anchor(self) -> Path | None: ...


class HasTable(HasPlaces, Protocol):
    """The places and the table of one data set."""

    @property
    def source(self) -> TableSource: ...


Tabled = TypeVar("Tabled", bound=HasTable)


def refuse_shared_places(found: Sequence[HasPlaces]) -> None:
    """Refuse two data sets with one name, or with one ledger or anchor. Raises: ConfigError."""
    for one, other in combinations(found, 2):
        if one.dataset == other.dataset:
            raise ConfigError(
                f"{one.file}: two data sets have the name {one.dataset!r}. Correct one of them"
            )
        for mine in _places(one):
            if any(_is_same(mine, theirs) for theirs in _places(other)):
                raise ConfigError(
                    f"{one.file}: the data sets {one.dataset!r} and {other.dataset!r} both have "
                    f"{mine}, and each was expected to have a ledger and an anchor of its own. "
                    "Correct the path of one of them"
                )


def refuse_shared_tables(found: Sequence[HasTable]) -> None:
    """Refuse two data sets with one table. Raises: ConfigError."""
    for one, other in combinations(found, 2):
        if is_same_table(one.source, other.source):
            raise ConfigError(
                f"{one.file}: the data sets {one.dataset!r} and {other.dataset!r} have one table, "
                f"{_named(one.source)}, so its records would have two budgets. Correct it: keep "
                "one of the two"
            )


def is_same_table(one: TableSource, other: TableSource) -> bool:
    """Whether two sources have a file in common, or are one query of one database or objects."""
    if one.objects is not None or other.objects is not None:
        return one.objects == other.objects
    if one.sql is None or other.sql is None:
        pairs = product(one.files(), other.files())
        return one.sql is other.sql and any(_is_same(mine, theirs) for mine, theirs in pairs)
    return is_same_database(one, other) and one.sql.select.split() == other.sql.select.split()


def is_same_database(one: TableSource, other: TableSource) -> bool:
    """Whether two sources are queries of one database, as far as their addresses tell."""
    if one.sql is None or other.sql is None:
        return False
    return one.sql.url == other.sql.url and one.sql.folder == other.sql.folder


def shared_content(found: Sequence[Tabled]) -> Iterator[tuple[Tabled, Tabled]]:
    """Yield the pairs of data sets of which two files have the same bytes, as copies have."""
    contents = [(each, _contents(each.source)) for each in found if each.source.is_local]
    for (one, mine), (other, theirs) in combinations(contents, 2):
        sizes = mine.keys() & theirs.keys()
        pairs = (product(mine[size], theirs[size]) for size in sizes)
        if any(digest_of(a) == digest_of(b) for each in pairs for a, b in each):
            yield one, other


def _contents(source: TableSource) -> dict[int, list[Path]]:
    """Return the files of a table by their size in bytes."""
    found: dict[int, list[Path]] = {}
    for path in filter(Path.is_file, source.files()):
        found.setdefault(path.stat().st_size, []).append(path)
    return found


def _places(found: HasPlaces) -> tuple[Path, Path]:
    place = Place.of(found.ledger, found.anchor)
    return place.ledger, place.anchor


def _is_same(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, which need not exist."""
    if one.resolve() == other.resolve():
        return True
    return one.exists() and other.exists() and os.path.samefile(one, other)


def _named(source: TableSource) -> str:
    """Return the table without a database's address, which may say more than the error should."""
    if source.objects is not None:
        return source.objects.url
    return repr(source.sql.query) if source.sql else str(source.path)
