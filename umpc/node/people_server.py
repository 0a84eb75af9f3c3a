"""The calls to an aggregator about studies of people: opened, compared, counted and added up.

| call | the node |
|---|---|
| OpenPeople | asks its rules and its administrator; stores places and the dealer's keys |
| ListPeople | closes the study, and lists its rows of (place, receipt); or its linked rows |
| CountPeople | signs the rows that the other aggregator has, too, once |
| SumPeople | checks both signatures, and adds up its share of the table |

Only the study's own coordinator may call. Each step is on disk before its answer leaves, so every
call may come again. People themselves call elsewhere (`transport/people_door.py`).

*Reveals*: who came, to the coordinator and with it to everybody; nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from operator import attrgetter
from typing import Any

from umpc.compute.executor import Executor
from umpc.errors import AuditError, RemoteProtocolError, StudyError, UmpcError
from umpc.mpc.arrays import WordArray
from umpc.node.audit.trail import AuditRow, about, of_failure
from umpc.node.datasets import Dataset, Datasets
from umpc.node.linked_store import LinkedStore
from umpc.node.people_store import Adding, PeopleStore, added, added_here
from umpc.people.messages import ROW_BYTES
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocols.people.terms import (
    check_box_keys,
    key_bytes_of,
    messages_of,
    points_of,
    survey_of,
)
from umpc.protocols.registry import allowed_as, check_new_run, decode_study, delta_of
from umpc.study.document import Study, dealer_of
from umpc.study.sizes import Sizes
from umpc.transport.blocking import KEY_BYTES, progress, pulled, told
from umpc.transport.connections import MAX_FRAME
from umpc.transport.identity import Identity, credentials_of
from umpc.transport.status import refusal_of
from umpc.transport.stream import RpcStream, as_received
from umpc.transport.tls import AnyContext, Peer, dealer_stub, peer_of, read

log = logging.getLogger("umpc.people")
LEAST_LIST = 1024
"""Bytes that a list may have, however few rows there are: a sealed one has more than its rows."""
QUIET_SECONDS = 120
"""Seconds without a word of the dealer until it counts as hanging."""
PARTS_AHEAD = 2


def adding_place(workers: Executor | None) -> Adding:
    """Return what adds up where this node computes; a cluster's workers take blocks of keys.

    Args: workers: those of the node, whose calls the running event loop awaits.
    """
    if workers is None:
        return added_here
    loop = asyncio.get_running_loop()

    async def there(blocks: Sequence[tuple[Any, ...]]) -> list[WordArray]:
        return await asyncio.gather(*(workers.run(added, *given) for given in blocks))

    return lambda blocks: asyncio.run_coroutine_threadsafe(there(blocks), loop).result()


class PeopleCalls:
    """These calls of a node's servicer. Args: public: what others may know of its errors."""

    workers: Executor | None

    def __init__(
        self, identity: Identity, datasets: Datasets, public: Callable[[UmpcError], UmpcError]
    ):
        self.identity = identity
        self.datasets = datasets
        self._public = public

    # --- open ---------------------------------------------------------------------------------

    async def OpenPeople(self, requests: object, context: AnyContext) -> None:
        """Take a study of people up, with the key of each place and the dealer's keys."""
        async with self._answering(context, "open") as call:
            first = await read(context)
            if first is None:
                raise RemoteProtocolError(f"{call.caller} opened no study", culprit=call.caller)
            call.study = study = survey_of(decode_study(first.study))
            store = await asyncio.to_thread(self._admitted, call)
            most = KEY_BYTES * messages_of(study).places
            keys = pulled(context, call.caller, attrgetter("keys"), most)
            await told(context, "places", lambda _: store.open_study(study, keys))
            await self._fetch(study, store, context)
            key, signature = await asyncio.to_thread(store.opened, study.hash)
            who = str(call.peer.signed_in or "")
            await call.record(about("opened", study, call.caller, who))
            opened = pb.PeopleOpened(
                box_key=key,
                certificate=credentials_of(self.identity).certificate,
                signature=signature,
            )
            await context.write(pb.PeopleOpening(opened=opened))
            log.info("study %r of %s is open for people", study.name, call.caller)

    def _admitted(self, call: _Call) -> PeopleStore:
        """Return the place for a study that the site's rules and its administrator allow."""
        study = call.known
        study.index_of(self.identity.name)
        call.dataset = dataset = self.datasets.of(study)
        call.check_caller()
        self.datasets.check(study)
        check_new_run(study)
        dataset.admission.admit(study)
        # people send only where their study could be run today
        delta = delta_of(Sizes(study, messages_of(study).places))
        dataset.admission.permit_delta(delta)
        dataset.ledger.check_room(study.exact_epsilon, delta)
        assert dataset.people is not None  # an aggregator alone admits it
        return dataset.people

    async def _fetch(self, study: Study, store: PeopleStore, context: AnyContext) -> None:
        """Fetch the dealer's keys from where the disk ends, and tell the dealer that all are here.

        Raises: RemoteProtocolError if the dealer sends more or fewer.
        """
        dealer, address = dealer_of(study)
        total = messages_of(study).places * key_bytes_of(study)
        already = -1
        while already < total:
            already = done = await asyncio.to_thread(store.keys_so_far, study.hash)
            stream: RpcStream[Any, pb.PeoplePart] = RpcStream(
                dealer, "open", as_received, ahead=PARTS_AHEAD
            )
            try:
                await stream.connect(self.identity, "dealer", address)
                request = pb.PeopleStudy(hash=study.hash, already=already)
                stream.begin(dealer_stub(stream.channel).PeopleKeys(request))
                if seed := (await stream.next("open", QUIET_SECONDS)).data:
                    await asyncio.to_thread(store.take_seed, study.hash, seed)
                while seed and (data := (await stream.next("open", QUIET_SECONDS)).data):
                    await asyncio.to_thread(store.take_keys, study.hash, data, done)
                    done += len(data)
                    await context.write(progress("keys", done, total))
                if done < total:
                    raise stream.violation("sent fewer keys than the study has places")
            finally:
                await stream.close()

    # --- count --------------------------------------------------------------------------------

    async def ListPeople(self, request: pb.PeopleStudy, context: AnyContext) -> None:
        """Close the study if its time is over, and list who came."""
        async with self._answering(context, "compare") as call:
            store = await asyncio.to_thread(self._opened, call, request.hash)
            if isinstance(store, LinkedStore):
                rows = await asyncio.to_thread(self._linked, call, store, request)
                await call.record(about("listed", call.study, call.caller))
            else:
                await asyncio.to_thread(store.close_study, request.hash)
                rows = await asyncio.to_thread(store.rows, request.hash)
            while part := await asyncio.to_thread(next, rows, b""):
                await context.write(pb.PeoplePart(data=part))
            await context.write(pb.PeoplePart())

    def _linked(self, call: _Call, store: LinkedStore, request: pb.PeopleStudy) -> Iterator[bytes]:
        """The site's list, sealed to the other one, in parts."""
        study, dataset = call.known, call.dataset
        assert dataset is not None  # `_opened`
        # also a list that was made before: the approval may be withdrawn
        dataset.admission.admit(study)
        verify = credentials_of(self.identity).verify
        check_box_keys(study, request.opened, verify, call.caller)
        other = request.opened[1 - study.index_of(self.identity.name)]
        read = partial(dataset.admission.keyed_rows, study)
        sealed = store.listed(study.hash, other.box_key, read)
        return (sealed[at : at + MAX_FRAME] for at in range(0, len(sealed), MAX_FRAME))

    async def CountPeople(self, requests: object, context: AnyContext) -> None:
        """Sign whom this aggregator counts, of the whole list of the other one."""
        async with self._answering(context, "compare") as call:
            first = await read(context)
            study_hash = first.hash if first is not None else b""
            store = await asyncio.to_thread(self._opened, call, study_hash)
            (other,) = {node.name for node in call.known.nodes} - {self.identity.name}
            most = max(LEAST_LIST, ROW_BYTES * messages_of(call.known).places)
            rows = pulled(context, call.caller, attrgetter("data"), most)
            statement, signature = await told(
                context, "compare", lambda _: store.count(study_hash, rows, other)
            )
            counted = pb.PeopleCounted(
                statement=statement,
                signature=signature,
                certificate=credentials_of(self.identity).certificate,
            )
            await context.write(pb.PeopleOpening(counted=counted))

    async def SumPeople(self, request: pb.PeopleSigned, context: AnyContext) -> None:
        """Add up the share of the table, of the people whom both have signed."""
        async with self._answering(context, "add up") as call:
            store = await asyncio.to_thread(self._opened, call, request.hash)
            verify = credentials_of(self.identity).verify
            points = points_of(call.known, request.certificates, verify, call.caller)
            signed = request.statement, points, list(request.signatures)
            add = adding_place(self.workers)
            await told(
                context, "add up", lambda tell: store.add_up(request.hash, *signed, tell, add)
            )
            n = int.from_bytes(request.statement[:8], "little")
            whom = "linked rows" if isinstance(store, LinkedStore) else "people"
            await call.record(about("counted", call.study, call.caller, f"{n} {whom}"))
            await context.write(pb.PeopleOpening(opened=pb.PeopleOpened()))

    def _opened(self, call: _Call, study_hash: bytes) -> PeopleStore:
        """Return the place of a study that was opened here by this coordinator."""
        for dataset in self.datasets.found:
            if dataset.people is not None:
                call.study, call.dataset = dataset.people.study(study_hash), dataset
                call.check_caller()
                return dataset.people
        raise StudyError(f"{self.identity.name} is no aggregator of people: correct the study")

    @asynccontextmanager
    async def _answering(self, context: AnyContext, step: str) -> AsyncIterator[_Call]:
        """One call: its failure ends it with a typed status, and is in log and audit trail."""
        call = _Call(peer_of(context))
        try:
            yield call
        except UmpcError as error:
            # a coordinator asks for signed rows before it opens a study: no study is refused
            level = logging.WARNING if call.dataset or step == "open" else logging.INFO
            log.log(level, "people, step %s: %s: %s", step, type(error).__name__, error.message)
            if error.detail:
                log.warning("for the administrator only: %s", error.detail)
            try:
                await call.record(of_failure(error, call.study, call.caller, step))
            except AuditError as failure:
                log.error("%s", failure.message)
            error.step = error.step or step
            await context.abort(*refusal_of(self._public(error), call.caller))


class _Call:
    """One call of a coordinator, and the study that it is about, as soon as that is known."""

    def __init__(self, caller: Peer):
        self.caller = caller.name
        self.peer = caller
        self.study: Study | None = None
        self.dataset: Dataset | None = None

    @property
    def known(self) -> Study:
        assert self.study is not None
        return self.study

    def check_caller(self) -> None:
        """Raises: StudyError for another coordinator than the study's."""
        if self.caller != self.known.coordinator:
            raise StudyError(
                f"this is a study of coordinator {self.known.coordinator!r}, and {self.caller!r} "
                "called: only the study's own coordinator may",
                culprit=self.caller,
            )
        self.peer.check_study(allowed_as(self.known))

    async def record(self, row: AuditRow) -> None:
        """Append a row to the audit trail, on disk when it returns. Raises: AuditError."""
        if self.dataset is not None:
            await asyncio.to_thread(self.dataset.audit.append, row)
