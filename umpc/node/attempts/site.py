"""The parts of a node's process that a run needs, for one of the node's data sets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from fractions import Fraction

from umpc.compute.executor import Executor
from umpc.crypto.signing import Credentials
from umpc.node.attempts.delivery import ShufflerStreams
from umpc.node.attempts.material import DealerLine, MaterialReader
from umpc.node.attempts.next_channels import NextChannels
from umpc.node.attempts.peers import PeerLink
from umpc.node.attempts.prepared_attempts import PreparedAttempts
from umpc.node.attempts.spool import Spool
from umpc.node.audit.trail import Record, nothing
from umpc.node.budget.ledger import Ledger
from umpc.node.records import Records
from umpc.study.document import Study


@dataclass(frozen=True)
class Site:
    """The parts of its process that a run needs.

    credentials: what the node signs with and checks others by, as its files are now.
    admit: whether the site's rules and its administrator allow a study, before any data is read.
    load: the study's records, once its ε is reserved.
    permit: whether the rules still allow it, over so many records.
    permit_delta: whether the rules allow a release of so much δ.
    dial: a link to a peer that comes later in the study.
    await_link: the link that an earlier peer dials. Both take the study, the peer's index, the
        meeting's name, and the `channels` of which the run may use one, or None.
    open_material: the stream from the dealer; it takes openings, signatures of all members, the
        node's chunks, and the call if the dealer is asked already.
    dial_dealer: connects a line to the dealer, if dealers may be asked before E is expanded.
    open_spool: room on disk for so many bytes.
    open_delivery: opens the streams to the shufflers.
    record: appends rows to the audit trail, on disk when it returns.
    add_charge: appends the row of a released study's charge where the trail has none.
    workers: computes chunks of edges beside the run's own thread, if there is such a place.
    written_at: when the table's files were last written, in seconds since 1970; 0 if unknown.
    channels: of transfers, made after one study for the next one, if they are kept; with coins
        that were tossed over them.
    """

    name: str
    credentials: Callable[[], Credentials]
    ledger: Ledger
    parking: PreparedAttempts
    admit: Callable[[Study], None]
    load: Callable[[Study], Records]
    permit: Callable[[Study, int], None]
    permit_delta: Callable[[Fraction], None]
    dial: Callable[..., Awaitable[PeerLink]]
    await_link: Callable[..., Awaitable[PeerLink]]
    open_material: Callable[..., Awaitable[MaterialReader]]
    open_spool: Callable[[Study, int], Spool]
    open_delivery: Callable[[ShufflerStreams], Awaitable[None]]
    record: Record = nothing
    add_charge: Callable[[bytes], None] = lambda study: None
    written_at: Callable[[], float] = lambda: 0.0
    workers: Executor | None = None
    channels: NextChannels | None = None
    dial_dealer: Callable[[DealerLine], Awaitable[None]] | None = None
