"""A coordinator who has signed in asks the studies of its certificate, and no other."""

from __future__ import annotations

from umpc.errors import StudyError
from umpc.node.audit.reading import rows
from umpc.transport.authority import request
from umpc.transport.certificates import SignedIn
from umpc.transport.files import write_public


def test_real_nodes_answer_the_studies_in_the_certificate_and_note_who_asked(lab):
    here = lab(2).start()
    folder = here.folder / "coordinator"
    signed_in = SignedIn("sub-1", "st-mary", ("tau",))
    csr = request("coordinator", "coordinator", folder).read_bytes()
    authority = here.deployment.authority
    names = {"name": "coordinator", "role": "coordinator"}
    pem = authority.sign(csr, days=1 / 24, signed_in=signed_in, **names)
    write_public(folder / "cert.pem", pem)
    assert here.run(name="tau").code == 0
    refused = here.run(name="other")
    assert refused.code == StudyError.exit_code
    here.wait_for_log("node-1", "may ask other studies")
    trail = list(rows(here.folder / "node-1-ledger.sqlite.audit"))
    notes = [row["note"] for row in trail if row["event"] == "proposal"]
    assert notes == ["signed in as 'sub-1' of 'st-mary'"] * 2
    assert [row["name"] for row in trail if row["event"] == "charge"] == ["tau"]
    assert "'sub-1' of 'st-mary'" in trail[-1]["note"] and trail[-1]["event"] == "refusal"

    authority.issue("coordinator", "coordinator", folder)  # a certificate of the usual kind
    assert here.run(name="other").code == 0
