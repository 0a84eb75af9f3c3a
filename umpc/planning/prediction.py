"""A hypothetical attempt, for cost estimates: from a study and numbers of records."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from umpc.crypto.prg import Stream
from umpc.crypto.signing import verify_nobody
from umpc.errors import ConfigError, StudyError
from umpc.mpc.attempt import SharedAttempt
from umpc.planning.expected_edges import expected_hypergraph, is_expected
from umpc.planning.reference_table import ReferenceTable
from umpc.protocols.base.one_message import uniform_columns
from umpc.protocols.registry import attempt_of, protocol_of
from umpc.study.attempt import Attempt, commit
from umpc.study.document import Study
from umpc.study.sizes import Member
from umpc.study.survivors import without


def reference_table_of(
    attempt: Attempt,
    file: Path | None,
    delimiter: str,
    missing: Sequence[str] = (),
    tell: Callable[[str], None] = lambda text: None,
) -> ReferenceTable:
    """A table like the sites' own: a file's records, clipped to the bounds, or uniform records.

    Args:
        file: a CSV file; None takes uniform records. delimiter: of the file.
        missing: words of the file that stand for no value, beside the usual ones.
        tell: told how many values were clipped, and how many records were left out.

    Raises: as `load_records`; ConfigError (no such file); NotNumeric.
    """
    study = attempt.study
    if file is None:
        records = attempt.sizes.records
        columns = uniform_columns(study, records, Stream(bytes(32)))
        if study.two_sample:
            is_second = np.arange(records) >= attempt.sizes.first_class
            columns[study.label] = is_second.astype(np.int64)
        return ReferenceTable.of(study, columns, attempt.counts, is_made_up=True)
    # It loads libraries that read files, which most plans do without.
    from umpc.node.records import TableSource, load_records, require_numbers

    fields = [field.schema() for field in study.fields]
    source = TableSource(file, delimiter)
    if missing:
        source = replace(source, missing=(*source.missing, *missing))
    if not file.is_file():
        raise ConfigError(
            f"--like {file}: a CSV or Parquet file was expected, and there is no such file. "
            "Correct the path"
        )
    loaded = load_records(source, fields, node=None, where=study.condition)
    table = require_numbers(loaded, table=file.name)
    for misfit in table.misfits:
        tell(f"{file.name}: {misfit}")
    if table.dropped:
        tell(f"{file.name}: {table.dropped} records with a missing value are left out")
    return ReferenceTable.of(study, table.columns, attempt.counts)


def attempt_over(study: Study, records: str) -> Attempt:
    """The attempt of a study over "300,300,200" records, with a joint seed of zeros.

    Where labels are public, each node has "first+second" records of the two classes:
    "180+120,150+150".

    Raises: StudyError where these are not as many numbers as nodes; TooFewRecords, RangeError and
    other errors, as a run over so many records raises them.
    """
    counts = [part.strip() for part in records.split(",")]
    pattern = "[0-9]+[+][0-9]+" if study.two_sample else "[0-9]+"
    if len(counts) != len(study.nodes) or not all(re.fullmatch(pattern, part) for part in counts):
        raise StudyError(
            f"--records takes {_form(study)} per node, {len(study.nodes)} here and separated by "
            f"commas, and {records!r} came. Write it as {_example(study)}"
        )
    opening = bytes(32)
    members = []
    for node, count in zip(study.nodes, counts, strict=True):
        parts = [int(part) for part in count.split("+")]
        first_class = parts[0] if study.two_sample else 0
        commitment = commit(study.hash, node.name, opening)
        members.append(Member(node.name, sum(parts), commitment, bytes(32), first_class))
    protocol_of(study).coordinator(study, verify_nobody).check_sizes(members)
    attempt = attempt_of(study, members, [opening] * len(members))
    if isinstance(attempt, SharedAttempt) and is_expected(attempt.sizes):
        attempt.hypergraph = expected_hypergraph(attempt.sizes, attempt.counts)
    return attempt


def worst_survivors(study: Study, records: str) -> tuple[Study, str] | None:
    """The study without the nodes of the most records that it may miss, which has the most noise.

    Args: records: as of `attempt_over`, which has checked them.
    Returns: the study, and the records of its nodes; None where no node may be missing.
    """
    if not study.most_missing:
        return None
    counts = {
        node.name: text.strip() for node, text in zip(study.nodes, records.split(","), strict=True)
    }

    def size(name: str) -> int:
        return sum(map(int, counts[name].split("+")))

    optional = [name for name in counts if name not in study.names_required]
    survivors = without(study, sorted(optional, key=size)[-study.most_missing :])
    return survivors, ",".join(counts[node.name] for node in survivors.nodes)


def _form(study: Study) -> str:
    """Return the form of one node's number of records, and what it counts."""
    if not study.two_sample:
        return "one number"
    first, second = study.schema[study.label].categories
    return f"FIRST+SECOND (the records with {study.label} = {first!r}, and those with {second!r})"


def _example(study: Study) -> str:
    """Return numbers of records that fit the study's nodes."""
    each = "180+120" if study.two_sample else "300"
    shown = ",".join([each] * min(len(study.nodes), 3))
    return shown + (",…" if len(study.nodes) > 3 else "")
