"""Small files: written whole or not at all; those of certificates are read with a limit."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from umpc.errors import CertificateError

MAX_BYTES = 1 << 20
"""Largest file that is read. A certificate has about 1000 bytes, an entry of a list about 40."""


def read_file(path: Path, how: str) -> bytes:
    """Return the content of a small file. Raises: CertificateError, above MAX_BYTES too."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise CertificateError(f"{path} is not a file: {how}")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise CertificateError(f"{path} is missing: {how}") from None
    except OSError as error:
        raise CertificateError(
            f"{path} cannot be read ({error.strerror}): check owner and mode"
        ) from None
    if len(content) > MAX_BYTES:
        raise CertificateError(f"{path} has more than {MAX_BYTES} bytes, too many to be one: {how}")
    return content


def check_private(path: Path) -> None:
    """Check that nobody else can read a secret file. Raises: CertificateError.

    A file of root may be readable for its group, because root gives secrets to services that way.
    """
    try:
        found = path.stat()
    except OSError:
        return  # reading it says why
    if not stat.S_ISREG(found.st_mode):
        return
    open_to = stat.S_IRWXO | stat.S_IRWXG
    if found.st_uid == 0 != os.geteuid():
        open_to = stat.S_IRWXO | stat.S_IWGRP | stat.S_IXGRP
    if found.st_mode & open_to:
        raise CertificateError(
            f"{path} is a secret key that others can read (mode {stat.S_IMODE(found.st_mode):03o}, "
            f"600 was expected): run `chmod 600 {path}`, and if somebody may have read it, make a "
            "new key"
        )


def write_durably(
    path: Path,
    content: bytes | Path,
    *,
    draft: Path | None = None,
    mode: int = 0o600,
    on_the_way: Callable[[], None] = lambda: None,
) -> None:
    """Replace a file, by default with one that only its owner can read.

    At every instant the file is the old or the new one; the new one is on disk when this returns.

    Args:
        content: its bytes, or another file with them.
        draft: the file that is written first, beside the file by default. No two processes may
            write the same draft.
        mode: of the new file, less the process's umask.
        on_the_way: called after the new content is on disk and before it takes the old one's place.
    Raises: OSError. No draft is then left.
    """
    draft = draft or Path(f"{path}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        _fill(descriptor, content)
        on_the_way()
        os.replace(draft, path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    fsync_folder(path.parent)


def _fill(descriptor: int, content: bytes | Path) -> None:
    """Write an open file, on disk when this returns, and close it. Raises: OSError."""
    with os.fdopen(descriptor, "wb") as file:
        if isinstance(content, Path):
            with content.open("rb") as former:
                shutil.copyfileobj(former, file)
        else:
            file.write(content)
        file.flush()
        os.fsync(file.fileno())


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file of any size, in hex. Raises: OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fsync_folder(folder: Path) -> None:
    """Write a folder's list of files to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_public(path: Path, content: bytes) -> None:
    """Replace a file that anybody may read, in a folder that may be new. Raises: CertificateError.

    Several processes may write the same file.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    with writing(path):
        write_durably(path, content, draft=draft, mode=0o666)


def write_secret(path: Path, content: bytes) -> None:
    """Write a new file that only its owner can read. Raises: CertificateError, and leaves none."""
    with writing(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            _fill(descriptor, content)
        except OSError:
            path.unlink(missing_ok=True)
            raise


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Make the folder of a file of an identity or an authority, which the block writes.

    Raises: CertificateError where the system refuses.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        yield
    except OSError as error:
        raise CertificateError(
            f"{path} cannot be written ({error.strerror}): make room, or check owner and mode"
        ) from None


@contextmanager
def flocked(path: Path, flags: int = 0) -> Iterator[int]:
    """Open a file, which may be new, and hold its lock in the block. Raises: OSError."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)
