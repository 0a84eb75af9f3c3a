"""Conversion between protobuf messages and the dataclasses that sessions use.

A dataclass of `umpc/study/messages.py` has the name and the fields of its protobuf message.
Everything that comes from outside is checked here: `_CHECKS` has a check for each field that is no
plain number. Every `decode_…` raises EncodingError, which says what was expected and what came.

Frames, bytes by step, members, openings and signatures are converted here, too.

*Pieces.* Messages with the facts of all nodes: cut into pieces by their sender, joined by their
receiver.

Members, openings and signatures of a thousand nodes take a megabyte. A message of coordinator or
node that may hold them goes through here. A small one goes as it is. A larger one goes in pieces,
each of which says how many bytes are left, so that the receiver knows the size from the first one.

*Checks.* Checks of bytes and texts that come from outside. Each raises EncodingError.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar, cast, get_args

from google.protobuf.message import DecodeError
from google.protobuf.message import Message as ProtobufMessage

from umpc.errors import EncodingError, RangeError, UmpcError, told_class
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study import messages as m
from umpc.study.messages import (
    BETWEEN_NODES,
    MAX_PAYLOAD,
    STEPS,
    TO_SHUFFLERS,
    WITH_COORDINATOR,
    Frame,
)
from umpc.study.sizes import MAX_MEMBERS, Member

MAX_DEGREE = 8
MAX_TOGETHER = 1024
"""The most frames of one message."""
MAX_SENT = 256
"""The largest number of rounds for which a node reports its bytes."""
STEP_NAMES: dict[int, str] = {number: name for name, number in STEPS.items()}
_NUMBERS = cast("dict[str, pb.Step]", STEPS)  # the generated types tell an enum from an int


def encode_frame(frame: Frame) -> pb.Frame:
    encoded = pb.Frame()
    put_frame(encoded, frame)
    return encoded


def put_frame(encoded: pb.Frame, frame: Frame) -> None:
    """Encode a frame in place, as a part of a message.

    A part that is given whole is serialised and parsed: 0.17 ms for half a megabyte.
    """
    encoded.step = _NUMBERS[frame.step]
    encoded.round = frame.round
    encoded.owners.extend(frame.owners)
    encoded.chunk = frame.chunk
    encoded.count = frame.count
    encoded.width = frame.width
    encoded.payload = frame.payload


def encode_frames(frames: Sequence[Frame]) -> pb.Frame:
    """One message with one or more frames, which follow each other in a stream."""
    first, *more = frames
    encoded = encode_frame(first)
    for each in more:
        put_frame(encoded.more.add(), each)
    return encoded


def decode_frames(frame: pb.Frame) -> list[Frame]:
    """The inverse of `encode_frames`. Raises: EncodingError."""
    more = list(frame.more)
    if len(more) >= MAX_TOGETHER:
        raise EncodingError(f"a message has at most {MAX_TOGETHER} frames, {1 + len(more)} came")
    del frame.more[:]
    return [decode_frame(each) for each in (frame, *more)]


def decode_frame(frame: pb.Frame) -> Frame:
    if frame.more:
        raise EncodingError(f"one frame was expected, and {len(frame.more)} more came with it")
    if frame.step not in STEP_NAMES:
        raise EncodingError(f"a frame of an unknown step {frame.step} came")
    payload = frame.payload  # each look at it is a copy
    if len(payload) > MAX_PAYLOAD:
        raise EncodingError(f"a frame carries at most {MAX_PAYLOAD} bytes, {len(payload)} came")
    # Masked fields and openings are packed piece by piece. Their readers check the sizes.
    packed = frame.step in (pb.MASKED_FIELDS, pb.OPEN)
    if len(payload) != (frame.count * frame.width + 7) // 8 and not packed:
        raise EncodingError(
            f"{frame.count} values of {frame.width} bits do not take {len(payload)} bytes"
        )
    if len(frame.owners) > MAX_DEGREE:
        raise EncodingError(
            f"an edge has at most {MAX_DEGREE} records, {len(frame.owners)} owners came"
        )
    owners = tuple(frame.owners)
    return Frame(
        STEP_NAMES[frame.step],
        owners,
        frame.chunk,
        frame.count,
        frame.width,
        payload,
        frame.round,
    )


def encoded(value: Any) -> Any:
    """A message as protobuf has it: a dataclass has the name and the fields of its message."""
    if isinstance(value, tuple):
        return [encoded(each) for each in value]
    if isinstance(value, m.StepBytes):
        return pb.Sent(step=_NUMBERS[value.step], round=value.round, bytes=value.bytes)
    if is_dataclass(value):
        parts = {each.name: encoded(getattr(value, each.name)) for each in fields(value)}
        return getattr(pb, type(value).__name__)(**parts)
    return value


def decode_sent(
    sent: Sequence[pb.Sent], steps: Collection[str], where: str
) -> tuple[m.StepBytes, ...]:
    if len(sent) > MAX_SENT:
        raise EncodingError(f"a study has at most {MAX_SENT} rounds, bytes of {len(sent)} came")
    places = [(each.step, each.round) for each in sent]
    if any(before >= after for before, after in pairwise(places)):
        raise EncodingError("bytes by round came out of order, or a round twice")
    unknown = [step for step, _ in places if STEP_NAMES.get(step) not in steps]
    if unknown:
        raise EncodingError(f"bytes of step {unknown[0]} came, which is no step {where}")
    return tuple(m.StepBytes(STEP_NAMES[each.step], each.round, each.bytes) for each in sent)


# --- pieces ---------------------------------------------------------------------------------------

PIECE_BYTES = MAX_PAYLOAD
"""The bytes of a piece, and of the largest frame."""
WHOLE_BYTES = MAX_PAYLOAD + 1024
"""The largest message that goes as it is: any frame, with the fields before its payload."""
MOST_BYTES = 1 << 23
"""The largest message. Members of 1,024 nodes with the largest certificates take 5 MB."""

Whole = TypeVar("Whole", pb.CoordinatorMessage, pb.DealRequest)


def cut(message: Whole) -> Iterator[Whole]:
    """The messages that carry this one, in order. Raises: RangeError where it is too large."""
    size = message.ByteSize()
    if size <= WHOLE_BYTES:
        yield message
        return
    if size > MOST_BYTES:
        raise RangeError(
            f"the facts of all nodes take a message of {size:,} bytes, at most {MOST_BYTES:,} are "
            f"possible; take fewer nodes, or shorter names"
        )
    body = message.SerializeToString()
    for start in range(0, size, PIECE_BYTES):
        data = body[start : start + PIECE_BYTES]
        piece = pb.Piece(data=data, left=size - start - len(data))
        yield type(message)(piece=piece)


async def joined(read: Callable[[], Awaitable[Whole | None]]) -> Whole | None:
    """The next message of a stream, read whole; None at the end of the stream.

    Raises: EncodingError where pieces do not fit together, and what `read` raises.
    """
    message = await read()
    if message is None or not message.HasField("piece"):
        return message
    kind = type(message)
    size = len(message.piece.data) + message.piece.left
    if size > MOST_BYTES:
        raise EncodingError(f"a message has at most {MOST_BYTES} bytes, one of {size} was begun")
    body = bytearray()
    while message is not None and message.HasField("piece"):
        piece = message.piece
        if not piece.data or len(body) + len(piece.data) + piece.left != size:
            raise EncodingError(
                f"a piece of a message of {size} bytes was due after {len(body)} of them, and "
                f"{len(piece.data)} bytes with {piece.left} left came"
            )
        body += piece.data
        if not piece.left:
            return parse(kind, bytes(body))
        message = await read()
    raise EncodingError(f"{len(body)} bytes of a message of {size} came, and then no piece")


# --- checks ---------------------------------------------------------------------------------------

AnyMessage = TypeVar("AnyMessage", bound=ProtobufMessage)
MAX_TEXT = 4000


def parse(cls: type[AnyMessage], data: bytes) -> AnyMessage:
    """Return a protobuf message from its bytes. Raises: EncodingError."""
    try:
        return cls.FromString(data)
    except DecodeError as error:
        raise EncodingError(f"bytes that are no {cls.DESCRIPTOR.name} came") from error


def sized(data: bytes, size: int, what: str) -> bytes:
    """Return bytes of exactly this size. Args: what: their name."""
    if len(data) != size:
        raise EncodingError(f"a {what} has {size} bytes, {len(data)} came")
    return data


def at_most(data: bytes, most: int, what: str) -> bytes:
    """Return bytes of at most this size. Args: what: the beginning of the error's sentence."""
    if len(data) > most:
        raise EncodingError(f"{what} at most {most} bytes, {len(data)} came")
    return data


def one_line(text: str) -> str:
    """Return text from outside as one printable line of at most MAX_TEXT characters."""
    return "".join(character if character.isprintable() else " " for character in text[:MAX_TEXT])


# --- messages -------------------------------------------------------------------------------------

MAX_RECORDS = 1 << 40
MAX_CERTIFICATE = 4096
"""The largest number of bytes of a member's certificate. Those of our authority have about 600."""
SIGNATURE_BYTES = 64


def decode_member(member: pb.Member) -> Member:
    check_records(member.records, member.first_class)
    return Member(
        member.name,
        member.records,
        sized(member.commitment, 32, "commitment"),
        sized(member.public_key, 32, "key"),
        member.first_class,
        at_most(member.certificate, MAX_CERTIFICATE, "a certificate has"),
        sized(member.signature, SIGNATURE_BYTES, "signature"),
    )


def check_records(records: int, first_class: int) -> None:
    """Check a node's numbers of records. Raises: EncodingError."""
    if records > MAX_RECORDS:
        raise EncodingError(f"a node has at most {MAX_RECORDS} records, {records} came")
    if first_class > records:
        raise EncodingError(
            f"a node with {records} records said that {first_class} are of the first class"
        )


def _check_few(facts: Sequence[object], what: str = "") -> None:
    """Check that there are no more facts than nodes may be. Raises: EncodingError."""
    if len(facts) > MAX_MEMBERS:
        raise EncodingError(f"a study has at most {MAX_MEMBERS} nodes, {len(facts)} {what}came")


def decode_members(members: Sequence[pb.Member]) -> tuple[Member, ...]:
    _check_few(members)
    return tuple(decode_member(member) for member in members)


def decode_openings(openings: Sequence[bytes]) -> tuple[bytes, ...]:
    _check_few(openings, "openings ")
    return tuple(sized(opening, 32, "opening") for opening in openings)


def decode_signatures(signatures: Sequence[bytes]) -> tuple[bytes, ...]:
    _check_few(signatures, "signatures ")
    return tuple(sized(each, SIGNATURE_BYTES, "signature") for each in signatures)


def deal_request(
    study: bytes, members: Sequence[Member], openings: Sequence[bytes], signatures: Sequence[bytes]
) -> pb.DealRequest:
    """Return the facts from which a dealer or a shuffler derives an attempt that all agreed to.

    Args: signatures: every node's, of all members.
    """
    return pb.DealRequest(
        study=study,
        members=[encoded(member) for member in members],
        openings=list(openings),
        signatures=list(signatures),
    )


MAX_SECONDS = 366 * 86_400
MAX_QUESTION = 1 << 14


def _body_of(kind: type) -> str:
    """The field of a stream's message that has a message of this kind."""
    return re.sub("(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


_OF_COORDINATOR = {_body_of(kind): kind for kind in get_args(m.CoordinatorMessage)}
_OF_NODE = {_body_of(kind): kind for kind in get_args(m.NodeMessage)}


def encode_coordinator(message: m.CoordinatorMessage) -> pb.CoordinatorMessage:
    enclosed: pb.CoordinatorMessage = _enclosed(pb.CoordinatorMessage, message)
    return enclosed


def encode_node(message: m.NodeMessage) -> pb.NodeMessage:
    enclosed: pb.NodeMessage = _enclosed(pb.NodeMessage, message)
    return enclosed


def decode_coordinator(message: pb.CoordinatorMessage) -> m.CoordinatorMessage:
    found: m.CoordinatorMessage = _opened(message, _OF_COORDINATOR, "the coordinator")
    return found


def decode_node(message: pb.NodeMessage) -> m.NodeMessage:
    found: m.NodeMessage = _opened(message, _OF_NODE, "a node")
    return found


def _enclosed(stream: Any, message: Any) -> Any:
    """A message of a stream with this one in it."""
    if isinstance(message, m.Part):
        enclosed = stream()
        put_frame(enclosed.part, message.frame)
        return enclosed
    return stream(**{_body_of(type(message)): encoded(message)})


def _opened(message: Any, kinds: Mapping[str, type], sender: str) -> Any:
    """The message in one of a stream."""
    body = message.WhichOneof("body")
    if body not in kinds:
        raise EncodingError(f"an empty or unknown message came from {sender}")
    if body == "part":
        return m.Part(decode_frame(message.part))
    return _decoded(kinds[body], getattr(message, body))


def _decoded(kind: type, body: Any) -> Any:
    """A dataclass from the protobuf message of its name, with each field checked."""
    values = {}
    for each in fields(kind):
        if each.default is None and not body.HasField(each.name):
            continue
        value = getattr(body, each.name)
        check = _CHECKS.get(f"{kind.__name__}.{each.name}") or _CHECKS.get(each.name)
        if check is not None:
            value = check(value)
        elif not isinstance(value, int):
            raise TypeError(f"{kind.__name__}.{each.name} has no check")
        values[each.name] = value
    if "first_class" in values:
        check_records(values["records"], values["first_class"])
    return kind(**values)


def _seconds(seconds: int) -> int:
    if seconds > MAX_SECONDS:
        raise EncodingError(f"material waits at most {MAX_SECONDS} seconds, {seconds} came")
    return seconds


def _missing(names: Sequence[str]) -> tuple[str, ...]:
    if len(names) > MAX_MEMBERS:
        raise EncodingError(f"at most {MAX_MEMBERS} nodes are missing, {len(names)} came")
    return tuple(map(one_line, names))


_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "study": bytes,
    "study_hash": partial(sized, size=32, what="study hash"),
    "attempt": partial(sized, size=32, what="attempt"),
    "opening": partial(sized, size=32, what="opening"),
    "seed": partial(sized, size=32, what="seed"),
    "signature": partial(sized, size=SIGNATURE_BYTES, what="signature"),
    "member": decode_member,
    "members": decode_members,
    "openings": decode_openings,
    "signatures": decode_signatures,
    "missing": _missing,
    "masked": bytes,
    "question": partial(at_most, most=MAX_QUESTION, what="a question has"),
    "answer": partial(at_most, most=MAX_PAYLOAD, what="a node answers"),
    "share": partial(at_most, most=MAX_PAYLOAD, what="a node releases"),
    "waiting": partial(_decoded, m.WaitingAttempt),
    "opened": partial(_decoded, m.Opened),
    "prepared": partial(_decoded, m.Prepared),
    "Parked.seconds": _seconds,
    "Ready.sent": partial(
        decode_sent, steps=BETWEEN_NODES | WITH_COORDINATOR, where="between nodes"
    ),
    "Released.sent": partial(decode_sent, steps=TO_SHUFFLERS, where="to shufflers"),
    **dict.fromkeys(("step", "error", "message", "culprit", "reason", "policy"), one_line),
}
"""By the name of a field, or of its message and the field."""


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
    data: bytes = encoded(delivery).SerializeToString()
    return data


def decode_delivery(data: bytes) -> m.Delivery:
    delivery: m.Delivery = _decoded(m.Delivery, parse(pb.Delivery, data))
    return delivery


def decode_failure(body: pb.Failure) -> m.Failure:
    """Return a failure whose texts are single lines."""
    failure: m.Failure = _decoded(m.Failure, body)
    return failure


def failure_of(error: UmpcError) -> m.Failure:
    """Return what other processes may know of a failure. Its `detail` stays here."""
    return m.Failure(type(error).__name__, error.message, error.culprit or "", error.step or "")


def error_of(failure: m.Failure) -> UmpcError:
    """Return the error for a failure that another process reported, in the same class."""
    cls = told_class(failure.error) or UmpcError
    return cls(failure.message, culprit=failure.culprit or None, step=failure.step or None)
