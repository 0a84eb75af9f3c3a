"""umpc.node.run.study: a held attempt is offered, and leaves once or not at all.

The coordinator of these tests sends what it likes, and one node answers over a real ledger.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.ledgers import D, balance, kinds, opened
from tests.support.node_talks import Said, talk_to
from tests.support.sites import site_of, unused
from tests.support.studies import make_study
from umpc.errors import DataError, PolicyRefused, RemoteProtocolError, StepTimeout, UmpcError
from umpc.node.budget.ledger import Ledger
from umpc.proto import codec
from umpc.study import messages as m

STUDY = make_study(name="tau", epsilon="1")
KEPT = m.Released(bytes(32), b"noisy share", 7)
HELD = m.Held(bytes(32), 7)
PROPOSE = m.Propose(STUDY.encode())


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    """Provide a ledger that holds a finished attempt of STUDY."""
    with opened(path) as ledger:
        ledger.reserve(STUDY.hash, STUDY.exact_epsilon, D, name="tau")
        ledger.hold(STUDY.hash, KEPT.attempt, codec.encode_kept(KEPT))
        yield ledger


def talk(
    ledger: Ledger,
    orders: Sequence[m.CoordinatorMessage],
    permit: Any = lambda *_: None,
    load: Any = unused,
) -> Said:
    """Propose the study and say these things."""
    site = site_of(ledger, permit=permit, load=load, permit_delta=lambda _: None)

    def hear(message: m.NodeMessage) -> None:
        if isinstance(message, m.Released):
            assert ledger.released(STUDY.hash) is not None, "a share left before its charge"

    return talk_to(site, STUDY, orders, hear)


def test_it_is_released_after_its_charge_and_then_replayed_with_the_same_bytes(ledger):
    assert talk(ledger, [m.Release()]) == ([HELD, KEPT], None)
    assert ledger.balance() == balance(5, 1, 0, 4)
    assert talk(ledger, []) == ([KEPT], None)
    assert kinds(ledger) == ["genesis", "total", "charge"]


def test_it_is_dropped_on_request_and_the_study_runs_anew(ledger):
    said, error = talk(ledger, [m.Drop()])
    assert said == [HELD] and isinstance(error, DataError), "it went on to its records"
    assert ledger.balance() == balance(5, 0, 0, 5) and not ledger.holds(STUDY.hash)


@pytest.mark.parametrize(
    "order", [m.Agree(()), m.Evaluate(()), m.Begin((), ()), m.Park(), m.Ask(b""), PROPOSE]
)
def test_any_other_order_is_refused_and_changes_nothing(ledger, order):
    said, error = talk(ledger, [order])
    assert said == [HELD] and isinstance(error, RemoteProtocolError)
    assert "where Release or Drop was due" in error.message
    assert ledger.holds(STUDY.hash) and ledger.balance().reserved == 1


def test_rules_that_changed_meanwhile_keep_it_from_leaving(ledger):
    def refuse(*_: Any) -> None:
        raise PolicyRefused("not any more")

    said, error = talk(ledger, [m.Release()], refuse)
    assert not said and isinstance(error, PolicyRefused)
    assert ledger.released(STUDY.hash) is None and ledger.holds(STUDY.hash)


def test_a_coordinator_that_has_it_dropped_after_the_charge_changes_nothing(ledger):
    """Another stream charged between the offer and the order."""

    def charge(*_: Any) -> None:
        ledger.charge(STUDY.hash, KEPT.attempt)

    said, error = talk(ledger, [m.Drop()], charge)
    assert said == [HELD] and isinstance(error, UmpcError)
    assert ledger.released(STUDY.hash).share == codec.encode_kept(KEPT)
    assert ledger.balance() == balance(5, 1, 0, 4)


def test_two_streams_that_release_charge_once_and_send_the_same_bytes(ledger):
    def charge(*_: Any) -> None:
        ledger.charge(STUDY.hash, KEPT.attempt)

    assert talk(ledger, [m.Release()], charge) == ([HELD, KEPT], None)
    assert ledger.balance() == balance(5, 1, 0, 4) and kinds(ledger).count("charge") == 1


def test_a_run_reserves_no_longer_than_the_site_allows(path):
    with opened(path, hold_seconds=0.2) as ledger:
        said, error = talk(ledger, [], load=lambda *_: time.sleep(0.5))
        assert ledger.balance().reserved == 0
    assert not said and isinstance(error, StepTimeout), error
    assert error.culprit == STUDY.coordinator and "hold_hours under [budget]" in error.message
