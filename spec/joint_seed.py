"""The joint seed: commit, agree, open; the statements that every node signs; the attempt's id.

Sinh & Ramon 2025, section 3: the parties first make a seed of a pseudorandom generator together.
Commit and reveal does it: the seed is the hash of all openings. One attempt's seed is uniform if
one node is honest. Who sees all openings can end the attempt and have another seed drawn; the noise
covers every E. The order of the steps is the whole point:

    propose   every node sends its member: a commitment to 32 random bytes, its public facts
    agree     every node checks and signs ALL members, and only then sends its opening
    prepare   every node checks all openings and all signatures, derives the seed, signs the attempt
    evaluate  every node checks that all nodes have signed the same attempt; only now it uses data

Everywhere `study` is the study's hash. Its document has the constant 0.2.0 in the version's place,
so the hash does not change with the version of the protocol that the processes speak.
"""

import hashlib
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from spec.prg import digest
from spec.refused import require
from spec.zero_shares import public_key

Member = dict[str, Any]
"""name, records, first_class (records of the first class, 0 without public labels), commitment,
public_key (X25519). In a list of members each also has key (the point of its P-256 certificate, 65
bytes) and signature."""
Own = dict[str, Any]
"""A node's own facts and randomness: name, records; opening and secret (32 random bytes each);
nonce, for its signature (random, below the group's order); signing_key, of its certificate."""
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""The order of P-256."""


def commit(study: bytes, name: str, opening: bytes) -> bytes:
    """Propose: a node's commitment. It names the study and the node, so nobody can copy it."""
    return digest(b"umpc commitment 1", study, name.encode(), opening)


def facts(member: Member) -> list[bytes]:
    """All that a member says, as bytes."""
    counts = [member[each].to_bytes(8, "little") for each in ("records", "first_class")]
    return [member["name"].encode(), *counts, member["commitment"], member["public_key"]]


def member_statement(study: bytes, member: Member) -> bytes:
    """The first statement that a node signs: what it says about itself."""
    return digest(b"umpc member 1", study, *facts(member))


def members_statement(study: bytes, members: list[Member]) -> bytes:
    """The second one: everything that all nodes said. A node opens when it signs it.

    That all others signed the same one is checked before anything is prepared.
    """
    return digest(b"umpc members 1", study, *(member_statement(study, each) for each in members))


def attempt_statement(attempt: bytes) -> bytes:
    """The third one: that the node has prepared this attempt. No data is used before all did."""
    return digest(b"umpc prepared 1", attempt)


def joint_seed(openings: list[bytes]) -> bytes:
    """The seed that all nodes made."""
    return digest(b"umpc joint seed 1", *openings)


def attempt_id(study: bytes, members: list[Member], openings: list[bytes]) -> bytes:
    """The attempt's identity: study, members and seed. Certificates and signatures prove them."""
    each = (digest(*facts(member)) for member in members)
    return digest(b"umpc attempt 1", study, *each, joint_seed(openings))


def is_signature(key_point: bytes, statement: bytes, signature: bytes) -> bool:
    """ECDSA on P-256 with SHA-256; a signature is r and s, 32 bytes each, big-endian."""
    if len(signature) != 64:
        return False
    r, s = (int.from_bytes(half, "big") for half in (signature[:32], signature[32:]))
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), key_point)
    try:
        key.verify(encode_dss_signature(r, s), statement, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def sign(secret: int, statement: bytes, nonce: int) -> bytes:
    """ECDSA. Args: nonce: uniform, below the group's order, and new for each signature."""
    r = ec.derive_private_key(nonce, ec.SECP256R1()).public_key().public_numbers().x % ORDER
    hashed = int.from_bytes(hashlib.sha256(statement).digest(), "big")
    s = pow(nonce, -1, ORDER) * (hashed + r * secret) % ORDER
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def point(secret: int) -> bytes:
    """The public key of a certificate, an uncompressed point."""
    numbers = ec.derive_private_key(secret, ec.SECP256R1()).public_key().public_numbers()
    return b"\x04" + numbers.x.to_bytes(32, "big") + numbers.y.to_bytes(32, "big")


def propose(study: bytes, own: Own) -> Member:
    """A node's member, which it makes and signs when it accepts the study."""
    member: Member = {
        "name": own["name"],
        "records": own["records"],
        "first_class": 0,
        "commitment": commit(study, own["name"], own["opening"]),
        "public_key": public_key(own["secret"]),
        "key": point(own["signing_key"]),
    }
    statement = member_statement(study, member)
    return {**member, "signature": sign(own["signing_key"], statement, own["nonce"])}


def agree(study: bytes, own: Own, names: list[str], members: list[Member], relay: str) -> bytes:
    """The checks of a node before its opening leaves. Returns: the statement that it then signs.

    Args: names: the study's nodes. relay: the process that passed the members on. An honest relay
    has checked them, so what does not fit is the relay's fault.
    """
    require([each["name"] for each in members] == names, "members are the study's", relay)
    require(propose(study, own) in members, "the own member is intact", relay)
    for member in members:
        fits = is_signature(member["key"], member_statement(study, member), member["signature"])
        require(fits, "a member is signed", relay)
    return members_statement(study, members)


def prepare(
    study: bytes, members: list[Member], openings: list[bytes], signatures: list[bytes], relay: str
) -> tuple[bytes, bytes]:
    """The checks of a node before it prepares. Returns: the joint seed, and the attempt's id."""
    for member, opening in zip(members, openings, strict=True):
        fits = commit(study, member["name"], opening) == member["commitment"]
        require(fits and len(opening) == 32, "an opening fits", relay)
    statement = members_statement(study, members)
    for member, signature in zip(members, signatures, strict=True):
        fits = is_signature(member["key"], statement, signature)
        require(fits, "all signed the members", relay)
    return joint_seed(openings), attempt_id(study, members, openings)


def evaluate(attempt: bytes, members: list[Member], signatures: list[bytes], relay: str) -> None:
    """The checks of a node before it uses data."""
    for member, signature in zip(members, signatures, strict=True):
        fits = is_signature(member["key"], attempt_statement(attempt), signature)
        require(fits, "all signed the attempt", relay)
