"""The verified grid where t + 1 nodes check: umpc computes the vectors and refuses the lies.

Each of the lies is one of the coordinator to node 2, which does not check.
"""

from __future__ import annotations

import pytest

from spec import field
from spec.cases import verified_by_few as cases
from spec.cases import verified_grid as all_verify
from spec.cases.vectors import from_json, to_json
from spec.cases.verified_by_few import FEW, OWNS
from spec.refused import Refused
from spec.verified_by_few import accept_short
from spec.verified_grid import run
from tests.spec.replaying import replay_tests, vectors
from tests.spec.test_verified_grid import DEALER, attempt_of, parties, signer_of, table_of_node
from tests.spec.test_verified_lies import octets, take, words
from umpc.protocols.grid.masked_form import TOTAL
from umpc.protocols.grid.verified import OPENING


@pytest.mark.parametrize("vector", [*vectors("verified_by_few", "good")])
def test_the_specification_computes_the_good_vectors(vector):
    found = getattr(cases, vector["function"])(**from_json(vector["inputs"]))
    assert to_json(found) == vector["outputs"]


@pytest.mark.parametrize("vector", vectors("verified_by_few", "bad"))
def test_bad_vectors_are_refused_and_name_the_coordinator(vector):
    with pytest.raises(Refused) as found:
        getattr(cases, vector["function"])(**from_json(vector["inputs"]))
    assert (found.value.check, found.value.culprit) == (vector["check"], "coordinator")


def test_a_missing_statement_is_refused():
    short = {**cases.SHORT, "statements": cases.SHORT["statements"][:-1]}
    with pytest.raises(Refused, match="all tables are there"):
        accept_short(FEW, 2, all_verify.HONEST["firsts"][2], short)


def test_few_verifiers_release_what_all_do():
    given = {**cases.RUN, "owns": all_verify.OWNS}
    of_all, of_few = run(**given), cases.run(**cases.RUN)
    assert [of_few[part] for part in ("shares", "released")] == [
        of_all[part] for part in ("shares", "released")
    ]


# --- umpc ---


def of_run(study, owns, dealt, randoms):
    total, nodes, dealing, _, _ = parties(study, owns, dealt, randoms)
    opened = []
    for exchange in range(2):
        for place, node in enumerate(nodes):
            for frame in node.masked():
                total.add(place, frame)
        total.end_exchange()
        if exchange:
            for frame in list(dealing.answer(total.questions, signer_of(dealt))):
                for hearing in (total, *(node for node in nodes if node.asks)):
                    hearing.hear(frame, DEALER)
            total.end_exchange()
        for place, node in enumerate(nodes):
            frames = list(total.told(place))
            opened += [frames] if not node.asks else []
            take(node, frames)
    # after the first exchange node 2 is told nothing
    first, nothing = opened
    assert not nothing
    signatures = [node.sign() for node in nodes]
    total.check_signed(signatures)
    for node in nodes:
        node.confirm(signatures)
    shares = [
        (node.shares[0] + 2 * own["noise"]) % field.P for node, own in zip(nodes, owns, strict=True)
    ]
    said = nodes[2].transcript.said
    short = {
        "total": next(frame.payload for frame in first if frame.step == TOTAL),
        "salts": [each.opening.salt for each in said],
        "signatures": [each.opening.signature for each in said],
        "statements": [each.opened_as(study["attempt"]) for each in said],
    }
    released = (sum(shares) + field.P // 2) % field.P - field.P // 2
    return {
        "short": short,
        "signatures": signatures,
        "shares": shares,
        "released": released // 2,
    }


def short_frames(place, short):
    """A node is told this of all first messages."""
    yield words(TOTAL, short["total"])
    rows = zip(short["salts"], short["statements"], short["signatures"], strict=True)
    for other, row in enumerate(rows):
        if other != place:
            yield octets(OPENING, b"".join(row), other)


def node_with(study, place, short):
    """A node that has what it is told."""
    node = table_of_node(attempt_of(study), study, OWNS[place])
    node.deal([0])
    assert list(node.masked())
    take(node, short_frames(place, short))
    return node


def of_accept_short(study, place, sent, short):
    return node_with(study, place, short)


def of_confirm_short(study, place, sent, short, signatures):
    node = node_with(study, place, short)
    node.confirm(signatures)
    assert node.shares
    return node.transcript.root(short["total"])


REPLAYS = {
    "run": of_run,
    "accept_short": of_accept_short,
    "confirm_short": of_confirm_short,
}
test_good_vectors, test_bad_vectors, test_each_check_is_needed = replay_tests(
    "verified_by_few", REPLAYS
)
