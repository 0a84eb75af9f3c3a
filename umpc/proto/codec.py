"""Conversion between protobuf messages and the dataclasses that sessions use.

Everything that comes from outside is checked here. Every `decode_…` raises EncodingError, which
says what was expected and what came.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from umpc.errors import EncodingError, UmpcError, error_classes
from umpc.proto.checks import at_most, one_line, parse, sized
from umpc.proto.frame_codec import decode_frame, decode_sent, encode_sent, put_frame
from umpc.proto.member_codec import (
    SIGNATURE_BYTES,
    check_records,
    decode_member,
    decode_members,
    decode_openings,
    decode_signatures,
    encode_member,
)
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study import messages as m
from umpc.study.frames import (
    BETWEEN_NODES,
    MAX_PAYLOAD,
    TO_SHUFFLERS,
    WITH_COORDINATOR,
)
from umpc.study.sizes import MAX_MEMBERS

MAX_SECONDS = 366 * 86_400
MAX_QUESTION = 1 << 14


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
        case m.Part(frame):
            encoded = pb.CoordinatorMessage()
            put_frame(encoded.part, frame)
            return encoded
        case m.TotalConfirmed(signatures):
            confirmed = pb.TotalConfirmed(signatures=signatures)
            return pb.CoordinatorMessage(total_confirmed=confirmed)
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
        case "part":
            return m.Part(decode_frame(message.part))
        case "total_confirmed":
            return m.TotalConfirmed(decode_signatures(message.total_confirmed.signatures))
        case "park":
            return m.Park()
        case "release":
            return m.Release()
        case "ask":
            return m.Ask(at_most(message.ask.question, MAX_QUESTION, "a question has"))
        case "abort":
            body = message.abort
            return m.Abort(one_line(body.culprit), one_line(body.reason), body.keep)
        case "drop":
            return m.Drop()
    raise EncodingError("an empty or unknown message came from the coordinator")


def encode_node(message: m.NodeMessage) -> pb.NodeMessage:
    match message:
        case m.Accepted():
            return pb.NodeMessage(accepted=_encode_accepted(message))
        case m.Opened():
            return pb.NodeMessage(opened=_encode_opened(message))
        case m.Prepared():
            return pb.NodeMessage(prepared=_encode_prepared(message))
        case m.Part() | m.TotalSigned():
            return _encode_of_total(message)
        case m.Parked(size, seconds):
            return pb.NodeMessage(parked=pb.Parked(bytes=size, seconds=seconds))
        case m.Ready(sent, received, rounds):
            return pb.NodeMessage(
                ready=pb.Ready(sent=encode_sent(sent), bytes_received=received, rounds=rounds)
            )
        case m.Released(attempt, share, records, first_class, sent, missing):
            released = pb.Released(
                attempt=attempt,
                share=share,
                records=records,
                first_class=first_class,
                missing=missing,
            )
            released.sent.extend(encode_sent(sent))
            return pb.NodeMessage(released=released)
        case m.Held(attempt, records, first_class, missing):
            held = pb.Held(
                attempt=attempt, records=records, first_class=first_class, missing=missing
            )
            return pb.NodeMessage(held=held)
        case m.Answer(answer):
            return pb.NodeMessage(answer=pb.Answer(answer=answer))
        case m.Progress(step, done, total):
            return pb.NodeMessage(progress=pb.Progress(step=step, done=done, total=total))
        case m.Failure(error, text, culprit, step):
            return pb.NodeMessage(
                failure=pb.Failure(error=error, message=text, culprit=culprit, step=step)
            )


def _encode_accepted(message: m.Accepted) -> pb.Accepted:
    accepted = pb.Accepted(study_hash=message.study_hash, member=encode_member(message.member))
    if message.waiting is not None:
        accepted.waiting.opened.CopyFrom(_encode_opened(message.waiting.opened))
        accepted.waiting.prepared.CopyFrom(_encode_prepared(message.waiting.prepared))
        accepted.waiting.seconds = message.waiting.seconds
    return accepted


def _encode_opened(message: m.Opened) -> pb.Opened:
    return pb.Opened(opening=message.opening, signature=message.signature)


def _encode_prepared(message: m.Prepared) -> pb.Prepared:
    return pb.Prepared(
        attempt=message.attempt,
        bytes_received=message.bytes_received,
        ahead=message.ahead,
        signature=message.signature,
    )


def _encode_of_total(message: m.Part | m.TotalSigned) -> pb.NodeMessage:
    if isinstance(message, m.TotalSigned):
        return pb.NodeMessage(total_signed=pb.TotalSigned(signature=message.signature))
    encoded = pb.NodeMessage()
    put_frame(encoded.part, message.frame)
    return encoded


def decode_node(message: pb.NodeMessage) -> m.NodeMessage:
    body = message.WhichOneof("body")
    if body not in _NODE_BODIES:
        raise EncodingError("an empty or unknown message came from a node")
    return _NODE_BODIES[body](getattr(message, body))


def _decode_accepted(body: pb.Accepted) -> m.Accepted:
    waiting = None
    if body.HasField("waiting"):
        opened, prepared = body.waiting.opened, body.waiting.prepared
        seconds = body.waiting.seconds
        waiting = m.WaitingAttempt(_decode_opened(opened), _decode_prepared(prepared), seconds)
    study_hash = sized(body.study_hash, 32, "study hash")
    return m.Accepted(study_hash, decode_member(body.member), waiting)


def _decode_opened(body: pb.Opened) -> m.Opened:
    signature = sized(body.signature, SIGNATURE_BYTES, "signature")
    return m.Opened(sized(body.opening, 32, "opening"), signature)


def _decode_prepared(body: pb.Prepared) -> m.Prepared:
    return m.Prepared(
        sized(body.attempt, 32, "attempt"),
        body.bytes_received,
        body.ahead,
        sized(body.signature, SIGNATURE_BYTES, "signature"),
    )


def _decode_total_signed(body: pb.TotalSigned) -> m.TotalSigned:
    return m.TotalSigned(sized(body.signature, SIGNATURE_BYTES, "signature"))


def _decode_answer(body: pb.Answer) -> m.Answer:
    return m.Answer(at_most(body.answer, MAX_PAYLOAD, "a node answers"))


def _decode_parked(body: pb.Parked) -> m.Parked:
    if body.seconds > MAX_SECONDS:
        raise EncodingError(f"material waits at most {MAX_SECONDS} seconds, {body.seconds} came")
    return m.Parked(body.bytes, body.seconds)


def _decode_ready(body: pb.Ready) -> m.Ready:
    sent = decode_sent(body.sent, BETWEEN_NODES | WITH_COORDINATOR, "between nodes")
    return m.Ready(sent, body.bytes_received, body.rounds)


def _decode_released(body: pb.Released) -> m.Released:
    attempt = sized(body.attempt, 32, "attempt")
    share = at_most(body.share, MAX_PAYLOAD, "a node releases")
    check_records(body.records, body.first_class)
    sent = decode_sent(body.sent, TO_SHUFFLERS, "to shufflers")
    missing = _decode_missing(body.missing)
    return m.Released(attempt, share, body.records, body.first_class, sent, missing)


def _decode_held(body: pb.Held) -> m.Held:
    check_records(body.records, body.first_class)
    attempt = sized(body.attempt, 32, "attempt")
    return m.Held(attempt, body.records, body.first_class, _decode_missing(body.missing))


def _decode_missing(names: Sequence[str]) -> tuple[str, ...]:
    if len(names) > MAX_MEMBERS:
        raise EncodingError(f"at most {MAX_MEMBERS} nodes are missing, {len(names)} came")
    return tuple(map(one_line, names))


def _decode_progress(body: pb.Progress) -> m.Progress:
    return m.Progress(one_line(body.step), body.done, body.total)


def decode_failure(body: pb.Failure) -> m.Failure:
    """Return a failure whose texts are single lines."""
    return m.Failure(
        one_line(body.error), one_line(body.message), one_line(body.culprit), one_line(body.step)
    )


_NODE_BODIES: dict[str, Callable[[Any], m.NodeMessage]] = {
    "accepted": _decode_accepted,
    "held": _decode_held,
    "opened": _decode_opened,
    "prepared": _decode_prepared,
    "part": lambda frame: m.Part(decode_frame(frame)),
    "total_signed": _decode_total_signed,
    "parked": _decode_parked,
    "ready": _decode_ready,
    "released": _decode_released,
    "answer": _decode_answer,
    "progress": _decode_progress,
    "failure": decode_failure,
}
"""The decoder of each kind of message."""


def encode_kept(kept: m.Released | m.Delivery) -> bytes:
    """The bytes that a node's ledger keeps of its release."""
    if isinstance(kept, m.Delivery):
        return encode_delivery(kept)
    return encode_node(kept).SerializeToString()


def decode_kept(data: bytes, *, shuffled: bool) -> m.Released | m.Delivery:
    """Return the release that `encode_kept` wrote.

    Args: shuffled: whether the study has shufflers.
    """
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
        sized(body.attempt, 32, "attempt"),
        decode_members(body.members),
        decode_openings(body.openings),
        body.masked,
        sized(body.seed, 32, "seed"),
        decode_signatures(body.signatures),
    )


def failure_of(error: UmpcError) -> m.Failure:
    """Return what other processes may know of a failure. Its `detail` stays here."""
    return m.Failure(type(error).__name__, error.message, error.culprit or "", error.step or "")


def error_of(failure: m.Failure) -> UmpcError:
    """Return the error for a failure that another process reported, in the same class."""
    cls = error_classes().get(failure.error, UmpcError)
    return cls(failure.message, culprit=failure.culprit or None, step=failure.step or None)
