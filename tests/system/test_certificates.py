"""Revocation and renewal among real processes: nobody is restarted, and the culprit is named."""

from __future__ import annotations

import asyncio
import shutil

import pytest
from cryptography import x509

from tests.system.conftest import Lab, command
from umpc import errors as e
from umpc.transport.addresses import shown_certificate

ALL = ("coordinator", "dealer", "node-1", "node-2", "node-3")


@pytest.fixture
def running(lab) -> Lab:
    return lab(3).start()


def revoke(here: Lab, name: str, *holders: str) -> None:
    """Revoke all certificates of a name, and give the list to some processes."""
    authority = str(here.folder / "authority")
    done = command("ca", "revoke", "--authority", authority, name, check=True)
    assert f"'{name}'" in done.stdout
    for holder in holders:
        shutil.copy(here.folder / "authority/crl.pem", here.folder / holder / "crl.pem")


def renew(here: Lab, name: str, role: str = "node") -> None:
    """A site makes a new key and gets a certificate for it, as docs/certificates.md says."""
    new = here.folder / f"new-{name}"
    authority = str(here.folder / "authority")
    command("ca", "request", "--name", name, "--role", role, str(new), check=True)
    signed = ("--out", str(new / "cert.pem"))
    command("ca", "sign", "--authority", authority, str(new / "request.csr"), *signed, check=True)
    for file in ("key.pem", "cert.pem"):
        shutil.copy(new / file, here.folder / name / file)


def shown(here: Lab, name: str) -> x509.Certificate:
    der = asyncio.run(shown_certificate(here.served[name].address, 5))
    return x509.load_der_x509_certificate(der)


def test_a_node_is_revoked_and_renewed_while_everything_runs(running):
    assert running.run(name="before", epsilon="1/100").code == 0
    before = [served.process.pid for served in running.served.values()]

    revoke(running, "node-3", *(name for name in ALL if name != "node-3"))
    refused = running.run(name="revoked", epsilon="1/100")
    assert refused.code == e.CertificateError.exit_code, refused.error
    assert "the certificate of node 'node-3' was revoked" in refused.last_line
    assert "no epsilon was charged" in refused.last_line
    assert all(running.reserved_by_the_living(name) == 0 for name in running.names)

    renew(running, "node-3")
    after = running.run(name="renewed", epsilon="1/100")
    assert after.code == 0, after.error
    held = (running.folder / "node-3/cert.pem").read_bytes()
    assert shown(running, "node-3") == x509.load_pem_x509_certificate(held)
    assert "is used from now on" in running.log("node-3")
    assert [served.process.pid for served in running.served.values()] == before
    assert all(served.process.poll() is None for served in running.served.values())


@pytest.mark.parametrize("holder", ["node-1", "node-2", "dealer"])
def test_one_process_that_has_the_list_is_enough(running, holder):
    revoke(running, "node-3", holder)
    refused = running.run(name="revoked", epsilon="1/100")
    assert refused.code == e.CertificateError.exit_code, refused.error
    assert "the certificate of node 'node-3' was revoked" in refused.last_line
    assert "no epsilon was charged" in refused.last_line


def test_what_was_prepared_before_a_node_was_revoked_does_not_run_with_it(lab):
    """Behind a hub no handshake looks at the node again; node-1 alone has the list."""
    here = lab(2)
    here.served["hub"] = here.deployment.start_hub()
    here.start()
    for name in ("before", "ahead", "renewed"):
        prepared = here.run(command="prepare", name=name, epsilon="1/100")
        assert prepared.code == 0, prepared.error
    well = here.run(name="before", epsilon="1/100")
    assert well.code == 0 and well.report["prepared"], well.error
    revoke(here, "node-2", "node-1")
    refused = here.run(name="ahead", epsilon="1/100")
    assert refused.code == e.CertificateError.exit_code, refused.error
    assert "the certificate of node 'node-2' was revoked" in refused.last_line
    assert "no epsilon was charged" in refused.last_line

    renew(here, "node-2")  # the study's first run begins anew, and asks for no other certificate
    after = here.run(name="renewed", epsilon="1/100")
    assert after.code == 0 and not after.report["prepared"], after.error


def test_a_revoked_coordinator_is_refused_by_every_node(running):
    revoke(running, "coordinator", *running.names)
    refused = running.run(name="revoked", epsilon="1/100")
    assert refused.code == e.CertificateError.exit_code, refused.error
    assert "the certificate of coordinator 'coordinator' was revoked" in refused.last_line


def test_a_revoked_dealer_is_refused_before_it_hears_of_a_study(running):
    revoke(running, "dealer", "node-1")
    refused = running.run(name="revoked", epsilon="1/100")
    assert refused.code == e.CertificateError.exit_code, refused.error
    assert "the certificate of dealer 'dealer' was revoked" in refused.last_line


def test_a_check_is_red_where_one_node_cannot_reach_another(running):
    """node-1 has a list on which node-2 is revoked; the coordinator reaches both."""
    file = str(running.study_file(name="checked"))
    ended = command("study", "check", file, "--contact")
    assert ended.returncode == 0, ended.stderr
    for pair in ("node-1 to node-2", "node-1 to node-3", "node-2 to node-3", "node-3 to dealer"):
        assert f"{pair} answers, protocol" in ended.stdout
    assert "node-2 to node-1" not in ended.stdout  # the earlier node dials

    revoke(running, "node-2", "node-1")
    ended = command("study", "check", file, "--contact")
    assert ended.returncode == e.CertificateError.exit_code, ended.stdout
    assert "node-2       answers" in ended.stdout and "node-1 to node-3 answers" in ended.stdout
    assert "the certificate of node 'node-2' was revoked" in ended.stderr


def test_status_works_while_the_node_runs(running):
    assert running.run(name="before", epsilon="1/100").code == 0
    config = str(running.folder / "node-1.toml")
    well = command("node", "status", "--config", config)
    assert (well.returncode, well.stdout.splitlines()[-1]) == (0, "to do        nothing")
    assert "999/100 left of 10" in well.stdout and "days left" in well.stdout
    revoke(running, "node-1", "node-1")
    ill = command("node", "status", "--config", config)
    assert ill.returncode == 1
    assert "is revoked" in ill.stdout.splitlines()[-1]
