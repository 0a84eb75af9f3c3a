"""A small study in this process's own memory, at its start and not in its first study.

Much of a first study is no work of that study. msgspec makes the decoders of all settings at the
first document, Python and its libraries fill their caches, and memory pages are touched for the
first time. On a machine that runs many nodes a coordinator waits for all of it. So a node that has
time, before it says that it is ready, takes every step of a study once that needs no other process
and no file. Its table, its keys and its authority are made up, and nothing of it is kept.

The dealer's part is missing: random bytes stand in for its material, and the result means nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from umpc.crypto.prg import SEED_BYTES, FixedKeyHash
from umpc.crypto.signing import MemoryAuthority
from umpc.mpc.chunks import Chunk
from umpc.mpc.masked.material import dealt_bytes
from umpc.mpc.wave_in_memory import NodeBatch, as_batch, run_wave
from umpc.mpc.waves import in_batches
from umpc.proto import codec
from umpc.protocols.base.node import GivesTasks, MeshSide, NodeSide
from umpc.protocols.registry import (
    USUAL,
    decode_study,
    find_protocol,
    load_all,
    protocol_of,
)
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.study.parts import FieldText, Participant
from umpc.ustat.statistics import find_statistic
from umpc.ustat.text import to_text

NODES = 4
"""Each node then has several cells, which it computes together."""
RECORDS = 8
FIELDS = (FieldText("x", "0", "127", "1"), FieldText("y", "0", "127", "1"))


def rehearse() -> None:
    """Take all steps of a study of made-up records, once in this process.

    One that was forked from a process that has done so does it in half of the time, and then has
    its own copy of the memory that a study writes to.
    """
    _once(os.getpid())


@lru_cache(maxsize=1)
def _once(process: int) -> None:
    _take_all_steps()


def _take_all_steps() -> None:
    load_all()
    study = decode_study(_document())
    authority = MemoryAuthority("rehearsal")
    table = np.arange(NODES * RECORDS, dtype=np.int64).reshape(NODES, RECORDS)
    sides = [
        protocol_of(study).node(
            authority.credentials(each.name), study, {"x": own, "y": own}, RECORDS, os.urandom
        )
        for each, own in zip(study.nodes, table, strict=True)
    ]
    _agree(study, sides)
    meshes = [side.mesh for side in sides if side.mesh is not None]
    _evaluate(meshes)
    for side in sides:
        for _ in side.own_steps():
            pass
        side.release()


def _document() -> bytes:
    """A study of Kendall's tau, as a coordinator sends it."""
    names = [field.name for field in FIELDS]
    settings = {"dealer": Participant("dealer", ""), "edges": "2n"}
    study = Study(
        name="rehearsal",
        statistic="kendall_tau",
        kernels=tuple(map(to_text, find_statistic("kendall_tau").expressions(names))),
        fields=FIELDS,
        epsilon="1",
        max_colluding=NODES - 1,
        coordinator="coordinator",
        nodes=tuple(Participant(f"node-{number}", "") for number in range(NODES)),
        settings=find_protocol(USUAL).settings(),
    )
    return study.replaced(**settings).encode()


def _agree(study: Study, sides: Sequence[NodeSide]) -> None:
    """All steps up to *evaluate*, with messages that are written and read again."""
    accepted = [m.Accepted(study.hash, side.accept()) for side in sides]
    members = tuple(each.member for each in accepted)
    openings = tuple(side.agree(members) for side in sides)
    agreed = tuple(side.sign_members() for side in sides)
    for side in sides:
        side.check_agreed(agreed)
        side.begin(openings)
    prepared = tuple(side.sign_attempt() for side in sides)
    for side in sides:
        side.check_prepared(prepared)
    for message in accepted:
        codec.encode_node(message)


def _evaluate(meshes: Sequence[MeshSide]) -> None:
    """Round 1 between all nodes, and then the rounds of their common cells."""
    for mesh in meshes:
        mesh.receive_seed(os.urandom(SEED_BYTES))
    for mesh in meshes:
        for other in mesh.peers:
            meshes[other].receive_fields(mesh.index, mesh.fields_for(other))
    attempt = meshes[0].attempt
    results, _ = run_wave([batch for mesh in meshes for batch in _batches(mesh)])
    for chunk in attempt.chunks():
        for node in chunk.parties:
            meshes[node].add(chunk, results[node, chunk])


def _batches(mesh: MeshSide) -> Iterator[NodeBatch]:
    """A node's chunks, as it computes them together."""
    attempt = mesh.attempt
    tree_hash = FixedKeyHash(attempt.tree_key)
    for batch in in_batches(attempt.chunks_of(mesh.index), attempt.plan, mesh.index):
        material = [_material(mesh, chunk) for chunk in batch]
        together = mesh.batch(batch, material) if isinstance(mesh, GivesTasks) else None
        if together is not None:
            yield NodeBatch(mesh.index, batch, together.protocol(tree_hash))
            continue
        for chunk, payload in zip(batch, material, strict=True):
            yield NodeBatch(mesh.index, [chunk], as_batch(mesh.protocol(chunk, payload, tree_hash)))


def _material(mesh: MeshSide, chunk: Chunk) -> bytes:
    """Random bytes, as long as the material that the dealer sends."""
    party = chunk.parties.index(mesh.index)
    return os.urandom(dealt_bytes(mesh.attempt.plan(chunk), party, chunk.count))
