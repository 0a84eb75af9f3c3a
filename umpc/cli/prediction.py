"""An attempt that nobody makes: from a study and numbers of records, to know its cost beforehand."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from umpc.accuracy import Likeness
from umpc.agreement import attempt_of
from umpc.coordinator.onemessage import predict
from umpc.coordinator.sessions import coordinator_session
from umpc.errors import StudyError
from umpc.mpc import messages as m
from umpc.mpc.attempt import Attempt, commit
from umpc.mpc.cost import Cost
from umpc.mpc.cost import predict as predict_shared
from umpc.mpc.prg import Stream
from umpc.mpc.sizes import Member
from umpc.node.records import TableSource, load_records
from umpc.protocols.curator import OfCurator
from umpc.protocols.onemessage import one_message_of, uniform_columns, uniform_std
from umpc.study import Study


def likeness_of(attempt: Attempt, file: Path | None, delimiter: str) -> Likeness:
    """The records of a table that is like the sites' own, values out of bounds clipped; or uniform ones.

    Raises: as `load_records`.
    """
    study, counts = attempt.study, [member.classes for member in attempt.members]
    if file is None:
        records, first = attempt.sizes.records, attempt.sizes.first_class
        columns = uniform_columns(study, records, Stream(bytes(32)))
        if study.two_sample:
            columns[study.label] = (np.arange(records) >= first).astype(np.int64)
        return Likeness.of(study, columns, counts)
    fields = [field.schema() for field in study.fields]
    source = TableSource(file, delimiter)
    return Likeness.of(study, load_records(source, fields, node=file.stem, clip=True).columns, counts)


def local_prediction(attempt: Attempt) -> tuple[Cost, float]:
    """The cost of a one-message protocol, and the estimate's standard deviation if the records were uniform.

    Of a trusted curator that is the noise's, whatever the records are. Raises: as its `check_records`.
    """
    counts = [member.classes for member in attempt.members]
    protocol = one_message_of(attempt.study, counts)
    if isinstance(protocol, OfCurator):
        protocol.check_records(attempt.sizes.records)
        return predict(protocol, counts), protocol.usual_std(attempt.sizes.records)
    return predict(protocol, counts), uniform_std(attempt.study, counts)


def cost_of(attempt: Attempt) -> Cost:
    """Of any protocol."""
    if attempt.study.one_message:
        counts = [member.classes for member in attempt.members]
        return predict(one_message_of(attempt.study, counts), counts)
    return predict_shared(attempt)


def attempt_over(study: Study, records: str) -> Attempt:
    """The attempt of a study over "300,300,200" records, with a joint seed of zeros.

    Where labels are public, each node has "first+second" records of the two classes: "180+120,150+150".

    Raises: StudyError where these are not as many numbers as nodes; what a run refuses when nodes have said how many
    records they have, as TooFewRecords and RangeError.
    """
    counts = [part.strip() for part in records.split(",")]
    pattern, form = ("[0-9]+[+][0-9]+", "FIRST+SECOND") if study.two_sample else ("[0-9]+", "one number")
    if len(counts) != len(study.nodes) or not all(re.fullmatch(pattern, part) for part in counts):
        raise StudyError(
            f"--records takes {form} per node, {len(study.nodes)} here and separated by commas; got {records!r}"
        )
    opening = bytes(32)
    members = []
    for node, count in zip(study.nodes, counts, strict=True):
        first, *second = map(int, count.split("+"))
        total, first_class = (first + second[0], first) if second else (first, 0)
        members.append(Member(node.name, total, commit(study.hash, node.name, opening), bytes(32), first_class))
    coordinator_session(study).agree([m.Accepted(study.hash, member) for member in members])
    return attempt_of(study, members, [opening] * len(members))
