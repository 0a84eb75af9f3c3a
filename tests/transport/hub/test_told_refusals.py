"""umpc.transport.hub.link: a member that sends bad openings cannot fill the log."""

from __future__ import annotations

import logging

from umpc.errors import CertificateError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.hub.link import MOST_REFUSED, MOST_TOLD, TOLD_SECONDS, Arrivals, Refusals


class Refuses:
    """A listener that accepts no session."""

    def opened(self, envelope: pb.HubEnvelope) -> bytes | None:
        raise CertificateError("node 'evil' has signed nothing")


def opening(number: int) -> pb.HubFrame:
    source = pb.HubMember(role="node", name="evil")
    session = number.to_bytes(16, "big")
    return pb.HubFrame(envelope=pb.HubEnvelope(source=source, session=session, kind=pb.HUB_OPEN))


def test_thousands_of_refused_openings_are_few_lines_and_few_are_looked_at(caplog):
    answers: list[pb.HubEnvelope] = []
    arrivals = Arrivals("relay", {}, Refuses(), answers.append)
    with caplog.at_level(logging.WARNING):
        for number in range(1000):
            arrivals.take(opening(number))
    assert len(caplog.records) == MOST_TOLD + 1
    assert "has signed nothing" in caplog.messages[0] and "not shown" in caplog.messages[-1]
    assert len(answers) == MOST_REFUSED and all(each.kind == pb.HUB_REFUSE for each in answers)


def test_the_next_minute_is_told_again(caplog):
    now = 100.0
    told = Refusals(lambda: now)
    with caplog.at_level(logging.WARNING):
        for _ in range(2 * MOST_TOLD):
            told.tell(opening(1).envelope, "why")
        now += TOLD_SECONDS
        assert told.is_heard(opening(1).envelope)
        told.tell(opening(1).envelope, "why")
    assert len(caplog.records) == MOST_TOLD + 2
