"""umpc/transport/hub/serving.py, context.py: every call that began ends, and ends only itself."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from transport_echo import CHAT
from two_ends import Pair

from umpc.transport.hub.address import parse_hub
from umpc.transport.hub.context import HubContext
from umpc.transport.hub.serving import ServerBehindHub


def served(identity) -> Pair:
    """An open session whose called side is a server's."""
    pair = Pair()
    server = ServerBehindHub(identity, {}, parse_hub("hub:relay@127.0.0.1:1"))
    server.take_inside(pair.south)
    pair.north.accepted(pair.accepts)
    return pair


def test_a_call_that_is_over_before_its_handler_begins_has_a_status_all_the_same(site):
    """Its begin and its end come in one message where the line was away."""

    async def scenario():
        pair = served(site("south"))
        pair.north.begin_call(CHAT, lasts=True)
        assert pair.north.rest()
        pair.exchange()
        for _ in range(3):
            await asyncio.sleep(0)
        pair.exchange()
        assert pair.north.is_usable and pair.south.is_idle

    asyncio.run(scenario())


def test_a_context_whose_call_is_over_hears_and_silences_no_later_call():
    async def scenario():
        pair, heard = Pair(), []
        pair.north.accepted(pair.accepts)
        pair.north.begin_call(CHAT, lasts=True)
        pair.exchange()
        former = HubContext(pair.south)
        former.leave()
        pair.exchange()
        assert pair.north.rest()
        pair.north.begin_call(CHAT, lasts=True)
        pair.exchange()
        HubContext(pair.south).tell(lambda: heard.append(1))
        former.tell(None)
        former.leave()
        pair.north.write_now(b"new")
        pair.exchange()
        assert heard and pair.south.poll() == b"new"

    asyncio.run(scenario())
