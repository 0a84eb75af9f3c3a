"""Nodes behind firewalls that drop every inbound connection, and a hub. `make netns-test`, as root.

Each process has a network namespace of its own, on a bridge in the hub's. iptables there lets in
only what belongs to a connection that the process itself made.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.system import conftest
from tests.system.conftest import Lab
from umpc.coordinator.client import run_study
from umpc.deployment.processes import UMPC, stop
from umpc.study.report import Report

NODES = 4
ROWS = 9
PEOPLE = [f"node-{number + 1}" for number in range(NODES)] + ["dealer", "coordinator"]
HUB = "10.213.7.1"
ALL = {"epsilon": "1e9", "noise": "distributed", "max_colluding": 0, "edges": "all"}
RULES = "[policy]\nmin_colluding = 0\n"
BUDGET = "9" + "0" * 12
KINDS = {
    "pairs": {"backend": "shared"},
    "grid": {"backend": "grid"},
    "garbled": {"backend": "garbled", "preprocessing": "none", "dealer": None},
    "grid-without-dealer": {
        "backend": "grid",
        "preprocessing": "none",
        "dealer": None,
    },
}


def sh(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


def space(name: str) -> str:
    """Return the namespace of a process. The pid keeps two runs apart."""
    return f"umpc-{os.getpid()}-{name}"


def inside(name: str, *words: str) -> None:
    sh("ip", "netns", "exec", space(name), *words)


@pytest.fixture(scope="module")
def firewalls() -> Iterator[None]:
    """Make the namespaces and their firewalls."""
    assert shutil.which("ip") and shutil.which("iptables"), "this test needs ip and iptables"
    made = ["hub", *PEOPLE]
    try:
        for name in made:
            sh("ip", "netns", "add", space(name))
            inside(name, "ip", "link", "set", "lo", "up")
        inside("hub", "ip", "link", "add", "br0", "type", "bridge")
        inside("hub", "ip", "addr", "add", f"{HUB}/24", "dev", "br0")
        inside("hub", "ip", "link", "set", "br0", "up")
        for number, name in enumerate(PEOPLE):
            _join(name, number)
        yield
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "del", space(name)], check=False, capture_output=True)


def _join(name: str, number: int) -> None:
    """Connect a namespace to the hub's bridge, and close it to the outside."""
    port = f"p{number}"
    ends = ("type", "veth", "peer", "name", "eth0", "netns", space(name))
    inside("hub", "ip", "link", "add", port, *ends)
    inside("hub", "ip", "link", "set", port, "master", "br0", "up")
    inside(name, "ip", "addr", "add", f"10.213.7.{number + 10}/24", "dev", "eth0")
    inside(name, "ip", "link", "set", "eth0", "up")
    rule = ("-m", "conntrack", "--ctstate", "ESTABLISHED,RELATED", "-j", "ACCEPT")
    inside(name, "iptables", "-A", "INPUT", "-i", "lo", "-j", "ACCEPT")
    inside(name, "iptables", "-A", "INPUT", *rule)
    inside(name, "iptables", "-P", "INPUT", "DROP")


class Apart(Lab):
    """A laboratory whose processes are in namespaces of their own."""

    def prepare(self) -> Lab:
        """Start the hub, the dealer and the nodes."""
        deployment, start = self.deployment, self.deployment.start

        def start_inside(name: str, *arguments, **how) -> None:
            deployment.popen = self.popen_in(name)
            start(name, *arguments, **how)

        deployment.start = start_inside
        self.served["hub"] = deployment.start_hub(f"{HUB}:7443")
        return self.start(BUDGET, RULES)

    def popen_in(self, name: str):
        prefix = ("ip", "netns", "exec", space(name))
        return lambda words, **rest: subprocess.Popen([*prefix, *words], **rest)

    def finish(self, **changes) -> Report:
        """Run a study with the coordinator in its own namespace."""
        words = [*UMPC, "study", "run", str(self.study_file(**changes)), "--format", "json"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = self.popen_in("coordinator")(words, **pipes, text=True)
        try:
            output, error = process.communicate(timeout=300)
        finally:
            stop([process])
        assert process.returncode == 0, error
        return Report.from_dict(json.loads(output))


def no_node_is_reachable() -> None:
    """Check that the firewalls work: a listener behind one of them cannot be dialled."""
    script = "import socket, time; s = socket.create_server(('0.0.0.0', 7100)); time.sleep(60)"
    listener = subprocess.Popen(
        ["ip", "netns", "exec", space("node-1"), sys.executable, "-c", script]
    )
    try:
        dial = "import socket; socket.create_connection(('10.213.7.10', 7100), 2)"
        for name in ("hub", "node-2"):
            words = ["ip", "netns", "exec", space(name), sys.executable, "-c", dial]
            ended = subprocess.run(words, capture_output=True, text=True)
            assert "TimeoutError" in ended.stderr
    finally:
        stop([listener])


@pytest.mark.timeout(1800)
def test_studies_through_a_hub_equal_those_over_direct_links(firewalls, tmp_path, monkeypatch):
    rows = conftest.TABLE.splitlines(keepends=True)[: ROWS + 1]
    monkeypatch.setattr(conftest, "TABLE", "".join(rows))
    no_node_is_reachable()
    found = {}
    for number, kind in enumerate((Apart, Lab)):
        folder = tmp_path / kind.__name__
        folder.mkdir()
        lab = kind(folder, NODES)
        try:
            if isinstance(lab, Apart):
                lab.prepare()
                found[number] = {name: lab.finish(**ALL | KINDS[name], name=name) for name in KINDS}
            else:
                lab.start(BUDGET, RULES)
                found[number] = {
                    name: lab.lead(run_study, **ALL | KINDS[name], name=name) for name in KINDS
                }
            listens = ["listen" in (folder / f"{name}.toml").read_text() for name in lab.names]
            assert not any(listens) if isinstance(lab, Apart) else all(listens)
        finally:
            lab.stop()
    for name in KINDS:
        through, direct = found[0][name], found[1][name]
        assert abs(through.estimate - direct.estimate) < 1e-6, name
        assert through.bytes_online_by_step == direct.bytes_online_by_step, name
        print(f"{name}: {through.estimate:.6f} through the hub, {direct.estimate:.6f} directly")
