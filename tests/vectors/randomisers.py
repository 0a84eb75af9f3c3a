"""Vectors of the protocols without shared computation: what a node publishes of its records."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from tests.support.fields import number_field
from tests.vectors.part import Bad, Given, Part, Values, fixed, integers, words
from umpc.crypto.prg import Stream, derive
from umpc.crypto.ring import pack, unpack
from umpc.crypto.zero_shares import KeyAgreement
from umpc.errors import EncodingError, TooFewRecords
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import Schema
from umpc_papers.exact_sampling import ShakeStream, split_seed, truth_threshold
from umpc_papers.ghazi_shuffle.split_mix import add_up, mix, shares_needed, split
from umpc_papers.gopa.calibration import PairwiseNoise
from umpc_papers.gopa.messages import GopaMessages
from umpc_papers.gopa.node import random_bits
from umpc_papers.local.bell_ldp import BellLdp
from umpc_papers.local.quantisation import Bins, Quantiser
from umpc_papers.local.sphere import tell_side


def schema_of(inputs: Values) -> Schema:
    return Schema(
        [number_field(name, *bounds).schema() for name, bounds in inputs["fields"].items()]
    )


def column(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)


# --- randomised response --------------------------------------------------------------------------


def bell_of(inputs: Values) -> BellLdp:
    schema = schema_of(inputs)
    bins = tuple(Bins.equal(schema[name], inputs["bins"]) for name in inputs["fields"])
    kernel = Kernel.from_text(inputs["kernel"], schema)
    return BellLdp(Fraction(inputs["epsilon"]), Quantiser(kernel, bins))


def bell(inputs: Values) -> Values:
    protocol = bell_of(inputs)
    columns = {name: column(values) for name, values in inputs["records"].items()}
    message = protocol.randomise(columns, Given(inputs["random"]))
    count = len(next(iter(columns.values())))
    return {
        "threshold": protocol.threshold,
        "message": message.hex(),
        "told_cells": integers(unpack(message, count, protocol.width)),
        "estimate": protocol.aggregate([message], [count]).value,
    }


def read_bell(inputs: Values) -> object:
    return bell_of(inputs).check(bytes.fromhex(inputs["message"]), inputs["count"])


BELL = {
    "kernel": "sign(a.x - b.x)*sign(a.y - b.y)",
    "fields": {"x": ["0", "8"], "y": ["0", "8"]},
    "bins": 3,
    "epsilon": "5/2",
    "records": {"x": [0, 8, 4, 7, 1, 6], "y": [2, 8, 3, 7, 0, 5]},
    "random": fixed(3),
}


def told(message: str, count: int = 3) -> Values:
    return {**BELL, "message": message, "count": count}


# --- a bit of each record -------------------------------------------------------------------------


def ghazi(inputs: Values) -> Values:
    """Tell on which side of a public random direction each record's vector lies."""
    public, private = bytes.fromhex(inputs["public_seed"]), bytes.fromhex(inputs["private_seed"])
    threshold = truth_threshold(Fraction(inputs["epsilon"]), 2)
    vectors = np.array(inputs["vectors"], dtype=np.float64)
    stream = ShakeStream(private, "ghazi-ldp private")
    sides = tell_side(vectors, column(inputs["cells"]), public, threshold, stream)
    return {
        "threshold": threshold,
        "sides": integers(sides),
        "message": (public + pack(sides.astype(np.uint64), 1)).hex(),
    }


def read_ghazi(inputs: Values) -> object:
    return unpack(split_seed(bytes.fromhex(inputs["message"]))[1], inputs["count"], 1)


GHAZI = {
    "epsilon": "3",
    "vectors": [[0.5, 0.25, -1.0], [-1.0, 0.5, 0.125], [0.25, -0.25, 0.5]],
    "cells": [0, 1, 2, 0, 1, 2, 2, 0, 1, 1],
    "public_seed": fixed(2),
    "private_seed": fixed(6),
}

# --- noise that cancels ---------------------------------------------------------------------------


def gopa_of(inputs: Values) -> GopaMessages:
    kernel = Kernel.from_text(inputs["kernel"], schema_of(inputs), 1)
    steps = kernel.sensitivity_units * inputs["scale"]
    noise = PairwiseNoise(steps, len(inputs["secrets"]), inputs["honest"], inputs["own_variance"])
    return GopaMessages(kernel, inputs["scale"], noise)


def gopa(inputs: Values) -> Values:
    """Compute the noise that each node shares with every other, its own, and its message."""
    protocol = gopa_of(inputs)
    keys = [KeyAgreement(bytes.fromhex(secret)) for secret in inputs["secrets"]]
    attempt, nodes = bytes.fromhex(inputs["attempt"]), range(len(keys))
    messages, shared = [], []
    for node in nodes:
        pairs = [0 for _ in nodes]
        for peer in nodes:
            if peer == node:
                continue
            agreed = keys[node].seed_with(keys[peer].public_key, f"node {peer}")
            places = (min(node, peer), max(node, peer))
            source = random_bits(Stream(derive(agreed, "gopa pair", attempt, *places)))
            drawn = protocol.noise.pair_law.draw(source)
            pairs[peer] = drawn if node < peer else -drawn
        own_bits = random_bits(Stream(bytes.fromhex(inputs["noise_seeds"][node])))
        noise = sum(pairs) + protocol.noise.own_law.draw(own_bits)
        columns = {"x": column(inputs["records"][node])}
        messages.append(protocol.message(columns, (0, len(columns["x"])), noise))
        shared.append(pairs)
    counts = [(0, len(records)) for records in inputs["records"]]
    return {
        "shared_noise": shared,
        "messages": [message.hex() for message in messages],
        "mean": protocol.aggregate(messages, counts).value,
    }


def read_gopa(inputs: Values) -> object:
    return gopa_of(inputs).check(bytes.fromhex(inputs["message"]), (0, inputs["count"]))


GOPA: Values = {
    "kernel": "a.x",
    "fields": {"x": ["0", "10"]},
    "scale": 1024,
    "honest": 2,
    "own_variance": 4000000,
    "attempt": fixed(7),
    "secrets": [fixed(1), fixed(5), fixed(9)],
    "noise_seeds": [fixed(2), fixed(6), fixed(10)],
    "records": [[0, 10, 5], [7], [1, 1]],
}
GOPA_MESSAGE = gopa(GOPA)["messages"][0]

# --- split and mix --------------------------------------------------------------------------------


def split_mix(inputs: Values) -> Values:
    """Split each coordinate of each record into shares, and put each coordinate's in an order."""
    width, count = inputs["width"], inputs["shares"]
    mask = (1 << width) - 1
    values = np.stack([words([value & mask for value in row]) for row in inputs["values"]])
    stream = ShakeStream(bytes.fromhex(inputs["split_seed"]), "ghazi-shuffle")
    parts = split(values, count, width, stream)
    heap = mix(parts, ShakeStream(bytes.fromhex(inputs["mix_seed"]), "shuffle"))
    return {
        "parts": [integers(row) for row in parts],
        "heap": [integers(row) for row in heap],
        "packed": pack(heap.reshape(-1), width).hex(),
        "sums": integers(add_up(heap, width)),
        "shares_needed": shares_needed(inputs["users"], width, inputs["security"]),
    }


SPLIT: Values = {
    "values": [[1, 0, -3], [0, 1, 7]],
    "width": 13,
    "shares": 4,
    "split_seed": fixed(4),
    "mix_seed": fixed(8),
    "users": 10000,
    "security": 40,
}


def _bad(inputs: Values, **changes: Any) -> Bad:
    return Bad({**inputs, **changes}, EncodingError)


PARTS = {
    "bell_ldp": Part(
        "Randomised response (Bell et al. 2020): every record tells its cell of bins × bins with "
        "probability threshold/2^64, else a uniform one. `random` is the node's entropy.",
        bell,
        {"six_records": BELL},
        {
            "message_one_byte_short": Bad(told("21"), EncodingError),
            "padding_is_set": Bad(told("2131"), EncodingError),
            "cell_that_does_not_exist": Bad(told("2109"), EncodingError),
        },
        read_bell,
    ),
    "ghazi_ldp": Part(
        "A record tells on which side of a public random direction its vector lies, through "
        "randomised response (Ghazi et al. 2024). Directions are floating-point numbers: an "
        "implementation may differ where a record lies within rounding of the boundary.",
        ghazi,
        {"ten_records": GHAZI},
        {
            "seed_one_byte_short": Bad({"message": fixed(2, 31), "count": 10}, EncodingError),
            "bits_one_byte_short": Bad({"message": fixed(2, 33), "count": 10}, EncodingError),
            "padding_is_set": Bad({"message": fixed(2) + "0084", "count": 10}, EncodingError),
        },
        read_ghazi,
    ),
    "gopa": Part(
        "GOPA: a node publishes its sum with its own noise and noise that it shares with every "
        "other node. Row i of `shared_noise` is what node i adds for each peer; the rows cancel. "
        "Variances are the parameters of discrete Gaussians: 65536 · own_variance for a pair.",
        gopa,
        {"three_nodes": GOPA},
        {
            "message_one_byte_short": _bad(GOPA, message=GOPA_MESSAGE[:-2], count=3),
            "message_of_a_node_with_fewer_records": _bad(
                GOPA, message=(1 << 31).to_bytes(5, "little").hex(), count=1
            ),
        },
        read_gopa,
    ),
    "split_and_mix": Part(
        "Split and mix (Balle et al. 2020): each number of `width` bits becomes `shares` uniform "
        "ones with its sum, and each coordinate's numbers get a uniform order. `shares_needed` "
        "is for that many users and bits of security.",
        split_mix,
        {"two_coordinates": SPLIT},
        {"too_few_users": Bad({**SPLIT, "users": 18}, TooFewRecords)},
    ),
}
