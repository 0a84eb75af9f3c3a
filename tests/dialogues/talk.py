"""Studies of every protocol, and a small language in which a test reads as a dialogue.

A line of a dialogue names a step, who speaks to whom, and what is said in this order:

    prepare    each > dealer: deal
    evaluate   north > south: masked_fields, open 1

*each* is every node of the study, and `later` and `earlier` are two nodes in the study's order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from itertools import count
from typing import Any

from tests.dialogues.house import ROLES, House, participants
from tests.dialogues.network import UNTOLD, Said, told
from tests.support.fields import number_field
from tests.support.garbled import NO_DEALER
from tests.support.grid import grid_study
from tests.support.local import local_study
from tests.support.protocols import with_facts
from tests.support.shuffled import shuffled_study
from tests.support.studies import CLASSES, KENDALL, make_study
from tests.support.triples import BY_TRIPLES
from tests.support.vector import vector_study
from umpc.errors import ImpossibleResult, UmpcError
from umpc.protocols.registry import checked
from umpc.study.document import Study
from umpc.study.report import Report
from umpc.study.settings import LYING_NODES

STEPS = ("propose", "agree", "prepare", "evaluate", "release", "ask")
SECONDS = 30
"""`seconds_per_step` of all studies."""
NUMBERS = count(1)
"""A house serves many studies, so each has a name of its own."""


def _of(kernels: Any = KENDALL, **facts: Any) -> Callable[[int], Study]:
    return lambda nodes: make_study(kernels, nodes, **facts)


MADE: dict[str, Callable[[int], Study]] = {
    "tables": _of(),
    "keys": _of(x=("0", "1000"), y=("0", "1000")),
    "mean": _of("a.x", degree=1),
    "committee": _of(noise="in_mpc"),
    "dealt coins": _of(noise="in_mpc", coins="dealt"),
    "garbled": _of(**NO_DEALER),
    "triples": _of(**BY_TRIPLES),
    "grid": lambda nodes: grid_study(KENDALL, nodes),
    "verified grid": lambda nodes: grid_study(KENDALL, nodes, adversary=LYING_NODES),
    "grid alone": lambda nodes: grid_study(KENDALL, nodes, preprocessing="none", dealer=None),
    "vector": lambda nodes: vector_study(
        fields=(number_field("a", "0", "20"), number_field("b", "0", "4"), CLASSES),
        nodes=make_study("a.x", nodes, degree=1).nodes,
        max_colluding=nodes - 1,
        edges="all",
    ),
    "local mean": lambda nodes: local_study("local-mean", nodes),
    "two rounds": lambda nodes: local_study("ghazi-rounds", nodes),
    "shuffled": lambda nodes: shuffled_study(nodes),
}


def study_of(kind: str, *nodes: str, name: str = "", **changes: Any) -> Study:
    """A study of a kind, between these nodes of the house: never one that was there before."""
    study = MADE[kind](len(nodes))
    facts: dict[str, Any] = {
        "name": f"{name or kind} ({next(NUMBERS)})",
        "nodes": participants(*nodes),
        "max_colluding": len(nodes) - 1,
        "seconds_per_step": SECONDS,
    }
    if study.dealer is not None:
        facts["dealer"] = participants("dealer")[0]
    if study.shufflers:
        facts["shufflers"] = participants("shuffler-1", "shuffler-2")
    return checked(with_facts(study, **(facts | changes)))


# --- dialogues ------------------------------------------------------------------------------------

Link = tuple[str, str]
"""Sender and receiver."""

BEGIN = """
propose    coordinator > each: propose
propose    each > coordinator: accepted
agree      coordinator > each: agree
agree      each > coordinator: opened
prepare    coordinator > each: begin
prepare    each > coordinator: prepared
"""
END = """
evaluate   coordinator > each: evaluate
evaluate   each > coordinator: ready
release    coordinator > each: release
release    each > coordinator: released
"""
WITH_DEALER = """
prepare    each > dealer: deal
prepare    dealer > each: node_seed, material
"""
RELEASED = f"{BEGIN}{END}"


def lines(dialogue: str, nodes: Sequence[str]) -> Iterator[tuple[str, Link, list[str]]]:
    """Step, sender and receiver, and what is said, for each pair of processes of each line."""
    for line in dialogue.strip().splitlines():
        if not line.strip():
            continue
        step, _, rest = line.partition(" ")
        link, _, names = rest.partition(":")
        sender, _, receiver = (part.strip() for part in link.partition(">"))
        said = [name.strip() for name in names.split(",")]
        for pair in pairs(sender, receiver, nodes):
            yield step, pair, said


def pairs(sender: str, receiver: str, nodes: Sequence[str]) -> list[Link]:
    """The processes that are meant by the words of a line."""
    between = [(one, other) for place, one in enumerate(nodes) for other in nodes[place + 1 :]]
    if sender == "each":
        return [(node, receiver) for node in nodes]
    if receiver == "each":
        return [(sender, node) for node in nodes]
    if sender == "earlier":
        return between
    if sender == "later":
        return [pair[::-1] for pair in between]
    return [(sender, receiver)]


def check(said: Sequence[Said], dialogue: str, nodes: Sequence[str]) -> None:
    """Check that exactly this was said, on each link in this order, and each step in its turn.

    A process says a line of a step only after the coordinator's order for that step, and the
    coordinator gives the next order only when all nodes have answered.
    """
    steps: dict[Link, list[str]] = {}
    due: dict[Link, list[str]] = {}
    for step, link, names in lines(dialogue, nodes):
        for name in names:
            word, _, times = name.partition(" x")
            due.setdefault(link, []).extend([word] * int(times or 1))
            steps.setdefault(link, []).extend([step] * int(times or 1))
    assert told(said) == due
    order = list(dict.fromkeys(step for step, _, _ in lines(dialogue, nodes)))
    at = dict.fromkeys(nodes, -1)
    owed = {node: list(steps.get((node, "coordinator"), ())) for node in nodes}
    for each in said:
        for _ in (name for name in each.names if name not in UNTOLD):
            step = order.index(steps[each.sender, each.receiver].pop(0))
            if each.sender == "coordinator":
                late = [node for node in nodes if owed[node] and order.index(owed[node][0]) < step]
                assert not late, f"{late} had not answered when {each} was said"
                if each.receiver in at:
                    at[each.receiver] = max(at[each.receiver], step)
            elif each.sender in at:
                assert at[each.sender] >= step, f"{each} came before its step"
                if each.receiver == "coordinator":
                    owed[each.sender].pop(0)


# --- scenes ---------------------------------------------------------------------------------------


Beside = Callable[[], Coroutine[Any, Any, None]]
MAY_BE = {"evaluates": ("nothing", "held"), "asked": ("held", "charged")}
"""On disk after last words that do not say it."""


class Scene:
    """Runs of one study, of which each is held against the rules of charges.

    Before a node says *ready*, its share is on its disk; before it says *released*, the charge. A
    node that has released anything says the same bytes whenever it says them again.
    """

    def __init__(self, house: House, study: Study):
        self.house = house
        self.study = study
        self.before = house.balances()
        self.shares: dict[str, set[bytes]] = {}
        """Node → the shares that it has released: one at most."""
        self.errors: dict[str, UmpcError | None] = {}
        """Node → how its last run ended."""
        self._faults: list[AssertionError] = []
        house.network.watch(self._look)

    def _look(self, said: Said) -> None:
        """Look at what a node says, and remember what is wrong: the node would catch it."""
        try:
            self._check(said)
        except AssertionError as fault:
            self._faults.append(fault)

    def _check(self, said: Said) -> None:
        if said.receiver != "coordinator" or said.names not in (("ready",), ("released",)):
            return
        disk = self.house.nodes[said.sender].on_disk
        if said.names == ("ready",):
            assert self.study.whole.hash in {each.study for each in disk.held}
        if said.names == ("released",):
            assert self.study.whole.hash in disk.account.charged
            self.shares.setdefault(said.sender, set()).add(said.message.released.share)

    def run(self, beside: Beside | None = None) -> Report | UmpcError:
        """Run the study to its end, and check what is left of it.

        Args: beside: what happens meanwhile; it ends with the study.
        """
        house = self.house
        result = house.run(self._run(beside))
        house.run(house.end())
        assert not self._faults
        self.errors = {name: (node.ended or [None])[-1] for name, node in house.nodes.items()}
        self.check_charges()
        if isinstance(result, UmpcError):
            assert "\n" not in result.message
            assert result.culprit in ROLES or isinstance(result, ImpossibleResult), repr(result)
        else:
            assert all(state == "charged" for state in self.states.values())
        return result

    async def _run(self, beside: Beside | None) -> Report | UmpcError:
        other = asyncio.create_task(beside()) if beside is not None else None
        try:
            return await self.house.study(self.study)
        finally:
            if other is not None:
                if other.done():
                    other.result()
                other.cancel()

    @property
    def states(self) -> dict[str, str]:
        return self.house.states(self.study)

    def check_charges(self) -> None:
        """Check that ε is charged, reserved or free as each node's state says, and on its disk."""
        cost, now = self.study.exact_epsilon, self.house.balances()
        for name, state in self.states.items():
            assert state in ("nothing", "prepared", "held", "charged")
            spent, reserved = (
                now[name][0] - self.before[name][0],
                now[name][1] - self.before[name][1],
            )
            assert spent == (cost if state == "charged" else 0)
            assert reserved == (cost if state in ("held", "prepared") else 0)
        assert all(len(shares) == 1 for shares in self.shares.values())

    def check_blame(self, result: object, kind: type[UmpcError], culprit: str, left: str) -> None:
        """Check how a run ended, and the state that is left of it at every node."""
        assert isinstance(result, kind) and result.culprit == culprit, repr(result)
        assert set(self.states.values()) == {left}

    def check_said(self) -> None:
        """Check each node's state by its last words, as docs/protocol.md has it."""
        last: dict[str, str] = dict.fromkeys(self.states, "nothing")
        network = self.house.network
        names = [
            (said.sender, "" if said in network.unheard else said.names[0]) for said in network.said
        ]
        for place, said in enumerate(self.house.network.said):
            node = said.sender if said.sender in last else said.receiver
            match said.sender, said.names:
                case "coordinator", ("evaluate",):
                    last[node] = "evaluates"
                case "coordinator", ("release",):
                    last[node] = "asked"
                case "coordinator", ("abort",):
                    are_new = all((each, "accepted") in names[:place] for each in last)
                    is_uncharged = are_new and ("coordinator", "release") not in names[:place]
                    assert said.message.abort.keep != is_uncharged
                    last[node] = "nothing" if is_uncharged else last[node]
                case _, ("ready",):
                    last[node] = "held"
                case _, ("released",):
                    last[node] = "charged"
        for node, state in self.states.items():
            assert state in MAY_BE.get(last[node], (last[node],)), f"{node} {last[node]}"

    def run_again(self) -> Report:
        """Run the study once more, where all that failed is well again: it ends, charged once."""
        self.house.mend()
        self.house.network.watch(self._look)
        result = self.run()
        assert isinstance(result, Report), repr(result)
        return result
