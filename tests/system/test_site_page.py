"""docs/site.md, from empty folders to the first study: its own commands lead three sites there."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

import umpc
from tests.support.ports import reserved_address
from tests.system.conftest import TABLE
from tests.system.forked import Forked
from umpc.cli.main import umpc as command
from umpc.coordinator.studyfile_text import write_study_file
from umpc.deployment.processes import UMPC, stop
from umpc.errors import ApprovalPending
from umpc.transport.identity import load_identity

PAGE = (Path(umpc.__file__).parents[1] / "docs" / "site.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"<!-- run: (\w+) -->\n```sh\n(.*?)```", PAGE, re.DOTALL))
MOST_COMMANDS, MOST_TEXTS = 12, 2
HUB = "hub.example.org:7443"
"""Its address on the page."""


class Place:
    """An empty folder, and a person in it who types what the page says. Counts what they do."""

    def __init__(self, folder: Path, name: str, role: str = "node"):
        self.folder = folder / name
        self.folder.mkdir()
        self.name = name
        self.role = role
        self.commands = 0
        self.carried: set[str] = set()
        self.process: subprocess.Popen | None = None

    def types(self, block: str, answer: str = "", **changes: str) -> list[str]:
        """Run the commands of a block here, and return what each prints to both outputs."""
        return [self.run(line, answer) for line in self.lines(block, changes)]

    def lines(self, block: str, changes: dict[str, str]) -> list[str]:
        lines = BLOCKS[block].replace("\\\n", "").strip().splitlines()
        self.commands += len(lines)
        for former, new in {"north": self.name, **changes}.items():
            lines = [line.replace(former, new) for line in lines]
        return lines

    def run(self, line: str, answer: str) -> str:
        words, _, output = line.removeprefix("umpc ").partition(" > ")
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            ended = CliRunner().invoke(command, shlex.split(words), input=answer)
            assert ended.exit_code == 0, (line, ended.output)
            if output:
                Path(output).write_text(ended.stdout)
        finally:
            os.chdir(before)
        return ended.stdout + ended.stderr

    def carries(self, file: str, to: Place) -> None:
        """Carry one text to another place."""
        (to.folder / file).write_bytes((self.folder / file).read_bytes())
        for place in (self, to):
            place.carried.add(file)

    def starts(self, *arguments: str) -> str:
        """Start a process, and return its address."""
        self.process = Forked(
            [*UMPC, *arguments, "--while-stdin-open"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(self.folder / "log").open("wb"),
        )
        return self.process.stdout.readline().decode().split()[-1]


@pytest.fixture
def places(tmp_path):
    roles = {"dealer": "dealer", "coordinator": "coordinator", "relay": "hub"}
    names = ("north", "south", "east", *roles, "authority")
    made = {name: Place(tmp_path, name, roles.get(name, "node")) for name in names}
    yield made
    stop([place.process for place in made.values() if place.process])


def enrol(
    place: Place, authority: Place, digits: str, changes: dict[str, str], block: str = "join"
) -> None:
    """Lead one place to its certificate, as the page says, but for these changes."""
    if place.role != "node":
        changes = {**changes, "--table data.csv --epsilon 5": f"--role {place.role}"}
    (told,) = place.types(block, **changes)
    read = re.search(r"^fingerprint +(.*)$", told, re.MULTILINE)[1]
    place.carries(f"{place.name}.request", authority)
    (shown,) = authority.types("approve", "y\n", north=place.name)
    assert f"fingerprint  {read}" in shown
    authority.carries(f"{place.name}.admission", place)
    example = re.search(r'--fingerprint "(.*)"', BLOCKS["finish"])[1]
    place.types("finish", **{example: digits})


def accept_waiting(sites: list[Place]) -> None:
    """Accept the study that waits at each site, by the number that its list shows."""
    for site in sites:
        listed = site.run(*site.lines("accept", {})[:1], "")
        waiting = re.search(r"^pending +(\w+)", listed, re.MULTILINE)[1]
        site.commands -= 3
        site.types("accept", **{"1f9c2a": waiting})


def check_work(sites: list[Place]) -> None:
    """Every site typed seven commands and carried two texts."""
    counts = {site.name: (site.commands, len(site.carried)) for site in sites}
    assert counts == dict.fromkeys(counts, (7, 2))
    assert max(counts.values()) <= (MOST_COMMANDS, MOST_TEXTS)


def test_three_sites_reach_their_first_study_by_the_page_alone(places):
    authority = places["authority"]
    _, shown = authority.types("authority")
    digits = re.search(r"^authority +(.*)$", shown, re.MULTILINE)[1]
    sites = [place for place in places.values() if place.role == "node" and place is not authority]
    for place in (*sites, places["dealer"], places["coordinator"]):
        (place.folder / "data.csv").write_text(TABLE)
        enrol(place, authority, digits, {"0.0.0.0:7100": "127.0.0.1:0"})

    address = {}
    for place in sites:
        doctor, start = place.lines("start", {"node.toml": str(place.folder / "node.toml")})
        assert "!!" not in place.run(doctor, "")
        address[place.name] = place.starts(*shlex.split(start)[1:])
    identity = places["dealer"].folder / "dealer"
    dealer = places["dealer"].starts("dealer", "start", "--identity", str(identity))
    file = write_study(places["coordinator"], address, dealer)

    assert _run_study(file) == ApprovalPending.exit_code
    accept_waiting(sites)
    assert _run_study(file) == 0
    check_work(sites)
    assert "These are seven commands and two texts." in PAGE


def test_a_consortium_behind_a_hub_that_is_a_member(places):
    at = reserved_address()
    assert _run_study(join_behind_a_hub(places, {HUB: at, "0.0.0.0:7443": at})) == 0


def join_behind_a_hub(places: dict[str, Place], changes: dict[str, str]) -> Path:
    """Lead a hub, two sites, dealer and coordinator to a study by the page. Only the hub listens.

    The addresses in the study's file are those of the list of members, and nobody types one.

    Args: changes: what stands in place of the page's addresses.
    """
    authority, hub, coordinator = (places[name] for name in ("authority", "relay", "coordinator"))
    at = changes.get(HUB, HUB)
    _, shown = authority.types("authority")
    digits = re.search(r"^authority +(.*)$", shown, re.MULTILINE)[1]
    invite, join, approve, finish, start = hub.lines("hub", changes)
    authority.run(invite, "")
    authority.carries("relay.invitation", hub)
    hub.run(join, "")
    hub.carries("relay.request", authority)
    authority.run(approve, "y\n")
    authority.carries("relay.admission", hub)
    hub.run(finish, "")
    start = start.replace("--identity hub", f"--identity {hub.folder / 'hub'}")
    assert hub.starts(*shlex.split(start)[1:]).endswith(at.rpartition(":")[2])
    told = authority.run("umpc enrol members", "")
    (example,) = re.findall(r"<!-- shows -->\n```text\n(.*)\n```", PAGE)
    assert example.replace(HUB, at) in told.splitlines()

    sites = [places[name] for name in ("north", "south")]
    for place in (*sites, places["dealer"]):
        (place.folder / "data.csv").write_text(TABLE)
        no_person = {"> ": "--open > "} if place in sites else {}
        enrol(place, authority, digits, changes | no_person, "behind")
    enrol(coordinator, authority, digits, {})
    for place in sites:
        doctor, start = place.lines("start", {"node.toml": str(place.folder / "node.toml")})
        place.starts(*shlex.split(start)[1:])
        checked = place.run(doctor, "")
        assert "this node runs and is connected" in checked and "!!" not in checked
        assert re.search(r"hub status: the hub runs for \d+:\d\d", checked)
    identity = places["dealer"].folder / "dealer"
    places["dealer"].starts("dealer", "start", "--identity", str(identity), "--hub", f"relay@{at}")
    listed = tomllib.loads(authority.run("umpc enrol members", ""))
    assert {each["address"] for each in (*listed["nodes"], listed["dealer"])} == {f"hub:relay@{at}"}
    address = {each["name"]: each["address"] for each in listed["nodes"]}
    return write_study(coordinator, address, listed["dealer"]["address"])


def test_a_site_joins_over_the_network_with_one_text(places):
    authority, site = places["authority"], places["north"]
    authority.types("authority")
    (site.folder / "data.csv").write_text(TABLE)
    listen, invite = authority.lines("listen", {"0.0.0.0:7101": "127.0.0.1:0", "north": "north"})
    folder = str(authority.folder / "authority")
    listener = authority.process = _started(*shlex.split(listen)[1:], "--authority", folder)
    at = listener.stdout.readline().split()[-1]
    authority.run(invite.replace("authority.example.org:7101", at), "")
    authority.carries("north.invitation", site)
    (join,) = site.lines("online", {})
    arguments = [*shlex.split(join)[1:], "--folder", str(site.folder)]
    for file in ("north.invitation", "data.csv"):
        arguments[arguments.index(file)] = str(site.folder / file)
    site.process = _started(*arguments)
    read = next(line for line in site.process.stderr if line.startswith("fingerprint"))
    assert f"waiting for the authority at {at}" in site.process.stderr.readline()
    assert "asked: node 'north'" in listener.stderr.readline()
    (shown,) = authority.types("admit", "y\n", north="north")
    assert read in shown and "proven by its one-time code" in shown
    output, _ = site.process.communicate(timeout=60)
    assert site.process.returncode == 0 and "role         node" in output
    assert 'address = "north.example.org:7100"' in (site.folder / "members.toml").read_text()
    assert load_identity(site.folder / "site", "node").name == "north"
    site.lines("start", {})
    site.lines("accept", {})
    assert (site.commands, len(site.carried)) == (6, 1)
    assert "six commands and one text" in PAGE
    code = json.loads((authority.folder / "authority/enrolments/node.north.json").read_text())
    assert code["code"] == "" and code["state"] == "admitted"


def _started(*arguments: str) -> subprocess.Popen[str]:
    """Start `umpc enrol`, which imports no numpy and is therefore quick."""
    pipe = subprocess.PIPE
    return subprocess.Popen([*UMPC, *arguments], stdout=pipe, stderr=pipe, text=True)


def write_study(place: Place, address: dict[str, str], dealer: str) -> Path:
    entries = {
        "name": "first",
        "identity": "coordinator",
        "statistic": "kendall_tau",
        "columns": ["age", "balance"],
        "fields": [
            {"name": "age", "lower": 0, "upper": 127, "whole": True},
            {"name": "balance", "lower": -100, "upper": 1000, "resolution": "0.5"},
        ],
        "epsilon": "1",
        "edges": "2n",
        "backend": "shared",
        "nodes": [{"name": name, "address": at} for name, at in address.items()],
        "dealer": {"name": "dealer", "address": dealer},
    }
    return write_study_file(place.folder, entries)


def _run_study(file: Path) -> int:
    process = Forked(
        [*UMPC, "study", "run", str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.communicate(timeout=60)
    return process.returncode
