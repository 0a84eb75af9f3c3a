"""The tests in this folder need a PostgreSQL server: `make test-sql`, never `make test`.

They start a cluster of their own in a temporary folder, on a Unix socket, and end it.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.files import private_file

PASSWORD = "hunter2-Zx"
SECONDS = 60
QUIET = ("-c", "listen_addresses=")
"""No TCP: a Unix socket alone."""


@dataclass(frozen=True)
class Cluster:
    """A running server. folder: with its socket, and the reader's password file."""

    folder: Path
    superuser: str = "umpc_test"
    reader: str = "reader"

    def url(self, user: str = "", database: str = "postgres", port: int = 5432) -> str:
        host = f"host={self.folder}"
        return f"postgresql://{user or self.reader}@:{port}/{database}?{host}"

    def execute(self, *statements: str) -> list[tuple]:
        """Run statements as the owner; return the rows of the last one."""
        import psycopg

        at = {"host": str(self.folder), "user": self.superuser, "password": PASSWORD}
        with psycopg.connect(dbname="postgres", **at) as connection:
            for statement in statements:
                found = connection.execute(statement)
            return found.fetchall() if found.description else []

    def execute_alone(self, statement: str) -> None:
        """Run a statement as the owner outside of transactions."""
        import psycopg

        at = {"host": str(self.folder), "user": self.superuser, "password": PASSWORD}
        with psycopg.connect(dbname="postgres", autocommit=True, **at) as connection:
            connection.execute(statement)


def _programs() -> Path:
    """The folder of initdb and postgres."""
    found = shutil.which("initdb")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if found is None and not folders:
        pytest.exit("initdb was expected; `make test-sql` installs PostgreSQL", returncode=1)
    return Path(found).parent if found else folders[-1]


def _unprivileged() -> tuple[str, list[str]]:
    """A user that is not root, and the words that run a command as this user."""
    if os.getuid() != 0:
        return pwd.getpwuid(os.getuid()).pw_name, []
    names = {each.pw_name for each in pwd.getpwall()}
    name = "postgres" if "postgres" in names else "nobody"
    group = str(pwd.getpwnam(name).pw_gid)
    return name, ["setpriv", f"--reuid={name}", f"--regid={group}", "--clear-groups"]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Provide an empty cluster with a reader who must give a password."""
    programs, (user, run_as) = _programs(), _unprivileged()
    folder = Path(tempfile.mkdtemp(prefix="umpc-pg-"))
    password = folder / "password"
    password.write_text(PASSWORD)
    for path in (folder, password):
        shutil.chown(path, user)
    here = Cluster(folder)
    options = ["-U", here.superuser, "--auth=scram-sha-256", f"--pwfile={password}", "--no-sync"]
    made = subprocess.run(
        [*run_as, programs / "initdb", "-D", folder / "data", *options],
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert made.returncode == 0, made.stderr
    log = (folder / "log").open("wb")
    server = subprocess.Popen(
        [*run_as, programs / "postgres", *("-D", folder / "data", "-F", "-k", folder), *QUIET],
        stdout=log,
        stderr=log,
        cwd=folder,
    )
    try:
        _wait(here, server)
        here.execute(f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'")
        yield here
    finally:
        server.terminate()
        server.wait()
        log.close()
        shutil.rmtree(folder)


def _wait(here: Cluster, server: subprocess.Popen) -> None:
    """Wait until the server answers."""
    import psycopg

    deadline = time.monotonic() + SECONDS
    while True:
        assert server.poll() is None, (here.folder / "log").read_text()
        try:
            here.execute("SELECT 1")
            return
        except psycopg.OperationalError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


@pytest.fixture
def password_file(tmp_path: Path) -> Path:
    """Provide a file with the reader's password that nobody else may read."""
    return private_file(tmp_path / "db.pw", f"{PASSWORD}\n")
