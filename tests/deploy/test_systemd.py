"""deploy/systemd: the units start each role as the commands ask, and give it no rights."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

import umpc
from umpc.cli import main
from umpc.errors import (
    AddressInUse,
    AuditError,
    CertificateError,
    ConfigError,
    LedgerError,
    PeerLost,
)

FOLDER = Path(umpc.__file__).parents[1] / "deploy" / "systemd"
ROLES = ("node", "dealer", "shuffler", "hub", "enrol", "people")
"""Every command that serves others until it is stopped."""
PROGRAM = "/opt/umpc/bin/umpc"
HARDENED = {
    "User": "umpc",
    "CapabilityBoundingSet": "",
    "AmbientCapabilities": "",
    "NoNewPrivileges": "yes",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "PrivateTmp": "yes",
    "PrivateDevices": "yes",
    "RestrictNamespaces": "yes",
    "UMask": "0077",
    "LimitCORE": "0",
}


def path_of(role: str) -> Path:
    return FOLDER / f"umpc-{role}@.service"


def settings(role: str) -> dict[str, list[str]]:
    """Each key of the unit, with its values in their order."""
    found: dict[str, list[str]] = {}
    for line in path_of(role).read_text(encoding="utf-8").splitlines():
        if line and line[0] not in "#[":
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def group_of(name: str) -> click.Command:
    """The command `umpc NAME`."""
    found = main.umpc.get_command(click.Context(main.umpc), name)
    assert found is not None
    return found


def test_every_command_that_listens_has_a_unit():
    """A server of umpc has the option --listen, or a file that has it as the node's."""
    listens = {"node"}
    for group in main.umpc.list_commands(click.Context(main.umpc)):
        for each in getattr(group_of(group), "commands", {}).values():
            options = {name for parameter in each.params for name in parameter.opts}
            listens |= {group} if "--listen" in options and each.name != "join" else set()
    assert listens == set(ROLES) == {path.name[5:-9] for path in FOLDER.glob("*.service")}


@pytest.mark.parametrize("role", ROLES)
def test_a_unit_starts_its_role_without_rights(role):
    unit = settings(role)
    assert {key: unit.get(key) for key in HARDENED} == {k: [v] for k, v in HARDENED.items()}
    assert unit["StateDirectory"] == ["umpc/%i"], "the only folder that it may write to"
    program, group, verb, *options = shlex.split(unit["ExecStart"][0])
    assert (program, group) == (PROGRAM, role)
    command = group_of(group).commands[verb]
    with click.Context(command) as context:
        known = {each for parameter in command.params for each in parameter.opts}
        command.parse_args(context, list(options))
    assert {each for each in options if each.startswith("--")} <= known


def test_a_failure_that_needs_a_person_is_not_tried_again():
    for role in ROLES:
        (codes,) = settings(role)["RestartPreventExitStatus"]
        never = {int(code) for code in codes.split()}
        errors = [ConfigError, CertificateError]
        errors += [LedgerError] if role != "enrol" else []
        errors += [AuditError] if role == "node" else []
        assert never == {error.exit_code for error in errors}
        assert never.isdisjoint({AddressInUse.exit_code, PeerLost.exit_code})


def test_systemd_accepts_the_units_where_it_is_at_hand(tmp_path):
    """The program is another one here, because systemd asks whether it is there."""
    analyze = shutil.which("systemd-analyze")
    units = []
    for role in ROLES:
        text = path_of(role).read_text(encoding="utf-8")
        assert text.count(PROGRAM) == 1
        unit = tmp_path / path_of(role).name.replace("@", "@one")
        unit.write_text(text.replace(PROGRAM, sys.executable), encoding="utf-8")
        units.append(str(unit))
    if analyze:
        told = subprocess.run([analyze, "verify", *units], capture_output=True, text=True)
        wrong = [line for line in told.stderr.splitlines() if "umpc" in line]
        assert (told.returncode, wrong) == (0, []), told.stderr
