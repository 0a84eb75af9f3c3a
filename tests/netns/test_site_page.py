"""docs/site.md, word by word, by three sites in network namespaces of their own. It needs root.

They run this source tree, and then the wheel of a release, with a coordinator that follows
docs/statistician.md to its report.

Each place (three sites, the dealer, the coordinator) has a namespace on one bridge, and a hosts
file with everybody's name. So addresses are those of the page: `north.example.org:7100`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.netns.test_firewalls import sh
from tests.support.document_blocks import ROOT, blocks, lines_of
from tests.system.conftest import TABLE
from tests.system.test_site_page import (
    Place,
    accept_waiting,
    check_work,
    enrol,
    join_behind_a_hub,
    write_study,
)
from umpc.deployment.processes import UMPC, stop
from umpc.errors import ApprovalPending

SITES = ("north", "south", "east")
ROLES = {"dealer": "dealer", "coordinator": "coordinator", "relay": "hub"}
BRIDGE = "bridge"
PORT = 7100


def space(name: str) -> str:
    """Return the namespace of a place. The pid keeps two runs apart."""
    return f"umpc-page-{os.getpid()}-{name}"


class PlaceApart(Place):
    """A place whose commands and processes run in its own namespace.

    command: what starts umpc there.
    """

    command = UMPC

    def run(self, line: str, answer: str) -> str:
        words, _, output = line.removeprefix("umpc ").partition(" > ")
        ended = subprocess.run(
            self.inside(*self.command, *shlex.split(words)),
            cwd=self.folder,
            input=answer,
            capture_output=True,
            text=True,
        )
        assert ended.returncode == 0, (line, ended.stdout, ended.stderr)
        if output:
            (self.folder / output).write_text(ended.stdout)
        return ended.stdout + ended.stderr

    def starts(self, *arguments: str) -> str:
        self.process = subprocess.Popen(
            self.inside(*self.command, *arguments, "--while-stdin-open"),
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(self.folder / "log").open("wb"),
        )
        return self.process.stdout.readline().decode().split()[-1]

    def inside(self, *words: str) -> list[str]:
        return ["ip", "netns", "exec", space(self.name), *words]


@pytest.fixture
def places(tmp_path) -> Iterator[dict[str, PlaceApart]]:
    """Make the namespaces, their hosts files and the places."""
    assert shutil.which("ip"), "this test needs ip"
    names = [*SITES, *ROLES]
    everyone = [*names, "authority"]
    made = {name: PlaceApart(tmp_path, name, ROLES.get(name, "node")) for name in everyone}
    hosts = "127.0.0.1 localhost\n" + "".join(
        f"10.214.7.{number} {name}.example.org {ROLES.get(name, name)}.example.org\n"
        for number, name in enumerate(names, 10)
    )
    try:
        for name in [BRIDGE, *everyone]:
            sh("ip", "netns", "add", space(name))
            sh("ip", "netns", "exec", space(name), "ip", "link", "set", "lo", "up")
            folder = Path("/etc/netns") / space(name)
            folder.mkdir(parents=True)
            (folder / "hosts").write_text(hosts)
        within = ("ip", "netns", "exec", space(BRIDGE), "ip")
        sh(*within, "link", "add", "br0", "type", "bridge")
        sh(*within, "link", "set", "br0", "up")
        for number, name in enumerate(names, 10):
            ends = ("type", "veth", "peer", "name", "eth0", "netns", space(name))
            sh(*within, "link", "add", f"p{number}", *ends)
            sh(*within, "link", "set", f"p{number}", "master", "br0", "up")
            at = ("ip", "netns", "exec", space(name), "ip")
            sh(*at, "addr", "add", f"10.214.7.{number}/24", "dev", "eth0")
            sh(*at, "link", "set", "eth0", "up")
        yield made
    finally:
        stop([place.process for place in made.values() if place.process])
        for name in [BRIDGE, *everyone]:
            subprocess.run(["ip", "netns", "del", space(name)], check=False, capture_output=True)
            shutil.rmtree(Path("/etc/netns") / space(name), ignore_errors=True)


@pytest.mark.timeout(1800)
def test_three_sites_in_namespaces_reach_their_first_study_by_the_page_alone(places):
    reach_the_first_study(places)


@pytest.mark.timeout(3600)
def test_a_statistician_gets_a_report_from_them_by_the_wheel_of_a_release(places, wheel):
    for place in places.values():
        place.command = (str(wheel / "umpc"),)
    sites, coordinator = start_sites(places, ("north", "south")), places["coordinator"]
    page = blocks((ROOT / "docs" / "statistician.md").read_text("utf-8"))
    (file,) = (each for each in page if each.kind == "file")
    (study,) = (each for each in page if each.name == "study")
    *_, infer = (each for each in page if each.runs)
    (coordinator.folder / file.name).write_text(file.text)
    assert run(coordinator) == ApprovalPending.exit_code, "the page: run the study once"
    accept_waiting(sites)
    *_, shown = [
        "".join(coordinator.run(line.partition(" #")[0], "") for line in lines_of(block.text))
        for block in (study, infer)
    ]
    assert re.search(r"If both columns are independent, .* p = 0\.\d+ \(greater", shown), shown
    report = json.loads((coordinator.folder / "report.json").read_text())
    assert set(report["policies"]) == {"north", "south"}
    assert all("a person accepts each study" in told for told in report["policies"].values())


def reach_the_first_study(places: dict[str, PlaceApart]) -> None:
    sites, coordinator = start_sites(places, SITES), places["coordinator"]
    address = {name: f"{name}.example.org:{PORT}" for name in SITES}
    write_study(coordinator, address, f"dealer.example.org:{PORT}")

    assert run(coordinator) == ApprovalPending.exit_code
    accept_waiting(sites)
    assert run(coordinator) == 0
    check_work(sites)


def start_sites(places: dict[str, PlaceApart], names: Sequence[str]) -> list[PlaceApart]:
    """Lead the authority, these sites, the dealer and the coordinator to their first study."""
    authority, coordinator = places["authority"], places["coordinator"]
    _, shown = authority.types("authority")
    digits = re.search(r"^authority +(.*)$", shown, re.MULTILINE)[1]
    sites = [places[name] for name in names]
    for place in (*sites, places["dealer"], coordinator):
        (place.folder / "data.csv").write_text(TABLE)
        enrol(place, authority, digits, {})
    for place in sites:
        doctor, start = place.lines("start", {})
        assert "!!" not in place.run(doctor, "")
        assert place.starts(*shlex.split(start)[1:]).endswith(f":{PORT}")
    start = ("dealer", "start", "--identity", "dealer", "--listen", f"0.0.0.0:{PORT}")
    places["dealer"].starts(*start)
    return sites


@pytest.mark.timeout(1800)
def test_a_consortium_in_namespaces_behind_a_hub_that_is_a_member(places):
    """Every packet to a new connection is dropped, but for those to the hub."""
    for name in (*SITES, "dealer", "coordinator"):
        inside = ("ip", "netns", "exec", space(name), "iptables")
        sh(*inside, "-A", "INPUT", "-i", "lo", "-j", "ACCEPT")
        rule = ("-m", "conntrack", "--ctstate", "ESTABLISHED,RELATED", "-j", "ACCEPT")
        sh(*inside, "-A", "INPUT", *rule)
        sh(*inside, "-P", "INPUT", "DROP")
    join_behind_a_hub(places, {})
    assert run(places["coordinator"]) == 0


def run(coordinator: PlaceApart) -> int:
    words = coordinator.inside(*coordinator.command, "study", "run", "study.toml", "--quiet")
    return subprocess.run(words, cwd=coordinator.folder, capture_output=True).returncode
