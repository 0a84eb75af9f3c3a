"""backend = "auto": all sets by the grid, or some sets by pairs, whichever is cheaper.

The coordinator chooses while it reads a study file, so the document that all sites sign names a
definite backend. The choice follows from the file alone: from its statistic, fields, nodes and
edges, and from `records`, about how many there are. No clock and no machine has a part in it,
because a study that is asked again must be the same study, or it would be charged again.

The grid has no sampling error, and its noise on a mean is that of pairs. So it is taken wherever it
needs no more bytes and no more seconds than the sets that the file would average over otherwise.
Seconds are those of a line of 100 megabits a second, and of work at the rates below.

Where nodes may lie, the grid also has less noise than pairs: its table is proved, and so it needs
the honest sensitivity only. So it is taken up to BUDGET_BYTES, too, which a file of pairs that
names no edges may cost. A file that names a number of edges has pairs in this grade.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from umpc.crypto.ring import RINGS, Ring
from umpc.errors import UmpcError
from umpc.mpc.transfers.ot_inner_products import correction_bytes
from umpc.protocols.base.protocol import StudyProtocol
from umpc.protocols.grid.binding import (
    grid_of,
    least_cells_of,
    proof_seconds,
    ring_of,
    work_seconds,
)
from umpc.protocols.grid.cross_terms import (
    BITS_A_BYTE_ROW,
    EXTENSION_ROW_BYTES,
    check_transfers,
    cross_pairs,
    entry_ranges,
)
from umpc.protocols.grid.lookup_proof import ProofShape, check_lists
from umpc.protocols.grid.masked_form import VECTORS_FROM
from umpc.protocols.grid.settings import BACKEND, EDGES
from umpc.protocols.registry import USUAL, chosen_protocol, find_protocol
from umpc.protocols.u_mpc.noise_binding import noise_of_sums
from umpc.protocols.u_mpc.theory import BUDGET_BYTES, bits_of_an_edge
from umpc.study.document import Study
from umpc.study.settings import HONEST, keys_of
from umpc.study.sizes import Member, Sizes

USUAL_RECORDS = 10_000
"""The number of records that is assumed where a file does not say it."""
LINE = 12_500_000
"""Bytes a second of each process's line."""
EDGE_SECONDS = 5e-6
"""Seconds to deal and evaluate an edge. `python -m bench.rates` prints all rates for a machine."""
GARBLED_SECONDS = 2e-5
"""Seconds to garble and evaluate an edge without a dealer."""
TRANSFER_SECONDS = 1e-6
"""Seconds of a transfer of a cross term without a dealer, at both of its ends together."""
PAIRS_OF_LIARS = (
    "pairs, because the file names a number of edges; in this grade the grid has less noise, and "
    'edges = "all" or backend = "grid" allows it'
)
TWICE = 2
"""A table is worked on at the dealer, and then at all nodes at once."""

StudyOf = Callable[[StudyProtocol, Mapping[str, Any]], Study]
"""The file's study by a protocol with these settings. Raises: UmpcError."""


@dataclass(frozen=True)
class Needs:
    """About how much a way needs. seconds: on the line and the machine of this file."""

    bytes: float
    seconds: float

    def __str__(self) -> str:
        return f"about {_short(self.bytes / 1e6)} MB and {_short(self.seconds)} s"


@dataclass(frozen=True)
class ChosenWay:
    """A definite protocol. settings: for it. reason: in words, for the person who asked."""

    protocol: StudyProtocol
    settings: Mapping[str, Any]
    reason: str


def open_keys() -> dict[str, Any]:
    """The settings that a file may write where the choice is open."""
    pairs, grid = _ways()
    return {**keys_of(pairs.settings), **keys_of(grid.settings)}


def choose(entries: Mapping[str, Any], study_of: StudyOf, records: int | None) -> ChosenWay:
    """The cheaper way, with its settings.

    Args:
        entries: the file's settings. study_of: makes the file's study.
        records: about how many records all sites have together; None assumes `USUAL_RECORDS`.

    Raises: UmpcError where only the grid has the file's settings, and it refuses the study.
    """
    pairs, grid = _ways()
    rest = {key: value for key, value in entries.items() if key != "backend"}
    by_pairs = rest
    by_grid = {**rest, "backend": BACKEND, "edges": EDGES}
    if any(key not in keys_of(pairs.settings) for key in rest):
        return ChosenWay(grid, by_grid, "the grid, which alone has bins and levels")
    if any(key not in keys_of(grid.settings) for key in rest):
        return ChosenWay(
            pairs, by_pairs, "pairs, because the grid lacks some of the file's settings"
        )
    some_sets = _possible(study_of, pairs, by_pairs)
    is_of_liars = some_sets is not None and some_sets.adversary != HONEST
    if is_of_liars and rest.get("edges", EDGES) != EDGES:
        return ChosenWay(pairs, by_pairs, PAIRS_OF_LIARS)
    count = USUAL_RECORDS if records is None else records
    if cheaper := _pairs_need_less(some_sets, count):
        return ChosenWay(pairs, by_pairs, cheaper)
    try:
        all_sets = study_of(grid, by_grid)
        of_grid = grid_needs(all_sets, count)
    except UmpcError as error:
        return ChosenWay(
            pairs, by_pairs, f"pairs, because the grid is not possible: {error.message}"
        )
    if some_sets is None:
        if all_sets.adversary != HONEST:
            reason = "the grid, because pairs are not possible in this grade"
            return ChosenWay(grid, by_grid, reason)
        return ChosenWay(pairs, by_pairs, "pairs")  # whoever makes the study is told why not
    try:
        of_pairs = pairs_needs(some_sets, count)
        of_liars = (each for each in (all_sets, some_sets) if each.adversary != HONEST)
        noises = [noise_of_mean(each, count) for each in of_liars]
    except UmpcError:
        return ChosenWay(pairs, by_pairs, "pairs")
    allowed = _allowed(some_sets, of_pairs)
    is_better = of_grid.bytes <= allowed.bytes and of_grid.seconds <= allowed.seconds
    compared = f"over {count:,} records the grid needs {of_grid}, and pairs {of_pairs}"
    if noises:
        noise, by_sampling = noises
        is_better = is_better and noise <= by_sampling
        compared += f"; the noise of a mean is {noise:.2g}, and {by_sampling:.2g} by pairs"
    if is_better:
        return ChosenWay(grid, by_grid, f"the grid: {compared}")
    return ChosenWay(pairs, by_pairs, f"pairs: {compared}")


def _possible(
    study_of: StudyOf, protocol: StudyProtocol, settings: Mapping[str, Any]
) -> Study | None:
    """The file's study by a protocol; None where that is not possible."""
    try:
        return study_of(protocol, settings)
    except UmpcError:
        return None


def _allowed(study: Study, pairs: Needs) -> Needs:
    """The most that the grid may need. Args: study: of pairs. pairs: what it needs."""
    if study.adversary == HONEST:
        return pairs
    # less noise is worth what pairs may cost without being asked
    return Needs(max(pairs.bytes, BUDGET_BYTES), max(pairs.seconds, BUDGET_BYTES / LINE))


def _pairs_need_less(study: Study | None, records: int) -> str:
    """The reason for pairs where a table alone needs more bytes than they do; else empty.

    The operators of a wide table take seconds, so that three records would wait for them.

    Args: study: of pairs, where it is possible.
    """
    if study is None or study.preprocessing == "none":
        return ""
    try:
        of_pairs = pairs_needs(study, records)
        tables = table_bytes(least_cells_of(study), len(study.nodes), RINGS[0])
    except UmpcError:
        return ""
    if tables <= _allowed(study, of_pairs).bytes:
        return ""
    least = f"at least {_short(tables / 1e6)} MB"
    return f"pairs: over {records:,} records the grid needs {least}, and pairs {of_pairs}"


def table_bytes(cells: int, nodes: int, ring: Ring) -> int:
    """The bytes of all tables with a dealer: each node's, to the coordinator and back."""
    return 2 * nodes * cells * ring.bytes


def _short(number: float) -> str:
    """A number with two digits, or all digits of a whole number."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def other_way(
    protocol: StudyProtocol, entries: Mapping[str, Any]
) -> tuple[StudyProtocol, dict[str, Any]] | None:
    """The grid for a file of pairs, and pairs for a file of the grid; None for other protocols.

    A file without a dealer has none in the other way, whose pairs then are garbled.

    Args: entries: the file's settings. Those that the other way lacks are left out.
    """
    pairs, grid = _ways()
    if protocol not in (pairs, grid):
        return None
    other = grid if protocol is pairs else pairs
    known = keys_of(other.settings).keys() - {"backend", "edges"}
    rest = {key: value for key, value in entries.items() if key in known}
    return (other, {**rest, "backend": BACKEND} if other is grid else rest)


def _ways() -> tuple[StudyProtocol, StudyProtocol]:
    """The usual protocol, and the one that a file chooses by backend = "grid"."""
    return find_protocol(USUAL), chosen_protocol(USUAL, {"backend": BACKEND})


def _sizes(study: Study, records: int) -> Sizes:
    """The sizes of so many records, half of them of either class if there are two."""
    return Sizes(study, records, records // 2 if study.two_sample else 0, len(study.nodes))


def noise_of_mean(study: Study, records: int) -> float:
    """The largest standard deviation of the noise of a sum's mean over the study's sets.

    Raises: UmpcError.
    """
    sizes = _sizes(study, records)
    rows = zip(noise_of_sums(sizes), study.parsed_kernels, strict=True)
    return max(law.std * float(kernel.unit) for law, kernel in rows) / sizes.edges


def pairs_needs(study: Study, records: int) -> Needs:
    """The bytes and seconds of sets of several owners. Raises: UmpcError."""
    nodes = len(study.nodes)
    shared = _sizes(study, records).edges * (1 - nodes ** (1 - study.degree))
    moved = shared * bits_of_an_edge(study) / 8
    rate = GARBLED_SECONDS if study.backend == "garbled" else EDGE_SECONDS
    return Needs(moved, moved / LINE + shared * rate)


def grid_needs(study: Study, records: int) -> Needs:
    """The bytes and seconds of tables and lists through the coordinator; or of cross terms.

    Raises: UmpcError.
    """
    grid = grid_of(study)
    ring = ring_of(_sizes(study, records))
    if study.preprocessing == "none":
        return _cross_terms_need(study, ring, records)
    tables = table_bytes(grid.cells, len(study.nodes), ring)
    dealt = grid.cells * ring.bytes * len(study.kernels) * (study.degree >= VECTORS_FROM)
    work = TWICE * work_seconds(grid)
    lists = 0
    if study.adversary != HONEST:
        check_lists(study, [records])
        nodes = len(study.nodes)
        shape = ProofShape.of(grid.cells, records // nodes)
        # every node sends its list, and who checks gets those of the others
        lists = (nodes + (study.max_colluding + 1) * (nodes - 1)) * shape.bytes
        work += proof_seconds(nodes * shape.products)
    moved = tables + dealt + lists
    return Needs(moved, moved / LINE + work)


def _cross_terms_need(study: Study, ring: Ring, records: int) -> Needs:
    """The bytes and seconds of transfers between every two nodes. Raises: RangeError."""
    grid = grid_of(study)
    width = ring.bits - 1
    nodes = len(study.nodes)
    members = [Member(node.name, records // nodes, b"", b"") for node in study.nodes]
    check_transfers(study, members, grid, width)
    ranges = entry_ranges(grid)
    pairs = list(cross_pairs(members))
    transfers = sum(pair.transfers(ranges, width) for pair in pairs)
    moved = transfers * EXTENSION_ROW_BYTES / BITS_A_BYTE_ROW
    for pair in pairs:
        for part in ranges:
            bits = part.bits(pair.records, width)
            of_cell = correction_bytes(bits, width, len(study.kernels))
            moved += (part.stop - part.start) * of_cell
    work = TWICE * work_seconds(grid)
    return Needs(moved, moved / LINE + work + transfers * TRANSFER_SECONDS)
