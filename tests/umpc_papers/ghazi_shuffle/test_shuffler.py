"""umpc_papers.ghazi_shuffle.shuffler: a heap of all nodes' messages or none; each node's message
once in an attempt.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.local import bins
from tests.support.shuffled import SHUFFLERS, protocol_of, shuffled_attempt
from tests.support.studies import Entropy
from umpc.crypto.ring import packed_size
from umpc.errors import EncodingError, LocalProtocolError, RemoteProtocolError, TooFewRecords
from umpc_papers.ghazi_shuffle.shuffler import ShufflerAttempt, place_of, run_id

ATTEMPT = shuffled_attempt((25, 30, 0), bins=bins(x=3, y=3))
FIRST, SECOND = (shuffler.name for shuffler in SHUFFLERS)
SEED = bytes(range(32))


def session(name: str = FIRST, seen=None, seed: bytes = SEED) -> ShufflerAttempt:
    return ShufflerAttempt(ATTEMPT, name, seed, {} if seen is None else seen)


def shares(node: int, label: str = "shares") -> bytes:
    """Some message under a pad."""
    protocol = protocol_of(ATTEMPT).protocol
    count = protocol.dimension * ATTEMPT.members[node].records * protocol.shares
    size, spare = packed_size(count, protocol.width), -count * protocol.width % 8
    drawn = Entropy(f"{label} {node}")(size)
    return drawn[:-1] + bytes([drawn[-1] >> spare]) if drawn else b""


def test_nothing_is_given_before_all_have_delivered_and_then_once():
    here = session()
    for node in (0, 2):
        here.deliver(node, shares(node))
        with pytest.raises(
            LocalProtocolError, match="when all nodes of the attempt have delivered"
        ):
            here.heap()
    assert list(here.missing) == ["node-1"]
    here.deliver(1, shares(1))
    assert (
        list(here.missing) == [] and sum(frame.count for frame in here.heap()) == 55 * per_record()
    )
    with pytest.raises(LocalProtocolError, match="once"):
        here.heap()


def per_record() -> int:
    protocol = protocol_of(ATTEMPT).protocol
    return protocol.dimension * protocol.shares


@pytest.mark.parametrize("name", [FIRST, SECOND])
def test_the_same_message_again_changes_nothing_and_another_one_is_a_violation(name):
    seen, good = {}, [shares(node) if name == FIRST else bytes([node]) * 32 for node in range(3)]
    other = shares(0, "other") if name == FIRST else bytes(31) + b"1"
    once, twice = session(name, seen), session(name, {})
    for node in (0, 1, 2):
        once.deliver(node, good[node])
        twice.deliver(node, good[node])
        twice.deliver(node, good[node])
    assert [frame.payload for frame in once.heap()] == [frame.payload for frame in twice.heap()]
    again = session(name, seen, Entropy("another order")(32))
    again.deliver(0, good[0])
    for here in (again, session(name, seen)):
        with pytest.raises(
            RemoteProtocolError, match="node-0 delivered two different messages"
        ) as caught:
            here.deliver(0, other)
        assert (caught.value.culprit, caught.value.step) == ("node-0", "release")


@pytest.mark.parametrize(
    "spoil", [lambda m: m[:-1], lambda m: m + b"\0", lambda m: m[:-1] + b"\xff", lambda m: b""]
)
def test_a_malformed_message_names_its_node(spoil):
    assert -25 * per_record() * protocol_of(ATTEMPT).protocol.width % 8, (
        "there is padding to be set"
    )
    with pytest.raises(RemoteProtocolError, match="node-0 delivered a malformed message") as caught:
        session().deliver(0, spoil(shares(0)))
    assert caught.value.culprit == "node-0"


def test_both_have_one_order_from_one_seed_and_say_so_without_telling_it():
    messages = [shares(node) for node in range(3)]

    def heap(seed: bytes) -> list[bytes]:
        here = session(seed=seed)
        for node, message in enumerate(messages):
            here.deliver(node, message)
        return [frame.payload for frame in here.heap()]

    other = Entropy("other")(32)
    assert heap(SEED) == heap(SEED) != heap(other)
    assert run_id(SEED, ATTEMPT.id) == run_id(SEED, ATTEMPT.id) != run_id(other, ATTEMPT.id)
    assert run_id(SEED, ATTEMPT.id) != run_id(SEED, bytes(32)) and SEED not in run_id(
        SEED, ATTEMPT.id
    )
    with pytest.raises(EncodingError, match="a seed has 32 bytes, 31 came"):
        session(seed=SEED[1:])


def test_it_knows_its_place_and_refuses_studies_of_others():
    assert (place_of(ATTEMPT.study, FIRST), place_of(ATTEMPT.study, SECOND)) == (0, 1)
    with pytest.raises(
        RemoteProtocolError, match="names shuffler-1 and shuffler-2 shufflers, this is 'shuffler-3'"
    ):
        session("shuffler-3")
    with pytest.raises(TooFewRecords):
        ShufflerAttempt(shuffled_attempt((18, 0)), FIRST, SEED, {})


def test_it_shows_nothing_of_itself():
    here = session()
    here.deliver(0, shares(0))
    assert repr(here) == f"ShufflerAttempt(attempt {ATTEMPT.id.hex()[:8]}, <redacted>)"


def test_a_pad_is_the_same_at_node_and_shuffler():
    of = protocol_of(ATTEMPT)
    pads = np.stack([*of.pads(SEED, 25 * of.protocol.shares)])
    assert np.array_equal(np.stack([*of.rows(1, SEED, 25)]), pads)
