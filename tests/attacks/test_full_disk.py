"""After a full disk a node goes on with a ledger that it reads again, not with a closed one."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.support import ledgers
from umpc.errors import LedgerError

FIRST, SECOND = bytes(32), bytes([1] * 32)
LINE = "after a full disk a node serves with a closed ledger"


@pytest.mark.attack(LINE, "both", "bounded: the ledger is read again")
def test_the_next_study_opens_the_ledger_again(tmp_path):
    with ledgers.opened(tmp_path / "node-ledger.sqlite") as ledger:
        ledger.reserve(FIRST, Fraction(1), ledgers.D)
        ledger.ask(
            "CREATE TEMP TRIGGER full BEFORE INSERT ON main.ledger "
            "BEGIN SELECT RAISE(FAIL, 'full'); END"
        )
        with pytest.raises(LedgerError) as caught:
            ledgers.pay(ledger, FIRST, b"", b"share")
        assert str(caught.value.__cause__) == "full"
        # the disk has room again, and nobody restarts the node
        ledger.reserve(SECOND, Fraction(1), ledgers.D)
        assert ledger.released(FIRST) is None
