"""The vectors of `joint_seed.py`."""

from __future__ import annotations

from typing import Any

from spec.cases.vectors import Arguments, Bad, Good, counting
from spec.joint_seed import (
    Member,
    Own,
    attempt_id,
    attempt_statement,
    commit,
    members_statement,
    propose,
    sign,
)


def _own(number: int) -> Own:
    return {
        "name": f"node-{number}",
        "records": 3 + number,
        "opening": counting(number),
        "secret": counting(8 + number),
        "nonce": 2**200 + number,
        "signing_key": 2**128 + number,
    }


def _signed_again(number: int, statement: bytes) -> bytes:
    return sign(_own(number)["signing_key"], statement, 2**201 + number)


STUDY = counting(15)
OWNS = [_own(number) for number in range(3)]
NAMES = [own["name"] for own in OWNS]
OPENINGS = [own["opening"] for own in OWNS]
MEMBERS = [propose(STUDY, own) for own in OWNS]
AGREE: Arguments = {"study": STUDY, "own": OWNS[0], "names": NAMES, "relay": "coordinator"}
PREPARE: Arguments = {
    "study": STUDY,
    "members": MEMBERS,
    "openings": OPENINGS,
    "signatures": [_signed_again(n, members_statement(STUDY, MEMBERS)) for n in range(3)],
    "relay": "coordinator",
}
ATTEMPT = attempt_id(STUDY, MEMBERS, OPENINGS)
EVALUATE: Arguments = {
    "attempt": ATTEMPT,
    "members": MEMBERS,
    "signatures": [_signed_again(n, attempt_statement(ATTEMPT)) for n in range(3)],
    "relay": "coordinator",
}


def _changed(place: int, **changes: Any) -> list[Member]:
    """All members, one of which states something else under its old signature."""
    return [{**each, **changes} if i == place else each for i, each in enumerate(MEMBERS)]


def _committed(commitment: bytes) -> dict[str, Any]:
    """A run whose node 1 committed to something else."""
    return {**PREPARE, "members": _changed(1, commitment=commitment)}


OTHER_MEMBERS = members_statement(STUDY, _changed(2, records=9))
GOOD: Good = [
    ("propose", "a member", {"study": STUDY, "own": OWNS[1]}),
    ("agree", "three nodes", {**AGREE, "members": MEMBERS}),
    ("prepare", "three nodes", PREPARE),
    ("evaluate", "three nodes", EVALUATE),
]
BAD: Bad = [
    ("agree", "a key is exchanged", {**AGREE, "members": _changed(1, public_key=counting(4))}),
    ("agree", "a count is changed", {**AGREE, "members": _changed(2, records=6)}),
    ("agree", "a commitment is exchanged", {**AGREE, "members": _changed(1, commitment=STUDY)}),
    ("agree", "a signature is cut", {**AGREE, "members": _changed(1, signature=bytes(63))}),
    ("agree", "the own count is changed", {**AGREE, "members": _changed(0, records=4)}),
    ("agree", "members in another order", {**AGREE, "members": MEMBERS[::-1]}),
    ("prepare", "an opening is exchanged", {**PREPARE, "openings": [*OPENINGS[:2], STUDY]}),
    ("prepare", "an opening is short", {**PREPARE, "openings": [*OPENINGS[:2], OPENINGS[2][:31]]}),
    (
        "prepare",
        "a commitment to another study",
        _committed(commit(counting(14), NAMES[1], OPENINGS[1])),
    ),
    ("prepare", "a commitment of another node", _committed(commit(STUDY, NAMES[0], OPENINGS[1]))),
    (
        "prepare",
        "a node signed other members",
        {
            **PREPARE,
            "signatures": [*PREPARE["signatures"][:2], _signed_again(2, OTHER_MEMBERS)],
        },
    ),
    (
        "evaluate",
        "a node prepared another attempt",
        {
            **EVALUATE,
            "signatures": [*EVALUATE["signatures"][:2], _signed_again(2, attempt_statement(STUDY))],
        },
    ),
]
