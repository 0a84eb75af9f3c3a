"""A course: several studies that pay once, such as the steps of a training.

A course has a fixed number of steps, and each step is a study of its own, with a fresh E and fresh
noise. Its ε and δ are for all steps together. The first step that a node charges pays them, and the
other steps pay nothing more. A node releases each step of a course at most once, so it never
releases more than the ε was computed for (`umpc/node/budget/ledger.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from umpc.errors import EncodingError

ID_BYTES = 32
NUMBER_BYTES = 4
COURSE_BYTES = ID_BYTES + 2 * NUMBER_BYTES


@dataclass(frozen=True)
class Course:
    """The place of a study in its course.

    Args:
        id: 32 bytes that cover everything which all steps have in common.
        step: the study's number, from 1.
        steps: the number of steps that the ε pays for.
    """

    id: bytes
    step: int
    steps: int

    def encode(self) -> bytes:
        """Its bytes, of fixed length."""
        numbers = (number.to_bytes(NUMBER_BYTES, "big") for number in (self.step, self.steps))
        return self.id + b"".join(numbers)

    @classmethod
    def decode(cls, data: bytes) -> Course:
        """The course of these bytes. Raises: EncodingError."""
        if len(data) != COURSE_BYTES:
            raise EncodingError(f"a course has {COURSE_BYTES} bytes, got {len(data)}")
        middle = ID_BYTES + NUMBER_BYTES
        step = int.from_bytes(data[ID_BYTES:middle], "big")
        course = cls(data[:ID_BYTES], step, int.from_bytes(data[middle:], "big"))
        if not 1 <= course.step <= course.steps:
            raise EncodingError(f"step {course.step} of {course.steps} steps does not exist")
        return course
