"""`umpc node doctor`: one line a check, and each red line says what to do."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from tests.support.studies import KENDALL, make_study
from umpc import __version__
from umpc.cli import doctor_site
from umpc.cli.doctor_network import NamedPeer, check_network
from umpc.cli.main import umpc
from umpc.node.audit.entry import AuditRow
from umpc.node.audit.trail import AuditTrail
from umpc.node.budget.budget_account import BudgetCost
from umpc.node.budget.ledger import Ledger
from umpc.node.budget.prepared_costs import PreparedCost, prepared_beside, write_prepared
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocol_version import PROTOCOL
from umpc.transport.authority import Authority, load_identity
from umpc.transport.channels import bind, make_server
from umpc.transport.services import rpc

LONG_AGO = datetime.now(UTC) - timedelta(days=400)
TABLE = "age,balance,city\n1,2.5,Lille\n2,3.5,Paris\n,3,Lyon\n"
POLICY = '[policy]\nfields = ["age", "balance", "city"]\nmax_epsilon = 1\napproval = true\n'


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Examined:
    """The folder of a node, where all is well at first, and the command."""

    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()
        self.authority = Authority.create(folder / "authority", now=LONG_AGO)
        self.authority.issue("north", "node", folder / "site")
        self.ledger = folder / "north-ledger.sqlite"
        self.table(TABLE)
        self.write(POLICY)

    def table(self, text):
        (self.folder / "t.csv").write_text(text)

    def write(self, policy="", head='name = "north"', data="", budget="epsilon = 5"):
        (self.folder / "node.toml").write_text(
            f'{head}\nlisten = "127.0.0.1:{self.port}"\nidentity = "site"\n'
            f'[data]\npath = "t.csv"\n{data}\n[budget]\n{budget}\n{policy}'
        )

    def spend(self, epsilon=0, dataset="t"):
        with Ledger(self.ledger, dataset, Fraction(5)) as ledger:
            if epsilon:
                study = make_study(KENDALL, name="tau").hash
                ledger.reserve(study, Fraction(epsilon), Fraction(0), name="tau")
                ledger.hold(study, b"attempt", b"share")

    def list(self, *serials, **changes):
        self.authority.revoke(set(serials), **changes)
        (self.folder / "site/crl.pem").write_bytes(self.authority.list_path.read_bytes())

    def doctor(self, *more):
        config = str(self.folder / "node.toml")
        done = CliRunner().invoke(umpc, ["node", "doctor", "--config", config, *more])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.output

    def red(self, *more):
        """The exit code, and the red lines."""
        code, output = self.doctor(*more)
        return code, [line for line in output.splitlines() if line.startswith("!!")]


@pytest.fixture
def site(tmp_path):
    return Examined(tmp_path)


def the_one(found, code, *words):
    """There is one red line, with these words and this exit code."""
    came, lines = found
    assert (came, len(lines)) == (code, 1), found
    assert [word for word in words if word not in lines[0]] == [], lines


def test_a_healthy_site_is_green_in_text_and_in_json(site):
    site.spend()
    site.list(1 << 100)
    before = {path: path.read_bytes() for path in site.folder.rglob("*") if path.is_file()}
    code, output = site.doctor()
    assert code == 0 and "!!" not in output, output
    for line in (
        f"ok  version: umpc {__version__}, protocol {PROTOCOL}, Python 3",
        "3 rows and 3 columns",
        "ok  column: 'age': whole numbers\n",
        "ok  column: 'balance': numbers\n",
        "ok  column: 'city': words\n",
        "MB free",
        "verified with its anchor, row ",
        "ok  budget: epsilon 5 left of 5 (0 spent, 0 reserved)",
        "ok  certificate: node 'north', from ",
        "mode 600, for its owner only",
        "1 revoked, next due ",
        "0 days old, and this node is not on it",
        f"ok  listen: 127.0.0.1:{site.port} is free",
        "--  peers: none was named",
        "ok  policy: allows studies within fields = [age, balance, city]; max_epsilon = 1; "
        "approval = true; refuses raw records for the coordinator, public labels, conditions on "
        "records, ",
    ):
        assert line in output, (line, output)
    for path, content in before.items():
        assert path.read_bytes() == content, f"the command changed {path}"
    code, output = site.doctor("--format", "json")
    told = json.loads(output)
    assert (code, told["ok"], told["exit_code"]) == (0, True, 0)
    assert {each["state"] for each in told["checks"]} == {"ok", "neutral"}


def test_a_new_site_has_no_ledger_yet_and_gets_none(site):
    code, output = site.doctor()
    assert code == 0 and "--  ledger: " in output and "with 5 in all" in output
    assert not site.ledger.exists()


def test_a_configuration_that_does_not_load_ends_the_checks(site):
    site.write(head='nam = "north"')
    the_one(site.red(), 20, "unknown key 'nam'", "did you mean 'name'?")
    code, output = site.doctor("--format", "json")
    (failed,) = [each for each in json.loads(output)["checks"] if each["state"] == "failed"]
    assert (code, failed["error"]) == (20, "ConfigError")
    assert site.doctor("--peer", "south")[0] == 2  # no address: a usage error


def test_each_fault_of_the_table_is_red(site):
    site.write('[policy]\nfields = ["agee"]\n')
    the_one(site.red(), 22, "the field 'agee'", "did you mean 'age'?", "Correct the policy")
    site.write("[policy]\nmin_records = 4\n")
    the_one(site.red(), 21, "has 3 rows", "asks for 4", "lower min_records")
    site.write()
    for text, code, words in (
        ("age\n", 26, "Put the records"),
        ("", 26, "Put the records"),
        ("a,b\n1,2\n3\n", 21, "Expected Number of Columns: 2 Found: 1"),
        ("age,age\n1,2\n", 0, ""),
    ):
        site.table(text)
        came, lines = site.red()
        assert came == code and all(words in line for line in lines), (text, lines)
        assert len(lines) == bool(code)
    site.write('[policy]\nfields = ["age"]\n')
    the_one(site.red(), 21, "more than once")


OPEN = "[policy]\nmax_epsilon = 1\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id;crp\na;115,1\nb;63,5\n", ("'crp': 2 of 2 value(s)", "'115,1'", 'decimal = ","')),
        (
            "a;b\n1.234,5;1\n2,5;2\n",
            ("'a': 2 of 2", 'decimal = "," and thousands = "." under [data]'),
        ),
        ("a;b\n1 234;1\n7;2\n", ("'a': 1 of 2", "'1 234'", 'thousands = " "')),
        (
            "a;b\n1,234;1\n7;2\n",
            ('decimal = "," under [data] if \'1,234\' is 1.234, or thousands = "," if it is 1234',),
        ),
        ("a;b\n1,234;1.5\n7;2\n", ('have thousands separators: write thousands = ","',)),
        ("a;b\n1,5;1.5\n7;2\n", ("such as '1.5', do not: write all of them in one way",)),
        ("a\n1\n2\nNA\n", ("'NA'", 'missing = ["", "nan", "NaN", "NA"] under [data]')),
        ("a\n12 mg\n2\n", ("'12 mg'", "other characters beside the number: remove")),
        ('a\n1\n2\n"3\u00a0"\n', ("hold other characters", "remove")),
        ("a\n1\n2\nforty\n", ("'forty'", "or list them as missing under [data]")),
    ],
)
@pytest.mark.parametrize("policy", [OPEN, "fields"])
def test_numbers_that_are_none_for_the_node_are_red(site, text, words, policy):
    """Also where the policy names no fields: then all columns are looked at."""
    fields = [name for name in text.splitlines()[0].split(";") if name != "id"]
    site.write(OPEN if policy == OPEN else f"[policy]\nfields = {json.dumps(fields)}\n")
    site.table(text)
    the_one(site.red(), 23, "count as a field's lower bound", *words)


def test_all_columns_are_looked_at_where_a_study_may_use_them(site):
    site.write(OPEN)
    rows = [f"w{i},2026-05-0{i},{i},{i}{letter},1\n" for i, letter in enumerate("abcd")]
    site.table(f"id,day,age,house,age\n{''.join(rows)}")
    code, output = site.doctor()
    assert code == 0
    assert (
        "--  columns: [policy] names no fields, so a study may use every column, except" in output
    )
    assert "whose name is there twice: 'age'" in output
    assert (
        "ok  columns: words, which a study uses by its categories: 'id', 'day', 'house'" in output
    )
    site.table("age,crp,city\n1,2.5,Lille\n")
    assert "ok  columns: numbers: 'age', 'crp'\n" in site.doctor()[1]
    wide = [f"c{i}" for i in range(120)]
    site.table(f"{','.join(wide)}\n{','.join('7' for _ in wide)}\n")
    assert "; the first 100 are looked at, or those in fields" in site.doctor()[1]


def test_the_settings_that_doctor_names_make_the_column_numbers(site):
    site.table("crp;n\n1.115,1;1\n63,5;?\n")
    site.write(OPEN)
    assert len(site.red()[1]) == 2
    site.write(OPEN, data='decimal = ","\nthousands = "."\nmissing = ["", "?"]')
    code, output = site.doctor()
    assert code == 0 and "ok  columns: numbers: 'crp', 'n'\n" in output


def test_each_fault_of_the_disk_is_red(site, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=5_000_000))
        the_one(site.red(), 32, "5 MB free", "Make room")
    with monkeypatch.context() as patch:
        access = os.access
        patch.setattr(os, "access", lambda path, mode: mode == os.R_OK and access(path, mode))
        the_one(site.red(), 32, "may not write", "correct owner and mode")


def test_a_prepared_study_and_long_amounts_are_shown_in_few_characters(site):
    site.spend(Fraction(1, 3) + Fraction(1, 10**30))
    cost = PreparedCost(b"p" * 32, "tau", BudgetCost(Fraction(2), Fraction(0)), 1e10)
    write_prepared(prepared_beside(site.ledger), [cost])
    _, output = site.doctor()
    assert "epsilon 2.66666 left of 5 (0 spent, 2.33334 reserved), delta " in output
    assert "; reserved for studies prepared ahead: 1\n" in output


def test_each_fault_of_the_ledger_is_red(site):
    site.spend(5)
    the_one(site.red(), 31, "0 left of 5", "Raise epsilon under [budget]")
    site.write(budget="epsilon = 7")
    code, output = site.doctor()
    assert code == 0 and "gives epsilon 7 from the next start on" in output
    site.write(data='name = "other"')
    the_one(site.red(), 32, "data set 'other' was expected", "Correct ledger")
    site.write()
    key = site.folder / "north-ledger.sqlite.key"
    site.write(budget="epsilon = 7")
    key.chmod(0o640)
    the_one(site.red(), 51, "mode 640", f"chmod 600 {key}")
    key.chmod(0o600)
    anchor = site.folder / "north-ledger.sqlite.anchor"
    text = anchor.read_bytes()
    anchor.unlink()
    the_one(site.red(), 32, "its anchor", "umpc budget anchor")
    anchor.write_bytes(text)
    site.ledger.unlink()
    the_one(site.red(), 32, "because its anchor", "from its backup")
    site.ledger.write_bytes(b"no database" * 500)
    the_one(site.red(), 32, "the system refused", "Check the disk")


def test_each_fault_of_the_certificate_is_red(site, monkeypatch):
    folder, key = site.folder / "site", site.folder / "site/key.pem"
    key.chmod(0o604)
    the_one(site.red(), 51, "mode 604", f"chmod 600 {key}")
    key.chmod(0o600)
    key.chmod(0o440)
    with monkeypatch.context() as root_gave_it:
        root_gave_it.setattr(doctor_site, "check_private", lambda path: None)
        (found,) = doctor_site._private(key)
        assert not found.error and "mode 440, for root and this process's group" in found.text
    key.chmod(0o600)
    site.write(head='name = "south"')
    the_one(site.red(), 51, "is for 'north'", "Make both names equal")
    site.write()
    site.authority.issue("north", "node", folder, days=10)
    the_one(site.red(), 51, "expires in 9 days", "renew it")
    site.authority.issue("north", "node", folder, now=datetime.now(UTC) - timedelta(days=200))
    the_one(site.red(), 51, "expired", "umpc ca request")
    site.authority.issue("north", "node", folder)
    site.list(now=datetime.now(UTC) - timedelta(days=40))
    the_one(site.red(), 51, "is overdue since", "get a new crl.pem")
    site.list(load_identity(folder).certificate.serial_number)
    came = site.red("--peer", "south=127.0.0.1:1")
    the_one(came, 51, "is revoked", "move key.pem away and make a new key")
    assert "--  peers: not called" in site.doctor("--peer", "south=127.0.0.1:1")[1]


def test_a_policy_that_refuses_everything_is_red_and_others_are_one_line(site):
    for text, word in (
        ("coordinators = []", "coordinators"),
        ("noise = []\nfields = []", "fields, noise"),
        ("statistics = []", "statistics or kernels"),
    ):
        site.write(f"[policy]\n{text}\n")
        the_one(site.red(), 34, f"{word} under [policy]", "remove the key")
    site.write("[policy]\ndealers = []\ntrusted_curator = true\nmin_colluding = 1\n")
    code, output = site.doctor()
    refused = "refuses public labels, conditions on records; "
    assert code == 0 and f"dealers = []; trusted_curator = true; {refused}" in output
    site.write()
    assert "policy: allows every study; refuses raw records" in site.doctor()[1]


class Greeter(rpc.NodeServicer):
    """A node that says its version and does nothing else."""

    def __init__(self, name, version):
        self.name, self.version = name, version

    async def Hello(self, request, context):
        return pb.HelloReply(name=self.name, role="node", version=self.version)


def test_peers_and_the_own_address_are_called(site):
    """South is well, east is older, and nobody is at west. North itself runs, too."""
    site.authority.issue("south", "node", site.folder / "south")
    site.authority.issue("east", "node", site.folder / "east")
    strangers = Authority.create(site.folder / "strangers", now=LONG_AGO)
    strangers.issue("stranger", "node", site.folder / "stranger")
    identities = {
        name: load_identity(site.folder / folder)
        for name, folder in (
            ("north", "site"),
            *((name, name) for name in ("south", "east", "stranger")),
        )
    }
    west = f"127.0.0.1:{free_port()}"

    async def scenario():
        servers, at = [], {}
        for name, identity in identities.items():
            server = make_server(identity, {"/umpc.v1.Node/Hello": {"node"}})
            version = "0.1.0" if name == "east" else PROTOCOL
            rpc.add_NodeServicer_to_server(Greeter(name, version), server)
            at[name] = await bind(server, identity, "127.0.0.1:0")
            await server.start()
            servers.append(server)
        called = [
            *(NamedPeer("node", name, at[name]) for name in ("south", "east", "stranger")),
            NamedPeer("node", "west", west),
            NamedPeer("node", "south", at["east"]),
            NamedPeer("dealer", "south", at["south"]),
            NamedPeer("node", "south", "nowhere"),
        ]
        own = identities["north"]
        port = at["north"].rpartition(":")[2]
        try:
            return (
                await check_network(f"0.0.0.0:{port}", own, called),
                await check_network(at["south"], own, ()),
                await check_network(at["south"], None, ()),
                await check_network("127.0.0.1:0", own, ()),
                await check_network("192.0.2.1:7443", own, ()),
            )
        finally:
            for server in servers:
                await server.stop(0)

    found, other, unknown, free, foreign = asyncio.run(scenario())
    lines = list(map(str, found))
    for line, words in zip(
        lines,
        (
            "this node runs and listens there",
            "ok  peer: node 'south' at ",
            f"ok  peer version: node 'south' at {found[1].text.split()[3]} protocol {PROTOCOL}",
            "ok  peer: node 'east' at ",
            "!!  peer version: node 'east' speaks protocol '0.1.0'",
            "!!  peer: node 'stranger' at ",
            "connection refused: start it there",
            "is east.node.umpc, expected south.node.umpc",
            "is south.node.umpc, expected south.dealer.umpc",
            "address 'nowhere' is wrong",
            "--  clock: ",
        ),
        strict=True,
    ):
        assert words in line, (words, line)
    assert "our authority did not sign" in lines[5] and "umpc ca show" in lines[5]
    assert [type(each.error).__name__ for each in found if each.error] == [
        "VersionMismatch",
        "CertificateError",
        "PeerUnavailable",
        "CertificateError",
        "CertificateError",
        "ConfigError",
    ]
    assert other[0].mark == "!!" and "choose another port" in str(other[0])
    assert unknown[0].mark == "--" and "is in use" in str(unknown[0])
    assert free[0].mark == "--" and "peers need a fixed one" in str(free[0])
    assert foreign[0].mark == "!!" and "give an address of this machine" in str(foreign[0])


def test_the_first_error_gives_the_exit_code_and_a_name_must_resolve(site, monkeypatch):
    def unknown(*args, **kwargs):
        raise socket.gaierror(socket.EAI_NONAME, "unknown name")

    monkeypatch.setattr(socket, "create_connection", unknown)
    code, lines = site.red("--peer", "dealer:d=nowhere.invalid:7443", "--peer", "b=x.invalid:1")
    assert code == 53 and len(lines) == 2
    assert (
        "dealer 'd' at nowhere.invalid:7443" in lines[0]
        and "check the address and the DNS" in (lines[0])
    )


def test_the_audit_trail_is_verified_with_the_ledgers_charges(site):
    assert "--  audit trail: " in site.doctor()[1]
    site.spend(1)
    with Ledger(site.ledger, "t", Fraction(5)) as ledger:
        (study,) = ledger._until
        ledger.charge(study, ledger.held(study).attempt)
    the_one(site.red(), 37, "audit trail", "1 studies that have no row here")
    trail = AuditTrail(site.ledger)
    trail.append(AuditRow("charge", study=study.hex(), epsilon="1", delta="0"))
    assert "ok  audit trail: " in site.doctor()[1]
    trail.path.write_bytes(trail.path.read_bytes().replace(b'"1"', b'"2"'))
    the_one(site.red(), 37, "audit trail", "row 1 is wrong")
    site.ledger.write_bytes(b"damaged")
    the_one(site.red(), 32, "ledger")
