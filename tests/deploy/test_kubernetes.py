"""deploy/kubernetes and deploy/compose: sound objects, without rights, with a ledger that stays."""

from __future__ import annotations

import copy
import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import click
import kubernetes_validate
import pytest
import yaml

import umpc
from umpc.cli import main
from umpc.node.config import load_node_config
from umpc.node.config_section import IDENTITY_FILES

ROOT = Path(umpc.__file__).parents[1]
BASE = ROOT / "deploy" / "kubernetes"
HELPERS = ("dealer", "shuffler", "hub")
KEEPERS = ("node", "authority")
"""Roles with something that must never be lost."""
ROLES = (*KEEPERS, *HELPERS, "people")
MEASURED = ("node", *HELPERS)
"""Roles with metrics and a health of their own."""
STARTS = {"authority": ("enrol", "listen"), "people": ("people", "page")}
"""The command of a role, where it is not `umpc ROLE start`."""
PORTS = {"hub": 7443, "authority": 7101, "people": 8443}
"""The port of a role, where it is not 7100."""
OUT = {"node": {53, 7100, 7443}, "hub": {53}, "authority": set(), "people": {53, 7444}}
"""The ports that a role may call; a dealer and a shuffler may call name servers and a hub."""
WRITABLE = {"node": {"ledger", "tmp"}, "authority": {"authority", "tmp"}}
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
VERSION = "1.31"
SCHEMAS = "kustomize.config.k8s.io/v1beta1"


def objects(role: str) -> dict[str, dict]:
    """Return the objects of a base by their kinds, as kustomization.yaml lists their files."""
    kustomization = yaml.safe_load((BASE / role / "kustomization.yaml").read_text())
    assert kustomization["apiVersion"] == SCHEMAS
    found = [
        each
        for file in kustomization["resources"]
        for each in yaml.safe_load_all((BASE / role / file).read_text())
    ]
    assert len({each["kind"] for each in found}) == len(found)
    return {each["kind"]: each for each in found}


def workload(role: str) -> dict:
    return objects(role)["StatefulSet" if role in KEEPERS else "Deployment"]


def image_of(role: str) -> str:
    """The image of a role; that of the page has the extra people-page."""
    return f"umpc:{umpc.__version__}" + "-people" * (role == "people")


@pytest.mark.parametrize("role", ROLES)
def test_the_objects_fit_kubernetes_own_schemas(role):
    for each in objects(role).values():
        kubernetes_validate.validate(each, VERSION, strict=True)
    wrong = copy.deepcopy(workload(role))
    wrong["spec"]["template"]["spec"]["containers"][0]["readOnly"] = True
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSION, strict=True)


@pytest.mark.parametrize("role", ROLES)
def test_the_pod_has_no_rights(role):
    pod = workload(role)["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    for container in (*pod["containers"], *pod.get("initContainers", ())):
        has_no_rights(container)
        mounts = container["volumeMounts"]
        writable = {each["name"] for each in mounts if not each.get("readOnly")}
        assert writable == WRITABLE.get(role, {"tmp"})
    assert not pod.keys() & {"hostNetwork", "hostPID", "hostIPC"}
    assert not any("hostPath" in volume for volume in pod["volumes"])
    secrets = [each["secret"]["defaultMode"] for each in pod["volumes"] if "secret" in each]
    assert secrets == [0o440] * (role != "authority"), "root's, readable for the process's group"


def has_no_rights(container: dict) -> None:
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"].keys() == {"memory"}


@pytest.mark.parametrize("role", ROLES)
def test_one_port_is_open_and_the_probes_ask_the_health_of_the_process(role):
    found = objects(role)
    pod = workload(role)["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    policy = found["NetworkPolicy"]["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    port = PORTS.get(role, 7100)
    assert policy["ingress"] == [{"ports": [{"protocol": "TCP", "port": port}]}]
    out = {each["port"] for rule in policy["egress"] for each in rule["ports"]}
    assert out == OUT.get(role, {53, 7443})
    labels = pod["metadata"]["labels"]
    assert policy["podSelector"] == workload(role)["spec"]["selector"] == {"matchLabels": labels}
    assert found["Service"]["spec"]["selector"] == labels
    assert [each["containerPort"] for each in container["ports"]] == [port]
    if role not in MEASURED:
        for probe in PROBES:
            assert container[probe]["tcpSocket"] == {"port": container["ports"][0]["name"]}
        return
    local = container["args"][container["args"].index("--metrics") + 1]
    for probe in PROBES:
        python, option, program = container[probe]["exec"]["command"]
        compile(program, probe, "exec")
        assert (python, option) == ("python", "-c") and f"http://{local}/healthz" in program
        tolerates = "HTTPError" in program
        assert tolerates == (probe != "readinessProbe"), "a new start mends no certificate"


@pytest.mark.parametrize("role", ROLES)
def test_the_container_starts_its_role(role):
    (container,) = workload(role)["spec"]["template"]["spec"]["containers"]
    parses(role, container["args"])


def parses(role: str, words: list[str]) -> None:
    """Check that these are words of the command that starts a role, with options that it has."""
    name, verb, *options = words
    assert (name, verb) == STARTS.get(role, (role, "start"))
    group = main.umpc.get_command(click.Context(main.umpc), name)
    command = group.commands[verb]
    with click.Context(command) as context:
        command.parse_args(context, list(options))
    place = context.params.get("listen") or context.params.get("address")
    assert role == "node" or place == f"0.0.0.0:{PORTS.get(role, 7100)}"


@pytest.mark.parametrize("role", KEEPERS)
def test_what_must_never_be_lost_outlives_the_pod_and_has_one_writer(role):
    spec = workload(role)["spec"]
    (claim,) = spec["volumeClaimTemplates"]
    assert claim["spec"]["accessModes"] == ["ReadWriteOncePod"] and spec["replicas"] == 1
    assert set(spec["persistentVolumeClaimRetentionPolicy"].values()) == {"Retain"}


def test_the_configuration_fits_the_places_of_the_pod(tmp_path):
    (container,) = workload("node")["spec"]["template"]["spec"]["containers"]
    text = (BASE / "node" / "node.toml").read_text()
    for mount in (each["mountPath"] for each in container["volumeMounts"] if each["name"] != "tmp"):
        text = text.replace(f'"{mount}', f'"{tmp_path}{mount}')
        (tmp_path / mount.lstrip("/")).mkdir()
    for file in IDENTITY_FILES:
        (tmp_path / "identity" / file).touch()
    (tmp_path / "table" / "data.csv").write_text("age\n1\n")
    (tmp_path / "config" / "node.toml").write_text(text)
    loaded = load_node_config(tmp_path / "config" / "node.toml")
    assert loaded.ledger.parent == tmp_path / "ledger" and loaded.policy.approval
    assert loaded.identity == tmp_path / "identity" and loaded.listen == "0.0.0.0:7100"


@pytest.mark.parametrize("role", ROLES)
def test_kustomize_builds_the_bases_where_it_is_at_hand(role):
    for each in built(BASE / role):
        if each["kind"] in ("Deployment", "StatefulSet"):
            assert containers(each)[role]["image"] == image_of(role)


def built(folder: Path) -> list[dict]:
    """The objects that kustomize makes of a folder; none where there is no kubectl."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        return []
    made = subprocess.run([kubectl, "kustomize", folder], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    found = list(yaml.safe_load_all(made.stdout))
    assert found
    return found


def containers(workload: dict) -> dict[str, dict]:
    return {each["name"]: each for each in workload["spec"]["template"]["spec"]["containers"]}


@pytest.mark.parametrize("role", MEASURED)
def test_the_component_of_metrics_puts_an_agent_beside_a_role(role, tmp_path):
    """The patches name places of the bases; kubectl, where it is at hand, makes the change."""
    (tmp_path / "kustomization.yaml").write_text(
        f"apiVersion: {SCHEMAS}\nkind: Kustomization\n"
        f"resources: [{os.path.relpath(BASE / role, tmp_path)}]\n"
        f"components: [{os.path.relpath(BASE / 'metrics', tmp_path)}]\n"
    )
    kinds = {each["kind"]: each for each in built(tmp_path)}
    patch = yaml.safe_load((BASE / "metrics" / "agent.yaml").read_text())
    pod = workload(role)["spec"]["template"]["spec"]
    for each in patch:
        assert each["path"].removeprefix("/spec/template/spec/").removesuffix("/-") in pod
    (agent,) = (each["value"] for each in patch if "image" in each["value"])
    has_no_rights(agent)
    settings = yaml.safe_load((BASE / "metrics" / "prometheus.yml").read_text())
    (scraped,) = settings["scrape_configs"]
    (own,) = (each for each in pod["containers"] if each["name"] == role)
    local = own["args"][own["args"].index("--metrics") + 1]
    assert [each["targets"] for each in scraped["static_configs"]] == [[local]]
    for each in kinds.values():
        kubernetes_validate.validate(each, VERSION, strict=True)
        if each["kind"] in ("Deployment", "StatefulSet"):
            assert containers(each).keys() == {role, "metrics"}
        if each["kind"] == "NetworkPolicy":
            out = {port["port"] for rule in each["spec"]["egress"] for port in rule["ports"]}
            assert out == OUT.get(role, {53, 7443}) | {9090}


def test_the_page_for_people_finds_its_files_and_its_packages():
    """The command of a web server's certificate names its files as `--tls` reads them."""
    pod = workload("people")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    volumes = {each["name"]: each for each in pod["volumes"]}
    mounts = {each["mountPath"]: volumes[each["name"]] for each in container["volumeMounts"]}
    words = container["args"]
    keys = mounts[words[words.index("--tls") + 1]]["secret"]["items"]
    assert [each["path"] for each in keys] == ["fullchain.pem", "privkey.pem"]
    assert words[2] == "/page/invitation.json" and "configMap" in mounts["/page"]
    (variable,) = container["env"]
    assert words[words.index("--served-by") + 1] == f"$({variable['name']})"
    file = yaml.safe_load((ROOT / "deploy" / "compose" / "roles.yml").read_text())
    (extra,) = file["services"]["people"]["build"]["args"].values()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert extra in project["optional-dependencies"]
    assert "ARG EXTRAS=\n" in (ROOT / "Dockerfile").read_text()


def test_compose_keeps_the_ledger_of_a_site_and_gives_it_no_rights():
    file = yaml.safe_load((ROOT / "deploy" / "compose" / "site.yml").read_text())
    node = file["services"]["node"]
    assert "ledger:/ledger" in node["volumes"] and file["volumes"].keys() == {"ledger"}
    assert node["read_only"] and node["cap_drop"] == ["ALL"] and not node["user"].startswith("0")
    assert node["security_opt"] == ["no-new-privileges:true"]
    assert node["image"] == f"umpc:{umpc.__version__}"
    stages = (ROOT / "Dockerfile").read_text()
    example = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    for build in (node["build"], example["x-member"]["build"]):
        assert f" AS {build['target']}\n" in stages


def test_compose_starts_every_other_role_without_rights():
    file = yaml.safe_load((ROOT / "deploy" / "compose" / "roles.yml").read_text())
    assert file["services"].keys() == set(ROLES) - {"node"}
    for role, service in file["services"].items():
        parses(role, service["command"])
        assert service["profiles"] == [role], "nothing starts unless it is named"
        assert service["read_only"] and service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["image"] == image_of(role) and service["build"]["target"] == "site"
        (volume,) = service["volumes"]
        assert volume.endswith(":ro") == (role not in KEEPERS)
        port = PORTS.get(role, 7100)
        assert service["ports"] == [f"${{PORT:-{port}}}:{port}"]
