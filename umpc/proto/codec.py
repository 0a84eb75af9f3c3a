"""Between protobuf messages and the dataclasses that sessions use. Everything from outside is checked here.

Raises everywhere: EncodingError, saying what was expected and what came.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import pairwise
from typing import Any

from google.protobuf.message import DecodeError
from google.protobuf.message import Message as ProtobufMessage

from umpc.errors import EncodingError, UmpcError, error_classes
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study import messages as m
from umpc.study.frames import BETWEEN_NODES, MAX_PAYLOAD, STEPS, TO_SHUFFLERS, Frame
from umpc.study.sizes import Member

MAX_MEMBERS = 4096
MAX_RECORDS = 1 << 40
MAX_DEGREE = 8
MAX_TEXT = 4000
MAX_SECONDS = 366 * 86_400
MAX_QUESTION = 1 << 14
MAX_SENT = 256
"""Rounds of a study that a node counts its bytes by, at most."""
_STEP_NAMES = {number: name for name, number in STEPS.items()}


def encode_frame(frame: Frame) -> pb.Frame:
    return pb.Frame(
        step=STEPS[frame.step],
        round=frame.round,
        owners=frame.owners,
        chunk=frame.chunk,
        count=frame.count,
        width=frame.width,
        payload=frame.payload,
    )


def decode_frame(frame: pb.Frame) -> Frame:
    if frame.step not in _STEP_NAMES:
        raise EncodingError(f"a frame of an unknown step {frame.step} came")
    if len(frame.payload) > MAX_PAYLOAD:
        raise EncodingError(
            f"a frame carries at most {MAX_PAYLOAD} bytes, {len(frame.payload)} came"
        )
    # Masked fields and openings are packed piece by piece; their readers check them against what is due.
    packed = frame.step in (pb.MASKED_FIELDS, pb.OPEN)
    if len(frame.payload) != (frame.count * frame.width + 7) // 8 and not packed:
        raise EncodingError(
            f"{frame.count} values of {frame.width} bits do not take {len(frame.payload)} bytes"
        )
    if len(frame.owners) > MAX_DEGREE:
        raise EncodingError(
            f"an edge has at most {MAX_DEGREE} records, {len(frame.owners)} owners came"
        )
    owners = tuple(frame.owners)
    return Frame(
        _STEP_NAMES[frame.step],
        owners,
        frame.chunk,
        frame.count,
        frame.width,
        frame.payload,
        frame.round,
    )


def encode_member(member: Member) -> pb.Member:
    return pb.Member(
        name=member.name,
        records=member.records,
        commitment=member.commitment,
        public_key=member.public_key,
        first_class=member.first_class,
    )


def decode_member(member: pb.Member) -> Member:
    _check_records(member.records, member.first_class)
    return Member(
        member.name,
        member.records,
        _sized(member.commitment, 32, "commitment"),
        _sized(member.public_key, 32, "key"),
        member.first_class,
    )


def _check_records(records: int, first_class: int) -> None:
    if records > MAX_RECORDS:
        raise EncodingError(f"a node has at most {MAX_RECORDS} records, {records} came")
    if first_class > records:
        raise EncodingError(
            f"a node with {records} records said that {first_class} are of the first class"
        )


def decode_members(members: Any) -> tuple[Member, ...]:
    if len(members) > MAX_MEMBERS:
        raise EncodingError(f"a study has at most {MAX_MEMBERS} nodes, {len(members)} came")
    return tuple(decode_member(member) for member in members)


def decode_openings(openings: Any) -> tuple[bytes, ...]:
    if len(openings) > MAX_MEMBERS:
        raise EncodingError(
            f"a study has at most {MAX_MEMBERS} nodes, {len(openings)} openings came"
        )
    return tuple(_sized(opening, 32, "opening") for opening in openings)


def encode_coordinator(message: m.CoordinatorMessage) -> pb.CoordinatorMessage:
    match message:
        case m.Propose(study, ahead):
            return pb.CoordinatorMessage(propose=pb.Propose(study=study, ahead=ahead))
        case m.Agree(members):
            return pb.CoordinatorMessage(
                agree=pb.Agree(members=[encode_member(member) for member in members])
            )
        case m.Begin(openings):
            return pb.CoordinatorMessage(begin=pb.Begin(openings=openings))
        case m.Evaluate():
            return pb.CoordinatorMessage(evaluate=pb.Evaluate())
        case m.Park():
            return pb.CoordinatorMessage(park=pb.Park())
        case m.Release():
            return pb.CoordinatorMessage(release=pb.Release())
        case m.Ask(question):
            return pb.CoordinatorMessage(ask=pb.Ask(question=question))
        case m.Abort(culprit, reason):
            return pb.CoordinatorMessage(abort=pb.Abort(culprit=culprit, reason=reason))


def decode_coordinator(message: pb.CoordinatorMessage) -> m.CoordinatorMessage:
    match message.WhichOneof("body"):
        case "propose":
            return m.Propose(message.propose.study, message.propose.ahead)
        case "agree":
            return m.Agree(decode_members(message.agree.members))
        case "begin":
            return m.Begin(decode_openings(message.begin.openings))
        case "evaluate":
            return m.Evaluate()
        case "park":
            return m.Park()
        case "release":
            return m.Release()
        case "ask":
            return m.Ask(_at_most(message.ask.question, MAX_QUESTION, "a question has"))
        case "abort":
            return m.Abort(_line(message.abort.culprit), _line(message.abort.reason))
    raise EncodingError("an empty or unknown message came from the coordinator")


def encode_node(message: m.NodeMessage) -> pb.NodeMessage:
    match message:
        case m.Accepted(study_hash, member):
            return pb.NodeMessage(
                accepted=pb.Accepted(study_hash=study_hash, member=encode_member(member))
            )
        case m.Opened(opening):
            return pb.NodeMessage(opened=pb.Opened(opening=opening))
        case m.Prepared(attempt, bytes_received, ahead):
            prepared = pb.Prepared(attempt=attempt, bytes_received=bytes_received, ahead=ahead)
            return pb.NodeMessage(prepared=prepared)
        case m.Parked(size, seconds):
            return pb.NodeMessage(parked=pb.Parked(bytes=size, seconds=seconds))
        case m.Ready(sent, received, rounds):
            return pb.NodeMessage(
                ready=pb.Ready(sent=_encode_sent(sent), bytes_received=received, rounds=rounds)
            )
        case m.Released(attempt, share, records, first_class, sent):
            released = pb.Released(
                attempt=attempt, share=share, records=records, first_class=first_class
            )
            released.sent.extend(_encode_sent(sent))
            return pb.NodeMessage(released=released)
        case m.Answer(answer):
            return pb.NodeMessage(answer=pb.Answer(answer=answer))
        case m.Progress(step, done, total):
            return pb.NodeMessage(progress=pb.Progress(step=step, done=done, total=total))
        case m.Failure(error, text, culprit, step):
            return pb.NodeMessage(
                failure=pb.Failure(error=error, message=text, culprit=culprit, step=step)
            )


def decode_node(message: pb.NodeMessage) -> m.NodeMessage:
    match message.WhichOneof("body"):
        case "accepted":
            body = message.accepted
            return m.Accepted(_sized(body.study_hash, 32, "study hash"), decode_member(body.member))
        case "opened":
            return m.Opened(_sized(message.opened.opening, 32, "opening"))
        case "prepared":
            body = message.prepared
            return m.Prepared(_sized(body.attempt, 32, "attempt"), body.bytes_received, body.ahead)
        case "parked":
            body = message.parked
            if body.seconds > MAX_SECONDS:
                raise EncodingError(
                    f"material waits at most {MAX_SECONDS} seconds, {body.seconds} came"
                )
            return m.Parked(body.bytes, body.seconds)
        case "ready":
            body = message.ready
            return m.Ready(
                _decode_sent(body.sent, BETWEEN_NODES, "between nodes"),
                body.bytes_received,
                body.rounds,
            )
        case "released":
            body = message.released
            share = _at_most(body.share, MAX_PAYLOAD, "a node releases")
            _check_records(body.records, body.first_class)
            sent = _decode_sent(body.sent, TO_SHUFFLERS, "to shufflers")
            return m.Released(
                _sized(body.attempt, 32, "attempt"), share, body.records, body.first_class, sent
            )
        case "told":
            return m.Answer(_at_most(message.answer.answer, MAX_PAYLOAD, "a node tells"))
        case "progress":
            return m.Progress(
                _line(message.progress.step), message.progress.done, message.progress.total
            )
        case "failure":
            body = message.failure
            return m.Failure(
                *(_line(text) for text in (body.error, body.message, body.culprit, body.step))
            )
    raise EncodingError("an empty or unknown message came from a node")


def encode_kept(kept: m.Released | m.Delivery) -> bytes:
    """The bytes that a node's ledger keeps of its release."""
    if isinstance(kept, m.Delivery):
        return encode_delivery(kept)
    return encode_node(kept).SerializeToString()


def encode_delivery(delivery: m.Delivery) -> bytes:
    return pb.Delivery(
        attempt=delivery.attempt,
        members=[encode_member(member) for member in delivery.members],
        openings=delivery.openings,
        masked=delivery.masked,
        seed=delivery.seed,
    ).SerializeToString()


def decode_delivery(data: bytes) -> m.Delivery:
    body = parse(pb.Delivery, data)
    who = decode_members(body.members), decode_openings(body.openings)
    return m.Delivery(
        _sized(body.attempt, 32, "attempt"), *who, body.masked, _sized(body.seed, 32, "seed")
    )


def _encode_sent(sent: Iterable[m.StepBytes]) -> list[pb.Sent]:
    return [pb.Sent(step=STEPS[each.step], round=each.round, bytes=each.bytes) for each in sent]


def _decode_sent(sent: Any, steps: Collection[str], where: str) -> tuple[m.StepBytes, ...]:
    if len(sent) > MAX_SENT:
        raise EncodingError(f"a study has at most {MAX_SENT} rounds, bytes of {len(sent)} came")
    places = [(each.step, each.round) for each in sent]
    if any(before >= after for before, after in pairwise(places)):
        raise EncodingError("bytes by round came out of order, or a round twice")
    unknown = [step for step, _ in places if _STEP_NAMES.get(step) not in steps]
    if unknown:
        raise EncodingError(f"bytes of step {unknown[0]} came, which is none {where}")
    return tuple(m.StepBytes(_STEP_NAMES[each.step], each.round, each.bytes) for each in sent)


def failure_of(error: UmpcError) -> m.Failure:
    """What the others may know of a failure: never `detail`."""
    return m.Failure(type(error).__name__, error.message, error.culprit or "", error.step or "")


def error_of(failure: m.Failure) -> UmpcError:
    """A failure that came from elsewhere, as an error of its class."""
    cls = error_classes().get(failure.error, UmpcError)
    return cls(failure.message, culprit=failure.culprit or None, step=failure.step or None)


def parse(cls: type[ProtobufMessage], data: bytes) -> Any:
    """A protobuf message from bytes. Raises: EncodingError."""
    try:
        return cls.FromString(data)
    except DecodeError as error:
        raise EncodingError(f"bytes that are no {cls.DESCRIPTOR.name} came") from error


def _sized(data: bytes, size: int, what: str) -> bytes:
    if len(data) != size:
        raise EncodingError(f"a {what} has {size} bytes, {len(data)} came")
    return data


def _at_most(data: bytes, most: int, what: str) -> bytes:
    if len(data) > most:
        raise EncodingError(f"{what} at most {most} bytes, {len(data)} came")
    return data


def _line(text: str) -> str:
    """Text from outside, fit for a log or a terminal: one line, of a length that people read."""
    return "".join(character if character.isprintable() else " " for character in text[:MAX_TEXT])
