"""A table's objects, read from a store with the S3 API into memory: all of one state of the bucket.

The package `obstore` of the extra `s3` speaks to the store. Objects are listed, and each is read
with the ETag of the list as a condition (If-Match), in pieces. Then they are listed again. If one
was written, added or removed in between, the reading fails: a study sees no mixture of two states.

Each object is an anonymous file in memory, and no byte of it reaches a disk. Names that lead to
these files are in a folder of this process's user, while the table is read. An error never holds
the store's own text, which may quote addresses and keys. It says the class and what to do.
"""

from __future__ import annotations

import errno
import importlib
import logging
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple

from umpc.errors import ConfigError, DataError, UmpcError
from umpc.node.table.given_up import check_waited_for
from umpc.node.table.object_source import KEYS, MEGABYTE, ObjectSource
from umpc.node.table.source import TableSite, TableSource

log = logging.getLogger("umpc.node")

PIECE = 8 * MEGABYTE
"""Bytes that one request reads."""
SECONDS = {"connect_timeout": timedelta(seconds=15), "timeout": timedelta(seconds=60)}
RETRIES = 3
PROGRESS_SECONDS = 5
PROGRESS = "for the administrator only: %.0f of %.0f MB of the table's objects are read"

OBJECT_IS_MISSING = "there is no such object: correct url under [data]"
MAY_NOT = (
    "the keys may not list or read these objects: allow s3:ListBucket and s3:GetObject for them"
)
TO_CORRECT = {
    "NoSuchBucket": "there is no such bucket: correct url under [data]",
    "NoSuchKey": OBJECT_IS_MISSING,
    "InvalidAccessKeyId": "the store does not know the access key: correct credentials_file",
    "SignatureDoesNotMatch": "the secret key is not that of the access key: correct "
    "credentials_file, or region under [data]",
    "ExpiredToken": "the session of the keys is over: renew them",
    "InvalidToken": "the session of the keys is unknown: renew them",
    "AuthorizationHeaderMalformed": "the store is in another region: correct region under [data]",
    "PermanentRedirect": "the bucket is elsewhere: correct endpoint and region under [data]",
    "AccessDenied": MAY_NOT,
}
"""Words of a store's text → what to correct in the configuration or at the store."""
OTHERS = {
    "RequestTimeTooSkewed": "this machine's clock differs from the store's: correct it",
    "certificate": "the store's certificate is not accepted: correct endpoint under [data], or "
    "install the authority's certificate on this machine",
    "dns error": "the host has no address: correct endpoint under [data]",
    "Connection refused": "nothing listens there: correct endpoint under [data], or start it",
    "timed out": "the store did not answer in time: look at the firewall between",
}
"""Words of other failures → what to do."""
FOLDER_OF_ANOTHER = "the key of one object is the folder of another: rename one of the two"
NO_FILE = {
    errno.EMFILE: "each object is one open file: raise the node's limit (LimitNOFILE, ulimit -n), "
    "or write fewer and larger objects",
    errno.EEXIST: FOLDER_OF_ANOTHER,
    errno.ENOTDIR: FOLDER_OF_ANOTHER,
}
"""Why a file in memory or its name cannot be made → what to do."""


class StoredObject(NamedTuple):
    """An object as the store lists it. etag: changes with the content."""

    key: str
    size: int
    etag: str


class ObjectStore:
    """The objects of a table. Raises: ConfigError without the extra or without keys."""

    def __init__(self, source: ObjectSource, site: TableSite):
        self._source = source
        self._site = site
        try:
            names = ("obstore.store", "obstore.exceptions", "obstore")
            store, self._exceptions, self._library = map(importlib.import_module, names)
        except ImportError:
            raise site.without_extra("a table in an object store", "s3") from None
        key, wrong = source.key_of_store()
        if key is None:
            raise site.error(
                ConfigError,
                "keys of the site's object store were expected, and there are none. Write them "
                "into the file that credentials_file under [data] names, or set "
                f"{KEYS[0].upper()} and {KEYS[1].upper()} for the node",
                f"{source.credentials_file}: {wrong}" if source.credentials_file else "",
            )
        self._store: Any = store.S3Store(
            source.bucket,
            access_key_id=key.id,
            secret_access_key=key.secret,
            **({"session_token": key.token} if key.token else {}),
            endpoint=source.endpoint,
            region=source.region,
            virtual_hosted_style_request=False,
            client_options={"allow_http": source.endpoint.startswith("http://"), **SECONDS},
            retry_config={"max_retries": RETRIES},
        )

    def __repr__(self) -> str:
        return f"ObjectStore({self._source.url})"

    def listed(self) -> list[StoredObject]:
        """Return the table's objects in the order of their keys. Raises: ConfigError, DataError."""
        folder, found = self._source.folder or None, []
        with self._errors():
            if self._source.is_pattern:
                pages = self._library.list(self._store, folder)
            else:  # one key: nothing below its folder
                pages = [self._library.list_with_delimiter(self._store, folder)["objects"]]
            for page in pages:
                check_waited_for()
                found += [each for each in page if self._source.fits(each["path"])]
        if not found:
            raise self._error(ConfigError, OBJECT_IS_MISSING)
        if not all(each["e_tag"] for each in found):
            raise self._error(DataError, "the store gives no ETags, so changes cannot be seen")
        return sorted(StoredObject(each["path"], each["size"], each["e_tag"]) for each in found)

    def read(self, each: StoredObject, start: int) -> bytes:
        """Return a piece of an object that has still the listed ETag. Raises: DataError."""
        stop = min(start + PIECE, each.size)
        options = {"if_match": each.etag, "range": (start, stop)}
        piece = bytearray()
        with self._errors():
            answer = self._library.get(self._store, each.key, options=options)
            # A store may ignore the condition, and it may send without end.
            if (answer.meta["size"], answer.meta["e_tag"]) == each[1:]:
                for part in answer.stream():
                    piece += part
                    if len(piece) > stop - start:
                        break
        if len(piece) != stop - start:
            raise self.changed()
        return bytes(piece)

    def changed(self) -> UmpcError:
        """Return the error for objects that were written meanwhile."""
        return self._site.error(
            DataError,
            "the table's objects were expected to stay as they are while they are read, and they "
            "were changed, added or removed meanwhile. Write them first, and then run the study "
            "again",
            self._source.url,
        )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn the library's errors into the project's, without any of their text."""
        try:
            yield
        except self._exceptions.PreconditionError:
            raise self.changed() from None
        except (self._exceptions.BaseError, ValueError, OSError) as error:
            said, name = str(error), type(error).__name__
            advice = [text for words, text in {**TO_CORRECT, **OTHERS}.items() if words in said]
            if not advice and isinstance(error, FileNotFoundError):
                advice = [OBJECT_IS_MISSING]
            if not advice and name in ("PermissionDeniedError", "UnauthenticatedError"):
                advice = [MAY_NOT]
            is_to_correct = advice and advice[0] in TO_CORRECT.values()
            cls = ConfigError if is_to_correct else DataError
            raise self._error(cls, "; ".join([name, *advice[:1]])) from None

    def _error(self, cls: type[UmpcError], reason: str) -> UmpcError:
        return self._site.error(
            cls,
            "the table was expected from the site's object store, and it could not be read. The "
            "node's own log says why",
            f"{self._source.url}: {reason}",
        )


@contextmanager
def fetched(source: TableSource, objects: ObjectSource, site: TableSite) -> Iterator[TableSource]:
    """Read a table's objects into memory, and yield the table as files there.

    Raises: ConfigError, DataError; also where the objects were changed meanwhile.
    """
    store = ObjectStore(objects, site)
    found = store.listed()
    _check(found, objects, site)
    total, read, told = sum(each.size for each in found), 0, time.monotonic()
    with TemporaryDirectory(prefix="umpc-names-") as folder, ExitStack() as opened:
        for each in found:
            file = _named_file(Path(folder, each.key), opened, site)
            for start in range(0, each.size, PIECE):
                check_waited_for()
                read += file.write(store.read(each, start))
                if time.monotonic() >= told + PROGRESS_SECONDS:
                    told = time.monotonic()
                    log.info(PROGRESS, read / MEGABYTE, total / MEGABYTE)
        if store.listed() != found:
            raise store.changed()
        path = Path(folder, objects.pattern)
        yield replace(source, objects=None, path=path, is_pattern=objects.is_pattern)


def _named_file(name: Path, opened: ExitStack, site: TableSite) -> IO[bytes]:
    """Return a file in memory, to which a name leads. Raises: ConfigError, DataError."""
    if not hasattr(os, "memfd_create"):
        raise site.error(
            ConfigError,
            "a table in an object store was expected to be read on Linux, which has files in "
            "memory, and this is another system. Copy the objects into files, and name them as "
            "path under [data]",
        )
    try:
        file = opened.enter_context(os.fdopen(os.memfd_create("umpc-object"), "wb", buffering=0))
        name.parent.mkdir(parents=True, exist_ok=True)
        name.symlink_to(f"/proc/{os.getpid()}/fd/{file.fileno()}")
    except OSError as error:
        advice = [NO_FILE[number] for number in [error.errno] if number in NO_FILE]
        raise site.error(
            DataError,
            "the table's objects were expected to be opened as files in memory, and the system "
            "refused. The node's own log says why",
            "; ".join([os.strerror(error.errno or 0), *advice]),
        ) from None
    return file


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
