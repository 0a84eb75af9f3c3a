"""Vectors of the local protocols' pseudorandom stream."""

from __future__ import annotations

import numpy as np

from tests.vectors.part import Bad, Part, Values, fixed, integers
from umpc.errors import LocalProtocolError
from umpc_papers.exact_sampling import ShakeStream


def shake(inputs: Values) -> Values:
    seed, purpose = bytes.fromhex(inputs["seed"]), inputs["purpose"]
    bounds = inputs["bounds"]
    return {
        "bytes": ShakeStream(seed, purpose).bytes(40).hex(),
        "below": integers(ShakeStream(seed, purpose).below(np.array(bounds), len(bounds))),
        "coins": integers(ShakeStream(seed, purpose).coins(inputs["threshold"], 16)),
    }


PARTS = {
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
}
