"""The state of a data file: its identity on the disk, and a hash of its content.

The content decides. Times of a file cannot: two writes within one tick of the file system's clock
leave one time, a store into mapped memory may leave none, and a file server may answer with an old
one. So every study reads all bytes of its file, and only parsing is saved: hashing takes two or
three milliseconds a megabyte, and parsing takes a hundred times as long. The identity says when a
look at the content is due at all, where nobody waits for it (`umpc/node/cache_watch.py`).
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path

HASH_BYTES = 32


@dataclass(frozen=True)
class FileIdentity:
    """The place of a file and its times: device, inode, bytes, and nanoseconds of two changes.

    Equal identities do not prove equal content.
    """

    device: int
    inode: int
    size: int
    modified: int
    changed: int

    @classmethod
    def of(cls, path: Path) -> FileIdentity:
        """Return the identity of the file at a path. Raises: OSError."""
        return cls._from(path.stat())

    @classmethod
    def _from(cls, found: os.stat_result) -> FileIdentity:
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


@dataclass(frozen=True)
class FileState:
    """A file's identity and the BLAKE2b hash of all its bytes, which stays in memory.

    Two states are equal where the content is equal and the file was not written in between, as far
    as its identity tells.
    """

    identity: FileIdentity
    content: bytes = field(repr=False)

    @classmethod
    def of(cls, path: Path) -> FileState:
        """Read all bytes of a file. Raises: OSError."""
        with path.open("rb", buffering=0) as file:
            identity = FileIdentity._from(os.fstat(file.fileno()))
            digest = hashlib.file_digest(file, _blake2b)
        return cls(identity, digest.digest())


def _blake2b() -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=HASH_BYTES)
