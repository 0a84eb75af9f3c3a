"""A site for `umpc node doctor`: the folder of a node where all is well at first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction

from click.testing import CliRunner

from tests.support.ports import reserved_port
from tests.support.studies import KENDALL, make_study
from umpc.cli.main import umpc
from umpc.node.budget.ledger import Ledger
from umpc.transport.authority import Authority

LONG_AGO = datetime.now(UTC) - timedelta(days=400)
TABLE = "age,balance,city\n1,2.5,Lille\n2,3.5,Paris\n,3,Lyon\n"
POLICY = '[policy]\nfields = ["age", "balance", "city"]\nmax_epsilon = 1\napproval = true\n'


class Examined:
    """The folder of a node, where all is well at first, and the command."""

    def __init__(self, folder):
        self.folder = folder
        self.port = reserved_port()
        self.authority = Authority.create(folder / "authority", now=LONG_AGO)
        self.authority.issue("north", "node", folder / "site")
        self.ledger = folder / "north-ledger.sqlite"
        self.study = make_study(KENDALL, name="tau").hash
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
                ledger.reserve(self.study, Fraction(epsilon), Fraction(0), name="tau")
                ledger.hold(self.study, b"attempt", b"share")

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


def the_one(found, code, *words):
    """There is one red line, with these words and this exit code."""
    came, lines = found
    assert (came, len(lines)) == (code, 1), found
    assert [word for word in words if word not in lines[0]] == [], lines
