"""deploy/kubernetes and deploy/compose: sound objects, without rights, with a ledger that stays."""

from __future__ import annotations

import copy
import shutil
import subprocess
from pathlib import Path

import click
import kubernetes_validate
import pytest
import yaml

import umpc
from umpc.cli import serve
from umpc.node.config import load_node_config
from umpc.node.config_section import IDENTITY_FILES

ROOT = Path(umpc.__file__).parents[1]
BASE = ROOT / "deploy" / "kubernetes"
ROLES = ("node", "dealer")
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
    return objects(role)["StatefulSet" if role == "node" else "Deployment"]


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
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not pod.keys() & {"hostNetwork", "hostPID", "hostIPC"}
    assert not any("hostPath" in volume for volume in pod["volumes"])
    writable = {each["name"] for each in container["volumeMounts"] if not each.get("readOnly")}
    assert writable == ({"ledger", "tmp"} if role == "node" else {"tmp"})
    (secret,) = (each["secret"] for each in pod["volumes"] if "secret" in each)
    assert secret["defaultMode"] == 0o440, "root's, readable for the process's group"
    assert container["resources"]["limits"].keys() == {"memory"}


@pytest.mark.parametrize("role", ROLES)
def test_one_port_is_open_and_the_probes_ask_the_health_of_the_process(role):
    found = objects(role)
    pod = workload(role)["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    policy = found["NetworkPolicy"]["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert policy["ingress"] == [{"ports": [{"protocol": "TCP", "port": 7100}]}]
    out = {each["port"] for rule in policy["egress"] for each in rule["ports"]}
    assert out == ({53, 7100, 7443} if role == "node" else {53, 7443})
    labels = pod["metadata"]["labels"]
    assert policy["podSelector"] == workload(role)["spec"]["selector"] == {"matchLabels": labels}
    assert found["Service"]["spec"]["selector"] == labels
    assert [each["containerPort"] for each in container["ports"]] == [7100]
    local = container["args"][container["args"].index("--metrics") + 1]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        python, option, program = container[probe]["exec"]["command"]
        compile(program, probe, "exec")
        assert (python, option) == ("python", "-c") and f"http://{local}/healthz" in program
        tolerates = "HTTPError" in program
        assert tolerates == (probe != "readinessProbe"), "a new start mends no certificate"


@pytest.mark.parametrize("role", ROLES)
def test_the_container_starts_its_role(role):
    (container,) = workload(role)["spec"]["template"]["spec"]["containers"]
    group, start, *options = container["args"]
    assert (group, start) == (role, "start")
    command = getattr(serve, role).commands["start"]
    with click.Context(command) as context:
        command.parse_args(context, options)


def test_the_ledger_outlives_the_pod_and_has_one_writer():
    spec = workload("node")["spec"]
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


def test_kustomize_builds_the_bases_where_it_is_at_hand():
    kubectl = shutil.which("kubectl")
    for role in ROLES if kubectl else ():
        built = subprocess.run([kubectl, "kustomize", BASE / role], capture_output=True, text=True)
        assert built.returncode == 0, built.stderr
        kinds = [each["kind"] for each in yaml.safe_load_all(built.stdout)]
        assert set(kinds) >= objects(role).keys()
        assert f"image: umpc:{umpc.__version__}" in built.stdout


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
