"""umpc.transport.files: a file is replaced as a whole, or stays as it was and leaves no draft."""

from __future__ import annotations

import stat

import pytest

from umpc.transport.files import write_durably, write_public


def test_the_old_file_stands_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "anchor"
    write_durably(path, b"old")
    seen = []

    def look() -> None:
        seen.append((path.read_bytes(), (tmp_path / "anchor.new").read_bytes()))

    write_durably(path, b"new", on_the_way=look)
    assert seen == [(b"old", b"new")] and path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_the_old_file_and_no_draft(tmp_path):
    path = tmp_path / "anchor"
    write_durably(path, b"old")

    def full() -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_durably(path, b"new", on_the_way=full)
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_a_draft_that_a_crash_left_is_replaced(tmp_path):
    path = tmp_path / "anchor"
    (tmp_path / "anchor.new").write_bytes(b"half of something longer")
    write_durably(path, b"new")
    assert path.read_bytes() == b"new" and list(tmp_path.iterdir()) == [path]


def test_a_public_file_may_be_in_a_new_folder_and_read_by_all(tmp_path):
    path = tmp_path / "north" / "cert.pem"
    write_public(path, b"certificate")
    plain = tmp_path / "plain"
    plain.touch()
    assert path.read_bytes() == b"certificate"
    assert path.stat().st_mode == plain.stat().st_mode
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
