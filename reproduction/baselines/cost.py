"""The cost of the central protocols: bytes, rounds and operations, from public sizes alone.

| protocol | kernel evaluations, n records, degree k | in addition |
|---|---|---|
| `laplace` | C(n, k) | |
| `coinpress_naive` | n // k | each value clipped once a step |
| `coinpress_all` | C(n, k) | each value clipped once a step |
| `coinpress_subsampled` | M | each value clipped once a step, and M k draws |
| `hajek` | C(n, k), at most twice if ξ is below C | k sums a value, n steps of the smooth bound |
| `hajek_subsampled` | M | as for `hajek`, and M k draws |
| `hajek_split` | (n/2) // k + C(n/2, k) | as `coinpress_naive` and `hajek` on their halves |
| median of K | K times that of n/K records | |
| uniformity | as `hajek`, k = 2 | |
| triangles | as `hajek`, k = 3, of n nodes | messages: each node's part of the matrix |

An evaluation reads k records, so it counts k. Operations grow like the time and are not time, as in
`umpc_papers/local`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

from reproduction.baselines.dpsgd import PairwiseSgd
from reproduction.baselines.gopa import Gopa
from umpc.errors import StudyError
from umpc_papers.central.central_mechanisms import Choice, MedianOfMeans
from umpc_papers.central.laplace import grid_sensitivity
from umpc_papers.central.messages import fields_of, message_bytes
from umpc_papers.local.estimate import LocalCost

STEPS = 3
"""Steps of CoinPress in `adaptations`, by default."""


def evaluations(choice: Choice, records: int) -> int:
    """The number of sets of records that the kernel is evaluated on."""
    k = choice.kernel.degree
    half = records // 2
    if choice.name == "coinpress_naive":
        return records // k
    if choice.name == "hajek_split":
        return half // k + comb(records - half, k)
    return choice.count or comb(records, k)


def operations(choice: Choice, records: int) -> int:
    """The number of operations of the curator."""
    sets = evaluations(choice, records)
    k = choice.kernel.degree
    once = {"laplace": 1, "hajek": k, "hajek_subsampled": k, "hajek_split": k}
    each = k + once.get(choice.name, STEPS)
    drawn = choice.count * k if choice.count else records * choice.name.endswith(("naive", "split"))
    return sets * each + drawn + records * choice.name.startswith("hajek")


def cost(choice: Choice, records_per_node: Sequence[int]) -> LocalCost:
    """The cost of a study.

    Args:
        choice: the mechanism, with its kernel.
        records_per_node: the number of records of each node.
    """
    fields = fields_of(choice.kernel)
    records = sum(records_per_node)
    sent = sum(message_bytes(fields, count) for count in records_per_node)
    return LocalCost(sent, 1, records * len(fields), operations(choice, records))


def median_cost(wrapper: MedianOfMeans, records_per_node: Sequence[int]) -> LocalCost:
    """The cost of K runs of a `Choice` on parts of the records.

    Raises:
        StudyError: the inner protocol is not a `Choice`.
    """
    inner = wrapper.inner
    chunks = wrapper.chunks
    records = sum(records_per_node)
    if not isinstance(inner, Choice):
        raise StudyError(
            f"the cost of a median is known for a Choice only, not for {type(inner).__name__}"
        )
    whole = cost(inner, records_per_node)
    size, more = divmod(records, chunks)
    work = more * operations(inner, size + 1) + (chunks - more) * operations(inner, size)
    return LocalCost(whole.message_bytes, 1, whole.node_operations, work + records)


def triangles_cost(nodes: int) -> LocalCost:
    """The cost for a graph of n nodes: each sends its edges to later nodes, n(n - 1)/2 bits."""
    sets = comb(nodes, 3)
    return LocalCost(
        (comb(nodes, 2) + 7) // 8, 1, comb(nodes, 2), 6 * sets + comb(nodes, 2) + nodes
    )


def gopa_cost(protocol: Gopa) -> LocalCost:
    """The cost of one number from each party.

    The shared noise takes a seed for each edge beforehand, which is not counted. A message is as
    wide as its range and twelve standard deviations of its noise.
    """
    degrees = [sum(party in edge for edge in protocol.edges) for party in range(protocol.parties)]
    steps = grid_sensitivity(protocol.high - protocol.low, protocol.grid)
    noises = (float(protocol.own + degree * protocol.pairwise) ** 0.5 for degree in degrees)
    sent = sum((int(steps + 24 * noise).bit_length() + 7) // 8 for noise in noises)
    return LocalCost(sent, 1, protocol.parties + 2 * len(protocol.edges), protocol.parties)


def dpsgd_cost(protocol: PairwiseSgd, dimension: int, field_bytes: int = 8) -> LocalCost:
    """The cost of all records, sent once, and then of T steps at the curator.

    A record has `dimension` features and a score, of `field_bytes` each. A step orders the records,
    and computes, clips and adds the gradients of its pairs.
    """
    n = protocol.records
    each = n + 4 * protocol.edges * dimension
    return LocalCost(
        n * (dimension + 1) * field_bytes, 1, n * (dimension + 1), protocol.steps * each
    )
