"""Conversion between protobuf messages and the dataclasses that sessions use.

A dataclass of `umpc/study/messages.py` has the name and the fields of its protobuf message.
Everything that comes from outside is checked here: `_CHECKS` has a check for each field that is no
plain number. Every `decode_…` raises EncodingError, which says what was expected and what came.

*Member codec.* Conversion of a study's members, with their openings and signatures.

Every `decode_…` raises EncodingError, which says what was expected and what came.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, get_args

from umpc.errors import EncodingError, UmpcError, error_classes
from umpc.proto.frame_codec import (
    at_most,
    decode_frame,
    decode_sent,
    encoded,
    one_line,
    parse,
    put_frame,
    sized,
)
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study import messages as m
from umpc.study.messages import (
    BETWEEN_NODES,
    MAX_PAYLOAD,
    TO_SHUFFLERS,
    WITH_COORDINATOR,
)
from umpc.study.sizes import MAX_MEMBERS, Member

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


def decode_members(members: Sequence[pb.Member]) -> tuple[Member, ...]:
    if len(members) > MAX_MEMBERS:
        raise EncodingError(f"a study has at most {MAX_MEMBERS} nodes, {len(members)} came")
    return tuple(decode_member(member) for member in members)


def decode_openings(openings: Sequence[bytes]) -> tuple[bytes, ...]:
    if len(openings) > MAX_MEMBERS:
        raise EncodingError(
            f"a study has at most {MAX_MEMBERS} nodes, {len(openings)} openings came"
        )
    return tuple(sized(opening, 32, "opening") for opening in openings)


def decode_signatures(signatures: Sequence[bytes]) -> tuple[bytes, ...]:
    if len(signatures) > MAX_MEMBERS:
        raise EncodingError(
            f"a study has at most {MAX_MEMBERS} nodes, {len(signatures)} signatures came"
        )
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
    **dict.fromkeys(("step", "error", "message", "culprit", "reason"), one_line),
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
    cls = error_classes().get(failure.error, UmpcError)
    return cls(failure.message, culprit=failure.culprit or None, step=failure.step or None)
