"""A table's objects, read from a store with the S3 API into memory: all of one state of the bucket.

The package `obstore` speaks to the store. It is installed by the extra `s3` and loaded when a
node first reads. Objects are listed, and each is read with the ETag of the list as a condition
(If-Match), in pieces. Then the objects are listed again. If one was written, added or removed in
between, the reading fails. So a study sees no mixture of two states.

Each object is an anonymous file in memory, and no byte of it reaches a disk. Names that lead to
these files are in a folder of this process's user, while the table is read.

An error never holds the store's own text, which may quote addresses and keys. It says the class and
what to do.
"""

from __future__ import annotations

import importlib
import logging
import time
from collections.abc import Iterable, Iterator
from configparser import Error as ConfigFileError
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from umpc.errors import ConfigError, DataError, UmpcError, installing
from umpc.node.table.given_up import check_waited_for
from umpc.node.table.memory_file import named_file
from umpc.node.table.object_source import (
    IN_ENVIRONMENT,
    MEGABYTE,
    AccessKey,
    ObjectSource,
    wrong_credentials_file,
)
from umpc.node.table.source import TableSite, TableSource

log = logging.getLogger("umpc.node")

PIECE = 8 * MEGABYTE
"""Bytes that one request reads."""
CONNECT_SECONDS = 15
REQUEST_SECONDS = 60
RETRIES = 3
PROGRESS_SECONDS = 5

BUCKET_IS_MISSING = "there is no such bucket: correct url under [data]"
OBJECT_IS_MISSING = "there is no such object: correct url under [data]"
SAID = {
    "NoSuchBucket": BUCKET_IS_MISSING,
    "NoSuchKey": OBJECT_IS_MISSING,
    "InvalidAccessKeyId": "the store does not know the access key: correct credentials_file",
    "SignatureDoesNotMatch": "the secret key is not that of the access key: correct "
    "credentials_file, or region under [data]",
    "RequestTimeTooSkewed": "this machine's clock differs from the store's: correct it",
    "ExpiredToken": "the session of the keys is over: renew them",
    "InvalidToken": "the session of the keys is unknown: renew them",
    "AuthorizationHeaderMalformed": "the store is in another region: correct region under [data]",
    "PermanentRedirect": "the bucket is elsewhere: correct endpoint and region under [data]",
    "AccessDenied": "the keys may not list or read these objects: allow s3:ListBucket and "
    "s3:GetObject for them",
    "certificate": "the store's certificate is not accepted: correct endpoint under [data], or "
    "install the authority's certificate on this machine",
    "dns error": "the host has no address: correct endpoint under [data]",
    "Connection refused": "nothing listens there: correct endpoint under [data], or start it",
    "timed out": "the store did not answer in time: look at the firewall between",
}
"""Words of a store's text → what to do. The text itself is shown to nobody."""
OF_CONFIGURATION = (
    *("NoSuchBucket", "NoSuchKey", "InvalidAccessKeyId", "SignatureDoesNotMatch"),
    *("ExpiredToken", "InvalidToken", "AuthorizationHeaderMalformed", "PermanentRedirect"),
    "AccessDenied",
)
"""Words of SAID that the administrator can only correct in the configuration or at the store."""


@dataclass(frozen=True)
class StoredObject:
    """An object as the store lists it. etag: changes with the content."""

    key: str
    size: int
    etag: str


class ObjectStore:
    """The objects of a table. Raises: ConfigError without the extra or without keys."""

    def __init__(self, source: ObjectSource, site: TableSite):
        self._source = source
        self._site = site
        self._library = _library(site)
        self._store = self._opened(_access_key(source, site))

    def __repr__(self) -> str:
        return f"ObjectStore({self._source.url})"

    def listed(self) -> list[StoredObject]:
        """Return the table's objects in the order of their keys. Raises: ConfigError, DataError."""
        found: list[StoredObject] = []
        with self._errors():
            for page in self._pages():
                check_waited_for()
                fitting = (each for each in page if self._source.fits(each["path"]))
                found += map(self._described, fitting)
        if not found:
            raise self._error(ConfigError, OBJECT_IS_MISSING)
        return sorted(found, key=lambda each: each.key)

    def read(self, each: StoredObject, start: int) -> bytes:
        """Return a piece of an object that has still the listed ETag. Raises: DataError."""
        stop = min(start + PIECE, each.size)
        options = {"if_match": each.etag, "range": (start, stop)}
        with self._errors():
            answer = self._library.get(self._store, each.key, options=options)
            # A store may ignore the condition.
            if answer.meta["e_tag"] == each.etag and answer.meta["size"] == each.size:
                piece = _at_most(stop - start, answer.stream())
                if len(piece) == stop - start:
                    return piece
        raise self.changed()

    def changed(self) -> UmpcError:
        """Return the error for objects that were written meanwhile."""
        return self._site.error(
            DataError,
            "the table's objects were expected to stay as they are while they are read, and they "
            "were changed, added or removed meanwhile. Write them first, and then run the study "
            "again",
            self._source.url,
        )

    def _pages(self) -> Iterable[Iterable[Any]]:
        """The objects below the pattern's folder; only those inside it for a single key."""
        folder = self._source.folder or None
        if self._source.is_pattern:
            pages: Iterable[Iterable[Any]] = self._library.list(self._store, folder)
            return pages
        return [self._library.list_with_delimiter(self._store, folder)["objects"]]

    def _described(self, meta: Any) -> StoredObject:
        if not meta["e_tag"]:
            raise self._error(DataError, "the store gives no ETags, so changes cannot be seen")
        return StoredObject(meta["path"], meta["size"], meta["e_tag"])

    def _opened(self, key: AccessKey) -> Any:
        source = self._source
        config = {"access_key_id": key.id, "secret_access_key": key.secret}
        if key.token:
            config["session_token"] = key.token
        timeouts = {
            "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
            "timeout": timedelta(seconds=REQUEST_SECONDS),
        }
        return self._library.store.S3Store(
            source.bucket,
            **config,
            endpoint=source.endpoint,
            region=source.region,
            virtual_hosted_style_request=False,
            client_options={"allow_http": source.endpoint.startswith("http://"), **timeouts},
            retry_config={"max_retries": RETRIES},
        )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn the library's errors into the project's, without any of their text."""
        exceptions = self._library.exceptions
        try:
            yield
        except exceptions.PreconditionError:
            raise self.changed() from None
        except (exceptions.BaseError, FileNotFoundError, ValueError, OSError) as error:
            cls, reason = _why(error)
            raise self._error(cls, reason) from None

    def _error(self, cls: type[UmpcError], reason: str) -> UmpcError:
        return self._site.error(
            cls,
            "the table was expected from the site's object store, and it could not be read. The "
            "node's own log says why",
            f"{self._source.url}: {reason}",
        )


@contextmanager
def fetched(source: TableSource, site: TableSite) -> Iterator[TableSource]:
    """Read a table's objects into memory, and yield the table as files there.

    Raises: ConfigError, DataError; also where the objects were changed meanwhile.
    """
    objects = source.objects
    assert objects is not None
    store = ObjectStore(objects, site)
    found = store.listed()
    _check(found, objects, site)
    with TemporaryDirectory(prefix="umpc-names-") as folder, ExitStack() as opened:
        progress = _BytesSoFar(sum(each.size for each in found))
        for each in found:
            file = opened.enter_context(named_file(Path(folder, each.key), site))
            for start in range(0, each.size, PIECE):
                check_waited_for()
                file.write(store.read(each, start))
                progress.tell(min(PIECE, each.size - start))
        if store.listed() != found:
            raise store.changed()
        path = Path(folder, objects.pattern)
        yield replace(source, objects=None, path=path, is_pattern=objects.is_pattern)


def _check(found: list[StoredObject], source: ObjectSource, site: TableSite) -> None:
    """Raises: DataError for names that are no paths, and for more bytes than memory may take."""
    size = sum(each.size for each in found)
    if size > source.most_bytes:
        raise site.error(
            DataError,
            "the table's objects were expected to fit the memory that the node's configuration "
            "allows them, and they do not. Raise object_megabytes under [data], or correct url",
            f"{size / MEGABYTE:.0f} MB, and {source.most_bytes // MEGABYTE} MB are allowed",
        )
    parts = {part for each in found for part in each.key.split("/")}
    if parts & {"", ".", ".."} or any("\0" in part or len(part.encode()) > 255 for part in parts):
        raise site.error(
            DataError,
            "the keys of the table's objects were expected to be names of files, and one of them "
            "is not. Rename it, or correct url under [data]",
        )


def _access_key(source: ObjectSource, site: TableSite) -> AccessKey:
    """Return the keys. Raises: ConfigError; it shows a file's name and nothing of its text."""
    path = source.credentials_file
    wrong = wrong_credentials_file(path) if path is not None else ""
    try:
        key = None if wrong else source.key_of_store()
    except (OSError, UnicodeDecodeError, ConfigFileError) as error:
        key, wrong = None, type(error).__name__
    if key is None:
        raise site.error(
            ConfigError,
            "keys of the site's object store were expected, and there are none. Write them into "
            f"the file that credentials_file under [data] names, or set {IN_ENVIRONMENT[0]} and "
            f"{IN_ENVIRONMENT[1]} for the node",
            f"{path}: {wrong}" if path is not None else "",
        )
    return key


def _at_most(size: int, parts: Iterable[Any]) -> bytes:
    """Join parts until they are longer than expected: a store may send without end."""
    found = bytearray()
    for part in parts:
        found += part
        if len(found) > size:
            break
    return bytes(found)


def _why(error: Exception) -> tuple[type[UmpcError], str]:
    """Return the class of an error, and what to do about it, without any of its text."""
    said = str(error)
    found = [words for words in SAID if words in said]
    if not found and isinstance(error, FileNotFoundError):
        found = ["NoSuchKey"]
    if not found and type(error).__name__ in ("PermissionDeniedError", "UnauthenticatedError"):
        found = ["AccessDenied"]
    cls = ConfigError if found and found[0] in OF_CONFIGURATION else DataError
    return cls, "; ".join([type(error).__name__, *(SAID[words] for words in found[:1])])


def _library(site: TableSite) -> Any:
    """The module `obstore`. Raises: ConfigError where the extra is missing."""
    try:
        for name in ("obstore.store", "obstore.exceptions"):
            importlib.import_module(name)
        return importlib.import_module("obstore")
    except ImportError:
        raise site.error(
            ConfigError,
            "a table in an object store was expected, and the extra `s3` is not installed at the "
            "site: " + installing("s3"),
        ) from None


class _BytesSoFar:
    """A line in the log every few seconds, for the administrator only. Args: size: all bytes."""

    def __init__(self, size: int):
        self._size = size
        self._read = 0
        self._next = time.monotonic() + PROGRESS_SECONDS

    def tell(self, count: int) -> None:
        """Tell that so many more bytes are read."""
        self._read += count
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + PROGRESS_SECONDS
            log.info(
                "for the administrator only: %.0f of %.0f MB of the table's objects are read",
                self._read / MEGABYTE,
                self._size / MEGABYTE,
            )
