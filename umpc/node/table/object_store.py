"""Objects of a store with the S3 API as a site's table: read into memory, of one state of a bucket.

The configuration never holds a key. Keys are in a file that only the node's user may read, in the
form of AWS's own `credentials` file, or in the environment as the same names in capital letters.

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
import os
from collections.abc import Iterator, Mapping, Sequence
from configparser import ConfigParser, Error
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

from umpc.errors import ConfigError, DataError, UmpcError
from umpc.node.table.source import S3, ObjectSource, TableSite, TableSource
from umpc.node.table.sql_source import wrong_password_file
from umpc.transport.patience import check_waited_for

KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
PIECE = 8_000_000
"""Bytes that one request reads."""
SECONDS = {"connect_timeout": timedelta(seconds=15), "timeout": timedelta(seconds=60)}
RETRIES = 3

NO_KEYS = (
    "keys of the site's object store were expected, and there are none. Write them into the file "
    "credentials_file under [data], or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
)
UNREAD = (
    "the table was expected from the site's object store, and it could not be read. The node's own "
    "log says why"
)
CHANGED = (
    "the table's objects were expected to stay as they are while they are read, and they were "
    "changed, added or removed meanwhile. Write them first, and then run the study again"
)
TOO_LARGE = (
    "the table's objects were expected to fit the memory that the node's configuration allows "
    "them, and they do not. Raise object_megabytes under [data], or correct url"
)
NOT_OPENED = (
    "the table's objects were expected to be opened as files in memory, and the system refused. "
    "The node's own log says why"
)
IS_MISSING = "there is no such object: correct url under [data]"
MAY_NOT = "the keys may not list or read these objects: allow s3:ListBucket and s3:GetObject"
TO_CORRECT = {
    "NoSuchBucket": "there is no such bucket: correct url under [data]",
    "InvalidAccessKeyId": "the store does not know the access key: correct credentials_file",
    "SignatureDoesNotMatch": "the secret key is not that of the access key, or region is wrong",
    "ExpiredToken": "the session of the keys is over: renew them",
    "InvalidToken": "the session of the keys is unknown: renew them",
    "AuthorizationHeaderMalformed": "the store is in another region: correct region under [data]",
    "PermanentRedirect": "the bucket is elsewhere: correct endpoint and region under [data]",
    **dict.fromkeys(("AccessDenied", "PermissionDeniedError", "UnauthenticatedError"), MAY_NOT),
    "FileNotFoundError": IS_MISSING,
}
"""Words of a store's text, or the library's class → what to correct here or at the store."""
OTHERS = {
    "RequestTimeTooSkewed": "this machine's clock differs from the store's: correct it",
    "certificate": "the store's certificate is not accepted: install its authority's here",
    "dns error": "the host has no address: correct endpoint under [data]",
    "Connection refused": "nothing listens there: correct endpoint under [data], or start it",
    "timed out": "the store did not answer in time: look at the firewall between",
}
"""Words of other failures → what to do."""
NO_NAME = (errno.EEXIST, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL)
NO_FILE = {
    **dict.fromkeys(NO_NAME, "a key is no file's name, or it is the folder of another: rename it"),
    errno.EMFILE: "each object is an open file: raise LimitNOFILE, or write larger objects",
    errno.ENOSYS: "only Linux has files in memory: copy the objects, and name them as path",
}
"""Why a file in memory or its name cannot be made → what to do."""


def keys_of_store(
    file: Path | None, environment: Mapping[str, str] = os.environ
) -> tuple[dict[str, str], str]:
    """Return the keys by their names; or none, and what is wrong, which shows no key.

    Args: file: with the keys; None where the environment has them.
    """
    found = {name: environment.get(name.upper(), "") for name in KEYS}
    if file is not None:
        if wrong := wrong_password_file(file):
            return {}, wrong
        parser = ConfigParser(interpolation=None, default_section="")
        try:
            parser.read_string(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, Error) as error:
            return {}, type(error).__name__
        found = {name: parser.get("default", name, fallback="") for name in KEYS}
    if found[KEYS[0]] and found[KEYS[1]]:
        return {name: value for name, value in found.items() if value}, ""
    return {}, f"it has no section [default] with {KEYS[0]} and {KEYS[1]}"


def fits(names: Sequence[str], patterns: Sequence[str]) -> bool:
    """Return whether the parts of a key, which slashes part, fit those of a pattern.

    A ** stands for any number of parts. A part that begins with a dot is hidden.
    """
    if not patterns or not names:
        return not patterns and not names
    first, rest = patterns[0], patterns[1:]
    is_seen = first.startswith(".") or not names[0].startswith(".")
    if first == "**" and rest:
        return (is_seen and fits(names[1:], patterns)) or fits(names, rest)
    return is_seen and fnmatchcase(names[0], first) and fits(names[1:], rest)


class ObjectStore:
    """The objects of a table. Raises: ConfigError without the extra or without keys."""

    def __init__(self, source: TableSource, objects: ObjectSource, site: TableSite):
        self._source, self._objects, self._site = source, objects, site
        try:
            self._library: Any = importlib.import_module("obstore")
        except ImportError:
            raise site.without_extra("a table in an object store", "s3") from None
        keys, wrong = keys_of_store(objects.credentials_file)
        if wrong:
            raise self.error(NO_KEYS, f"{objects.credentials_file}: {wrong}", ConfigError)
        self._store = self._library.store.S3Store(
            objects.bucket,
            **keys,
            endpoint=objects.endpoint,
            region=objects.region,
            virtual_hosted_style_request=False,
            client_options={"allow_http": objects.endpoint.startswith("http://"), **SECONDS},
            retry_config={"max_retries": RETRIES},
        )

    def listed(self) -> list[tuple[str, int, str]]:
        """Return each object's key, size in bytes and ETag, which changes with the content.

        They are in the order of their keys. Raises: ConfigError, DataError.
        """
        source, library = self._source, self._library
        folder = source.root if source.is_pattern else source.path.parent
        prefix = "/".join(folder.parts[1:]) or None  # without the bucket
        if source.is_pattern:
            pages = library.list(self._store, prefix)
        else:  # one key: nothing below its folder
            pages = [library.list_with_delimiter(self._store, prefix)["objects"]]
        patterns, found = [*source.path.parts[1:]], []
        for page in pages:
            check_waited_for()
            found += [each for each in page if fits(each["path"].split("/"), patterns)]
        if not found:
            raise self.error(UNREAD, IS_MISSING, ConfigError)
        if not all(each["e_tag"] for each in found):
            raise self.error(UNREAD, "the store gives no ETags, so changes cannot be seen")
        if (size := sum(each["size"] for each in found)) > (most := self._objects.most_bytes):
            raise self.error(TOO_LARGE, f"{size:,} bytes, and {most:,} are allowed")
        return sorted((each["path"], each["size"], each["e_tag"]) for each in found)

    def read(self, key: str, size: int, etag: str, start: int) -> bytes:
        """Return a piece of an object that has still the listed ETag. Raises: DataError."""
        stop = min(start + PIECE, size)
        piece = bytearray()
        options = {"if_match": etag, "range": (start, stop)}
        answer = self._library.get(self._store, key, options=options)
        # A store may ignore the condition, and it may send without end.
        if (answer.meta["size"], answer.meta["e_tag"]) == (size, etag):
            for part in answer.stream():
                piece += part
                if len(piece) > stop - start:
                    break
        if len(piece) != stop - start:
            raise self.error(CHANGED)
        return bytes(piece)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn errors of library and system into the project's, without any of their text."""
        failures = self._library.exceptions
        try:
            yield
        except failures.PreconditionError:
            raise self.error(CHANGED) from None
        except (failures.BaseError, ValueError, OSError) as error:
            name, number = type(error).__name__, getattr(error, "errno", None)
            if number is not None:  # the system's own: the library sets none
                reason = f"{os.strerror(number)}; {NO_FILE.get(number, '')}"
                raise self.error(NOT_OPENED, reason) from None
            advice = {**TO_CORRECT, **OTHERS}
            word = next((word for word in advice if word in f"{name} {error}"), "")
            cls = ConfigError if word in TO_CORRECT else DataError
            raise self.error(UNREAD, f"{name}; {advice.get(word, '')}", cls) from None

    def error(self, text: str, reason: str = "", cls: type[UmpcError] = DataError) -> UmpcError:
        """Return the error with a text. reason: for the site's administrator only."""
        return self._site.error(cls, text, f"{S3}{self._source.path}: {reason}")


@contextmanager
def fetched(source: TableSource, objects: ObjectSource, site: TableSite) -> Iterator[TableSource]:
    """Read a table's objects into memory, and yield the table as files there.

    Raises: ConfigError, DataError; also where the objects were changed meanwhile.
    """
    store = ObjectStore(source, objects, site)
    with TemporaryDirectory(prefix="umpc-names-") as folder, ExitStack() as opened:
        with store.errors():
            found = store.listed()
            for key, size, etag in found:
                file = _named_file(folder, key, opened)
                for start in range(0, size, PIECE):
                    check_waited_for()
                    file.write(store.read(key, size, etag, start))
            if store.listed() != found:
                raise store.error(CHANGED)
        yield replace(source, objects=None, path=Path(folder, objects.pattern))


def _named_file(folder: str, key: str, opened: ExitStack) -> IO[bytes]:
    """Return a file in memory, to which a name in the folder leads. Raises: OSError."""
    if not hasattr(os, "memfd_create"):
        raise OSError(errno.ENOSYS, "memfd_create")
    if {"", ".", ".."} & set(key.split("/")):
        raise OSError(errno.EINVAL, "key")
    number = os.memfd_create("umpc-object")
    file = opened.enter_context(os.fdopen(number, "wb", buffering=0))
    name = Path(folder, key)
    name.parent.mkdir(parents=True, exist_ok=True)
    name.symlink_to(f"/proc/{os.getpid()}/fd/{number}")
    return file
