"""The verified grid where at most t nodes lie: the first t + 1 nodes check for all.

They are the *verifiers*. They get and check everything, as in `verified_grid.py`. Every other node
gets the total and what fixes R: of each node its salt, d_u and the signature of d_u. It gets no
list, no proof and no answer of the dealer. It makes its share only when each verifier has signed
(attempt, R). One of them is honest, so it has checked everything that R fixes, and R fixes Ĥ.
"""

from typing import Any

from spec.field import decode
from spec.joint_seed import is_signature, sign
from spec.prg import digest
from spec.refused import require
from spec.verified_checks import check
from spec.verified_grid import deal, release, share, transcript
from spec.verified_messages import (
    Message,
    Opened,
    Own,
    Study,
    root_from,
    table_digest,
    table_statement,
)


def verifiers(study: Study) -> range:
    """The first t + 1 nodes in the study's order. Args: study: with colluding, which is t."""
    return range(study["colluding"] + 1)


def verdict_statement(study: Study, root: bytes) -> bytes:
    """The bytes that a verifier signs when all its checks hold."""
    return digest(b"umpc verified verdict 1", study["attempt"], root)


def shorten(study: Study, opened: Opened) -> Opened:
    """A node that does not check gets this: each d_u in place of H(salt, ĥ) and ŷ."""
    rows = zip(opened["salts"], opened["tables"], opened["lists"], strict=True)
    statements = [table_statement(study, place, *row) for place, row in enumerate(rows)]
    kept = {part: opened[part] for part in ("total", "salts", "signatures")}
    return {**kept, "statements": statements}


def accept_short(study: Study, place: int, sent: Message, short: Opened) -> bytes:
    """Its checks before its inverses leave. Returns: R, with this node's own salt and d_u in it."""
    relay, count = study["relay"], len(study["names"])
    counts = {len(rows) for part, rows in short.items() if part != "total"}
    require(counts == {count}, "all tables are there", relay)
    decode(short["total"], study["cells"], "shape of a total", relay)
    salts, statements = [*short["salts"]], [*short["statements"]]
    own = sent["salt"], table_digest(sent["salt"], sent["table"]), sent["list"]
    salts[place], statements[place] = sent["salt"], table_statement(study, place, *own)
    for key, each, signature in zip(study["keys"], statements, short["signatures"], strict=True):
        require(is_signature(key, each, signature), "a table is signed", relay)
    return root_from(study, statements, salts, short["total"])


def confirm(study: Study, root: bytes, signatures: list[bytes]) -> None:
    """The check of every node before its share. Args: root: its own R. signatures: of all nodes."""
    relay = study["relay"]
    require(len(signatures) == len(study["names"]), "all signed the total", relay)
    for place in verifiers(study):
        key, statement = study["keys"][place], verdict_statement(study, root)
        require(is_signature(key, statement, signatures[place]), "all signed the total", relay)


def run(study: Study, owns: list[Own], dealt: Message, randoms: list[int]) -> dict[str, Any]:
    """One attempt of honest nodes. All messages before the verdicts are as in `verified_grid.py`.

    The last signature of a node that does not check is that of its statement.
    """
    numbers = deal(study, dealt["seeds"], randoms)
    owns = [{**own, "dealt": number} for own, number in zip(owns, numbers, strict=True)]
    sent = transcript(study, owns, dealt)
    opened, told = sent["opened"], sent["told"]
    short, signatures = shorten(study, opened), []
    for place, signed in enumerate(sent["statements"]):
        signature = signed["signature"]
        if place in verifiers(study):
            check(study, place, opened, signed, sent["seconds"], told, [])
            statement = verdict_statement(study, signed["root"])
            signature = sign(owns[place]["key"], statement, owns[place]["nonces"][2])
        signatures.append(signature)
    for place, (signed, first) in enumerate(zip(sent["statements"], sent["firsts"], strict=True)):
        root = signed["root"]
        if place not in verifiers(study):
            root = accept_short(study, place, first, short)
        confirm(study, root, signatures)
    shares = [share(study, own, opened) for own in owns]
    return {
        "short": short,
        "signatures": signatures,
        "shares": shares,
        "released": release(shares),
    }
