"""A whole house in one process: real nodes, dealer, shufflers and coordinator, and no socket."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from tests.dialogues.clock import StandingClock
from tests.dialogues.network import Network, Pipe
from umpc.cli.serve import OwnSite, open_site, own_identity
from umpc.coordinator.client import prepare_study, run_study
from umpc.dealer.server import ALLOWED as OF_DEALER
from umpc.dealer.server import DealerServer
from umpc.errors import UmpcError
from umpc.node.budget.ledger_place import Place
from umpc.node.budget.ledgerfile import Snapshot, read_beside
from umpc.node.config import load_datasets
from umpc.node.datasets import Dataset
from umpc.study.document import Study
from umpc.study.parts import Participant
from umpc.study.report import Report
from umpc.transport.authority import Authority
from umpc.transport.identity import Identity, load_identity
from umpc.transport.tls import rpc
from umpc_papers.shuffler.server import ALLOWED as OF_SHUFFLER
from umpc_papers.shuffler.server import ShufflerServer

NODES = ("north", "south", "west")
HELPERS = {"dealer": "dealer", "shuffler-1": "shuffler", "shuffler-2": "shuffler"}
ROLES = {"coordinator": "coordinator", **dict.fromkeys(NODES, "node"), **HELPERS}
PLACES = {name: f"127.0.0.1:{7001 + place}" for place, name in enumerate(ROLES)}
EPSILON = 10**9
"""The budget of each node: a house serves many studies."""
MINUTES = 15
"""Minutes after which nothing goes on of a study."""
Outcome = TypeVar("Outcome")
Choose = Callable[[Sequence[Pipe]], Pipe]
"""Chooses among pipes, each there once for each message that waits in it."""


def participants(*names: str) -> tuple[Participant, ...]:
    return tuple(Participant(name, PLACES[name]) for name in names)


def certificates(folder: Path) -> Path:
    """A folder with the certificates of everybody, made once for many houses."""
    authority = Authority.create(folder / "authority")
    for name, role in ROLES.items():
        authority.issue(name, role, folder / name)
    return folder


@dataclass
class Node:
    """One open node. ended: how its studies ended."""

    folder: Path
    site: OwnSite
    ending: contextlib.ExitStack
    ended: list[UmpcError | None]

    @property
    def dataset(self) -> Dataset:
        return self.site.datasets[0]

    def state(self, study: Study) -> str:
        """A study at the node: "charged", "held", "prepared", "reserved" or "nothing"."""
        ledger, name = self.dataset.ledger, study.whole.hash
        if ledger.released(name) is not None:
            return "charged"
        if ledger.held(name) is not None:
            return "held"
        if self.dataset.parking.holds(name):
            return "prepared"
        return "nothing" if ledger.reservation(name) is None else "reserved"

    @property
    def on_disk(self) -> Snapshot:
        """The ledger as its file has it now, with its whole chain and its anchor verified."""
        found = read_beside(Place.of(self.dataset.config.ledger, self.dataset.config.anchor))
        assert (found.fault, found.damaged) == ("", [])
        return found

    @property
    def files(self) -> set[str]:
        """The names of all files in the node's folder."""
        return {path.name for path in self.folder.iterdir()}


class House:
    """Processes by name, on one clock. Use it as a context manager.

    Args: folder: an empty one. keys: as of `certificates`. tables: the text of each node's CSV.
    """

    def __init__(self, folder: Path, keys: Path, tables: Mapping[str, str], rules: str = ""):
        self.folder = folder
        self.keys = keys
        self.rules = rules
        self.network = Network()
        self.nodes: dict[str, Node] = {}
        self.dealt: list[UmpcError | None] = []
        self._runner = asyncio.Runner(loop_factory=StandingClock)
        for name, text in tables.items():
            (folder / name).mkdir()
            (folder / name / "table.csv").write_text(text)
            self.write_rules(name, rules)
        for name in (*tables, *HELPERS):
            self.start(name)

    def __enter__(self) -> House:
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self.nodes):
            self.stop(name)
        self._runner.close()

    # ---- processes -----------------------------------------------------------------------------

    def write_rules(self, name: str, rules: str) -> None:
        """Write the configuration of a node."""
        text = (
            f'name = "{name}"\nlisten = "{PLACES[name]}"\nidentity = "{self.keys / name}"\n'
            f'[data]\npath = "table.csv"\n[budget]\nepsilon = {EPSILON}\ndelta = "1/100"\n{rules}'
        )
        (self.folder / name / "node.toml").write_text(text)

    @contextlib.contextmanager
    def under(self, name: str, rules: str, *, again: bool = False) -> Iterator[None]:
        """Write other rules of a node for a while. again: restart it, before and after."""
        for text in (rules, self.rules):
            self.write_rules(name, text)
            if again:
                self.restart(name)
                self.mend()
            if text is rules:
                yield

    def start(self, name: str) -> None:
        """Start a process, also once more."""
        if name in HELPERS:
            self._start_helper(name)
            return
        ending = contextlib.ExitStack()
        configs = load_datasets(self.folder / name / "node.toml")
        identity = self._dialling(own_identity(configs[0]))
        site = open_site(configs, identity, ending)
        self.nodes[name] = Node(self.folder / name, site, ending, [])
        self._serve(name)

    def _serve(self, name: str) -> None:
        """Answer the calls to a node, which remembers nothing of earlier ones."""
        node = self.nodes[name]
        service = node.site.service(node.ending)
        server: Any = self.network.serve(PLACES[name], node.site.identity, service.allowed)
        service.add(server, node.ended.append)

    def mend(self) -> None:
        """Begin again with all processes, over the same files: only ledgers remember anything."""
        self.network.begin_again()
        for name, node in self.nodes.items():
            node.ended.clear()
            self._serve(name)
        self.dealt.clear()
        for name in HELPERS:
            self._start_helper(name)

    def _start_helper(self, name: str) -> None:
        identity = self._dialling(load_identity(self.keys / name, HELPERS[name]))
        server: Any
        if name == "dealer":
            server = self.network.serve(PLACES[name], identity, OF_DEALER)
            rpc.add_DealerServicer_to_server(DealerServer(identity, self.dealt.append), server)
        else:
            server = self.network.serve(PLACES[name], identity, OF_SHUFFLER)
            shuffler = ShufflerServer(identity, lambda _: None)
            rpc.add_ShufflerServicer_to_server(shuffler, server)

    def stop(self, name: str) -> None:
        """End a node's process, and leave its files."""
        self.network.lose(name)
        self.run(self.end())
        self.nodes.pop(name).ending.close()

    def restart(self, name: str) -> None:
        """End a node's process, and start it from its files."""
        self.stop(name)
        self.start(name)

    def _dialling(self, identity: Identity) -> Identity:
        return replace(identity, dial=self.network.dial)

    @property
    def coordinator(self) -> Identity:
        return self._dialling(load_identity(self.keys / "coordinator", "coordinator"))

    # ---- time ----------------------------------------------------------------------------------

    @property
    def clock(self) -> StandingClock:
        loop = self._runner.get_loop()
        assert isinstance(loop, StandingClock)
        return loop

    async def end(self) -> None:
        """Let everything end that was begun, and see that nothing is left of it."""
        await asyncio.sleep(MINUTES * 60)
        await self.clock.quiet()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left and not self.network.open_calls and not self.clock.works, left

    def run(self, talk: Coroutine[Any, Any, Outcome]) -> Outcome:
        """Run a coroutine on the house's clock."""
        return self._runner.run(talk)

    async def in_turns(self, choose: Choose) -> None:
        """Let one message pass whenever nothing else can happen: the one that is chosen."""
        turns = self.network.turns = asyncio.Queue()
        waiting: list[Pipe] = []
        while True:
            if not waiting:
                waiting.append(await turns.get())
            await self.clock.quiet()
            while not turns.empty():
                waiting.append(turns.get_nowait())
            chosen = choose(waiting)
            waiting.remove(chosen)
            chosen.turn()

    # ---- studies -------------------------------------------------------------------------------

    async def study(self, study: Study, **how: Any) -> Report | UmpcError:
        """Run a study as `umpc study run` does: its report, or how it ended."""
        try:
            return await run_study(study, self.coordinator, **how)
        except UmpcError as error:
            return error

    async def prepare(self, study: Study) -> Any:
        """Prepare a study as `umpc study prepare` does."""
        try:
            return await prepare_study(study, self.coordinator)
        except UmpcError as error:
            return error

    def states(self, study: Study) -> dict[str, str]:
        """The state of a study at each of its nodes, as `Node.state` says."""
        return {each.name: self.nodes[each.name].state(study) for each in study.whole.nodes}

    def balances(self) -> dict[str, tuple[Fraction, Fraction]]:
        """The ε that each node's ledger has charged, and the ε that it reserves."""
        found = {name: each.dataset.ledger.balance() for name, each in self.nodes.items()}
        return {name: (each.spent, each.reserved) for name, each in found.items()}
