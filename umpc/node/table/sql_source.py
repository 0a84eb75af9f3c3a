"""A query or a view in a database as a site's table: what the site's administrator writes.

The address never holds a password. It is in a file of its own, or where the driver looks for it:
`~/.pgpass`, PGPASSFILE, PGPASSWORD, or the operating system's user on a Unix socket.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, parse_qs, urlsplit

POSTGRESQL = "postgresql"
SQLITE = "sqlite"
DUCKDB = "duckdb"
KINDS = (POSTGRESQL, SQLITE, DUCKDB)
"""The databases that are tested. An address begins with one of them."""
FILES = {SQLITE: "SQLite", DUCKDB: "DuckDB"}
"""The databases that are one file → their names."""
NAME = r"[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)?"
QUERY = re.compile(r"\s*(select|with)\b", re.IGNORECASE)
OTHERS_MAY_READ = 0o077
SECRETS = ("password", "sslpassword")
UNREADABLE = (
    "the table was expected from the site's database, and it could not be read. The node's own log "
    "says why"
)
"""The whole error that a coordinator sees of a database."""
OTHER_TYPE = "the database has the type {}. Have its administrator change sql under [data]: {}"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
CHECKED = {"verify-ca", "verify-full"}
"""PostgreSQL's sslmodes that check the server's certificate. The default is content without TLS."""


@dataclass(frozen=True)
class SqlSource:
    """A query in a database.

    url: as postgresql://USER@HOST:PORT/DATABASE, without a password; sqlite:///FILE; or
        duckdb:///FILE.
    query: one SELECT, or the name of a table or view.
    password_file: a file with the password alone; None where the driver finds it.
    folder: the folder that a path in the address is relative to.
    """

    url: str
    query: str
    password_file: Path | None = None
    folder: Path = Path()

    @property
    def kind(self) -> str:
        """The kind of database, one of KINDS."""
        return urlsplit(self.url).scheme

    @property
    def select(self) -> str:
        """The query as one SELECT."""
        is_name = re.fullmatch(NAME, self.query.strip())
        return f"SELECT * FROM {self.query.strip()}" if is_name else self.query

    @property
    def file(self) -> Path:
        """The file of a database that is one file."""
        return (self.folder / urlsplit(self.url).path.removeprefix("/")).resolve()


def wrong_url(url: str) -> str:
    """Return what is wrong with an address, or "". The answer never shows the address."""
    try:
        parts = urlsplit(url)
        _ = parts.port
        settings = parse_qs(parts.query)
    except ValueError:
        return "it is no address"
    if parts.password is not None or any(secret in settings for secret in SECRETS):
        return (
            "it holds a password, which would stand in backups and logs; write the password into a "
            "file that only the node's user may read, and name it as password_file"
        )
    if parts.scheme not in KINDS:
        return f"it begins with none of {', '.join(f'{kind}://' for kind in KINDS)}"
    if parts.scheme in FILES and not re.fullmatch(r"[a-z]+:///[^?#\x00]+", url):
        return f"an address of {FILES[parts.scheme]} is written as {parts.scheme}:///FILE"
    if parts.scheme == POSTGRESQL and _is_elsewhere(parts, settings):
        modes = set(settings.get("sslmode", [""]))
        if not modes <= CHECKED:
            return (
                "without a checked certificate, somebody on the network could read the password "
                "and the records; write ?sslmode=verify-full behind it, and &sslrootcert=FILE for "
                "an authority that is not in ~/.postgresql/root.crt"
            )
    return ""


def _is_elsewhere(parts: SplitResult, settings: dict[str, list[str]]) -> bool:
    """Return whether PostgreSQL may be on another machine.

    It is on this one at a loopback address, on a Unix socket, and where nothing names a host.
    PostgreSQL's library takes what the address lacks from the environment.
    """
    hosts = settings.get("host") or [parts.hostname or os.environ.get("PGHOST", "")]
    addresses = settings.get("hostaddr") or [os.environ.get("PGHOSTADDR", "")]
    named = [host for each in (*hosts, *addresses) for host in each.split(",")]
    has_service = "service" in settings or "PGSERVICE" in os.environ
    return has_service or any(not _is_here(host) for host in named)


def _is_here(host: str) -> bool:
    """Return whether a host, or a host and its port, is this machine."""
    plain = re.sub(r":[0-9]*$", "", host) if host.count(":") == 1 else host
    return plain in ("", *LOOPBACK) or plain.startswith(("/", "@"))


def wrong_query(query: str) -> str:
    """Return what is wrong with a query, or ""."""
    if not (QUERY.match(query) or re.fullmatch(NAME, query.strip())):
        return "it is neither one SELECT nor the name of a table or view"
    if ";" in query or "\x00" in query:
        return "it has a semicolon; write one SELECT without it"
    return ""


def wrong_password_file(path: Path) -> str:
    """Return what is wrong with the file of a password, or ""."""
    if not path.is_file():
        return "there is no such file"
    if path.stat().st_mode & OTHERS_MAY_READ:
        return f"others may read it; run: chmod 600 {path}"
    return ""
