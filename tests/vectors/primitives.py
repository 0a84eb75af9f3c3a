"""Vectors of the primitives: pseudorandomness, packing, commitments, and zero shares."""

from __future__ import annotations

import numpy as np

from tests.vectors.part import Bad, Part, Values, blocks_of, fixed, integers, texts_of, words
from umpc.crypto.prg import FixedKeyHash, Stream, derive, digest
from umpc.crypto.ring import Ring, pack, unpack
from umpc.crypto.zero_shares import KeyAgreement, zero_shares
from umpc.dp.exact_sampling import ShakeStream
from umpc.errors import EncodingError, LocalProtocolError, RemoteProtocolError


def streams(inputs: Values) -> Values:
    """Derive a seed by labels and read its stream; a label {"hex": …} is a byte string."""
    seed = bytes.fromhex(inputs["seed"])
    labels = [
        bytes.fromhex(label["hex"]) if isinstance(label, dict) else label
        for label in inputs["labels"]
    ]
    derived = derive(seed, *labels)
    return {
        "derived": derived.hex(),
        "stream": Stream(derived).bytes(40).hex(),
        "words_64": integers(Stream(derived).words(2)),
        "words_32": integers(Stream(derived).words(2, np.uint32)),
        "bits": integers(Stream(derived).bits(12)),
        "digest": digest(seed, derived).hex(),
    }


def shake(inputs: Values) -> Values:
    seed, purpose = bytes.fromhex(inputs["seed"]), inputs["purpose"]
    bounds = inputs["bounds"]
    return {
        "bytes": ShakeStream(seed, purpose).bytes(40).hex(),
        "below": integers(ShakeStream(seed, purpose).below(np.array(bounds), len(bounds))),
        "coins": integers(ShakeStream(seed, purpose).coins(inputs["threshold"], 16)),
    }


def tree_hash(inputs: Values) -> Values:
    hashed = FixedKeyHash(bytes.fromhex(inputs["key"]))(blocks_of(inputs["blocks"]))
    return {"hashed": texts_of(hashed)}


def packing(inputs: Values) -> Values:
    values, width = words(inputs["values"]), inputs["width"]
    packed = pack(values, width)
    assert np.array_equal(unpack(packed, len(values), width), values)
    return {"packed": packed.hex()}


def unpacking(inputs: Values) -> object:
    return unpack(bytes.fromhex(inputs["packed"]), inputs["count"], inputs["width"])


def zero(inputs: Values) -> Values:
    """Compute the zero shares of all nodes; `replaced_key` stands for the last node's key."""
    keys = [KeyAgreement(bytes.fromhex(secret)) for secret in inputs["secrets"]]
    public = [key.public_key for key in keys]
    if "replaced_key" in inputs:
        public[-1] = bytes.fromhex(inputs["replaced_key"])
    ring, attempt = Ring(inputs["ring_bits"]), bytes.fromhex(inputs["attempt"])
    shares = [
        zero_shares(own, inputs["names"], public, key, attempt, ring, inputs["sums"])
        for own, key in enumerate(keys)
    ]
    return {"public_keys": [key.hex() for key in public], "shares": shares}


ZERO = {
    "names": ["north", "south", "west"],
    "secrets": [fixed(1), fixed(5), fixed(9)],
    "attempt": fixed(3),
    "ring_bits": 64,
    "sums": 2,
}

PARTS = {
    "prg": Part(
        "Seeds are derived from seeds by labels (HMAC-SHA-256), and expanded by AES-256-CTR. "
        "`digest` is that of the two parts seed and derived.",
        streams,
        {
            "labels_of_all_types": {
                "seed": fixed(0),
                "labels": ["open", 7, {"hex": "00ff"}],
            },
            "no_label": {"seed": fixed(2), "labels": []},
        },
    ),
    "shake_stream": Part(
        "The stream of the local protocols (SHAKE-256): its bytes, uniform integers below bounds, "
        "and 16 coins that are 1 with probability threshold/2^64. Each output starts a new stream.",
        shake,
        {
            "one_purpose": {
                "seed": fixed(4),
                "purpose": "bell-ldp",
                "bounds": [2, 3, 1000, 9223372036854775809],
                "threshold": 6148914691236517205,
            },
        },
        {
            "seed_one_byte_short": Bad(
                {"seed": fixed(4, 31), "purpose": "bell-ldp", "bounds": [2], "threshold": 1},
                LocalProtocolError,
            )
        },
    ),
    "fixed_key_hash": Part(
        "The hash of the GGM trees: AES-128 under a public key, exclusive or the block itself.",
        tree_hash,
        {"two_blocks": {"key": fixed(6, 16), "blocks": [fixed(7, 16), fixed(8, 16)]}},
    ),
    "packing": Part(
        "Integers of `width` bits, one after the other, lowest bit first; the rest is zero.",
        packing,
        {
            "three_bits": {"width": 3, "values": [5, 0, 7, 1]},
            "one_bit": {"width": 1, "values": [1, 0, 1, 1, 0, 0, 0, 1, 1]},
            "seventeen_bits": {"width": 17, "values": [131071, 1, 65536]},
            "whole_words": {"width": 64, "values": [1, 18446744073709551615]},
            "nothing": {"width": 5, "values": []},
        },
        {
            "packed_one_byte_short": Bad({"packed": "45", "count": 4, "width": 3}, EncodingError),
            "packed_one_byte_long": Bad(
                {"packed": "c50300", "count": 4, "width": 3}, EncodingError
            ),
            "padding_is_set": Bad({"packed": "c513", "count": 4, "width": 3}, EncodingError),
        },
        unpacking,
    ),
    "zero_shares": Part(
        "Each pair of nodes agrees on a seed by X25519. The lower node adds the pair's masks, "
        "the higher one subtracts them. `shares` has a row for each node, with an entry per sum.",
        zero,
        {"three_nodes": ZERO, "ring_of_32_bits": {**ZERO, "ring_bits": 32, "sums": 1}},
        {
            "public_key_of_zero": Bad(
                {**ZERO, "replaced_key": "00" * 32}, RemoteProtocolError, "agree", "west"
            ),
            "public_key_one_byte_short": Bad(
                {**ZERO, "replaced_key": fixed(9, 31)}, RemoteProtocolError, "agree", "west"
            ),
        },
    ),
}
