"""Records of former studies in a node's memory, so that an unchanged file is parsed once.

A node keeps the integers that a study's request gave: fields with bounds, steps and categories, a
condition, and a limit for each person. A later study of the same request gets them again, if the
file still has the same bytes (`table/file_state.py`). Everything that the ledger says about changed
data follows from them, so it is as if the file had been parsed anew. A table in a database is read
by each study: no database proves that its answer would be the same.

Memory is bounded by `cache_megabytes` under [data]. The request that was not used for longest
leaves first, one that was not used for an hour leaves too, and with 0 nothing is kept.

*What a clock tells.* A study whose records are kept is accepted sooner, so a coordinator could see
whether the file has changed since the last study: an exact answer about the data at no ε. Two rules
are against that (decision 69). A watch reads a changed file anew when nobody waits for it
(`cache_watch.py`). And kept records are used at most once for each study that was charged, so a
coordinator that proposes and then ends its studies learns nothing from the second one on.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from umpc.errors import UmpcError
from umpc.node.cache_watch import CacheWatch
from umpc.node.records import Records
from umpc.node.table.file_state import FileState, Identities, identities
from umpc.node.table.source import TableSource
from umpc.node.table.units import narrowest
from umpc.study.document import Study
from umpc.study.parts import Person
from umpc.ustat.condition import Condition
from umpc.ustat.schema import FieldSchema

log = logging.getLogger("umpc.node")

IDLE_SECONDS = 3600
"""How long a request is kept after its last use."""
REST = 9
"""How many times as long as a reading by the watch took, it then rests."""
ENTRY_BYTES = 4096
"""The bytes that a request takes beside its arrays, at most."""
SOURCES = ("file", "memory", "background", "dropped")
"""The outcomes of a request: it was parsed from the file, found in memory, parsed by the watch, or
dropped because others needed the room."""


@dataclass(frozen=True)
class RecordRequest:
    """The part of a study on which its records depend."""

    fields: tuple[FieldSchema, ...]
    where: Condition | None = None
    person: Person | None = None

    @classmethod
    def of(cls, study: Study) -> RecordRequest:
        """Return the request of a study. Raises: as the study's own checks."""
        return cls(tuple(each.schema() for each in study.fields), study.condition, study.people)

    @cached_property
    def _hash(self) -> int:
        return hash((self.fields, self.where, self.person))

    def __hash__(self) -> int:
        """The hash, computed once: the watch needs it several times a second, for exact bounds."""
        return self._hash


@dataclass(frozen=True)
class _Kept:
    """Records in memory: narrow columns that nobody can write to.

    `used` is the time of the last use. `size` is in bytes.
    """

    state: FileState = field(repr=False)
    records: Records = field(repr=False)
    used: float
    size: int

    @classmethod
    def of(cls, request: RecordRequest, records: Records, state: FileState, now: float) -> _Kept:
        columns = {
            schema.name: _narrowed(records.columns[schema.name], schema)
            for schema in request.fields
        }
        size = ENTRY_BYTES + sum(column.nbytes for column in columns.values())
        for misfit in records.misfits:
            size += misfit.beyond.nbytes + misfit.unknown.nbytes + misfit.rounded.nbytes
        return cls(state, replace(records, columns=columns), now, size)

    def widened(self) -> Records:
        """Return the records as they were read, with columns of the caller's own."""
        columns = {name: each.astype(np.int64) for name, each in self.records.columns.items()}
        return replace(self.records, columns=columns)


class RecordCache:
    """The kept records of one data set. Every method may run in any thread.

    Args:
        source: the data file, or the files of a pattern.
        read: parses the file for a request.
        most_bytes: the most that all kept records take; 0 keeps nothing.
        charged: the number of studies that the data set's ledger has charged so far.
        watch: looks at the file while something is kept.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        source: TableSource,
        read: Callable[[RecordRequest], Records],
        most_bytes: int,
        charged: Callable[[], int],
        watch: CacheWatch | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._source = source
        self._read = read
        self._most = most_bytes
        self._charged = charged
        self._watch = watch
        self._clock = clock
        self._kept: OrderedDict[RecordRequest, _Kept] = OrderedDict()
        self._charged_before = -1
        """The number of charges at the last look into memory for a study."""
        self._seen: Identities | None = None
        self._not_before = -math.inf
        self._done: Counter[str] = Counter(dict.fromkeys(SOURCES, 0))
        self._lock = threading.Lock()

    def load(self, request: RecordRequest) -> Records:
        """Return the records of a request, from memory if the file has the same bytes as then.

        Raises: as `load_records`.
        """
        if not self._most:
            return self._parsed(request, "file")
        before = self._state()
        kept = self._find(request, before)
        if kept is not None:
            return kept.widened()
        records = self._parsed_and_kept(request, before, "file", self._clock())
        if self._watch is not None:
            self._watch.over(self)
        return records

    def look(self) -> None:
        """Drop what nobody used for long; read a changed file anew for all kept requests.

        A file counts as changed as soon as two looks see the same new identity, because a program
        may write it in pieces. Reading takes at most a tenth of the time.
        """
        self._drop_idle()
        now = self._clock()
        requests, known = self._requests()
        if not requests or now < self._not_before:
            return
        try:
            found = identities(self._source.files())
        except OSError:
            self._drop(*requests)
            return
        seen, self._seen = self._seen, found
        if known != {found} and found == seen:
            self._read_anew(requests)
            self._not_before = self._clock() + REST * (self._clock() - now)

    def counts(self) -> Mapping[str, float]:
        """Return how often each of SOURCES happened since the node started."""
        with self._lock:
            return {source: float(self._done[source]) for source in SOURCES}

    @property
    def size(self) -> int:
        """The bytes that are kept."""
        with self._lock:
            return sum(kept.size for kept in self._kept.values())

    # ---- inside ------------------------------------------------------------------------------

    def _requests(self) -> tuple[list[RecordRequest], set[Identities]]:
        """Return the requests that are kept, and the identities of the file at that time."""
        with self._lock:
            return [*self._kept], {kept.state.identity for kept in self._kept.values()}

    def _state(self) -> FileState | None:
        """Return the file's state; None where it cannot be read, which parsing will explain."""
        try:
            return FileState.of(self._source.files())
        except OSError:
            return None

    def _find(self, request: RecordRequest, state: FileState | None) -> _Kept | None:
        """Return what is kept of a request. One look for each charge, whatever it finds."""
        charged = self._charged()
        with self._lock:
            is_allowed = charged != self._charged_before
            self._charged_before = charged
            kept = self._kept.get(request)
            if not is_allowed or kept is None or state is None:
                return None
            if kept.state.content != state.content:
                return None
            self._kept[request] = replace(kept, used=self._clock())
            self._kept.move_to_end(request)
            self._done["memory"] += 1
            return kept

    def _parsed(self, request: RecordRequest, source: str) -> Records:
        with self._lock:
            self._done[source] += 1
        return self._read(request)

    def _parsed_and_kept(
        self, request: RecordRequest, before: FileState | None, source: str, used: float
    ) -> Records:
        """Parse the file, and keep the records if nobody wrote to it meanwhile."""
        records = self._parsed(request, source)
        if before is not None and before == self._state():
            self._keep(request, _Kept.of(request, records, before, used))
        return records

    def _keep(self, request: RecordRequest, made: _Kept) -> None:
        with self._lock:
            self._kept.pop(request, None)
            self._kept[request] = made
            self._kept.move_to_end(request, last=made.size <= self._most)
            total = sum(kept.size for kept in self._kept.values())
            while total > self._most:
                _, dropped = self._kept.popitem(last=False)
                total -= dropped.size
                self._done["dropped"] += 1

    def _drop(self, *requests: RecordRequest) -> None:
        with self._lock:
            for request in requests:
                self._kept.pop(request, None)

    def _drop_idle(self) -> None:
        before = self._clock() - IDLE_SECONDS
        with self._lock:
            idle = [request for request, kept in self._kept.items() if kept.used < before]
        self._drop(*idle)

    # ---- a changed file ----------------------------------------------------------------------

    def _read_anew(self, requests: list[RecordRequest]) -> None:
        """Parse a changed file for these requests; not where its bytes are as they were."""
        state = self._state()
        for request in requests:
            with self._lock:
                kept = self._kept.get(request)
            if state is None or kept is None:
                self._drop(request)
            elif kept.state.content == state.content:
                self._keep(request, replace(kept, state=state))
            else:
                self._try(request, state, kept.used)

    def _try(self, request: RecordRequest, state: FileState, used: float) -> None:
        try:
            self._parsed_and_kept(request, state, "background", used)
        except UmpcError as error:  # the next study raises it again, with its detail
            self._drop(request)
            log.info("the changed data file could not be read: %s", type(error).__name__)


def _narrowed(column: NDArray[np.int64], schema: FieldSchema) -> NDArray[Any]:
    """Return a copy in the narrowest type that holds the field's bounds. Nobody can write to it."""
    narrow = column.astype(narrowest(schema))
    narrow.flags.writeable = False
    return narrow
