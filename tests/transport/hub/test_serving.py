"""umpc/transport/hub/serving.py, serving.py: every call that began ends, and ends only itself."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from transport_echo import CHAT
from two_ends import Pair

from umpc.transport.addresses import parse_hub
from umpc.transport.hub.serving import ServerBehindHub


def served(identity) -> Pair:
    """An open session whose called side is a server's."""
    pair = Pair()
    server = ServerBehindHub(identity, {}, parse_hub("hub:relay@127.0.0.1:1"))
    pair.south.called = lambda method: server.begin(pair.south, method)
    pair.north.accepted(pair.accepts)
    return pair


def test_a_call_that_is_over_before_its_handler_begins_leaves_nothing_behind(site):
    """Its begin and its end come in one message where the line was away."""

    async def scenario():
        pair = served(site("south"))
        pair.north.begin_call(CHAT)
        pair.north.cancel()
        pair.exchange()
        for _ in range(3):
            await asyncio.sleep(0)
        pair.exchange()
        assert pair.is_forgotten

    asyncio.run(scenario())
