"""The state of a table's files: their identities on the disk, and a hash of their content.

The content decides. Times of a file cannot: two writes within one tick of the file system's clock
leave one time, a store into mapped memory may leave none, and a file server may answer with an old
one. So every study reads all bytes of its file, and only parsing is saved: hashing takes two or
three milliseconds a megabyte, and parsing takes a hundred times as long. The identity says when a
look at the content is due at all, where nobody waits for it (`umpc/node/cache_watch.py`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
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


Identities = tuple[tuple[str, FileIdentity], ...]
"""The path and the identity of each file of a table, in the table's order."""


def identities(files: Sequence[Path]) -> Identities:
    """Return the identities of a table's files, at least one. Raises: OSError."""
    if not files:
        raise FileNotFoundError("a table without a file")
    return tuple((str(path), FileIdentity.of(path)) for path in files)


@dataclass(frozen=True)
class FileState:
    """The identities of a table's files and the BLAKE2b hash of all their bytes and names.

    Two states are equal where the content is equal and no file was written, added, renamed or
    removed in between, as far as identities tell. The hash stays in memory.
    """

    identity: Identities
    content: bytes = field(repr=False)

    @classmethod
    def of(cls, files: Sequence[Path]) -> FileState:
        """Read all bytes of a table's files, at least one. Raises: OSError."""
        found = identities(files)
        seen, whole = [], _blake2b()
        for path in files:
            name = str(path)
            with path.open("rb", buffering=0) as file:
                seen.append((name, FileIdentity._from(os.fstat(file.fileno()))))
                digest = hashlib.file_digest(file, _blake2b)
            whole.update(b"%d\0" % len(name.encode()) + name.encode() + digest.digest())
        if tuple(seen) != found:
            raise OSError("a file of the table was exchanged while it was read")
        return cls(found, whole.digest())


def _blake2b() -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=HASH_BYTES)
