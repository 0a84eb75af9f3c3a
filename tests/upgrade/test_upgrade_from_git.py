"""A consortium starts on an earlier state of umpc from git, and is upgraded node after node.

`make upgrade-test`. UMPC_UPGRADE_FROM is a tag or a commit; without it, the last tag counts.
Without a tag, the protocol's version is unreleased and may break with itself: then the last commit
counts whose CHANGELOG.md says once more that processes of an earlier state do not run together with
this one, or else the last commit of the version before.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from itertools import pairwise
from pathlib import Path

import pytest

from umpc.deployment.processes import Deployment, stop
from umpc.errors import VersionMismatch
from umpc.node.budget.ledger_place import Place
from umpc.node.budget.ledgerfile import read_beside
from umpc.protocol_version import PROTOCOL

ROOT = Path(__file__).parents[2]
PROGRAM = "import sys; sys.path[0] = {!r}; from umpc.cli.main import main; main()"
NODES = ("node-1", "node-2")
STUDY = """name = "{}"
statistic = "kendall_tau"
columns = ["age", "balance"]
epsilon = 1
edges = "2n"
backend = "shared"
identity = "coordinator"
dealer = {{name = "dealer", address = "{}"}}
[[fields]]
name = "age"
lower = 0
upper = 127
whole = true
[[fields]]
name = "balance"
lower = -100
upper = 1000
resolution = "0.5"
"""


def git(*words: str) -> bytes:
    return subprocess.run(["git", "-C", ROOT, *words], check=True, capture_output=True).stdout


def former_state() -> str:
    """Return the tag or the commit to upgrade from."""
    if given := os.environ.get("UMPC_UPGRADE_FROM"):
        return given
    if tags := git("tag", "--merged", "HEAD^", "--sort=-creatordate").decode().split():
        return tags[0]
    return last_break() or f"{first_of_version()}^"


def last_break() -> str:
    """Return the last commit that broke with earlier states of the same version, or ""."""
    log = git("log", "--first-parent", "--format=%H", "--", "CHANGELOG.md").decode().split()
    for commit, before in pairwise(log):
        if breaks_in(commit) > breaks_in(before):
            return commit
    return ""


def breaks_in(commit: str) -> int:
    """Return how many changes of the present version are said to break with its earlier states."""
    said = " ".join(git("show", f"{commit}:CHANGELOG.md").decode().split())
    return said.count(f"of an earlier state of {PROTOCOL} do not run together with this one")


def first_of_version() -> str:
    line = f'PROTOCOL = "{PROTOCOL}"'
    commits = git("log", "--format=%H", f"-S{line}", "--", "umpc/protocol_version.py")
    return commits.decode().split()[-1]


def command_of(folder: Path) -> tuple[str, ...]:
    """Return the command `umpc` of the code in a folder, whatever the present folder is."""
    return sys.executable, "-c", PROGRAM.format(str(folder))


@pytest.fixture(scope="module")
def former(tmp_path_factory) -> Path:
    """A folder with the code to upgrade from."""
    state = former_state()
    print(f"upgrading from {state}")
    folder = tmp_path_factory.mktemp("former")
    # The papers' protocols were apart from some commit on; one state has both of one kind.
    packages = git("ls-tree", "--name-only", state, "umpc", "umpc_papers").decode().split()
    with tarfile.open(fileobj=io.BytesIO(git("archive", state, *packages))) as tar:
        tar.extractall(folder, filter="data")
    return folder


def speaks_ours(former: Path) -> bool:
    return f'PROTOCOL = "{PROTOCOL}"' in (former / "umpc/protocol_version.py").read_text()


def tells_policies(former: Path) -> bool:
    return "string policy" in (former / "umpc/proto/v1/umpc.proto").read_text()


class Consortium:
    """A dealer and two nodes, each with its own code. Args: former: the code of then."""

    def __init__(self, folder: Path, former: Path):
        self.former = former
        self.folder = folder
        self.deployment = Deployment(folder)
        self.deployment.command = command_of(former)
        self.deployment.start_dealer()
        for name in NODES:
            rows = "".join(f"{7 * i % 50},{13 * i % 90 - 20.5}\n" for i in range(30))
            (folder / f"{name}.csv").write_text(f"age,balance\n{rows}")
            self.deployment.start_node(name, folder / f"{name}.csv", "10", delta="1e-9")
        self.served = dict(self.deployment.wait_until_ready())

    def upgrade(self, name: str, *words: str) -> None:
        """Stop a process, and start it with the code of now."""
        stop([self.served[name].process])
        self.deployment.command = command_of(ROOT)
        self.deployment.start(name, [*words, "start", *self.place(name)])
        self.served.update(self.deployment.wait_until_ready())

    def place(self, name: str) -> tuple[str, str]:
        if name in NODES:
            return "--config", str(self.folder / f"{name}.toml")
        return "--identity", str(self.folder / name)

    def run(self, name: str, code: Path) -> tuple[float, bool]:
        """Run a study with a coordinator of this code: its estimate, and whether it is repeated."""
        done = self.coordinate(name, code)
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        self.policies = report.get("policies", {})
        return report["estimate"], report["replayed"]

    def coordinate(
        self, name: str, code: Path, command: str = "run", **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Run or prepare a study to its end. Args: more: environment variables."""
        text = STUDY.format(name, self.served["dealer"].address)
        for node in NODES:
            text += f'[[nodes]]\nname = "{node}"\naddress = "{self.served[node].address}"\n'
        (self.folder / "study.toml").write_text(text)
        words = ["study", command, str(self.folder / "study.toml")]
        if command == "run":
            words += ["--format", "json"]
        return subprocess.run(
            [*command_of(code), *words], capture_output=True, text=True, env={**os.environ, **more}
        )

    def spent(self) -> list[int]:
        places = (Place.of(self.folder / f"{name}-ledger.sqlite") for name in NODES)
        return [int(read_beside(place).account.epsilon().spent) for place in places]


def test_node_after_node_is_upgraded_and_nothing_is_charged_again(former, tmp_path):
    sites = Consortium(tmp_path, former)
    try:
        first, _ = sites.run("first", former)
        assert sites.spent() == [1, 1]
        died = sites.coordinate("held", former, UMPC_FAILPOINT="before-release:kill")
        assert died.returncode < 0 and sites.spent() == [1, 1]
        ahead = sites.coordinate("ahead", former, "prepare")
        assert ahead.returncode == 0, ahead.stderr

        sites.upgrade("node-1", "node")
        if speaks_ours(former):
            for code in (former, ROOT):
                assert sites.run("first", code) == (first, True)
            mixed = sites.run("mixed", former)[0]
            assert sites.run("mixed", ROOT) == (mixed, True)
            told = {"node-1", *(NODES if tells_policies(former) else ())}
            assert set(sites.policies) == told, "a node of before says nothing, and runs on"
        else:
            for code in (former, ROOT):
                refused = sites.coordinate("first", code)
                assert refused.returncode == VersionMismatch.exit_code, refused.stderr
                assert "install versions of umpc with the same protocol" in refused.stderr
            assert sites.spent() == [1, 1]
            mixed = None

        sites.upgrade("node-2", "node")
        sites.upgrade("dealer", "dealer")
        assert sites.run("first", ROOT) == (first, True)
        held, _ = sites.run("held", ROOT)
        assert sites.run("held", ROOT) == (held, True)
        again, repeated = sites.run("mixed", ROOT)
        assert (mixed, repeated) in ((again, True), (None, False))
        assert sites.spent() == [3, 3]
        assert sites.run("last", ROOT)[1] is False and sites.spent() == [4, 4]
        assert sites.run("ahead", ROOT)[1] is False and sites.spent() == [5, 5]
        for name in NODES:
            for words in (("budget", "verify"), ("audit", "verify")):
                verify = [*command_of(ROOT), *words, *sites.place(name)]
                assert b"verified" in subprocess.run(verify, capture_output=True, check=True).stdout
    finally:
        stop(sites.deployment.processes)
