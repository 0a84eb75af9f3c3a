"""An attempt that nobody makes: from a study and numbers of records, to know its cost beforehand."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from umpc.coordinator.sessions import coordinator_session
from umpc.crypto.prg import Stream
from umpc.errors import StudyError
from umpc.mpc.attempt import Attempt, commit
from umpc.mpc.cost import Cost
from umpc.mpc.cost import predict as predict_shared
from umpc.node.records import TableSource, load_records
from umpc.planning.error import ReferenceTable
from umpc.protocols.base.one_message_coordinator import predict
from umpc.protocols.central.messages import OfCurator
from umpc.protocols.local.messages import one_message_of, uniform_columns, uniform_std
from umpc.protocols.u_mpc.noise_binding import attempt_of
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.study.sizes import Member


def reference_table_of(attempt: Attempt, file: Path | None, delimiter: str) -> ReferenceTable:
    """The records of a table that is like the sites' own, values out of bounds clipped; or uniform ones.

    Raises: as `load_records`.
    """
    study, counts = attempt.study, [member.classes for member in attempt.members]
    if file is None:
        records, first = attempt.sizes.records, attempt.sizes.first_class
        columns = uniform_columns(study, records, Stream(bytes(32)))
        if study.two_sample:
            columns[study.label] = (np.arange(records) >= first).astype(np.int64)
        return ReferenceTable.of(study, columns, counts)
    fields = [field.schema() for field in study.fields]
    source = TableSource(file, delimiter)
    return ReferenceTable.of(
        study, load_records(source, fields, node=file.stem, clip=True).columns, counts
    )


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
    pattern, form = (
        ("[0-9]+[+][0-9]+", "FIRST+SECOND") if study.two_sample else ("[0-9]+", "one number")
    )
    if len(counts) != len(study.nodes) or not all(re.fullmatch(pattern, part) for part in counts):
        raise StudyError(
            f"--records takes {form} per node, {len(study.nodes)} here and separated by commas; got {records!r}"
        )
    opening = bytes(32)
    members = []
    for node, count in zip(study.nodes, counts, strict=True):
        first, *second = map(int, count.split("+"))
        total, first_class = (first + second[0], first) if second else (first, 0)
        members.append(
            Member(node.name, total, commit(study.hash, node.name, opening), bytes(32), first_class)
        )
    coordinator_session(study).agree([m.Accepted(study.hash, member) for member in members])
    return attempt_of(study, members, [opening] * len(members))
