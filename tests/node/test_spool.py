"""umpc.node.spool: material on disk is unreadable, comes out once, and leaves no file."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from umpc.errors import LocalProtocolError, PreparationError
from umpc.node.spool import TAG_BYTES, Spool

PAYLOADS = [b"first " * 3000, b"", b"third", bytes(200_000)]


class OpenSpool(Spool):
    """A spool whose file a test may read and damage."""

    @property
    def handle(self) -> int:
        return self._file.fileno()


@pytest.fixture
def spool(tmp_path):
    made = OpenSpool(tmp_path, "dealer")
    yield made
    made.close()


def filled(spool: OpenSpool) -> OpenSpool:
    for payload in PAYLOADS:
        spool.add(payload)
    return spool


def on_disk(spool: OpenSpool) -> bytes:
    return os.pread(spool.handle, 1 << 20, 0)


def test_payloads_come_back_in_order_and_once(spool):
    filled(spool)
    assert [spool.take() for _ in PAYLOADS] == PAYLOADS
    with pytest.raises(LocalProtocolError, match="one more"):
        spool.take()


@pytest.mark.parametrize("window", [0, 18_020, 250_000])
def test_what_is_read_ahead_comes_first_and_once_too(spool, window):
    async def all_of_them() -> list[bytes]:
        await filled(spool).read_ahead(window)
        assert spool.bytes_waiting >= sum(map(len, PAYLOADS)) - window
        return [await spool.next() for _ in PAYLOADS]

    assert asyncio.run(all_of_them()) == PAYLOADS
    with pytest.raises(LocalProtocolError, match="one more"):
        asyncio.run(spool.next())


def test_the_file_has_no_name_and_is_gone_with_the_spool(spool, tmp_path):
    filled(spool)
    assert list(tmp_path.iterdir()) == []
    number = spool.handle
    assert os.fstat(number).st_nlink == 0
    spool.close()
    spool.close()
    with pytest.raises(OSError):
        os.fstat(number)
    with pytest.raises(LocalProtocolError, match="gone"):
        spool.take()
    with pytest.raises(LocalProtocolError, match="gone"):
        spool.add(b"more")


def test_what_is_on_disk_tells_nothing(spool, tmp_path):
    """Nor do two spools of the same payloads look alike, so the key is drawn anew."""
    other = filled(OpenSpool(tmp_path, "dealer"))
    raw, again = on_disk(filled(spool)), on_disk(other)
    other.close()
    assert (
        len(raw)
        == len(again)
        == sum(map(len, PAYLOADS)) + TAG_BYTES * len(PAYLOADS)
        == spool.bytes_waiting
    )
    assert b"first" not in raw and bytes(100) not in raw
    assert sum(a == b for a, b in zip(raw, again, strict=True)) < len(raw) / 128
    assert "first" not in repr(spool)


def test_equal_payloads_look_different(spool):
    spool.add(bytes(64))
    spool.add(bytes(64))
    raw = on_disk(spool)
    assert raw[:64] != raw[64 + TAG_BYTES :][:64]


def test_what_was_taken_is_given_back_to_the_disk(spool):
    filled(spool)
    before = os.fstat(spool.handle).st_blocks
    for _ in PAYLOADS:
        spool.take()
    assert spool.bytes_waiting == 0
    assert on_disk(spool).strip(b"\0") == b""
    assert os.fstat(spool.handle).st_blocks < before / 4


def test_what_changed_on_disk_is_noticed_and_not_handed_out_later(spool):
    filled(spool)
    first = os.pread(spool.handle, 1, 0)[0]
    os.pwrite(spool.handle, bytes([first ^ 1]), 0)
    with pytest.raises(PreparationError, match="changed on disk"):
        spool.take()
    assert spool.take() == PAYLOADS[1]


def test_a_file_that_was_cut_is_noticed(spool):
    spool.add(b"x" * 5000)
    os.ftruncate(spool.handle, 4000)
    with pytest.raises(PreparationError, match="changed on disk"):
        spool.take()


def test_writes_in_pieces_are_put_together(spool, monkeypatch):
    write, read = os.pwrite, os.pread
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: write(fd, data[:1000], at))
    monkeypatch.setattr(os, "pread", lambda fd, size, at: read(fd, min(size, 700), at))
    filled(spool)
    assert [spool.take() for _ in PAYLOADS] == PAYLOADS


def test_a_full_disk_is_told_without_its_place(spool, monkeypatch, tmp_path):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(PreparationError, match="its disk") as caught:
        spool.add(b"x")
    assert "No space" not in caught.value.message and "No space" in caught.value.detail
    with pytest.raises(PreparationError):
        Spool(Path(tmp_path / "absent"), "dealer")
