"""A node answers for one set of survivors: a coordinator that claims losses gains no second value.

The coordinator of these tests sends what it likes, and one node answers over a real ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from tests.support.ledgers import D, balance, kinds, opened
from tests.support.node_talks import Said, talk_to
from tests.support.shuffled import shuffled_study
from tests.support.sites import site_of, unused
from tests.support.studies import make_members, make_study
from umpc.errors import DataError, RemoteProtocolError, StudyError
from umpc.node.budget.ledger import Ledger
from umpc.node.standing import PreparedAttempt, PreparedAttempts
from umpc.proto import codec
from umpc.study import messages as m
from umpc.study.attempt import without
from umpc.study.document import Study

WHOLE = make_study(name="tau", epsilon="1", nodes=4, may_miss=1, required=("node-3",))
ONE, OTHER = without(WHOLE, ["node-1"]), without(WHOLE, ["node-2"])
KEPT = m.Released(bytes(32), b"noisy share", 7, missing=("node-1",))
HELD = m.Held(bytes(32), 7, missing=("node-1",))


def talk(
    ledger: Ledger, study: Study, orders: Sequence[m.CoordinatorMessage] = (), **parts: Any
) -> Said:
    """Propose a study and say these things. Args: parts: of the site."""
    permits = {"permit": lambda *_: None, "permit_delta": lambda _: None}
    return talk_to(site_of(ledger, load=unused, **permits, **parts), study, orders)


def hold(ledger: Ledger, share: bytes) -> None:
    """Hold an attempt of the survivors ONE, as a run does."""
    ledger.reserve(WHOLE.hash, WHOLE.exact_epsilon, D, name="tau")
    ledger.hold(WHOLE.hash, KEPT.attempt, share)


def test_held_shares_answer_no_release_of_other_survivors(path):
    with opened(path) as ledger:
        hold(ledger, codec.encode_kept(KEPT))
        for study in (OTHER, WHOLE):
            said, error = talk(ledger, study, [m.Release()])
            assert said == [HELD] and isinstance(error, RemoteProtocolError), said
            assert "sent Release where Drop was due" in error.message
            assert ledger.holds(WHOLE.hash) and ledger.balance() == balance(5, 0, 1, 4)
        assert talk(ledger, ONE, [m.Release()]) == ([HELD, KEPT], None)
        assert ledger.balance() == balance(5, 1, 0, 4)


def test_held_shares_are_dropped_before_an_attempt_of_other_survivors(path):
    with opened(path) as ledger:
        hold(ledger, codec.encode_kept(KEPT))
        said, error = talk(ledger, OTHER, [m.Drop()])
        assert said == [HELD] and isinstance(error, DataError), "it went on to its records"
        assert not ledger.holds(WHOLE.hash) and ledger.balance() == balance(5, 0, 0, 5)


def test_one_charge_pays_for_one_set_and_no_second_value_leaves(path):
    """A curious coordinator names others as lost, or nobody, after the release."""
    with opened(path) as ledger:
        hold(ledger, codec.encode_kept(KEPT))
        ledger.charge(WHOLE.hash, KEPT.attempt)
        told = m.Released(KEPT.attempt, b"", 7, missing=("node-1",))
        for study in (OTHER, WHOLE):
            for orders in ([], [m.Release()], [m.Drop()], [m.Agree(())]):
                assert talk(ledger, study, orders) == ([told], None)
        assert talk(ledger, ONE) == ([KEPT], None), "the stored answer of the same set"
        assert ledger.balance() == balance(5, 1, 0, 4)
        assert kinds(ledger) == ["genesis", "total", "charge"]


def test_the_same_with_shufflers_whose_message_names_its_members(path):
    whole = shuffled_study(nodes=4, may_miss=1)
    one, other = without(whole, ["node-1"]), without(whole, ["node-2"])
    members, openings = make_members(one, [30, 40, 50])
    kept = m.Delivery(bytes(32), tuple(members), tuple(openings), b"m", bytes(32), (bytes(64),) * 3)
    with opened(path) as ledger:
        ledger.reserve(whole.hash, whole.exact_epsilon, D, name=whole.name)
        ledger.hold(whole.hash, kept.attempt, codec.encode_kept(kept))
        held = m.Held(bytes(32), 30, missing=("node-1",))
        for study, due in ((other, "Drop"), (one, "Release or Drop")):
            said, error = talk(ledger, study, [m.Ask(b"")])
            assert said == [held] and f"where {due} was due" in error.message
        ledger.charge(whole.hash, kept.attempt)
        assert talk(ledger, other) == ([m.Released(bytes(32), b"", 30, missing=("node-1",))], None)


def test_nobody_is_isolated_and_nothing_is_reserved(path):
    """The coordinator claims that this node, a required one, or more than may_miss are lost."""
    freely = WHOLE.replaced(may_miss=2, required=())
    for lost, words in (
        (["node-0"], "'node-0' is not one of the study's nodes"),
        (["node-3"], r"needs node-3 (required)"),
        (["node-1", "node-2"], "without at most 1 of its nodes"),
    ):
        forged = without(freely, lost).replaced(may_miss=1, required=WHOLE.required)
        with opened(path) as ledger:
            said, error = talk(ledger, forged)
            assert said == [] and isinstance(error, StudyError) and words in error.message
            assert ledger.balance() == balance(5, 0, 0, 5)


def test_what_was_prepared_with_a_lost_node_is_given_up(path):
    """Its reservation goes with it, and the survivors' attempt reserves anew."""
    closed = []
    spool = SimpleNamespace(close=lambda: closed.append(1))
    with opened(path) as ledger:
        ledger.reserve(WHOLE.hash, WHOLE.exact_epsilon, D, name="tau")
        parking = PreparedAttempts(ledger, 1, 60, later=lambda *_: SimpleNamespace(cancel=list))
        parking.put(PreparedAttempt(SimpleNamespace(study=WHOLE), (), [], spool, 0, D))
        said, error = talk(ledger, ONE, parking=parking)
        assert said == [] and isinstance(error, DataError), "it went on to its records"
        assert closed == [1] and len(parking) == 0 and ledger.balance() == balance(5, 0, 0, 5)
