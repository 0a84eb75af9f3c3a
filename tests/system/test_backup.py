"""A site is backed up in the middle of a study, is lost, and goes on elsewhere with other data."""

from __future__ import annotations

import os
import signal
from fractions import Fraction

import pytest
from click.testing import CliRunner

from tests.support.node_ledgers import beside
from tests.system.conftest import TABLE
from umpc.cli.main import umpc
from umpc.deployment.processes import stop
from umpc.errors import LedgerError
from umpc.node.budget.ledger_place import Place
from umpc.node.budget.ledgerfile import read_beside

CHANGED = "of the same fields and condition: the table changed"


def run(*words: str) -> str:
    """Return the output of a command."""
    return CliRunner().invoke(umpc, words, catch_exceptions=False, standalone_mode=False).stdout


def test_a_node_that_was_lost_goes_on_elsewhere_and_forgets_no_charge(lab, tmp_path):
    here = lab(2, {"node-1": {"UMPC_FAILPOINT": "before-charge:stop"}})
    here.start()
    archive = tmp_path / "backup.tar"

    # The backup is made while the node has finished the study's work and has not charged.
    study = here.coordinate(here.study_file(name="first", epsilon="3/2"))
    node = here.served["node-1"].process
    here.wait_until_stopped("node-1")
    assert beside(here, "node-1").account.open
    run("node", "backup", "--config", str(here.folder / "node-1.toml"), "--to", str(archive))
    os.kill(node.pid, signal.SIGCONT)
    _, error = study.communicate(timeout=60)
    assert study.returncode == 0, error
    assert beside(here, "node-1").account.epsilon().spent == Fraction(3, 2)

    # The site burns down, but for its audit trail and the keys.
    stop([node])
    here.disarm()
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "node-1").mkdir()
    config = other / "node-1.toml"
    for name in ("node-1/key.pem", "node-1-ledger.sqlite.key", "node-1-ledger.sqlite.audit"):
        os.rename(here.folder / name, other / name)
    words = ("node", "restore", str(archive), "--config", str(config))
    with pytest.raises(LedgerError, match="shows 1 charges of epsilon 3/2"):
        run(*words)
    restored = run(*words, "--charged-since", "3/2", "--delta-since", "1e-15")
    assert "counts as charged since: epsilon 3/2, delta 1/1000000000000000\n" in restored

    # It goes on, with one record more.
    here.table("node-1").write_text(TABLE + "49,12.5\n")
    start = ["node", "start", "--config", str(config)]
    here.deployment.start("node-1", start)
    here.served.update(here.deployment.wait_until_ready())
    second = here.run(name="second", epsilon="1")
    assert second.code == 0, second.error
    here.wait_for_log("node-1", CHANGED)
    assert CHANGED not in here.log("node-2"), "its table is the same"
    assert "changed" not in second.output + second.error, "the coordinator is not told"
    assert "changed" in run("budget", "show", "--config", str(config))
    ledger = Place.of(other / "node-1-ledger.sqlite")
    assert read_beside(ledger).account.epsilon().spent == Fraction(5, 2)
    assert "verified" in run("audit", "verify", "--config", str(config))
