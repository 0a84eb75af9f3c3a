"""Files that a person names: the one line that says why reading failed."""

from __future__ import annotations

import errno
import os
import re

import pytest

from umpc.errors import ConfigError, StudyError
from umpc.text_file import KINDS, NODE, STUDY, TRAINING, read_text, refuse_other_kind, why_unread


def test_a_text_is_read_and_every_failure_says_what_to_do(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text("ä", encoding="utf-8")
    assert read_text(file, STUDY, StudyError) == "ä"
    file.write_bytes(b"\xff")
    for path, reason in (
        (tmp_path / "absent", "there is no such file"),
        (file / "below", "there is no such file"),
        (tmp_path, "this is a folder"),
        (file, "no text in UTF-8"),
    ):
        with pytest.raises(StudyError, match=reason) as refusal:
            read_text(path, STUDY, StudyError)
        assert str(refusal.value).startswith(f"{path}: the file of a study was expected, and ")
        assert "Errno" not in str(refusal.value)


@pytest.mark.parametrize(
    ("number", "reason"),
    [(errno.EACCES, "may not read it"), (errno.EIO, r"cannot be read \(Input/output error\)")],
)
def test_a_file_that_may_not_be_read_is_told_from_a_broken_disk(number, reason):
    assert re.search(reason, why_unread(OSError(number, os.strerror(number))))


@pytest.mark.parametrize("own", KINDS)
def test_a_file_of_another_kind_is_named_and_one_with_an_own_key_is_not(tmp_path, own):
    for kind, keys in KINDS.items():
        for key in keys:
            if kind == own:
                refuse_other_kind(tmp_path, {key: 1, "unknown": 2}, own, ConfigError)
                continue
            with pytest.raises(ConfigError, match=f"{own} was expected, and this is {kind}"):
                refuse_other_kind(tmp_path, {key: 1}, own, ConfigError)
    refuse_other_kind(tmp_path, {"unknown": 2}, own, ConfigError)
    with pytest.raises(ConfigError, match="the file is empty"):
        refuse_other_kind(tmp_path, {}, own, ConfigError)


def test_the_kinds_have_no_key_of_another_kind():
    from umpc.coordinator.studyfile_entries import describe_keys
    from umpc.node.config_section import KEYS
    from umpc_papers.training.trainfile import TrainEntries

    known = {
        NODE: set(KEYS[""]) | {"ledger"},
        TRAINING: set(TrainEntries.__struct_fields__),
        STUDY: {*describe_keys(), "protocol"},
    }
    for kind, keys in KINDS.items():
        for other in known.keys() - {kind}:
            assert not keys & known[other], (kind, other)
