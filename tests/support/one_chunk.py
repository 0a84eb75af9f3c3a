"""The rounds of one owner in a single chunk, for tests that make its parts themselves."""

from __future__ import annotations

from umpc.crypto.prg import FixedKeyHash
from umpc.crypto.rounds import Message, Protocol
from umpc.mpc.masked.bit_shares import LayerShares, open_messages, read_opens
from umpc.mpc.masked.edge_layout import EdgeLayout
from umpc.mpc.masked.evaluation import PartyChunk, evaluate_together, only
from umpc.mpc.masked.material import ChunkInputs, DealtPart, SeededPart, Shares
from umpc.mpc.masked.plan import Plan


def evaluate_chunk(
    party: int,
    plan: Plan,
    inputs: ChunkInputs,
    dealt: DealtPart,
    seeded: SeededPart,
    tree_hash: FixedKeyHash,
) -> Protocol[list[int]]:
    """One owner's share of each kernel's sum over the chunk's edges."""
    chunk = PartyChunk(party, plan, inputs, dealt, seeded, tree_hash)
    return only(evaluate_together(chunk, [inputs.names], EdgeLayout([inputs.count])))


def seeded_part(plan: Plan, seed: bytes, party: int, count: int) -> SeededPart:
    """The part that a party expands from its seed for a chunk of `count` edges."""
    return SeededPart.expand_all(plan, [seed], party, EdgeLayout([count]))


def expanded_shares(plan: Plan, seed: bytes, count: int) -> Shares:
    """The shares of a party other than the last."""
    return Shares.expand_all(plan, [seed], EdgeLayout([count]))


def dealt_part(plan: Plan, data: bytes, party: int, count: int) -> DealtPart:
    """The dealer's part, from its bytes. Raises: EncodingError."""
    return DealtPart.decode_all(plan, [data], party, EdgeLayout([count]))


def encoded_part(part: DealtPart) -> bytes:
    """The dealer's part as bytes."""
    count = max((len(keys.leaves) for keys in part.keys.values()), default=0)
    if part.shares is not None:
        count = part.shares.elements.shape[1]
    (data,) = part.encode_all(EdgeLayout([count]))
    return data


def open_message(plan: Plan, layer: int, party: int, shares: LayerShares, count: int) -> Message:
    """A party's message of one round."""
    (message,) = open_messages(plan, layer, party, shares, EdgeLayout([count]))
    return message


def read_open(plan: Plan, layer: int, party: int, message: Message, count: int) -> LayerShares:
    """A party's shares, from its message of one round. Raises: EncodingError."""
    return read_opens(plan, layer, party, [message], EdgeLayout([count]))
