"""`umpc`, whose transfers have other choices in one row than in all others while UMPC_LIES exists.

The row is that of the lowest bits of Δ, of which one is 1, so the sender always notices.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from umpc.testing import lying

LIES = Path(os.environ["UMPC_LIES"])


def extend(honest, receiver, choices):
    blocks, message = honest(receiver, choices)
    payload = bytearray(message.payload)
    payload[0] ^= LIES.exists()
    return blocks, replace(message, payload=bytes(payload))


if __name__ == "__main__":
    from umpc.cli.main import main

    with lying("node", extend=extend):
        main()
