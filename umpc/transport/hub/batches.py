"""Several frames in one message: each message costs a hub more than the bytes of a small frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from umpc.proto.v1 import umpc_pb2 as pb

MOST_FRAMES = 256
MOST_BYTES = 1 << 17
"""Bytes after which no further frame joins a message."""


def gathered(take: Callable[[], pb.HubFrame | None]) -> pb.HubFrame | None:
    """Return what waits, as one frame, or None if nothing does. Args: take: the next one."""
    frames: list[pb.HubFrame] = []
    size = 0
    while len(frames) < MOST_FRAMES and size < MOST_BYTES:
        frame = take()
        if frame is None:
            break
        frames.append(frame)
        size += len(frame.envelope.body)
    if len(frames) < 2:
        return frames[0] if frames else None
    message = pb.HubFrame()
    message.batch.frames.extend(frames)
    return message


def scattered(frame: pb.HubFrame) -> Sequence[pb.HubFrame]:
    """Return the frames of a message."""
    return frame.batch.frames if frame.WhichOneof("body") == "batch" else (frame,)
