"""umpc.study.parts: several studies that pay once."""

from __future__ import annotations

import pytest

from umpc.errors import EncodingError
from umpc.study.parts import COURSE_BYTES, Course


def test_a_course_survives_its_bytes():
    course = Course(bytes(range(32)), 3, 10_000)
    assert len(course.encode()) == COURSE_BYTES and Course.decode(course.encode()) == course


def test_other_bytes_are_refused():
    for data in (b"", bytes(COURSE_BYTES), Course(bytes(32), 3, 2).encode(), bytes(64)):
        with pytest.raises(EncodingError):
            Course.decode(data)
