"""Nodes go on with the ledgers of earlier states, and their packages differ."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from click.testing import CliRunner

from tests.support import former_state
from tests.support.node_ledgers import beside
from tests.support.old_release import ESTIMATE, copy_release, study_text
from umpc.cli.main import umpc
from umpc.deployment.processes import Deployment
from umpc.errors import PolicyRefused
from umpc.node.approvals import Approvals, approvals_beside

ROOT = Path(__file__).parents[2]
OTHER_PACKAGE = "import umpc; umpc.__version__ = '9.9.9'; from umpc.cli.main import main; main()"
POLICY = "[policy]\nmin_colluding = 1\n"


def test_a_consortium_goes_on_after_an_upgrade(lab):
    here = lab(2, {"node-1": {"PYTHONPATH": str(ROOT)}})
    for name in here.names:
        copy_release(here.folder, name)
    here.deployment.command = (sys.executable, "-c", OTHER_PACKAGE)
    here.deployment.start_node("node-1", here.table("node-1"), "10", more=POLICY, delta="1e-9")
    here.deployment.command = Deployment.command
    here.deployment.start_node("node-2", here.table("node-2"), "10", more=POLICY, delta="1e-9")
    here.served.update(here.deployment.wait_until_ready())
    addresses = {name: served.address for name, served in here.served.items()}

    def run(study: str, name: str = ""):
        text = study_text(study, addresses).replace(f'"{study}"', f'"{name or study}"')
        (here.folder / "study.toml").write_text(text)
        process = here.coordinate(here.folder / "study.toml")
        output, error = process.communicate(timeout=60)
        return process.returncode, output, error

    # The study that was released before is repeated, with the same value and at no cost.
    code, output, error = run("first")
    assert code == 0 and f'"estimate": {ESTIMATE}' in output and '"replayed": true' in output, error
    assert [beside(here, name).account.epsilon().spent for name in here.names] == [1, 1]

    # The decision of a person from before the upgrade still holds.
    code, output, error = run("second")
    assert (code, output) == (PolicyRefused.exit_code, "") and "not agreed" in error

    # A new study runs between two packages of one protocol.
    code, output, error = run("second", "third")
    assert code == 0 and '"replayed": false' in output, error
    assert [beside(here, name).account.epsilon().spent for name in here.names] == [3, 3]
    for name in here.names:
        assert len(list(here.folder.glob(f"{name}-ledger.sqlite.former-*"))) == 1
        config = ["--config", str(here.folder / f"{name}.toml")]
        for words in (["audit", "verify"], ["budget", "verify"]):
            done = CliRunner().invoke(umpc, [*words, *config], catch_exceptions=False)
            assert done.exit_code == 0 and "verified" in done.output


def test_what_commit_0f244e53_released_is_repeated_free_with_the_same_numbers(lab):
    here = lab(2)
    for name in here.names:
        former_state.copy_state(here.folder, name)
    here.deployment.start_dealer()
    for name in here.names:
        policy = former_state.POLICY
        here.deployment.start_node(name, here.table(name), "1000", more=policy, delta="1e-3")
    here.served.update(here.deployment.wait_until_ready())
    addresses = {name: served.address for name, served in here.served.items()}

    def run(name: str):
        (here.folder / "study.toml").write_text(former_state.study_text(name, addresses))
        process = here.coordinate(here.folder / "study.toml")
        output, error = process.communicate(timeout=60)
        return process.returncode, output, error

    spent = [beside(here, name).account.epsilon().spent for name in here.names]
    for name, estimate in former_state.estimates().items():
        code, output, error = run(name)
        assert code == 0, error
        report = json.loads(output)
        assert (report["estimate"], report["replayed"]) == (estimate, True), name
        assert report["policies"] == {}, "commit 0f244e53 told no rules"
    assert [beside(here, name).account.epsilon().spent for name in here.names] == spent

    # A study that waited for a decision can be read, accepted and run.
    config = ["--config", str(here.folder / "node-2.toml")]
    with (here.folder / "node-2.toml").open("a") as file:
        file.write("approval = true\n")
    digits = waiting_at(here.folder)
    shown = CliRunner().invoke(umpc, ["approve", "show", *config, digits], catch_exceptions=False)
    assert "'waiting'" in shown.output and "kendall_tau" in shown.output
    CliRunner().invoke(umpc, ["approve", "accept", *config, digits], catch_exceptions=False)
    code, output, error = run(former_state.WAITING)
    assert code == 0 and '"replayed": false' in output, error
    for name in here.names:
        for words in (["audit", "verify"], ["budget", "verify"]):
            place = ["--config", str(here.folder / f"{name}.toml")]
            done = CliRunner().invoke(umpc, [*words, *place], catch_exceptions=False)
            assert done.exit_code == 0 and "verified" in done.output


def waiting_at(folder: Path) -> str:
    """The hash of the only study that waits at the second site."""
    (entry,) = Approvals(approvals_beside(folder / "node-2-ledger.sqlite")).entries()
    return entry.hash
