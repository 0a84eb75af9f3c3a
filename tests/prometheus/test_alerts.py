"""The tests in this folder need Debian's package prometheus: `make test-alerts`, never `make test`.

`promtool` says when each alert fires. Then Prometheus itself reads a process as in a pod: an agent
beside it reads the loopback port and sends what it reads to the site's own Prometheus, whose rules
raise an alert.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import yaml

import umpc
from tests.support.ports import reserved_port
from umpc.monitoring.metrics import Metrics, monitored
from umpc.transport.authority import Authority
from umpc.transport.identity import load_identity

ROOT = Path(umpc.__file__).parents[1]
RULES = ROOT / "deploy" / "prometheus" / "umpc.rules.yml"
AGENT = ROOT / "deploy" / "kubernetes" / "metrics"
CASES = Path(__file__).with_name("alerts.yml")
SECONDS = 120
WRONG = {
    "a certificate that ends tomorrow": ("14 * 86400", "1 * 86400"),
    "a process without a list": (
        "(umpc_revoked_list_due_seconds > 0)",
        "umpc_revoked_list_due_seconds",
    ),
    "a file that cannot be read": ("pending != 0", "pending > 0"),
    "a study that waits since a moment": ("for: 4h", "for: 1m"),
    "a tenth of the budget": ("< 0.1", "< 0.01"),
    "a process that does not answer": ('or up{job="umpc"} == 0', ""),
    "nobody scrapes": ('or absent(up{job="umpc"})', ""),
    "a new class of failure": ("[1h] offset 1h", "[5h]"),
    "a further failure": ("increase(", "0 * increase("),
    "a refusal": ("|PolicyRefused", ""),
}
"""Case → a part of a rule, and another text in its place that gets the case wrong."""


def promtool(*words: object) -> subprocess.CompletedProcess[str]:
    program = shutil.which("promtool")
    assert program, "promtool was expected; `make test-alerts` installs it"
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True)


def test_promtool_accepts_the_six_rules():
    checked = promtool("check", "rules", RULES)
    assert checked.returncode == 0 and "6 rules found" in checked.stdout, checked.stderr
    found = promtool("test", "rules", CASES)
    assert found.returncode == 0, found.stderr
    agent = promtool("check", "config", "--agent", AGENT / "prometheus.yml")
    assert agent.returncode == 0, agent.stderr


@pytest.mark.parametrize("what", WRONG)
def test_every_part_of_a_rule_has_a_case(what, tmp_path):
    part, other = WRONG[what]
    text = RULES.read_text()
    assert part in text
    (tmp_path / "rules.yml").write_text(text.replace(part, other))
    cases = yaml.safe_load(CASES.read_text()) | {"rule_files": ["rules.yml"]}
    (tmp_path / "cases.yml").write_text(yaml.safe_dump(cases))
    assert promtool("check", "rules", tmp_path / "rules.yml").returncode == 0
    found = promtool("test", "rules", tmp_path / "cases.yml")
    assert found.returncode != 0 and "FAILED" in found.stdout + found.stderr


@contextmanager
def prometheus(folder: Path, settings: dict, *options: str):
    """Run Prometheus in a folder of its own, and yield its address."""
    folder.mkdir()
    (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))
    address = f"127.0.0.1:{reserved_port()}"
    own = (f"--config.file={folder / 'prometheus.yml'}", f"--web.listen-address={address}")
    program = shutil.which("prometheus")
    assert program, "prometheus was expected; `make test-alerts` installs it"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, *own, *options], stderr=log, stdout=log, cwd=folder)
    try:
        until(lambda: _is_ready(address), lambda: (folder / "log").read_text())
        yield address
    finally:
        process.terminate()
        process.wait()


def until(reached, told) -> None:
    deadline = time.monotonic() + SECONDS
    while not reached():
        assert time.monotonic() < deadline, told()
        time.sleep(0.2)


def _is_ready(address: str) -> bool:
    try:
        return urlopen(f"http://{address}/-/ready", timeout=5).status == 200
    except (URLError, ConnectionError):
        return False


def answer(address: str, query: str) -> dict[str, str]:
    """The instances that a query finds, each with its value."""
    with urlopen(f"http://{address}/api/v1/query?{urlencode({'query': query})}", timeout=10) as got:
        found = json.load(got)["data"]["result"]
    return {each["metric"].get("instance", ""): each["value"][1] for each in found}


def test_an_agent_in_the_pod_brings_a_loopback_port_to_the_sites_prometheus(tmp_path):
    authority = Authority.create(tmp_path / "authority")
    authority.issue("north", "node", tmp_path / "north")
    metrics = Metrics(load_identity(tmp_path / "north"))
    rules = yaml.safe_load(RULES.read_text())
    for rule in rules["groups"][0]["rules"]:
        rule.pop("for", None)
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rules))
    site = {
        "global": {"evaluation_interval": "200ms"},
        "rule_files": [str(tmp_path / "rules.yml")],
    }
    faults = ["CertificateError"]
    here = ("--storage.tsdb.path=data", "--web.enable-remote-write-receiver")
    with (
        monitored("127.0.0.1:0", metrics.registry, lambda: faults[0]) as local,
        prometheus(tmp_path / "site", site, *here) as own,
    ):
        agent = yaml.safe_load((AGENT / "prometheus.yml").read_text())
        agent["global"]["scrape_interval"] = "200ms"
        agent["scrape_configs"][0]["static_configs"][0]["targets"] = [local]
        agent["remote_write"][0]["url"] = f"http://{own}/api/v1/write"
        (container,) = (
            each["value"]
            for each in yaml.safe_load((AGENT / "agent.yaml").read_text())
            if "image" in each["value"]
        )
        modes = [word for word in container["args"] if word.startswith("--enable-feature")]
        alert = 'ALERTS{alertname="UmpcUnhealthy", instance="north", alertstate="firing"}'
        with prometheus(tmp_path / "agent", agent, *modes, "--storage.agent.path=wal"):
            until(lambda: answer(own, alert) == {"north": "1"}, lambda: answer(own, "ALERTS"))
            assert answer(own, "umpc_healthy") == {"north": "0"}
            faults[0] = ""
            until(lambda: answer(own, "umpc_healthy") == {"north": "1"}, lambda: local)
            until(lambda: not answer(own, alert), lambda: answer(own, "ALERTS"))
