"""A study of linked rows over real processes: a dealer, and two sites with a table each."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from click.testing import CliRunner

from tests.support.ports import reserved_address
from tests.system.forked import Forked
from umpc.api.study import ProposedStudy
from umpc.cli.main import umpc
from umpc.coordinator.people import BoxKey, open_people
from umpc.coordinator.studyfile import load_study_file
from umpc.deployment.processes import Deployment, Served, stop
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocols.people.terms import survey_of
from umpc.study.document import Study
from umpc.study.report import Report
from umpc.transport.identity import Identity, load_identity
from umpc.transport.stream import RpcStream, as_received
from umpc.transport.tls import node_stub

NAMES = ("west", "east")
FIELDS = ("age", "balance")
LOUD = 10**9
"""At this ε the noise is 0."""
BINS = """[bins]
balance = [0, 100, 200, 500, 1000, 2000, 5000]
"""


def write_table(path: Path, key: str, keys: Sequence[str], name: str, values: Sequence[int]):
    """Write a table of two columns."""
    rows = (f"{one},{other}" for one, other in zip(keys, values, strict=True))
    path.write_text("\n".join([f"{key},{name}", *rows]) + "\n")


class Linked:
    """A dealer and two sites. Args: values: field → (rows,), each at the site of its place."""

    def __init__(self, folder: Path, values: Mapping[str, np.ndarray]):
        self.folder, self.values = folder, values
        self.environment: dict[str, Mapping[str, str]] = {"coordinator": {}}
        self.deployment = Deployment(folder, self.environment, Forked, reserved_address)
        self.served: dict[str, Served] = {}
        self.rows = len(values["age"])
        self.keys = [f"p{os.urandom(6).hex()}" for _ in range(self.rows)]
        rng = np.random.default_rng(5)
        for name, field in zip(NAMES, FIELDS, strict=True):
            # each site has its own order
            order = rng.permutation(self.rows)
            keys = [self.keys[row] for row in order]
            write_table(self.table(name), f"{name}_key", keys, field, values[field][order].tolist())

    def table(self, name: str) -> Path:
        return self.folder / f"{name}.csv"

    def start(self, more: str = "") -> Linked:
        self.deployment.authority.issue("dealer", "dealer", self.folder / "dealer")
        self.deployment.start(
            "dealer",
            [
                *("dealer", "start", "--identity", str(self.folder / "dealer")),
                *("--listen", reserved_address(), "--people", str(self.folder / "dealt")),
            ],
        )
        for name in NAMES:
            self.deployment.authority.issue(name, "node", self.folder / name)
            (self.folder / f"{name}.toml").write_text(
                f'name = "{name}"\nidentity = "{name}"\nlisten = "{reserved_address()}"\n'
                f'[data]\npath = "{name}.csv"\ndelimiter = ","\n'
                f'[linked]\nfolder = "{name}-linked"\nkey = "{name}_key"\n'
                f"[budget]\nepsilon = {10 * LOUD}\n{more}"
            )
            self._start_site(name)
        self.served.update(self.deployment.wait_until_ready())
        return self

    def _start_site(self, name: str) -> None:
        config = self.folder / f"{name}.toml"
        self.deployment.start(name, ["node", "start", "--config", str(config)])

    def restart(self, name: str, failpoint: str = "") -> None:
        """Start a site again, after it has ended or by ending it."""
        process = self.served[name].process
        if process.poll() is None:
            process.kill()
        process.wait()
        self.environment[name] = {"UMPC_FAILPOINT": failpoint} if failpoint else {}
        self._start_site(name)
        self.served.update(self.deployment.wait_until_ready())

    def stop(self) -> None:
        stop(self.deployment.processes)

    def study(self, name: str = "linked", adversary: str = "honest", **changes: object) -> Path:
        """Write the study's file."""
        linked = {"rows": self.rows, "closes": '"2099-12-31T00:00:00Z"'} | changes
        linked.setdefault("first", '["age"]')
        lines = [
            f'name = "{name}"\nstatistic = "kendall_tau"\ncolumns = ["balance", "age"]',
            f'epsilon = {LOUD}\nidentity = "coordinator"\nprotocol = "linked"',
            f'adversary = "{adversary}"',
            '[[fields]]\nname = "age"\nlower = 0\nupper = 127\nwhole = true',
            '[[fields]]\nname = "balance"\nlower = -10000\nupper = 110000\nwhole = true',
            BINS,
            f'[dealer]\nname = "dealer"\naddress = "{self.served["dealer"].address}"',
            *(
                f'[[nodes]]\nname = "{each}"\naddress = "{self.served[each].address}"'
                for each in NAMES
            ),
            "[linked]",
            *(f"{key} = {value}" for key, value in linked.items()),
        ]
        path = self.folder / f"{name}.toml"
        path.write_text("\n".join(lines) + "\n")
        return path

    def run(self, path: Path) -> Report:
        """Run a study, as `umpc study run` does."""
        proposed = ProposedStudy.load(path)
        proposed.returning = 0
        return proposed.report(progress=False)

    def document(self, path: Path) -> Study:
        """A study as sites see it before they have signed."""
        return survey_of(load_study_file(path).study("coordinator"))

    def decide(self, path: Path, word: str, *more: str) -> None:
        """Both administrators accept or reject a study. Args: more: options."""
        for name in NAMES:
            config = str(self.folder / f"{name}.toml")
            study = self.document(path).hash.hex()[:16]
            done = CliRunner().invoke(umpc, ["approve", word, "--config", config, *more, study])
            assert done.exit_code == 0, done.output

    def open(self, path: Path) -> tuple[BoxKey, ...]:
        """Open a study at the dealer and both sites, and do nothing else."""
        return asyncio.run(open_people(self.document(path), lambda: (), self.identity))

    def listed(self, path: Path, side: int, opened: Sequence[BoxKey]) -> bytes:
        """The first part of a site's list, which a coordinator asks for without opening."""
        study = self.document(path)
        keys = [
            pb.PeopleOpened(box_key=one.key, certificate=one.certificate, signature=one.signature)
            for one in opened
        ]

        async def asked() -> bytes:
            stream: RpcStream = RpcStream(NAMES[side], "compare", as_received)
            try:
                await stream.connect(self.identity, "node", study.nodes[side].address)
                request = pb.PeopleStudy(hash=study.hash, opened=keys)
                stream.begin(node_stub(stream.channel).ListPeople(request))
                return (await stream.next("compare", 60)).data
            finally:
                await stream.close()

        return asyncio.run(asked())

    @property
    def identity(self) -> Identity:
        return load_identity(self.folder / "coordinator", "coordinator")

    def events(self, name: str) -> list[str]:
        """The events of a site's audit trail."""
        trail = self.folder / f"{name}-ledger.sqlite.audit"
        return [json.loads(line)["event"] for line in trail.read_text().splitlines()]

    @property
    def tau(self) -> float:
        """Kendall's tau a of all pairs, in the clear, at the study's cut points."""
        cuts = [0, 100, 200, 500, 1000, 2000, 5000]
        one, other = self.values["age"], np.searchsorted(cuts, self.values["balance"], "right")
        signs = sum(
            int((np.sign(one[row + 1 :] - one[row]) * np.sign(other[row + 1 :] - other[row])).sum())
            for row in range(self.rows)
        )
        return 2 * signs / (self.rows * (self.rows - 1))

    def shares(self, name: str) -> list[bytes]:
        """The shares of tables on a site's disk, one a study."""
        file = self.folder / f"{name}-linked" / "people.sqlite"
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as db:
            return [share for (share,) in db.execute("SELECT share FROM studies")]

    def spent(self, name: str) -> int:
        """The studies that a running site has charged for, by its audit trail."""
        return self.events(name).count("charge")
