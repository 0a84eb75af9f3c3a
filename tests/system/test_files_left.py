"""A study leaves on disk the files and tables that docs/operations.md lists."""

from __future__ import annotations

import re
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

import umpc
from tests.support.node_ledgers import held_by, start_again
from tests.system.conftest import Lab, command
from umpc.errors import ApprovalPending, LedgerError
from umpc.node.budget.ledger_place import Place

PAGE = Path(umpc.__file__).parents[1] / "docs" / "operations.md"
LEDGER = "north-ledger.sqlite"
BUDGET, POLICY = "20", "[policy]\n"
IDENTITY = {"ca.pem", "cert.pem", "key.pem", "request.csr"}
MEANWHILE = (".reading", ".new", "-journal", ".former-17")
"""Files that are there for a moment, or after an upgrade only."""


def rows_of(title: str) -> list[list[str]]:
    """The cells of the page's table that has this title in its first column."""
    lines = PAGE.read_text("utf-8").partition(f"| {title} |")[2].splitlines()[2:]
    end = next(number for number, line in enumerate(lines) if not line)
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[:end]]


def names_in(cell: str) -> list[str]:
    return re.findall(r"`([^` ]+)`", cell)


FILES = {name: row for row in rows_of("file") for name in names_in(row[0]) if name != ".new"}
TABLES = [name for row in rows_of("table in the ledger") for name in names_in(row[0])]
ENTRIES = {name: row[3] for row in rows_of("kind in the Store") for name in names_in(row[0])}


def as_listed(name: str, node: str) -> str:
    """The name that the page gives to a node's file."""
    listed = name.replace(node, "north", 1)
    listed = re.sub(r"former-\d+$", "former-17", listed)
    listed = re.sub(r"(\.\w+)+\.new$", ".new", listed) if listed.endswith(".new") else listed
    if name == f"{node}.toml":
        return "node.toml"
    return "site/" if listed.startswith("north/") else listed


def files_of(lab: Lab) -> set[str]:
    """All files but logs, tables and the authority's."""
    found = {path.relative_to(lab.folder).as_posix() for path in lab.folder.rglob("*")}
    files = {name for name in found if (lab.folder / name).is_file()}
    return {
        name for name in files if not name.endswith((".log", ".csv")) and "authority/" not in name
    }


def kinds_in(ledger: sqlite3.Connection) -> set[str]:
    return {kind for (kind,) in ledger.execute("SELECT DISTINCT kind FROM store")}


def test_every_file_and_table_that_studies_leave_is_listed(lab, tmp_path_factory):
    """A study is held after a crash, one is released, one is prepared, and one waits."""
    here = lab(2, {"node-1": {"UMPC_FAILPOINT": "before-charge:kill"}})
    here.start(epsilon=BUDGET, more=POLICY)
    assert here.run(name="held").code
    start_again(here, "node-1", epsilon=BUDGET, more=POLICY)
    assert held_by(here, "node-1", "held")
    assert here.run(name="released").code == 0
    assert here.run(command="prepare", name="prepared").code == 0
    config = here.folder / "node-1.toml"
    config.write_text(config.read_text() + "approval = true\n")
    assert here.run(name="waits").code == ApprovalPending.exit_code
    archive = tmp_path_factory.mktemp("backup") / "north.tar"
    command("node", "backup", "--config", str(config), "--to", str(archive), "--keys", check=True)

    files = files_of(here)
    own = {name for name in files if name.startswith("node-1")}
    listed = {as_listed(name, "node-1") for name in own}
    assert listed <= FILES.keys(), "docs/operations.md lacks a file"
    assert {name for name in FILES if not name.endswith(MEANWHILE)} <= listed
    for process in ("dealer", "coordinator"):
        assert {name for name in files if process in name} == {f"{process}/{n}" for n in IDENTITY}
    others = {name for name in files if not name.startswith(("node-", "dealer/", "coordinator/"))}
    assert others == {"study.toml"}, "a run leaves nothing at its coordinator"

    with closing(sqlite3.connect(here.folder / "node-1-ledger.sqlite")) as ledger:
        found = ledger.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        assert {name for (name,) in found} == set(TABLES)
        counts = {name: ledger.execute(f"SELECT COUNT(*) FROM {name}") for name in TABLES}
        assert all(found.fetchone() > (0,) for found in counts.values()), "every table is in use"
        assert kinds_in(ledger) == set(ENTRIES), "the page lists the kinds that studies leave"

    with tarfile.open(archive) as tar:
        kept = {name for name in tar.getnames() if not name.startswith("manifest")}
        tar.extract("ledger.sqlite", archive.parent, filter="data")
    with closing(sqlite3.connect(archive.parent / "ledger.sqlite")) as copied:
        assert kinds_in(copied) == {
            kind for kind, in_backup in ENTRIES.items() if in_backup == "yes"
        }
    in_backup = {name for name, row in FILES.items() if row[3] != "no" and name != "site/"}
    expected = {
        name.removeprefix("north-").replace("ledger.sqlite.", "ledger.") for name in in_backup
    }
    expected = {"approvals.sqlite" if name == "ledger.approvals" else name for name in expected}
    assert kept == expected | {"ca.pem", "cert.pem", "key.pem"}

    here.stop()
    for name, path in ((name, here.folder / name) for name in own):
        ends = FILES[as_listed(name, "node-1")][2] in ("none waits", "the node ends")
        assert path.exists() != ends, f"{name} is there {'still' if ends else 'no more'}"


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith(LEDGER)])
def test_an_anchor_takes_the_place_of_no_other_file(name, tmp_path):
    ledger, anchor = tmp_path / LEDGER, tmp_path / name
    if name.endswith((".anchor", ".former-17")):
        assert Place.of(ledger, anchor).anchor == anchor.resolve()
        return
    with pytest.raises(LedgerError, match="an anchor in a file of its own was expected"):
        Place.of(ledger, anchor)
