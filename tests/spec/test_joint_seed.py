"""Commit, agree, open: a node's side of the agreement, with the vectors' randomness."""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.asymmetric import ec

from spec.joint_seed import Own, sign
from tests.spec.replaying import replay_tests
from tests.spec.studies import study_of
from umpc.crypto.signing import Credentials, Holder, point_of
from umpc.protocols.base.seed_agreement import SeedAgreement
from umpc.study.attempt import (
    Attempt,
    attempt_statement,
    check_openings,
    check_signatures,
    members_statement,
)
from umpc.study.sizes import Member


def verify(certificate: bytes) -> Holder:
    """A certificate is the name and the key, 65 bytes."""
    name = certificate[:-65].decode()
    return Holder(name, "dealer" if name == "dealer" else "node", certificate[-65:])


def member_of(given) -> Member:
    certificate = given["name"].encode() + given["key"]
    names = ("name", "records", "commitment", "public_key", "first_class", "signature")
    return Member(**{name: given[name] for name in names}, certificate=certificate)


def side_of(study: bytes, own: Own, names) -> SeedAgreement:
    key = ec.derive_private_key(own["signing_key"], ec.SECP256R1())
    credentials = Credentials(
        own["name"],
        own["name"].encode() + point_of(key.public_key()),
        lambda statement: sign(own["signing_key"], statement, own["nonce"]),
        verify,
    )
    drawn = iter((own["opening"], own["secret"]))
    columns = {"x": np.zeros(own["records"], dtype=np.int64)}
    return SeedAgreement(
        credentials, study_of(study, names), columns, own["records"], lambda size: next(drawn)
    )


def propose(study, own):
    member = side_of(study, own, ["node-0", "node-1"]).accept()
    return {
        "name": member.name,
        "records": member.records,
        "first_class": member.first_class,
        "commitment": member.commitment,
        "public_key": member.public_key,
        "key": member.certificate[-65:],
        "signature": member.signature,
    }


def agree(study, own, names, members, relay):
    side = side_of(study, own, names)
    assert side.study.coordinator == relay
    assert side.agree([member_of(each) for each in members]) == own["opening"]
    return members_statement(side.study, side.members)


def prepare(study, members, openings, signatures, relay):
    names = [each["name"] for each in members]
    of_hash, found = study_of(study, names), [member_of(each) for each in members]
    check_openings(of_hash, found, openings, relay)
    keys = [each["key"] for each in members]
    statement = members_statement(of_hash, found)
    check_signatures("these members", statement, found, keys, signatures, relay, "prepare")
    attempt = Attempt(of_hash, found, openings)
    return [attempt.seed, attempt.id]


def evaluate(attempt, members, signatures, relay):
    found = [member_of(each) for each in members]
    keys = [each["key"] for each in members]
    statement = attempt_statement(attempt)
    check_signatures("this attempt", statement, found, keys, signatures, relay, "evaluate")


test_good_vectors, test_bad_vectors, test_each_check_is_needed = replay_tests(
    "joint_seed", {"propose": propose, "agree": agree, "prepare": prepare, "evaluate": evaluate}
)
