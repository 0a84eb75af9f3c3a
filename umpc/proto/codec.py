"""Conversion between protobuf messages and the dataclasses that sessions use.

Everything that comes from outside is checked here. Every `decode_…` raises EncodingError, which
says what was expected and what came.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import TypeVar, cast

from google.protobuf.message import DecodeError
from google.protobuf.message import Message as ProtobufMessage

from umpc.errors import EncodingError, UmpcError, error_classes
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study import messages as m
from umpc.study.frames import BETWEEN_NODES, MAX_PAYLOAD, STEPS, TO_SHUFFLERS, Frame
from umpc.study.sizes import Member

T = TypeVar("T")
AnyMessage = TypeVar("AnyMessage", bound=ProtobufMessage)
MAX_MEMBERS = 4096
MAX_RECORDS = 1 << 40
MAX_DEGREE = 8
MAX_TEXT = 4000
MAX_SECONDS = 366 * 86_400
MAX_QUESTION = 1 << 14
MAX_CERTIFICATE = 4096
"""The largest number of bytes of a member's certificate. Those of our authority have about 600."""
SIGNATURE_BYTES = 64
MAX_SENT = 256
"""The largest number of rounds for which a node reports its bytes."""
_STEP_NAMES: dict[int, str] = {number: name for name, number in STEPS.items()}
_NUMBERS = cast("dict[str, pb.Step]", STEPS)  # the generated types tell an enum from an int


def encode_frame(frame: Frame) -> pb.Frame:
    return pb.Frame(
        step=_NUMBERS[frame.step],
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
    # Masked fields and openings are packed piece by piece. Their readers check the sizes.
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
        certificate=member.certificate,
        signature=member.signature,
    )


def decode_member(member: pb.Member) -> Member:
    _check_records(member.records, member.first_class)
    return Member(
        member.name,
        member.records,
        _sized(member.commitment, 32, "commitment"),
        _sized(member.public_key, 32, "key"),
        member.first_class,
        _at_most(member.certificate, MAX_CERTIFICATE, "a certificate has"),
        _sized(member.signature, SIGNATURE_BYTES, "signature"),
    )


def _check_records(records: int, first_class: int) -> None:
    if records > MAX_RECORDS:
        raise EncodingError(f"a node has at most {MAX_RECORDS} records, {records} came")
    if first_class > records:
        raise EncodingError(
            f"a node with {records} records said that {first_class} are of the first class"
        )


def decode_members(members: Sequence[pb.Member]) -> tuple[Member, ...]:
    if len(members) > MAX_MEMBERS:
        raise EncodingError(f"a study has at most {MAX_MEMBERS} nodes, {len(members)} came")
    return tuple(decode_member(member) for member in members)


def decode_openings(openings: Sequence[bytes]) -> tuple[bytes, ...]:
    if len(openings) > MAX_MEMBERS:
        raise EncodingError(
            f"a study has at most {MAX_MEMBERS} nodes, {len(openings)} openings came"
        )
    return tuple(_sized(opening, 32, "opening") for opening in openings)


def decode_signatures(signatures: Sequence[bytes]) -> tuple[bytes, ...]:
    if len(signatures) > MAX_MEMBERS:
        raise EncodingError(
            f"a study has at most {MAX_MEMBERS} nodes, {len(signatures)} signatures came"
        )
    return tuple(_sized(each, SIGNATURE_BYTES, "signature") for each in signatures)


def deal_request(
    study: bytes, members: Sequence[Member], openings: Sequence[bytes], signatures: Sequence[bytes]
) -> pb.DealRequest:
    """What a dealer or a shuffler needs to derive an attempt, and to see that all agreed to it.

    Args: signatures: every node's, of all members.
    """
    return pb.DealRequest(
        study=study,
        members=[encode_member(member) for member in members],
        openings=list(openings),
        signatures=list(signatures),
    )


def encode_coordinator(message: m.CoordinatorMessage) -> pb.CoordinatorMessage:
    match message:
        case m.Propose(study, ahead):
            return pb.CoordinatorMessage(propose=pb.Propose(study=study, ahead=ahead))
        case m.Agree(members):
            return pb.CoordinatorMessage(
                agree=pb.Agree(members=[encode_member(member) for member in members])
            )
        case m.Begin(openings, signatures):
            return pb.CoordinatorMessage(begin=pb.Begin(openings=openings, signatures=signatures))
        case m.Evaluate(signatures):
            return pb.CoordinatorMessage(evaluate=pb.Evaluate(signatures=signatures))
        case m.Park():
            return pb.CoordinatorMessage(park=pb.Park())
        case m.Release():
            return pb.CoordinatorMessage(release=pb.Release())
        case m.Ask(question):
            return pb.CoordinatorMessage(ask=pb.Ask(question=question))
        case m.Drop():
            return pb.CoordinatorMessage(drop=pb.Drop())
        case m.Abort(culprit, reason, keep):
            return pb.CoordinatorMessage(abort=pb.Abort(culprit=culprit, reason=reason, keep=keep))


def decode_coordinator(message: pb.CoordinatorMessage) -> m.CoordinatorMessage:
    match message.WhichOneof("body"):
        case "propose":
            return m.Propose(message.propose.study, message.propose.ahead)
        case "agree":
            return m.Agree(decode_members(message.agree.members))
        case "begin":
            begin = message.begin
            return m.Begin(decode_openings(begin.openings), decode_signatures(begin.signatures))
        case "evaluate":
            return m.Evaluate(decode_signatures(message.evaluate.signatures))
        case "park":
            return m.Park()
        case "release":
            return m.Release()
        case "ask":
            return m.Ask(_at_most(message.ask.question, MAX_QUESTION, "a question has"))
        case "abort":
            body = message.abort
            return m.Abort(line(body.culprit), line(body.reason), body.keep)
        case "drop":
            return m.Drop()
    raise EncodingError("an empty or unknown message came from the coordinator")


def encode_node(message: m.NodeMessage) -> pb.NodeMessage:
    match message:
        case m.Accepted(study_hash, member):
            return pb.NodeMessage(
                accepted=pb.Accepted(study_hash=study_hash, member=encode_member(member))
            )
        case m.Opened(opening, signature):
            return pb.NodeMessage(opened=pb.Opened(opening=opening, signature=signature))
        case m.Prepared(attempt, bytes_received, ahead, signature):
            prepared = pb.Prepared(
                attempt=attempt, bytes_received=bytes_received, ahead=ahead, signature=signature
            )
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
        case m.Held(attempt, records, first_class):
            held = pb.Held(attempt=attempt, records=records, first_class=first_class)
            return pb.NodeMessage(held=held)
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
            return _decode_accepted(message.accepted)
        case "opened":
            return _decode_opened(message.opened)
        case "prepared":
            return _decode_prepared(message.prepared)
        case "parked":
            return _decode_parked(message.parked)
        case "ready":
            return _decode_ready(message.ready)
        case "released":
            return _decode_released(message.released)
        case "held":
            return _decode_held(message.held)
        case "answer":
            return m.Answer(_at_most(message.answer.answer, MAX_PAYLOAD, "a node answers"))
        case "progress":
            return _decode_progress(message.progress)
        case "failure":
            return decode_failure(message.failure)
    raise EncodingError("an empty or unknown message came from a node")


def _decode_accepted(body: pb.Accepted) -> m.Accepted:
    return m.Accepted(_sized(body.study_hash, 32, "study hash"), decode_member(body.member))


def _decode_opened(body: pb.Opened) -> m.Opened:
    signature = _sized(body.signature, SIGNATURE_BYTES, "signature")
    return m.Opened(_sized(body.opening, 32, "opening"), signature)


def _decode_prepared(body: pb.Prepared) -> m.Prepared:
    return m.Prepared(
        _sized(body.attempt, 32, "attempt"),
        body.bytes_received,
        body.ahead,
        _sized(body.signature, SIGNATURE_BYTES, "signature"),
    )


def _decode_parked(body: pb.Parked) -> m.Parked:
    if body.seconds > MAX_SECONDS:
        raise EncodingError(f"material waits at most {MAX_SECONDS} seconds, {body.seconds} came")
    return m.Parked(body.bytes, body.seconds)


def _decode_ready(body: pb.Ready) -> m.Ready:
    sent = _decode_sent(body.sent, BETWEEN_NODES, "between nodes")
    return m.Ready(sent, body.bytes_received, body.rounds)


def _decode_released(body: pb.Released) -> m.Released:
    attempt = _sized(body.attempt, 32, "attempt")
    share = _at_most(body.share, MAX_PAYLOAD, "a node releases")
    _check_records(body.records, body.first_class)
    sent = _decode_sent(body.sent, TO_SHUFFLERS, "to shufflers")
    return m.Released(attempt, share, body.records, body.first_class, sent)


def _decode_held(body: pb.Held) -> m.Held:
    _check_records(body.records, body.first_class)
    return m.Held(_sized(body.attempt, 32, "attempt"), body.records, body.first_class)


def _decode_progress(body: pb.Progress) -> m.Progress:
    return m.Progress(line(body.step), body.done, body.total)


def decode_failure(body: pb.Failure) -> m.Failure:
    """Return a failure whose texts are single lines."""
    return m.Failure(line(body.error), line(body.message), line(body.culprit), line(body.step))


def encode_kept(kept: m.Released | m.Delivery) -> bytes:
    """The bytes that a node's ledger keeps of its release."""
    if isinstance(kept, m.Delivery):
        return encode_delivery(kept)
    return encode_node(kept).SerializeToString()


def decode_kept(data: bytes, *, shuffled: bool) -> m.Released | m.Delivery:
    """What `encode_kept` wrote. Args: shuffled: whether the study has shufflers."""
    if shuffled:
        return decode_delivery(data)
    message = decode_node(parse(pb.NodeMessage, data))
    if not isinstance(message, m.Released):
        raise EncodingError(f"a kept share was expected, {type(message).__name__} came")
    return message


def encode_delivery(delivery: m.Delivery) -> bytes:
    return pb.Delivery(
        attempt=delivery.attempt,
        members=[encode_member(member) for member in delivery.members],
        openings=delivery.openings,
        masked=delivery.masked,
        seed=delivery.seed,
        signatures=delivery.signatures,
    ).SerializeToString()


def decode_delivery(data: bytes) -> m.Delivery:
    body = parse(pb.Delivery, data)
    return m.Delivery(
        _sized(body.attempt, 32, "attempt"),
        decode_members(body.members),
        decode_openings(body.openings),
        body.masked,
        _sized(body.seed, 32, "seed"),
        decode_signatures(body.signatures),
    )


def _encode_sent(sent: Iterable[m.StepBytes]) -> list[pb.Sent]:
    return [pb.Sent(step=_NUMBERS[each.step], round=each.round, bytes=each.bytes) for each in sent]


def _decode_sent(
    sent: Sequence[pb.Sent], steps: Collection[str], where: str
) -> tuple[m.StepBytes, ...]:
    if len(sent) > MAX_SENT:
        raise EncodingError(f"a study has at most {MAX_SENT} rounds, bytes of {len(sent)} came")
    places = [(each.step, each.round) for each in sent]
    if any(before >= after for before, after in pairwise(places)):
        raise EncodingError("bytes by round came out of order, or a round twice")
    unknown = [step for step, _ in places if _STEP_NAMES.get(step) not in steps]
    if unknown:
        raise EncodingError(f"bytes of step {unknown[0]} came, which is no step {where}")
    return tuple(m.StepBytes(_STEP_NAMES[each.step], each.round, each.bytes) for each in sent)


def failure_of(error: UmpcError) -> m.Failure:
    """Return what other processes may know of a failure. Its `detail` stays here."""
    return m.Failure(type(error).__name__, error.message, error.culprit or "", error.step or "")


def error_of(failure: m.Failure) -> UmpcError:
    """Return the error for a failure that another process reported, in the same class."""
    cls = error_classes().get(failure.error, UmpcError)
    return cls(failure.message, culprit=failure.culprit or None, step=failure.step or None)


def parse(cls: type[AnyMessage], data: bytes) -> AnyMessage:
    """Return a protobuf message from its bytes. Raises: EncodingError."""
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


def line(text: str) -> str:
    """Return text from outside as one printable line of at most MAX_TEXT characters."""
    return "".join(character if character.isprintable() else " " for character in text[:MAX_TEXT])
