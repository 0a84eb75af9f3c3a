"""The vectors of `verified_by_few.py`: one of three nodes may lie, and two verify."""

from __future__ import annotations

from typing import Any

from spec.cases.grid import MATRIX
from spec.cases.vectors import Arguments, Bad, Good, counting
from spec.cases.verified_grid import DEALT, HONEST, KEYS, RANDOMS, STUDY
from spec.cases.verified_grid import OWNS as ALL
from spec.field import encode
from spec.joint_seed import sign
from spec.verified_by_few import accept_short, confirm, run, shorten, verdict_statement
from spec.verified_messages import Opened, Own, Study

FEW: Study = {**STUDY, "colluding": 1}
OWNS: list[Own] = [
    {**own, "nonces": [*own["nonces"], 2**208 + own["place"]][: 3 if own["place"] < 2 else 2]}
    for own in ALL
]
RUN: Arguments = {
    "study": {**FEW, "matrix": MATRIX},
    "owns": OWNS,
    "dealt": DEALT,
    "randoms": RANDOMS,
}
SIGNATURES: list[bytes] = run(**RUN)["signatures"]
ROOT: bytes = HONEST["told"]["root"]
SHORT: Opened = shorten(FEW, HONEST["opened"])
OTHER = {**FEW, "attempt": counting(14)}
STUDIES = {"study": FEW, "place": 2, "sent": HONEST["firsts"][2]}
"""The arguments of node 2, which does not check."""
STATEMENT = HONEST["statements"][1]["signature"]
SHIFTED = encode([1, 0, 0, 0, 0, 0])


def _verdict(study: Study, root: bytes, signer: int = 1) -> bytes:
    return sign(KEYS[signer], verdict_statement(study, root), 2**209 + signer)


def _told(second: bytes) -> Arguments:
    """The coordinator tells node 2 another signature in place of that of the second verifier."""
    return confirmed([SIGNATURES[0], second, SIGNATURES[2]])


def confirmed(signatures: list[bytes], short: Opened = SHORT) -> Arguments:
    """The arguments of `confirm_short` at node 2."""
    return {**STUDIES, "short": short, "signatures": signatures}


def confirm_short(
    study: Study, place: int, sent: Any, short: Opened, signatures: list[bytes]
) -> bytes:
    """All checks of a node that does not verify. Returns: R."""
    root = accept_short(study, place, sent, short)
    confirm(study, root, signatures)
    return root


def _short(**changes: Any) -> Arguments:
    return {**STUDIES, "short": {**SHORT, **changes}}


GOOD: Good = [
    ("run", "two verifiers of three nodes", RUN),
    ("confirm_short", "an honest coordinator", confirmed(SIGNATURES)),
]
BAD: Bad = [
    ("accept_short", "a total one cell short", _short(total=SHORT["total"][:-8])),
    ("accept_short", "another statement than signed", _short(statements=[ROOT] * 3)),
    ("confirm_short", "a verdict of another attempt", _told(_verdict(OTHER, ROOT))),
    ("confirm_short", "a verdict of another root", _told(_verdict(FEW, counting(3)))),
    ("confirm_short", "a verdict is missing", _told(b"")),
    ("confirm_short", "no verdict is told", confirmed([])),
    ("confirm_short", "another node's in place of a verifier's", _told(_verdict(FEW, ROOT, 2))),
    ("confirm_short", "a statement in place of a verdict", _told(STATEMENT)),
    (
        "confirm_short",
        "another total than the verifiers checked",
        confirmed(SIGNATURES, {**SHORT, "total": SHIFTED}),
    ),
    (
        "confirm_short",
        "another salt than the verifiers checked",
        confirmed(SIGNATURES, {**SHORT, "salts": [counting(3), *SHORT["salts"][1:]]}),
    ),
]
