"""Objects of a store with the S3 API as a site's table: what the site's administrator writes.

The configuration never holds a key. Keys are in a file that only the node's user may read, in the
form of AWS's own `credentials` file, or in the environment as AWS_ACCESS_KEY_ID,
AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from configparser import ConfigParser, Error
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import Path
from urllib.parse import urlsplit

from umpc.node.table.sql_source import LOOPBACK, wrong_password_file

S3 = "s3://"
BUCKET = r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
REGION = r"[A-Za-z0-9-]{1,40}"
DEFAULT_REGION = "us-east-1"
MEGABYTE = 1_000_000
DEFAULT_MEGABYTES = 4000
WILDCARDS = set("*?[")
SECTION = "default"
IN_FILE = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
IN_ENVIRONMENT = tuple(name.upper() for name in IN_FILE)


@dataclass(frozen=True)
class AccessKey:
    """The keys of a user of a store. token: of a session, or empty."""

    id: str = field(repr=False)
    secret: str = field(repr=False)
    token: str = field(repr=False)


@dataclass(frozen=True)
class ObjectSource:
    """Objects of one bucket.

    pattern: their key, or a pattern of keys, as of `TableSource.path`.
    endpoint: the store's address.
    credentials_file: the file with the keys; None where the environment has them.
    most_bytes: of all objects together, which are in memory while a study reads them.
    """

    bucket: str
    pattern: str
    endpoint: str
    region: str = DEFAULT_REGION
    credentials_file: Path | None = None
    most_bytes: int = DEFAULT_MEGABYTES * MEGABYTE

    @property
    def url(self) -> str:
        """The table's address."""
        return f"{S3}{self.bucket}/{self.pattern}"

    @property
    def is_pattern(self) -> bool:
        """Whether the key has wildcards."""
        return bool(set(self.pattern) & WILDCARDS)

    @property
    def folder(self) -> str:
        """The beginning of all keys, up to the last slash before a wildcard."""
        parts = self.pattern.split("/")[:-1]
        return "/".join(takewhile(lambda part: not set(part) & WILDCARDS, parts))

    def fits(self, key: str) -> bool:
        """Whether a key fits the pattern. A * stops at a slash, and a ** does not."""
        return _fits(key.split("/"), self.pattern.split("/"))

    def key_of_store(self, environment: Mapping[str, str] = os.environ) -> AccessKey | None:
        """Return the keys; None where there are none.

        Raises: OSError, UnicodeDecodeError, configparser.Error for the file.
        """
        found = [environment.get(name, "") for name in IN_ENVIRONMENT]
        if self.credentials_file is not None:
            parser = ConfigParser(interpolation=None, default_section="")
            parser.read_string(self.credentials_file.read_text(encoding="utf-8"))
            section = parser[SECTION] if parser.has_section(SECTION) else {}
            found = [section.get(name, "") for name in IN_FILE]
        return AccessKey(*found) if found[0] and found[1] else None


def _fits(names: Sequence[str], patterns: Sequence[str]) -> bool:
    """Whether the parts of a key fit a pattern's. A part that begins with a dot is hidden."""
    if not patterns or not names:
        return not patterns and not names
    first, rest = patterns[0], patterns[1:]
    if first == "**" and rest:
        is_below = not names[0].startswith(".") and _fits(names[1:], patterns)
        return is_below or _fits(names, rest)
    is_seen = first.startswith(".") or not names[0].startswith(".")
    return is_seen and fnmatchcase(names[0], first) and _fits(names[1:], rest)


def wrong_address(url: str) -> str:
    """Return what is wrong with the address of objects, or ""."""
    found = re.fullmatch(rf"{S3}({BUCKET})/([^\x00-\x1f]+)", url)
    if found is None:
        return "it is not written as s3://BUCKET/KEY, where KEY may be a pattern"
    if any(part in ("", ".", "..") for part in found[2].split("/")):
        return "its key has an empty part, or . or .. as one"
    return ""


def wrong_endpoint(endpoint: str) -> str:
    """Return what is wrong with a store's address, or ""."""
    try:
        parts = urlsplit(endpoint)
        _ = parts.port
    except ValueError:
        return "it is no address"
    if parts.username or parts.password or parts.query or parts.fragment:
        return "it holds more than scheme, host and port"
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        return "without TLS, records would cross the network in the clear; write https://"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "it is not written as https://HOST:PORT"
    return ""


def wrong_credentials_file(path: Path) -> str:
    """Return what is wrong with the file of keys, or "". It shows nothing of its text."""
    if wrong := wrong_password_file(path):
        return wrong
    try:
        found = ObjectSource("", "", "", credentials_file=path).key_of_store()
    except (OSError, UnicodeDecodeError, Error) as error:
        return type(error).__name__
    return "" if found else f"it has no section [{SECTION}] with {IN_FILE[0]} and {IN_FILE[1]}"
