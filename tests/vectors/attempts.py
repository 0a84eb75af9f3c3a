"""Vectors of an attempt: commitments, the joint seed, the attempt's identity, and frames."""

from __future__ import annotations

from typing import Any

from tests.support.studies import make_study
from tests.vectors.part import Bad, Part, Values, fixed
from umpc.crypto.prg import derive
from umpc.errors import EncodingError, LocalProtocolError, RemoteProtocolError
from umpc.mpc.attempt import Chunk, SharedAttempt
from umpc.proto import checks, frame_codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.attempt import commit
from umpc.study.frames import Frame
from umpc.study.sizes import Member


class StudyOfHash:
    """A study with a given hash: the attempt's derivations take the hash as raw bytes."""

    def __init__(self, nodes: int, hash: bytes):
        self._study = make_study("a.x * b.x", nodes)
        self.hash = hash

    def __getattr__(self, name: str) -> Any:
        return getattr(self._study, name)


def attempt(inputs: Values) -> Values:
    """Derive everything from the members and their openings. A given commitment replaces ours."""
    study_hash = bytes.fromhex(inputs["study_hash"])
    openings = [bytes.fromhex(member["opening"]) for member in inputs["members"]]
    commitments = [
        bytes.fromhex(member["commitment"])
        if "commitment" in member
        else commit(study_hash, member["name"], opening)
        for member, opening in zip(inputs["members"], openings, strict=True)
    ]
    members = [
        Member(
            member["name"],
            member["records"],
            commitment,
            bytes.fromhex(member["public_key"]),
            member["first_class"],
        )
        for member, commitment in zip(inputs["members"], commitments, strict=True)
    ]
    study: Any = StudyOfHash(len(members), study_hash)
    made = SharedAttempt(study, members, openings, [0])
    chunk = Chunk((0, 1), inputs["chunk"], 0, 1)
    return {
        "commitments": [commitment.hex() for commitment in commitments],
        "joint_seed": made.seed.hex(),
        "attempt": made.id.hex(),
        "tree_hash_key": made.tree_hash().key.hex(),
        "edges_seed": derive(made.seed, "edges").hex(),
        "chunk_seed": made.chunk_seed(bytes.fromhex(inputs["node_seed"]), chunk).hex(),
    }


def member(number: int, **changes: Any) -> Values:
    facts = {
        "name": f"node-{number}",
        "records": 3 + number,
        "first_class": 0,
        "public_key": fixed(8 + number),
        "opening": fixed(number),
    }
    return {**facts, **changes}


def agreed(*members: Values) -> Values:
    return {
        "study_hash": fixed(15),
        "members": list(members),
        "node_seed": fixed(7),
        "chunk": 5,
    }


OTHER_STUDY = commit(bytes.fromhex(fixed(14)), "node-1", bytes.fromhex(fixed(1))).hex()
OTHER_NODE = commit(bytes.fromhex(fixed(15)), "node-0", bytes.fromhex(fixed(1))).hex()


def frame(inputs: Values) -> Values:
    """Encode a frame as protobuf bytes; `bytes_predicted` is known from its shape alone."""
    made = Frame(
        inputs["step"],
        tuple(inputs["owners"]),
        inputs["chunk"],
        inputs["count"],
        inputs["width"],
        bytes.fromhex(inputs["payload"]),
        inputs["round"],
    )
    encoded = frame_codec.encode_frame(made)
    assert frame_codec.decode_frame(encoded) == made
    return {"encoded": encoded.SerializeToString().hex(), "bytes_predicted": made.wire_bytes}


def read_frame(inputs: Values) -> object:
    return frame_codec.decode_frame(checks.parse(pb.Frame, bytes.fromhex(inputs["encoded"])))


PARTS = {
    "attempt": Part(
        "Every node commits to 32 bytes. The joint seed is the digest of all openings, and the "
        "attempt's identity covers the study's hash, the members and the joint seed. The chunk "
        "seed is that of nodes 0 and 1, derived from one node's seed.",
        attempt,
        {
            "two_nodes": agreed(member(0), member(1)),
            "classes": agreed(member(0, first_class=2), member(1, first_class=4), member(2)),
        },
        {
            "opening_does_not_fit_commitment": Bad(
                agreed(member(0), member(1, commitment=fixed(3))),
                RemoteProtocolError,
                "agree",
                "node-1",
            ),
            "commitment_to_another_study": Bad(
                agreed(member(0), member(1, commitment=OTHER_STUDY)),
                RemoteProtocolError,
                "agree",
                "node-1",
            ),
            "commitment_of_another_node": Bad(
                agreed(member(0), member(1, commitment=OTHER_NODE)),
                RemoteProtocolError,
                "agree",
                "node-1",
            ),
            "opening_one_byte_short": Bad(
                agreed(member(0, opening=fixed(0, 31)), member(1)),
                RemoteProtocolError,
                "agree",
                "node-0",
            ),
            "members_in_another_order": Bad(agreed(member(1), member(0)), LocalProtocolError),
        },
    ),
    "frames": Part(
        "A message between nodes as the protobuf message Frame of umpc/proto/v1/umpc.proto.",
        frame,
        {
            "opened_bits": {
                "step": "open",
                "round": 2,
                "owners": [0, 2],
                "chunk": 300,
                "count": 5,
                "width": 2,
                "payload": "1f01",
            },
            "link": {
                "step": "masked_fields",
                "round": 0,
                "owners": [],
                "chunk": 0,
                "count": 1,
                "width": 8,
                "payload": "a7",
            },
        },
        {
            "frame_cut_in_the_middle": Bad({"encoded": "0804100222020002"[:-2]}, EncodingError),
            "frame_of_an_unknown_step": Bad(
                {"encoded": pb.Frame(step=99).SerializeToString().hex()}, EncodingError
            ),
            "payload_longer_than_its_count": Bad(
                {
                    "encoded": pb.Frame(step=pb.MATERIAL, count=1, width=8, payload=b"ab")
                    .SerializeToString()
                    .hex()
                },
                EncodingError,
            ),
        },
        read_frame,
    ),
}
