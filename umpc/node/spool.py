"""Material on disk that waits for a run: encrypted, without a file name, and read once.

The file has no name in its folder (O_TMPFILE, else unlinked at once), so nothing is left however
the process ends. The key is drawn here and is only in this process's memory. The bytes on the disk
after a crash, or on a copy of the disk, are therefore noise to everybody.

The cipher is AES-256-GCM with the payload's number as nonce: the same key and nonce are never used
twice, and a change on disk is detected. Payloads come out in the order in which they went in, each
once. A payload's place is given back to the disk before the payload is used.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import shutil
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from umpc.errors import LocalProtocolError, PreparationError
from umpc.study.document import Study

TAG_BYTES = 16
KEEP_SIZE_PUNCH_HOLE = 0x01 | 0x02
_fallocate = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)  # Linux


class Spool:
    """Payloads on disk. Args: folder: the file's folder. dealer: its sender's name, for errors;
    the node's own where nothing is dealt."""

    def __init__(self, folder: Path, dealer: str):
        self.dealer = dealer
        self._cipher: AESGCM | None = AESGCM(os.urandom(32))
        self._ends = [0]
        self._taken = 0
        self._at_hand: deque[bytes] = deque()
        self._lock = threading.Lock()
        with _disk_refuses():
            self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115

    def __repr__(self) -> str:
        return f"Spool({len(self._ends) - 1} payloads, {self._taken} taken, <redacted>)"

    @property
    def bytes_waiting(self) -> int:
        """Bytes on disk, with the tags."""
        return self._ends[-1] - self._ends[self._taken]

    def add(self, payload: bytes) -> None:
        """Append a payload. Raises: PreparationError if the disk refuses it."""
        with self._lock:
            number = len(self._ends) - 1
            sealed = memoryview(self._open().encrypt(_nonce(number), payload, None))
            end = self._ends[-1]
            with _disk_refuses():
                while sealed:
                    written = os.pwrite(self._file.fileno(), sealed, end)
                    sealed = sealed[written:]
                    end += written
            self._ends.append(end)

    async def read_ahead(self, window: int) -> None:
        """Take the payloads that fit into `window` bytes, so that they are ready for the data."""
        while self._taken + 1 < len(self._ends):
            start, end = self._ends[self._taken : self._taken + 2]
            if window < end - start:
                break
            self._at_hand.append(await asyncio.to_thread(self.take))
            window -= len(self._at_hand[-1]) + TAG_BYTES

    async def next(self) -> bytes:
        """Return the next payload, read ahead or from the disk."""
        if self._at_hand:
            return self._at_hand.popleft()
        return await asyncio.to_thread(self.take)

    def take(self) -> bytes:
        """Return the next payload from the disk. In every case it is never handed out again.

        Raises: PreparationError if it changed on disk, LocalProtocolError if there is none.
        """
        with self._lock:
            cipher = self._open()
            number = self._taken
            if number + 1 == len(self._ends):
                raise LocalProtocolError(
                    f"{number} payloads were prepared, and one more was asked for"
                )
            self._taken += 1
            start, end = self._ends[number : number + 2]
            sealed = self._read(start, end - start)
            self._forget(start, end - start)
        try:
            return cipher.decrypt(_nonce(number), sealed, None)
        except InvalidTag:
            raise PreparationError(
                "the material that was prepared has changed on disk, so the run ends; "
                "run the study anew"
            ) from None

    def close(self) -> None:
        """Forget the key and give up the file. A second call does nothing."""
        with self._lock:  # no thread may still read or free a place of a file that is gone
            self._cipher = None
            self._at_hand.clear()
            self._file.close()

    def _open(self) -> AESGCM:
        if self._cipher is None:
            raise LocalProtocolError("the prepared material is gone: it was dropped or used")
        return self._cipher

    def _read(self, start: int, size: int) -> bytes:
        parts = []
        while size:
            parts.append(os.pread(self._file.fileno(), size, start))
            if not parts[-1]:
                break  # the file became shorter, so the tag will not fit
            start += len(parts[-1])
            size -= len(parts[-1])
        return b"".join(parts)

    def _forget(self, start: int, size: int) -> None:
        """Give a place back to the disk. A system that cannot do this frees it with the file.

        The secrecy depends on the key alone.
        """
        if _fallocate is not None:
            _fallocate(
                self._file.fileno(),
                KEEP_SIZE_PUNCH_HOLE,
                ctypes.c_int64(start),
                ctypes.c_int64(size),
            )


def room_for(folder: Path, own: str, study: Study, size: int) -> Spool:
    """Return a place in a folder for so many bytes of a study's material. Args: own: this node.

    Raises: PreparationError if it would take more than half of the disk's free space.
    """
    free = shutil.disk_usage(folder).free
    if size > free // 2:
        raise PreparationError(
            f"the material of this study takes {size:,} bytes, for which its disk has no room; "
            "run the study without preparation, or have its administrator make room",
            detail=f"{free:,} bytes are free in {folder}, of which at most half are taken",
        )
    return Spool(folder, study.dealer.name if study.dealer else own)


def _nonce(number: int) -> bytes:
    return number.to_bytes(12, "little")


@contextmanager
def _disk_refuses() -> Iterator[None]:
    """Turn a refusal by the disk into a PreparationError. Its reason is for the administrator."""
    try:
        yield
    except OSError as error:
        raise PreparationError(
            "its disk does not take the material, so the study cannot be prepared ahead there; "
            "run it without, or have its administrator look",
            detail=f"{error.strerror}, in the ledger's folder",
        ) from error
