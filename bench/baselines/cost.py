"""What the central protocols cost: bytes to the curator, rounds, and operations, from public sizes alone.

| protocol | kernel evaluations, n records, degree k | besides |
|---|---|---|
| `laplace` | C(n, k) | |
| `coinpress_naive` | n // k | each value clipped once a step |
| `coinpress_all` | C(n, k) | the same |
| `coinpress_subsampled` | M | the same, and M k draws |
| `hajek` | C(n, k); at most twice that, if ξ is below C | values added to k records, n steps of the smooth bound |
| `hajek_subsampled` | M | the same, and M k draws |
| `hajek_split` | (n/2) // k + C(n/2, k) | as `coinpress_naive` and `hajek` on their halves |
| median of K | K times that of n/K records | |
| uniformity | as `hajek`, k = 2 | |
| triangles | as `hajek`, k = 3, of n nodes | messages: each node's part of the matrix |

An evaluation reads k records, so it counts k. As in `umpc.dp.local`, operations grow like the time and are not time.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

from bench.baselines.dpsgd import PairwiseSgd
from bench.baselines.gopa import Gopa
from bench.baselines.median import MedianOfMeans
from umpc.dp.mechanisms import grid_sensitivity
from umpc.errors import StudyError
from umpc.protocols.central.central_mechanisms import Choice
from umpc.protocols.central.columns import fields_of, message_bytes
from umpc.protocols.local.estimate import LocalCost

STEPS = 3
"""Of CoinPress in `adaptations`, as usual."""


def evaluations(choice: Choice, records: int) -> int:
    """How many sets of n records the kernel is evaluated on."""
    k, half = choice.kernel.degree, records // 2
    return {
        "coinpress_naive": lambda: records // k,
        "coinpress_subsampled": lambda: choice.count,
        "hajek_subsampled": lambda: choice.count,
        "hajek_split": lambda: half // k + comb(records - half, k),
    }.get(choice.name, lambda: comb(records, k))()


def operations(choice: Choice, records: int) -> int:
    """Of the curator."""
    sets, k = evaluations(choice, records), choice.kernel.degree
    once = {"laplace": 1, "hajek": k, "hajek_subsampled": k, "hajek_split": k}.get(
        choice.name, STEPS
    )
    drawn = choice.count * k if choice.count else records * choice.name.endswith(("naive", "split"))
    return sets * (k + once) + drawn + records * choice.name.startswith("hajek")


def cost(choice: Choice, records_per_node: Sequence[int]) -> LocalCost:
    """Of a study. Args: how many records each node has."""
    fields, records = fields_of(choice.kernel), sum(records_per_node)
    sent = sum(message_bytes(fields, count) for count in records_per_node)
    return LocalCost(sent, 1, records * len(fields), operations(choice, records))


def median_cost(wrapper: MedianOfMeans, records_per_node: Sequence[int]) -> LocalCost:
    """K runs of a `Choice` on parts of the records. Raises: StudyError for another inner protocol."""
    inner, records, chunks = wrapper.inner, sum(records_per_node), wrapper.chunks
    if not isinstance(inner, Choice):
        raise StudyError(
            f"the cost of a median is told for a Choice, not for {type(inner).__name__}"
        )
    whole, (size, more) = cost(inner, records_per_node), divmod(records, chunks)
    work = more * operations(inner, size + 1) + (chunks - more) * operations(inner, size)
    return LocalCost(whole.message_bytes, 1, whole.node_operations, work + records)


def triangles_cost(nodes: int) -> LocalCost:
    """Of a graph of n nodes, each of which tells its edges to later ones: n(n - 1)/2 bits."""
    sets = comb(nodes, 3)
    return LocalCost(
        (comb(nodes, 2) + 7) // 8, 1, comb(nodes, 2), 6 * sets + comb(nodes, 2) + nodes
    )


def gopa_cost(protocol: Gopa) -> LocalCost:
    """One number of each party; the shared noise before it takes a seed for each edge, which is not counted.

    A message is as wide as its range and twelve standard deviations of its noise.
    """
    degrees = [sum(party in edge for edge in protocol.edges) for party in range(protocol.parties)]
    steps = grid_sensitivity(protocol.high - protocol.low, protocol.grid)
    noises = (float(protocol.own + degree * protocol.pairwise) ** 0.5 for degree in degrees)
    sent = sum((int(steps + 24 * noise).bit_length() + 7) // 8 for noise in noises)
    return LocalCost(sent, 1, protocol.parties + 2 * len(protocol.edges), protocol.parties)


def dpsgd_cost(protocol: PairwiseSgd, dimension: int, field_bytes: int = 8) -> LocalCost:
    """All records once, of `dimension` features and a score of `field_bytes` each; then T steps at the curator.

    A step orders the records, and computes, cuts and adds the gradients of its pairs.
    """
    n = protocol.records
    each = n + 4 * protocol.edges * dimension
    return LocalCost(
        n * (dimension + 1) * field_bytes, 1, n * (dimension + 1), protocol.steps * each
    )
