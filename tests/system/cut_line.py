"""A coordinator whose call is cut in the middle of a list: by itself, or because it is killed.

    python -m tests.system.cut_line STUDY_FILE IDENTITY NAME CALL END

It sends a part of a list to an aggregator and says "sent". The call is OpenPeople or CountPeople,
the end is "cancel" or "wait".
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from umpc.coordinator.studyfile import load_study_file
from umpc.people.messages import ROW_BYTES
from umpc.people.places import read_keys
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocols.people.terms import survey_of
from umpc.transport.identity import load_identity
from umpc.transport.stream import RpcStream, as_received
from umpc.transport.tls import node_stub


async def cut(file: Path, folder: Path, name: str, call: str, end: str) -> None:
    study = survey_of(load_study_file(file).study("coordinator"))
    node = next(each for each in study.nodes if each.name == name)

    async def connected() -> RpcStream:
        stream = RpcStream(name, "compare", as_received)
        await stream.connect(load_identity(folder, "coordinator"), "node", node.address)
        return stream

    if call == "CountPeople":
        listing = await connected()
        listing.begin(node_stub(listing.channel).ListPeople(pb.PeopleStudy(hash=study.hash)))
        rows = (await listing.next("compare", 60)).data
        await listing.close()
        half = len(rows) // 2
        some = [pb.PeoplePart(data=rows[at : at + ROW_BYTES]) for at in range(0, half, ROW_BYTES)]
        messages = [pb.PeoplePart(hash=study.hash), *some]
    else:
        keys = list(read_keys(file.parent / "people.keys"))
        some = [pb.PeopleList(keys=key) for key in keys]
        messages = [pb.PeopleList(study=study.encode()), *some]
    stream = await connected()
    stream.begin(getattr(node_stub(stream.channel), call)())
    for each in messages:
        await stream.send(each, "compare")
    if end == "cancel":
        await stream.close()
    print("sent", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(cut(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]))
