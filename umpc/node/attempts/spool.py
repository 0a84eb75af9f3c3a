"""Material that waits on disk for a run: without a name, encrypted under a key of this process alone, read once.

The file has no name in its folder (O_TMPFILE, else unlinked at once), so nothing is left however the process ends. Its
key is drawn here and is nowhere but in this process's memory, so that what a disk still holds after a crash, or a copy
of the disk that is put back, is noise to everybody. AES-256-GCM with the payload's number as nonce: a key and a nonce
never meet twice, and what was changed on disk is noticed. Payloads come out in the order in which they went in, each
once; its place is given back to the disk before it is used.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from umpc.errors import LocalProtocolError, PreparationError

TAG_BYTES = 16
KEEP_SIZE_PUNCH_HOLE = 0x01 | 0x02
_fallocate = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)  # Linux


class Spool:
    """Args: folder: where the file lies. dealer: whose material it is, for errors."""

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
        """On disk, tags included."""
        return self._ends[-1] - self._ends[self._taken]

    def add(self, payload: bytes) -> None:
        """Raises: PreparationError where the disk does not take it."""
        with self._lock:
            sealed = memoryview(self._open().encrypt(_nonce(len(self._ends) - 1), payload, None))
            end = self._ends[-1]
            with _disk_refuses():
                while sealed:
                    written = os.pwrite(self._file.fileno(), sealed, end)
                    sealed, end = sealed[written:], end + written
            self._ends.append(end)

    async def read_ahead(self, window: int) -> None:
        """Take what fits into a window, so that it is at hand when the data come."""
        while (
            self._taken + 1 < len(self._ends)
            and window >= self._ends[self._taken + 1] - self._ends[self._taken]
        ):
            self._at_hand.append(await asyncio.to_thread(self.take))
            window -= len(self._at_hand[-1]) + TAG_BYTES

    async def next(self) -> bytes:
        """The next payload, at hand or off the disk."""
        return self._at_hand.popleft() if self._at_hand else await asyncio.to_thread(self.take)

    def take(self) -> bytes:
        """The next payload; whatever happens, it is never handed out again."""
        with self._lock:
            cipher, number = self._open(), self._taken
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
                "the material that was prepared has changed on disk, so the run ends; run the study anew"
            ) from None

    def close(self) -> None:
        """Key and file are gone; a second time does nothing."""
        with self._lock:  # nobody may still read or free a place of a file that is no longer ours
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
                break  # shorter than it was: the tag will not fit
            start, size = start + len(parts[-1]), size - len(parts[-1])
        return b"".join(parts)

    def _forget(self, start: int, size: int) -> None:
        """Give the place back. Where the system cannot, it is freed with the file; the key is what counts."""
        if _fallocate is not None:
            _fallocate(
                self._file.fileno(),
                KEEP_SIZE_PUNCH_HOLE,
                ctypes.c_int64(start),
                ctypes.c_int64(size),
            )


def _nonce(number: int) -> bytes:
    return number.to_bytes(12, "little")


@contextmanager
def _disk_refuses() -> Iterator[None]:
    """What the disk says against it is for the site's administrator."""
    try:
        yield
    except OSError as error:
        raise PreparationError(
            "its disk does not take the material, so the study cannot be prepared ahead there; run it without, or have "
            "its administrator look",
            detail=f"{error.strerror}, in the ledger's folder",
        ) from error
