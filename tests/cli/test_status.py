"""`umpc node status`: what an administrator and a monitor see."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from click.testing import CliRunner

from tests.support.studies import KENDALL, make_study
from umpc.cli.main import umpc
from umpc.errors import ApprovalPending
from umpc.node.approvals import Approvals, approvals_beside
from umpc.node.audit.trail import AuditRow, AuditTrail
from umpc.node.budget.ledger import Ledger
from umpc.node.records import reading_beside
from umpc.transport.authority import Authority

LONG_AGO = datetime.now(UTC) - timedelta(days=400)


class Site:
    """A node's folder with a certificate of `left` days, and the command."""

    def __init__(self, folder, left=90):
        self.folder = folder
        self.authority = Authority.create(folder / "authority", now=LONG_AGO)
        self.authority.issue("north", "node", folder / "site", days=left)
        (folder / "t.csv").write_text("x\n1\n")
        self.config = folder / "node.toml"
        self.config.write_text(
            'name = "north"\nlisten = "127.0.0.1:7100"\nidentity = "site"\n'
            '[data]\npath = "t.csv"\n[budget]\nepsilon = 5\n'
        )
        self.ledger = folder / "north-ledger.sqlite"

    def status(self):
        """The exit code, the lines by their label, and what must be done."""
        done = CliRunner().invoke(umpc, ["node", "status", "--config", str(self.config)])
        lines = [line.partition(" ")[::2] for line in done.output.splitlines()]
        shown = {label: text.strip() for label, text in lines}
        return done.exit_code, shown, [text.strip() for label, text in lines if label == "to"]

    def list(self, *serials, **changes):
        self.authority.revoke(set(serials), **changes)
        (self.folder / "site/crl.pem").write_bytes(self.authority.list_path.read_bytes())


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def test_all_is_well(site):
    with Ledger(site.ledger, "t", Fraction(5), Fraction(0)):
        code, shown, to_do = site.status()  # while the node has its ledger open
    assert (code, to_do) == (0, ["do        nothing"])
    assert (shown["name"], shown["role"], shown["address"]) == ("north", "node", "127.0.0.1:7100")
    assert "89 days left" in shown["certificate"] and shown["list"].startswith("no list")
    assert shown["epsilon"] == "5 left of 5 (0 spent, 0 reserved)"
    assert (shown["held"], shown["waiting"]) == ("no study", "no study")


def test_a_long_reading_of_the_table_is_shown(site):
    assert "reading" not in site.status()[1]
    reading_beside(site.ledger).write_text("1234567 rows, 20 s\n")
    code, shown, _ = site.status()
    assert (code, shown["reading"]) == (0, "1,234,567 rows of the table so far, since 20 s")


def test_before_the_first_start_there_is_no_ledger(site):
    code, shown, _ = site.status()
    assert code == 0 and "5 in all; the node makes its ledger" in shown["budget"]
    assert not site.ledger.exists()


def test_a_certificate_in_its_last_days_must_be_renewed(tmp_path):
    code, shown, to_do = Site(tmp_path, left=10).status()
    assert code == 1 and "9 days left" in shown["certificate"]
    assert "expires in 9 days" in to_do[0]


def test_the_list_is_shown_and_an_overdue_one_must_be_replaced(site):
    site.list(1 << 100, 1 << 101)
    code, shown, _ = site.status()
    assert code == 0 and shown["list"].startswith("number 1 of ") and "2 revoked" in shown["list"]
    site.list(now=datetime.now(UTC) - timedelta(days=40))
    code, _, to_do = site.status()
    assert code == 1 and "is overdue since" in to_do[0]


def test_unusable_files_are_named_and_the_rest_is_still_shown(site):
    (site.folder / "site/crl.pem").write_text("nonsense")
    code, shown, to_do = site.status()
    assert code == 1 and "crl.pem is not a list" in to_do[0]
    assert "days left" in shown["certificate"] and "budget" in shown


def test_an_expired_certificate_still_shows_its_dates(site):
    past = datetime.now(UTC) - timedelta(days=100)
    site.authority.issue("north", "node", site.folder / "site", now=past)
    code, shown, to_do = site.status()
    assert code == 1 and shown["certificate"].endswith("expired") and "expired" in to_do[0]


def test_a_study_that_waits_for_a_person_must_be_decided(site):
    approvals = Approvals(approvals_beside(site.ledger))
    study = make_study(KENDALL, name="tau")
    with pytest.raises(ApprovalPending):
        approvals.require(study, "north")
    code, shown, to_do = site.status()
    assert code == 1 and shown["waiting"] == f"study 'tau', hash {study.hash.hex()[:16]}"
    assert "decide on 1 studies" in to_do[0]


def test_a_held_study_is_shown(site):
    study = make_study(KENDALL, name="tau")
    with Ledger(site.ledger, "t", Fraction(5), Fraction(0)) as ledger:
        ledger.reserve(study.hash, Fraction(1), Fraction(0), name="tau")
        ledger.hold(study.hash, b"attempt", b"share")
        code, shown, _ = site.status()
    assert code == 0 and shown["held"].startswith("study 'tau'")
    assert shown["epsilon"] == "4 left of 5 (0 spent, 1 reserved)"


def test_long_amounts_are_rounded_so_that_no_more_is_left(site):
    delta = Fraction(2, 3) * Fraction(1, 1 << 33)
    with Ledger(site.ledger, "t", Fraction(5), Fraction(1, 10**9)) as ledger:
        ledger.reserve(b"s" * 32, Fraction(1, 3) + Fraction(1, 10**9), delta)
        ledger.charge(b"s" * 32, ledger.hold(b"s" * 32, b"attempt", b"share").attempt)
        _, shown, _ = site.status()
    assert shown["delta"] == "9.22389e-10 left of 1e-09 (7.76103e-11 spent, 0 reserved)"
    assert shown["epsilon"] == "4.66666 left of 5 (0.333334 spent, 0 reserved)"


def test_a_prepared_study_is_shown_with_what_it_reserves(site):
    with Ledger(site.ledger, "t", Fraction(5), Fraction(0)) as ledger:
        assert site.status()[1]["prepared"] == "no study"
        ledger.reserve(b"p" * 32, Fraction(2), Fraction(0), name="tau")
        ledger.prepare(b"p" * 32, 1e10)
        code, shown, _ = site.status()
    assert code == 0 and shown["prepared"] == f"study 'tau', hash {'70' * 8}"
    assert shown["epsilon"] == "3 left of 5 (0 spent, 2 reserved)"


def test_another_name_than_the_certificates_is_said(site):
    site.config.write_text(site.config.read_text().replace('"north"', '"south"'))
    code, _, to_do = site.status()
    assert code == 1 and "for 'north'" in to_do[0] and "for 'south'" in to_do[0]


@pytest.mark.parametrize(
    "data",
    [
        'path = "t.csv"',
        'name = "t"\npath = "visits/*.csv"',
        'name = "t"\nurl = "postgresql://r@db/d?sslmode=verify-full"\nsql = "v"\n'
        'password_file = "absent"',
        'name = "t"\nurl = "s3://bucket/k.csv"\ncredentials_file = "absent"',
    ],
)
@pytest.mark.parametrize(
    "words",
    [
        ("budget", "show"),
        ("budget", "verify"),
        ("audit", "show"),
        ("audit", "verify"),
        ("audit", "export"),
        ("approve", "list"),
        ("node", "status"),
        ("node", "backup", "--to", "north.tar"),
    ],
    ids=" ".join,
)
def test_commands_that_look_at_no_table_work_while_it_is_away(site, monkeypatch, data, words):
    with Ledger(site.ledger, "t", Fraction(5), Fraction(0)):
        AuditTrail(site.ledger).append(AuditRow("start"))
    (site.folder / "t.csv").unlink()
    text = site.config.read_text()
    site.config.write_text(text.replace('path = "t.csv"', data))
    monkeypatch.chdir(site.folder)
    done = CliRunner().invoke(umpc, [*words, "--config", "node.toml"])
    assert done.exit_code == 0, done.exception or done.output


def test_the_trail_shows_long_notes_whole(site):
    note = "max_epsilon = 1/2 is the most that this site allows, and the study has 3; ask its owner"
    with Ledger(site.ledger, "t", Fraction(5), Fraction(0)):
        trail = AuditTrail(site.ledger)
        trail.append(AuditRow("refusal", study="ab" * 32, name="tau", note=note))
        trail.append(AuditRow("proposal", study="cd" * 32, name="tau"))
    done = CliRunner().invoke(umpc, ["audit", "show", "--config", str(site.config)])
    head, first, second, last = done.output.splitlines()
    place = head.index("note")
    assert f"{first[place:]} {second[place:]}" == note and not second[:place].strip()
    assert "ab" * 8 in first and "ab" * 9 not in first and "proposal" in last
