"""A small model of two ends of a session and the hub between them, for tests of every order.

A `Model` is one state. `actions` lists what may happen next, `after` makes the state after it: an
end sends or takes one envelope, the hub passes one on, a user takes the next step of its script, or
a connection breaks and comes back. Nothing is sealed, and no time passes unless `tick` says so.
An end sends only after it has told its connection that it is ready, as over a link.

The hub is that of `umpc/hub/relay.py`: it keeps what waits for a connected end, drops the rest, and
tells the sender.
"""

from __future__ import annotations

from collections import deque
from copy import deepcopy
from typing import NamedTuple

from google.protobuf.message import Message
from two_ends import NORTH, SOUTH

from umpc.errors import PeerLost, RemoteProtocolError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.hub import numbering as n
from umpc.transport.hub.sealing import Parties
from umpc.transport.hub.session import Session

PARTIES = Parties(b"s" * 16, NORTH, SOUTH, "relay")
ABSENT = "absent"


class Plain:
    """A seal that hides nothing, and notices what comes twice."""

    sent = seen = 0

    def close(self, kind: int, plain: bytes) -> tuple[int, bytes]:
        self.sent += 1
        return self.sent, plain

    def open(self, kind: int, number: int, body: bytes) -> bytes:
        assert number > self.seen, "an envelope came twice"
        self.seen = number
        return body

    def fault(self, what: str) -> RemoteProtocolError:
        return RemoteProtocolError(what, culprit="relay")


class Envelope(NamedTuple):
    """The parts of an envelope that an end reads."""

    kind: int
    body: bytes
    number: int


def light(envelope: pb.HubEnvelope) -> Envelope:
    return Envelope(envelope.kind, envelope.body, envelope.number)


class Line:
    """One end's connection. refused: what waits to be sent outside the session.

    is_wanted: the session may have something to send. is_gone: the session is forgotten.
    """

    grace = 30.0

    def __init__(self):
        self.is_up, self.is_gone, self.refused = True, False, []
        self.is_wanted = False

    def ready(self, session):
        self.is_wanted = True

    def refuse(self, envelope):
        self.refused.append(light(envelope))

    def forget(self, session):
        self.is_gone, self.is_wanted = True, False


class Script(NamedTuple):
    """caller: its steps. handler: those of the call; after them it ends well."""

    caller: tuple[tuple, ...]
    handler: tuple[tuple, ...]


class Model:
    """One state. breaks: connections that may still break."""

    def __init__(self, script: Script, breaks: int):
        self.script, self.breaks = script, breaks
        self.lines = [Line(), Line()]
        ends = (NORTH, pb.HubMember(name="south")), (SOUTH, pb.HubMember(name="north"))
        self.ends = [
            Session(line, PARTIES, peer, seal=Plain())
            for line, (_, peer) in zip(self.lines, ends, strict=True)
        ]
        self.out, self.queues = [deque(), deque()], [deque(), deque()]
        self.at = 0
        self.handler: tuple[int, bool] | None = None
        """Its next step, and whether it was cancelled."""
        self.heard = [False, False]
        self.history: tuple[str, ...] = ()
        self.ends[1].called = self._called

    def _called(self, method):
        self.handler = 0, False
        self.ends[1].cancelled = self._cancelled

    def _cancelled(self):
        self.handler = self.handler[0], True

    @property
    def key(self):
        """All by which two states differ."""
        parts = self.ends, self.lines, self.out, self.queues
        return _state_of([*parts, self.breaks, self.at, self.handler, self.heard])

    @property
    def is_complete(self):
        """The scripts are done, and the session is forgotten at both ends."""
        is_done = self.at == len(self.script.caller) and self.handler is None
        return is_done and all(line.is_gone for line in self.lines)

    # ---- what may happen --------------------------------------------------------------

    def actions(self) -> list[tuple]:
        found = [("caller",)] if self._caller_can() else []
        found += [("handler",)] if self._handler_can() else []
        for place, line in enumerate(self.lines):
            if not line.is_up:
                found.append(("back", place))
                continue
            able = {
                "refuse": line.refused,
                "pull": line.is_wanted,
                "take": self.queues[place],
                "pass": self.out[place],
            }
            found += [(name, place) for name, is_able in able.items() if is_able]
        return found

    def failures(self) -> list[tuple]:
        up = [place for place, line in enumerate(self.lines) if line.is_up]
        each = [(name, place) for name in ("break", "blink") for place in up]
        return [*each, ("restart",)] if self.breaks and up else []

    def after(self, action: tuple) -> Model:
        new = deepcopy(self)
        new.do(action)
        return new

    def do(self, action: tuple) -> None:
        """Let this happen in the state itself."""
        self.history += (" ".join(map(str, action)),)
        getattr(self, "_" + action[0])(*action[1:])

    def _pull(self, place):
        """Send one envelope, as a link does: a session that has more takes another turn."""
        end, line = self.ends[place], self.lines[place]
        line.is_wanted = False
        frame = end.next_frame()
        if frame is not None:
            self.out[place].append(light(frame.envelope))
            line.is_wanted = end.has_more

    def _refuse(self, place):
        self.out[place].append(self.lines[place].refused.pop(0))

    def _pass(self, place):
        envelope = self.out[place].popleft()
        if self.lines[1 - place].is_up:
            self.queues[1 - place].append(envelope)
        else:
            self.queues[place].append(ABSENT)

    def _take(self, place):
        came, end, line = self.queues[place].popleft(), self.ends[place], self.lines[place]
        if line.is_gone:
            if came != ABSENT and came.kind != pb.HUB_REFUSE:
                line.refused.append(Envelope(pb.HUB_REFUSE, b"", 0))
        elif came == ABSENT:
            end.ask(absent=True)
        elif came.kind == pb.HUB_REFUSE:
            end.fail(PeerLost("refused", culprit="peer"), tell=False)
        else:
            end.take(came)
        if end.failure is not None:
            raise end.failure

    def _down(self, place):
        self.lines[place].is_up = False
        for waiting in (self.out[place], self.queues[place], self.lines[place].refused):
            waiting.clear()
        if not self.lines[place].is_gone:
            self.ends[place].connection_lost()

    def _back(self, place):
        self.lines[place].is_up = True
        if not self.lines[place].is_gone:
            self.ends[place].connection_back()

    def _break(self, place):
        self.breaks -= 1
        self._down(place)
        if self.lines[1 - place].is_up:
            self.queues[1 - place].append(ABSENT)

    def _blink(self, place):
        """It is back before the hub notices."""
        self.breaks -= 1
        self._down(place)
        self._back(place)

    def _restart(self):
        self.breaks -= 1
        for place, line in enumerate(self.lines):
            if line.is_up:
                self._down(place)

    def _tick(self):
        for end, line in zip(self.ends, self.lines, strict=True):
            if not line.is_gone:
                end.tick(1.0)

    # ---- the users ---------------------------------------------------------------------

    def _caller_can(self):
        if self.at == len(self.script.caller):
            return False
        session, (step, *_) = self.ends[0], self.script.caller[self.at]
        if step == "await":
            return bool(session.inbox) or session.has_ended
        return step != "await_end" or session.end is not None

    def _caller(self):
        session, (step,) = self.ends[0], self.script.caller[self.at]
        self.at += 1
        if step == "begin":
            session.begin_call("method")
        elif step == "write":
            self._write(session, b"asked")
        elif step == "half":
            session.send(n.HALF_CLOSE)
        elif step == "await":
            self._hear(0)
        elif step != "await_end":
            getattr(session, step)()

    def _handler_step(self):
        at, is_cancelled = self.handler
        steps = self.script.handler
        if is_cancelled:
            return "end", 1
        return steps[at] if at < len(steps) else ("end", 0)

    def _handler_can(self):
        if self.handler is None:
            return False
        session, (step, *_) = self.ends[1], self._handler_step()
        if step == "await":
            return bool(session.inbox) or session.has_ended
        return step != "hang" and (step != "await_half" or session.is_half_closed)

    def _handler(self):
        session, (step, *given) = self.ends[1], self._handler_step()
        self.handler = self.handler[0] + 1, self.handler[1]
        if step == "await":
            self._hear(1)
        elif step == "write":
            self._write(session, b"answered")
        elif step == "end":
            session.send(n.END, pb.HubEnd(code=given[0]).SerializeToString())
            self.handler = None
            session.close()

    @staticmethod
    def _write(session, message):
        """Write a short message, for which the window always has room."""
        if session.is_writable:
            session.send(n.MESSAGE, message)

    def _hear(self, place):
        """Take a message, and none twice."""
        message = self.ends[place].poll()
        if message is not None:
            assert message == (b"asked" if place else b"answered") and not self.heard[place]
            self.heard[place] = True


def _state_of(value):
    """The values of a part of a model, without what is no value, such as an event or a function."""
    if isinstance(value, deque | list | tuple):
        return tuple(map(_state_of, value))
    if isinstance(value, Session | n.Numbering | Plain | Line):
        own = {name: each for name, each in vars(value).items() if not isinstance(each, Line)}
        return tuple((name, _state_of(own[name])) for name in sorted(own))
    if isinstance(value, Message):
        return value.SerializeToString(deterministic=True)
    return value if isinstance(value, int | float | str | bytes) else None
