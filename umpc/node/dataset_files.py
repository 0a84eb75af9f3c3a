"""The tables of several data sets of a site, which may not be shared.

A table under two names would have two budgets, and each would protect its records alone: together
they would cost the sum. `config.py` refuses shared tables, ledgers and anchors. `umpc node doctor`
also compares the content of the tables.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from pathlib import Path

from umpc.node.table.source import S3, TableSource
from umpc.transport.files import digest_of


def is_same_table(one: TableSource, other: TableSource) -> bool:
    """Whether two sources have a file in common, or are one query of one database or objects."""
    if one.objects is not None or other.objects is not None:
        return one.objects == other.objects
    if one.sql is None or other.sql is None:
        pairs = product(one.files(), other.files())
        return one.sql is other.sql and any(is_same_file(mine, theirs) for mine, theirs in pairs)
    return is_same_database(one, other) and one.sql.select.split() == other.sql.select.split()


def is_same_database(one: TableSource, other: TableSource) -> bool:
    """Whether two sources are queries of one database, as far as their addresses tell."""
    if one.sql is None or other.sql is None:
        return False
    return one.sql.url == other.sql.url and one.sql.folder == other.sql.folder


def shared_content(found: Sequence[TableSource]) -> Iterator[tuple[int, int]]:
    """Yield the places of two tables of which two files have the same bytes, as copies have."""
    local = [(place, source) for place, source in enumerate(found) if source.is_local]
    contents = [(place, _contents(source)) for place, source in local]
    for (one, mine), (other, theirs) in combinations(contents, 2):
        sizes = mine.keys() & theirs.keys()
        if any(_digests(mine[size]) & _digests(theirs[size]) for size in sizes):
            yield one, other


def _digests(files: Sequence[Path]) -> set[str]:
    return {digest_of(path) for path in files}


def _contents(source: TableSource) -> dict[int, list[Path]]:
    """Return the files of a table by their size in bytes."""
    found: dict[int, list[Path]] = {}
    for path in filter(Path.is_file, source.files()):
        found.setdefault(path.stat().st_size, []).append(path)
    return found


def is_same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, which need not exist."""
    if one.resolve() == other.resolve():
        return True
    return one.exists() and other.exists() and os.path.samefile(one, other)


def named(source: TableSource) -> str:
    """Return the table without a database's address, which may say more than the error should."""
    if source.objects is not None:
        return f"{S3}{source.path}"
    return repr(source.sql.query) if source.sql else str(source.path)
