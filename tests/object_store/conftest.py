"""The tests in this folder need SeaweedFS: `make test-objects`, never `make test`.

They start a server of their own on this machine, with a folder of its own, and end it.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.files import key_file
from tests.support.ports import reserved_port

ACCESS, SECRET = "READERKEY", "hunter2-Zx"
SECONDS = 60


@dataclass(frozen=True)
class Weed:
    """A running server. endpoint: of its S3 API."""

    endpoint: str

    def bucket(self, name: str, key: str = ACCESS, secret: str = SECRET) -> Any:
        """A bucket's own client, which may write too."""
        from obstore.store import S3Store

        return S3Store(
            name,
            access_key_id=key,
            secret_access_key=secret,
            endpoint=self.endpoint,
            region="us-east-1",
            client_options={"allow_http": True},
            retry_config={"max_retries": 0},
        )

    def put(self, name: str, **objects: bytes) -> None:
        """Write objects, where __ in a name stands for a slash, and _ for a dot."""
        import obstore

        for key, data in objects.items():
            obstore.put(self.bucket(name), key.replace("__", "/").replace("_", "."), data)


def _free_ports(count: int) -> list[int]:
    """Free ports of which the ports 10,000 above are free too: gRPC's, by SeaweedFS's own rule."""
    found: list[int] = []
    while len(found) < count:
        port = reserved_port()
        with contextlib.suppress(OSError, OverflowError):
            reserved_port(port + 10_000)
            found.append(port)
    return found


@pytest.fixture(scope="session")
def weed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Weed]:
    program = Path(sys.executable).parent / "weed"
    found = str(program) if program.exists() else shutil.which("weed")
    if found is None:
        pytest.exit("weed was expected; `make test-objects` installs SeaweedFS", returncode=1)
    folder = tmp_path_factory.mktemp("weed")
    user = {
        "name": "reader",
        "credentials": [{"accessKey": ACCESS, "secretKey": SECRET}],
        "actions": ["Admin"],
    }
    other = {
        "name": "stranger",
        "credentials": [{"accessKey": "STRANGER", "secretKey": SECRET}],
        "actions": ["Read:elsewhere"],
    }
    (folder / "s3.json").write_text(json.dumps({"identities": [user, other]}))
    master, volume, filer, s3 = _free_ports(4)
    command = [found, "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3"]
    command += [f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}"]
    command += [f"-s3.port={s3}", f"-s3.config={folder / 's3.json'}", "-volume.max=50"]
    command += ["-master.volumeSizeLimitMB=32"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
        try:
            store = Weed(f"http://127.0.0.1:{s3}")
            _wait(store, folder / "log")
            yield store
        finally:
            server.kill()
            server.wait()


def _wait(store: Weed, log: Path) -> None:
    """Wait until the store takes an object."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            store.put("ready", a_csv=b"age\n1\n")
            return
        except Exception as error:
            if time.monotonic() > deadline:
                pytest.exit(f"SeaweedFS did not start: {error}; {log.read_text()[-2000:]}", 1)
            time.sleep(0.2)


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return key_file(tmp_path / "store.keys", ACCESS, SECRET)
