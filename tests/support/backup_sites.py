"""A site's folder as backups find it, and a restore that is refused."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from tests.support.ledgers import D, pay
from umpc import errors as e
from umpc.node.audit.trail import AuditRow, AuditTrail
from umpc.node.backup.archive import back_up
from umpc.node.backup.restoring import Statement, restore
from umpc.node.budget.ledger import Ledger
from umpc.node.budget.ledger_place import Place
from umpc.node.budget.ledgerfile import read_beside
from umpc.node.config import NodeConfig, load_node_config
from umpc.node.config_section import IDENTITY_FILES

TOTAL = Fraction(5)
ALL = Statement(all_left=True)


class Site:
    """A node's folder without a running node."""

    def __init__(self, folder: Path):
        self.folder = folder
        (folder / "id").mkdir(parents=True)
        for name in IDENTITY_FILES:
            (folder / "id" / name).write_text(f"pem {name}")
        (folder / "bank.csv").write_text("age\n30\n")
        self.config.write_text(
            'name = "north"\nidentity = "id"\n[data]\npath = "bank.csv"\n[budget]\nepsilon = 5\n'
        )

    @property
    def config(self) -> Path:
        return self.folder / "node.toml"

    @property
    def ledger(self) -> Path:
        return self.folder / "north-ledger.sqlite"

    def loaded(self) -> NodeConfig:
        return load_node_config(self.config)

    def open(self, total: Fraction = TOTAL, **options) -> Ledger:
        return Ledger(self.ledger, "bank", total, **options)

    def charge(self, *studies: bytes, epsilon: str = "1") -> None:
        """Charge each study, with its row in the audit trail."""
        with self.open() as ledger:
            for study in studies:
                ledger.reserve(study, Fraction(epsilon), D)
                pay(ledger, study, b"attempt", b"share of " + study)
                row = AuditRow("charge", study=study.hex(), epsilon=epsilon, delta=str(D))
                AuditTrail(self.ledger).append(row)

    def back_up(self, name: str = "backup.tar", *, keys: bool = True) -> Path:
        target = self.folder.parent / name
        back_up(self.loaded(), target, keys=keys)
        return target

    def lose(self, *kept: str) -> None:
        """Lose the ledger's files but those with these endings."""
        for path in self.folder.glob(f"{self.ledger.name}*"):
            if path.name.removeprefix(self.ledger.name) not in kept:
                path.unlink()

    def spent(self) -> Fraction:
        snapshot = read_beside(Place.of(self.ledger))
        assert snapshot.fault == ""
        return snapshot.account.epsilon().spent


def refused(archive: Path, site: Site, match: str, statement: Statement | None = None) -> None:
    """The restore is refused, and no file of the site changes."""
    before = {path: path.read_bytes() for path in site.folder.rglob("*") if path.is_file()}
    with pytest.raises(e.UmpcError, match=match):
        restore(archive, site.config, statement)
    after = {path: path.read_bytes() for path in site.folder.rglob("*") if path.is_file()}
    assert after == before
