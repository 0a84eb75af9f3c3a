"""Small files of keys and certificates: read with a limit, and written whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from umpc.errors import CertificateError

MAX_BYTES = 1 << 20
"""Largest file that is read. A certificate has about 1000 bytes, an entry of a list about 40."""


def read_file(path: Path, how: str) -> bytes:
    """Return the content of a small file. Raises: CertificateError."""
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


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that no reader ever sees in part. Raises: CertificateError."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise _unwritten(path, error) from None


def write_secret(path: Path, content: bytes) -> None:
    """Write a new file that only its owner can read. Raises: CertificateError, and leaves none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise _unwritten(path, error) from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise _unwritten(path, error) from None


def _unwritten(path: Path, error: OSError) -> CertificateError:
    return CertificateError(
        f"{path} cannot be written ({error.strerror}): make room, or check owner and mode"
    )
