"""Checks of bytes and texts that come from outside. Each raises EncodingError."""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import DecodeError
from google.protobuf.message import Message as ProtobufMessage

from umpc.errors import EncodingError

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
