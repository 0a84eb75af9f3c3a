"""A site's disk for studies of linked rows: its list, the other site's, and its share of the table.

`docs/linked.md` has the promise, and the attack against which each rule stands. States, keys and
share are those of `people_store.py`, with three files beside them:

| file | what it holds | written before |
|---|---|---|
| `HASH.own` | this site's list (`umpc/people/linked.py`) | the list leaves, sealed |
| `HASH.sender` | the other site's box key, which it has signed | the list leaves |
| `HASH.other` | the other site's list | both lists are signed |

A list is made of the table once. Later calls send the bytes that are on the disk, whatever the
table has by then: a second list under the same keys would show how a row's value has changed. A
list that comes must be sealed by the other site. The files are deleted with the dealt keys, once
the share is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from umpc.errors import StudyError
from umpc.failpoints import failpoint
from umpc.mpc.arrays import WordArray
from umpc.node.people_store import COUNTED, DEALING, OPEN, KeptSurvey, PeopleStore
from umpc.people import messages
from umpc.people.linked import HEAD_BYTES, RowList, linked_statement, numbers_of
from umpc.protocols.people.split import Split, split_of
from umpc.protocols.registry import decode_study
from umpc.transport.files import write_durably

KeyedRows = tuple[bytes, WordArray]
"""A digest of all keys of a table's rows; and, (n,) uint64, each row's cell in their order."""


class LinkedStore(PeopleStore):
    """All that one site keeps of studies of linked rows, in one folder. Args: of `PeopleStore`."""

    protocol, last_open = "linked", COUNTED
    kinds = ("places", "own", "sender", "other", "dealt")

    def listed(self, study_hash: bytes, box_key: bytes, read: Callable[[], KeyedRows]) -> bytes:
        """This site's list, for the other one alone. It is on disk before it leaves.

        Args: box_key: of the other site, which has signed it. read: reads the table; it is called
        once for a study.

        Raises: StudyError if the study is not open, is added up, or its closing time is over; as
            `read`.
        """
        with self._adding:
            kept = self._kept(study_hash, OPEN, COUNTED)
            self._check_open(kept)
            if not self._path(study_hash, "own").exists():
                keys, values = read()
                cells = self._split(kept).cells[kept.side]
                nonce = self._entropy(messages.NONCE_BYTES)
                own = RowList.of(kept, kept.seed, cells, keys, values, nonce)
                with self._disk():
                    write_durably(self._path(study_hash, "own"), own.text)
                failpoint("linked-listed")
            with self._disk():
                write_durably(self._path(study_hash, "sender"), box_key)
        text = self._list(kept, kept.side).text
        return messages.seal_list(kept, 1 - kept.side, box_key, text, kept.box_secret)

    def count(self, study_hash: bytes, theirs: Iterable[bytes], other: str) -> tuple[bytes, bytes]:
        """Sign both lists, once.

        Args: theirs: the parts of what `listed` of the other site returned; without any, whatever
        was signed before is returned, which is empty before that. other: its name.

        Returns, raises: as of `PeopleStore`; StudyError where the sites have not the same keys, and
            for a list after the closing time.
        """
        sealed = b"".join(theirs)
        kept = self._in_time(study_hash, OPEN if sealed else DEALING)
        if not sealed:
            return kept.statement, kept.signature
        self._check_open(kept)
        if not self._path(study_hash, "sender").exists():
            raise StudyError(f"{self._name} has listed no rows of this study: run it again")
        side, own = 1 - kept.side, self._list(kept, kept.side)
        with self._disk():
            sender = self._path(study_hash, "sender").read_bytes()
        text = messages.open_list(kept, kept.side, kept.box_secret, sealed, sender)
        came = RowList(self._split(kept).cells[side], text)
        came.check(kept, other)
        came.check_keys(own, other)
        statement = linked_statement(kept, kept.dealt, [own, came][:: 1 if side else -1])

        def stored() -> tuple[int, ...]:
            with self._disk():
                write_durably(self._path(study_hash, "other"), text)
            return ()

        return self._sign_once(study_hash, statement, other, stored)

    def _check_open(self, kept: KeptSurvey) -> None:
        if kept.closes <= self._now():
            raise StudyError(
                f"{self._name} lists and signs rows until the study's closing time, which is over: "
                "make a new study under another name"
            )

    def _split(self, kept: KeptSurvey) -> Split:
        return split_of(decode_study(kept.document, stored=True))

    def _list(self, kept: KeptSurvey, side: int, block: range | None = None) -> RowList:
        """A site's list. Args: block: the only places that it then has; None for all."""
        path = self._path(kept.hash, "own" if side == kept.side else "other")
        places = block or range(kept.places)
        with self._disk(), path.open("rb") as file:
            head = file.read(HEAD_BYTES)
            file.seek(HEAD_BYTES + messages.NUMBER_BYTES * places.start)
            numbers = file.read(messages.NUMBER_BYTES * len(places))
        return RowList(self._split(kept).cells[side], head + numbers)

    def _numbers_of(
        self, kept: KeptSurvey, block: range
    ) -> tuple[WordArray, WordArray, int | None]:
        both = [self._list(kept, side, block) for side in (0, 1)]
        places = np.arange(block.start, block.stop, dtype=np.uint64)
        return places, numbers_of(both), both[1].cells

    def _in_order(self, kept: KeptSurvey, share: WordArray) -> WordArray:
        return self._split(kept).in_order(share)
