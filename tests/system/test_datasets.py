"""A node with two data sets, a node with one, and studies that name theirs."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from tests.system.conftest import TABLE
from umpc.cli.main import umpc
from umpc.errors import ApprovalPending, StudyError
from umpc.node.budget.ledger_place import Place
from umpc.node.budget.ledgerfile import read_beside

ENTRY = (
    '[[datasets]]\nname = "{0}"\npath = "{0}.csv"\n'
    '[datasets.budget]\nepsilon = 10\ndelta = "1e-9"\n[datasets.policy]\n{1}\n'
)
WITHOUT_DEALER = {
    "preprocessing": "none",
    "backend": "triples",
    "statistic": "gini_mean_difference",
    "dealer": None,
}


def run_command(config: Path, *words: str) -> str:
    done = CliRunner().invoke(umpc, [*words, "--config", str(config)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_two_studies_of_two_data_sets_at_one_node(lab):
    here = lab(2)
    lines = TABLE.splitlines(keepends=True)
    (here.folder / "heart.csv").write_text("".join(lines[:31]))
    (here.folder / "bank.csv").write_text("".join(lines[:11]))
    here.table("node-2").write_text(TABLE)
    config = here.folder / "node-1.toml"
    here.deployment.authority.issue("node-1", "node", here.folder / "node-1")
    entries = ENTRY.format("heart", "") + ENTRY.format("bank", "approval = true")
    config.write_text(f'name = "node-1"\nidentity = "node-1"\n{entries}')
    here.deployment.start("node-1", ["node", "start", "--config", str(config)])
    here.deployment.start_node("node-2", here.table("node-2"), "10", delta="1e-9")
    here.served.update(here.deployment.wait_until_ready())

    def run(**changes):
        return here.run(**WITHOUT_DEALER, columns=["age"], **changes)

    def spent() -> list[int]:
        places = (
            Place.of(here.folder / f"node-1-{name}-ledger.sqlite") for name in ("heart", "bank")
        )
        return [read_beside(place).account.epsilon().spent for place in places]

    unnamed = run(name="none")
    assert unnamed.code == StudyError.exit_code and unnamed.output == ""
    assert "allow this study on 'heart', 'bank'" in unnamed.last_line
    heart = run(name="first", dataset={"node-1": "heart"})
    assert heart.code == 0 and heart.report["records_by_node"] == [30, 60], heart.error
    assert spent() == [1, 0]

    waiting = run(name="first", dataset={"node-1": "bank"}, epsilon="2")
    assert waiting.code == ApprovalPending.exit_code
    shown = run_command(config, "approve", "list")
    assert shown.splitlines()[0].endswith("data set") and shown.splitlines()[1].endswith("bank")
    run_command(config, "approve", "accept", shown.splitlines()[1].split()[1])
    bank = run(name="first", dataset={"node-1": "bank"}, epsilon="2")
    assert bank.code == 0 and bank.report["records_by_node"] == [10, 60], bank.error
    assert spent() == [1, 2], "one study, two data sets: two charges, and none is mixed"
    studies = {"heart": heart.report["study_hash"], "bank": bank.report["study_hash"]}
    for name, other in (("heart", "bank"), ("bank", "heart")):
        trail = run_command(config, "audit", "show", "--dataset", name)
        assert "charge" in trail and studies[name][:16] in trail
        assert studies[other][:16] not in trail
        assert "verified" in run_command(config, "budget", "verify", "--dataset", name)
