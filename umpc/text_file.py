"""Small files of text that a person names, and text of others that is safe on a screen.

They are read and written, or an error says why that failed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from collections.abc import Mapping
from html import escape as escaped
from pathlib import Path
from typing import Any

DIGITS = 16
"""Digits of a hash in a file's name."""
NODE = "a node's configuration"
STUDY = "the file of a study"
TRAINING = "the file of a training"
KINDS = {
    NODE: {"data", "datasets", "budget", "policy", "ledger"},
    TRAINING: {"loss", "steps", "clip", "patience"},
    STUDY: {"statistic", "kernel", "statistics", "adversary", "protocol"},
}
"""Kind of a TOML file → keys that only files of this kind have at their top."""


def read_text(path: Path, expected: str, failure: type[Exception]) -> str:
    """Return the text of a file in UTF-8.

    Args: expected: the kind of file, as "a study file". failure: the class of the error.
    Raises: failure, for a file that cannot be read and for one that is no text.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise failure(f"{path}: {expected} was expected, {why_unread(error)}") from error


def check_new(*paths: Path, failure: type[Exception]) -> None:
    """Check that nothing would be overwritten. Raises: failure."""
    for path in paths:
        if path.exists():
            raise failure(
                f"{path} exists already, and was not changed: give another name, or move it away"
            )


def check_writable(path: Path, what: str, failure: type[Exception]) -> None:
    """Check that a file can be written, before work that costs time or epsilon.

    Args: what: the file is for, as "the model". Raises: failure.
    """
    try:
        if path.exists():
            path.open("ab").close()
        else:
            tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise failure(
            f"{path}: {what} could not be written there ({error.strerror}), and nothing was done. "
            "Correct the path, or check the folder, its owner and its mode"
        ) from None


def write_text(path: Path, text: str, what: str, failure: type[Exception]) -> Path:
    """Write a file, and return its path. Args: what: it holds, as "the report". Raises: failure."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise failure(
            f"{path}: {what} cannot be written ({error.strerror}): make room, or check the folder, "
            "its owner and its mode"
        ) from error
    return path


def keep_evidence(beside: Path, evidence: bytes) -> str:
    """Write evidence of a lie into a file of its own, for its owner only. Returns: where, in words.

    Its name has the evidence's SHA-256, as the message of the failure has it. A full disk says so,
    and does not hide the failure.
    """
    name = hashlib.sha256(evidence).hexdigest()[:DIGITS]
    path = beside.with_name(f"{beside.name}.evidence-{name}.json").resolve()
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(file, "wb") as opened:
            opened.write(evidence)
    except OSError as error:
        return f"the evidence could not be written into {path}: {error.strerror}"
    return f"the evidence is in {path}; the dealer must not see it"


def why_unread(error: Exception) -> str:
    """Return why a file was not read, and what to do: the end of a sentence.

    Args: error: an OSError, or the UnicodeError of a file in another encoding than UTF-8.
    """
    if isinstance(error, UnicodeError):
        return "and the file is no text in UTF-8. Correct the path, or save the file as UTF-8"
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.ENOENT, errno.ENOTDIR):
        return "and there is no such file. Correct the path"
    if number == errno.EISDIR:
        return "and this is a folder. Name a file in it"
    if number in (errno.EACCES, errno.EPERM):
        return "and this user may not read it. Check the owner and the mode of file and folder"
    reason = error.strerror if isinstance(error, OSError) else None
    return f"and it cannot be read ({reason or error}). Check the path, the mode and the disk"


def other_kind(values: Mapping[str, Any], own: str) -> str | None:
    """Return what a TOML file is by its keys, if it is of another kind than `own` of KINDS.

    A file with one key of its own kind is of that kind, whatever else is wrong in it.
    """
    if KINDS[own] & values.keys():
        return None
    return next((kind for kind, keys in KINDS.items() if keys & values.keys()), None)


def refuse_other_kind(
    path: Path, values: Mapping[str, Any], own: str, failure: type[Exception]
) -> None:
    """Refuse an empty TOML file, and one of another kind than `own` of KINDS. Raises: failure."""
    if not values:
        raise failure(f"{path}: {own} was expected, and the file is empty. Correct the path")
    kind = other_kind(values, own)
    if kind is not None:
        raise failure(f"{path}: {own} was expected, and this is {kind}. Correct the path")


# --- text on a screen ----------------------------------------------------------------------------


def printable(text: str) -> str:
    """Return a text without the characters that steer a terminal or turn the direction of letters.

    A study's name is its coordinator's. With a line feed it could forge a line of the output, and
    with other characters it could hide what stands beside it. Every kind of blank becomes a space,
    and any other character that cannot be printed a question mark.
    """
    if text.isprintable():
        return text
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character.isspace() else "?"


def escape(text: str) -> str:
    """Return a text for HTML, in which no character turns the direction of others."""
    return escaped(printable(text))
