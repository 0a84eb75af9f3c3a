"""An attempt that nobody makes: from a study and numbers of records, to know its cost beforehand."""

from __future__ import annotations

from umpc.agreement import attempt_of
from umpc.errors import StudyError
from umpc.mpc.attempt import Attempt, Member, commit
from umpc.study import Study


def attempt_over(study: Study, records: str) -> Attempt:
    """The attempt of a study over "300,300,200" records, with a joint seed of zeros.

    Raises: StudyError where these are not as many numbers as nodes.
    """
    counts = [part.strip() for part in records.split(",")]
    if len(counts) != len(study.nodes) or not all(part.isascii() and part.isdecimal() for part in counts):
        raise StudyError(
            f"--records takes one number per node, {len(study.nodes)} here and separated by commas; got {records!r}"
        )
    opening = bytes(32)
    members = [
        Member(node.name, int(count), commit(study.hash, node.name, opening), bytes(32))
        for node, count in zip(study.nodes, counts, strict=True)
    ]
    return attempt_of(study, members, [opening] * len(members))
