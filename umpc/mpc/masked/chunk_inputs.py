"""A party's inputs to a chunk of edges or of noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from umpc.errors import LocalProtocolError
from umpc.mpc.arrays import WordArray
from umpc.mpc.masked.edge_layout import PlaceValues
from umpc.ustat.clear import Columns


@dataclass(frozen=True)
class Coins:
    """A party's inputs to a chunk of noise, (count,) uint64 each.

    contributions: this party's random numbers. thresholds: of the coins. weights: the units that
    each coin counts for in the sum.
    """

    contributions: WordArray
    thresholds: WordArray
    weights: WordArray

    def __repr__(self) -> str:
        return "Coins(<redacted>)"


@dataclass(frozen=True)
class ChunkInputs:
    """Everything that a party knows about a chunk, or several, before their first round.

    places: the masked values of each place of a record, (count,) uint64.
    masks: the masks of each place of its own records, (count,) uint64; none unless the plan
        `reads_masks`.
    records: the columns of its own records, for each record of the edge that it reads in the clear.
    names: the owners' names, in party order; none where several chunks are computed together.
    coins: only for noise, where an "edge" is a coin.
    """

    places: PlaceValues
    masks: PlaceValues
    records: Mapping[int, Columns]
    count: int
    names: Sequence[str]
    coins: Coins | None = None

    def coins_of_noise(self) -> Coins:
        """The inputs of a chunk of noise. Raises: LocalProtocolError for a chunk of edges."""
        if self.coins is None:
            raise LocalProtocolError("a plan for noise needs coins, and this chunk has edges")
        return self.coins

    def __repr__(self) -> str:
        return f"ChunkInputs({self.count} edges, <redacted>)"
