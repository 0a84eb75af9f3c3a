"""A study from the bytes that came: in canonical form, of this protocol, or refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

import msgspec

from umpc.errors import EncodingError, LocalProtocolError, VersionMismatch
from umpc.protocol_version import PROTOCOL
from umpc.study.document import Study
from umpc.study.settings import Settings

MAX_BYTES = 1 << 20


def decode_document(data: bytes, kinds: Sequence[type[Settings]], *, stored: bool = False) -> Study:
    """A study from its canonical bytes, of one of these protocols; its rules are not checked yet.

    Args: stored: a site stored the bytes, perhaps under a former version of the protocol.
    Raises: EncodingError where the bytes are not a study, or not canonical; VersionMismatch.
    """
    if len(data) > MAX_BYTES:
        raise EncodingError(f"a study has at most {MAX_BYTES} bytes, got {len(data)}")
    union: Any = Union[tuple(kinds)]  # noqa: UP007  # made at run time

    def settings(expected: type, value: Any) -> Any:
        if expected is not Settings:
            raise LocalProtocolError(f"a study holds no {expected.__name__}")
        return msgspec.convert(value, type=union)

    try:
        version = msgspec.json.decode(data, type=_Version).version
        if version != PROTOCOL and not stored:
            raise VersionMismatch(
                f"the study is for protocol {version}, this process speaks protocol {PROTOCOL}; "
                "install versions of umpc with the same protocol"
            )
        study = msgspec.json.decode(data, type=Study, dec_hook=settings)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise EncodingError(f"the study's bytes do not decode: {error}") from error
    if study.encode() != data:
        raise EncodingError(
            "the study's bytes are not in canonical form; install the same version of umpc "
            "everywhere"
        )
    return study.replaced(version=PROTOCOL) if stored else study


class _Version(msgspec.Struct):
    version: str
