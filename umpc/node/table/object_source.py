"""Objects of a store with the S3 API as a site's table: what the site's administrator writes.

The configuration never holds a key. Keys are in a file that only the node's user may read, in the
form of AWS's own `credentials` file, or in the environment as the same names in capital letters.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from configparser import ConfigParser, Error
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import Path
from urllib.parse import urlsplit

from umpc.node.table.sql_source import LOOPBACK, wrong_password_file

S3 = "s3://"
ADDRESS = rf"{S3}([a-z0-9][a-z0-9.-]{{1,61}}[a-z0-9])/([^\x00-\x1f]+)"
MEGABYTE = 1_000_000
WILDCARDS = set("*?[")
KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")


@dataclass(frozen=True, repr=False)
class AccessKey:
    """The keys of a user of a store, which no repr shows. token: of a session, or empty."""

    id: str
    secret: str
    token: str


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
    region: str = "us-east-1"
    credentials_file: Path | None = None
    most_bytes: int = 4000 * MEGABYTE

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

    def key_of_store(
        self, environment: Mapping[str, str] = os.environ
    ) -> tuple[AccessKey | None, str]:
        """Return the keys; or None, and what is wrong with their file. It shows nothing of it."""
        found = [environment.get(name.upper(), "") for name in KEYS]
        if (path := self.credentials_file) is not None:
            if wrong := wrong_password_file(path):
                return None, wrong
            parser = ConfigParser(interpolation=None, default_section="")
            try:
                parser.read_string(path.read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError, Error) as error:
                return None, type(error).__name__
            found = [parser.get("default", name, fallback="") for name in KEYS]
        if found[0] and found[1]:
            return AccessKey(*found), ""
        return None, f"it has no section [default] with {KEYS[0]} and {KEYS[1]}"


def _fits(names: Sequence[str], patterns: Sequence[str]) -> bool:
    """Whether the parts of a key fit a pattern's. A part that begins with a dot is hidden."""
    if not patterns or not names:
        return not patterns and not names
    first, rest = patterns[0], patterns[1:]
    is_seen = first.startswith(".") or not names[0].startswith(".")
    if first == "**" and rest:
        return (is_seen and _fits(names[1:], patterns)) or _fits(names, rest)
    return is_seen and fnmatchcase(names[0], first) and _fits(names[1:], rest)


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
    is_whole = parts.scheme in ("http", "https") and parts.hostname
    return "" if is_whole else "it is not written as https://HOST:PORT"
