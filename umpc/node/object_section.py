"""The keys of a configuration's [data] that name objects of a store as the table."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from umpc.errors import ConfigError
from umpc.node.table.object_source import (
    DEFAULT_MEGABYTES,
    DEFAULT_REGION,
    MEGABYTE,
    REGION,
    S3,
    ObjectSource,
    wrong_address,
    wrong_credentials_file,
    wrong_endpoint,
)

OBJECT_KEYS = ("endpoint", "region", "credentials_file", "object_megabytes")
"""The keys that only objects have."""
ADDRESS = 'the address of objects, like "s3://bucket/visits/*.parquet"'
ENDPOINT = 'the address of a store with TLS, like "https://minio.site:9000"'


class HasKeys(Protocol):
    """A section of the configuration, whose values are checked as they are read."""

    def text(self, key: str, pattern: str, expected: str, default: str | None = None) -> str:
        """Return a text that matches the pattern."""
        ...

    def count(self, key: str, default: int = 0) -> int:
        """Return a whole number, 0 or more."""
        ...

    def file_of_key(self, key: str) -> Path | None:
        """Return the path of a file, or None if the key is missing."""
        ...

    def wrong(self, key: str, expected: str, found: object) -> ConfigError:
        """Return the error for a value that was not expected."""
        ...


def objects_of(section: HasKeys, *, reads_table: bool = True) -> ObjectSource:
    """Return the objects that a section names.

    Args: reads_table: the file with the credentials must be there. Raises: ConfigError.
    """
    url = section.text("url", r"(?s).*", ADDRESS)
    if wrong := wrong_address(url):
        raise section.wrong("url", ADDRESS, wrong)
    bucket, _, pattern = url.removeprefix(S3).partition("/")
    region = section.text("region", REGION, "the name of a region", DEFAULT_REGION)
    usual = f"https://s3.{region}.amazonaws.com"
    endpoint = section.text("endpoint", r"(?s).*", ENDPOINT, usual)
    if wrong := wrong_endpoint(endpoint):
        # it might hold a password, so it is not shown
        raise section.wrong("endpoint", ENDPOINT, wrong)
    file = section.file_of_key("credentials_file")
    if reads_table and file is not None and (wrong := wrong_credentials_file(file)):
        raise section.wrong("credentials_file", "a file that only the node's user reads", wrong)
    most = MEGABYTE * section.count("object_megabytes", DEFAULT_MEGABYTES)
    return ObjectSource(bucket, pattern, endpoint.rstrip("/"), region, file, most)
