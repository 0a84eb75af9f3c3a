"""Two ends of one session in one process, on a line that loses what it is told to.

Time passes by ticks of a second.
"""

from __future__ import annotations

from collections.abc import Callable

from umpc.crypto.signing import MemoryAuthority
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.hub.sealing import End, Opening, Parties, answer
from umpc.transport.hub.session import ACK_SECONDS, Session

AUTHORITY = MemoryAuthority("consortium")
NORTH, SOUTH = End("node", "north"), End("node", "south")


class Here:
    """The connection of one process, which is up. `gone`: the sessions that it was told to forget.

    They are all that it has: a session that is not forgotten takes memory for ever.
    """

    is_up, grace = True, 30.0

    def __init__(self) -> None:
        self.gone: list[Session] = []

    def ready(self, session: Session) -> None: ...

    def refuse(self, envelope: pb.HubEnvelope) -> None: ...

    def forget(self, session: Session) -> None:
        self.gone.append(session)


class Pair:
    """North, which calls, and south. `sent`: the number of envelopes of each."""

    def __init__(self) -> None:
        parties = Parties(b"s" * 16, NORTH, SOUTH, "relay")
        opening = Opening(parties, AUTHORITY.credentials("north", "node"))
        message, seal, _ = answer(parties, AUTHORITY.credentials("south", "node"), opening.message)
        self.accepts = pb.HubEnvelope(
            source=pb.HubMember(role="node", name="south", instance=b"i" * 16), body=message
        )
        self.lines = Here(), Here()
        to_south = pb.HubMember(role="node", name="south")
        to_north = pb.HubMember(role="node", name="north")
        self.north = Session(self.lines[0], parties, to_south, opening=opening)
        self.south = Session(self.lines[1], parties, to_north, seal=seal)
        self.south.called = lambda method: None
        self.sent = {"north": 0, "south": 0}

    def exchange(self, loses: Callable[[str], bool] = lambda sender: False) -> None:
        """Deliver all that is due. Args: loses: whether the line loses an envelope of this end."""
        is_moving = True
        while is_moving:
            is_moving = False
            for name, source, target in (
                ("north", self.north, self.south),
                ("south", self.south, self.north),
            ):
                while (frame := source.next_frame()) is not None:
                    is_moving = True
                    self.sent[name] += 1
                    if not loses(name):
                        target.take(frame.envelope)

    def pass_time(self, seconds: float, **line: Callable[[str], bool]) -> list[int]:
        """Let time pass. Returns: the seconds in which north sent something."""
        found = []
        for second in range(1, int(seconds) + 1):
            before = self.sent["north"]
            self.north.tick(1.0)
            self.south.tick(1.0)
            self.exchange(**line)
            if self.sent["north"] > before:
                found.append(second)
        return found

    @property
    def is_forgotten(self) -> bool:
        """Neither process keeps anything of the session."""
        return all(line.gone for line in self.lines)


def begun() -> Pair:
    """An open session with a call that has begun, and nothing to acknowledge any more."""
    pair = Pair()
    pair.north.accepted(pair.accepts)
    pair.north.begin_call("method")
    pair.exchange()
    pair.pass_time(ACK_SECONDS + 1)
    pair.sent = {"north": 0, "south": 0}
    return pair
