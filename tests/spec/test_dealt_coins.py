"""Coins from a dealer's rows: the last member's material, all messages, and the shares."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from spec.cases.dealt_coins import GOOD
from spec.dealt_coins import coin_plan, piece_bit, toss
from spec.masked_dealing import expand
from tests.spec.replaying import replay_tests
from umpc.crypto.prg import FixedKeyHash
from umpc.crypto.ring import Ring
from umpc.crypto.rounds import Finished, Message, resume, run_in_memory
from umpc.mpc.masked.chunk_inputs import ChunkInputs, Coins
from umpc.mpc.masked.committee_coins import noise_plan
from umpc.mpc.masked.dealing import deal_chunk
from umpc.mpc.masked.evaluation import evaluate_chunk
from umpc.mpc.masked.material import DealtPart, SeededPart

NO_TREES = FixedKeyHash(bytes(16))


def words(values) -> np.ndarray:
    return np.array([value % 2**64 for value in values], dtype=np.uint64)


def first_message(protocol, payload):
    """A party whose first message is replaced."""
    message = resume(protocol, None)
    replies = yield replace(message, payload=payload)
    while not isinstance(message := resume(protocol, replies), Finished):
        assert isinstance(message, Message)
        replies = yield message
    return message.result


def replay(thresholds, weights, ring, numbers, chunk_seeds, names, last_sent=None):
    members, count = len(names), len(thresholds)
    plan = noise_plan(members, Ring(ring))
    dealt = [part.encode() for part in deal_chunk(plan, {}, chunk_seeds, count, NO_TREES)]
    parties = []
    for member, own in enumerate(numbers):
        coins = Coins(words(own), words(thresholds), words(weights))
        inputs = ChunkInputs({}, {}, {}, count, names, coins)
        part = DealtPart.decode(plan, dealt[member], member, count)
        seeded = SeededPart.expand(plan, chunk_seeds[member], member, count)
        parties.append(evaluate_chunk(member, plan, inputs, part, seeded, NO_TREES))
    if last_sent is not None:
        parties[-1] = first_message(parties[-1], last_sent)
    shares, transcript = run_in_memory(parties)
    messages = [[] for _ in names]
    for line in transcript:
        messages[line.party].append(line.message.payload)
    return {
        "material": dealt[-1],
        "messages": messages,
        "shares": [share for (share,) in shares],
        "noise": Ring(ring).decode(sum(share for (share,) in shares)),
    }


test_good_vectors, test_bad_vectors, test_each_check_is_needed = replay_tests(
    "dealt_coins", {"toss": replay}
)


def test_a_coin_is_1_where_its_number_is_below_its_threshold():
    """û ⊕ r, in the clear: û is the sum of all bits and masks, r that of the masks."""
    for _, _, given in GOOD:
        count = len(given["thresholds"])
        parts = [expand(coin_plan(32), seed, count)["places"] for seed in given["chunk_seeds"]]
        r = [sum(column) for column in zip(*parts, strict=True)]
        u = [sum(column) + mask for *column, mask in zip(*given["numbers"], r, strict=True)]
        below = [
            (x % 2**64 ^ mask % 2**64) < c
            for x, mask, c in zip(u, r, given["thresholds"], strict=True)
        ]
        due = sum(w * bit for w, bit in zip(given["weights"], below, strict=True))
        assert toss(**given)["noise"] == due


def test_every_piece_is_compared_with_every_threshold():
    """[u < c] and [u = c] of u = û ⊕ r, for all û, r and c of 4 bits, from shares of r's row."""
    for masked, r, threshold in product(range(16), repeat=3):
        rows = 0xB00F, 0xB00F ^ 1 << r
        found = [
            sum(piece_bit(row, kind, masked, threshold) for row in rows) % 2
            for kind in ("less", "equal")
        ]
        assert found == [masked ^ r < threshold, masked ^ r == threshold]
