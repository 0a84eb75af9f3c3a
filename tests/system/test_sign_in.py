"""A coordinator who has signed in asks the studies of its certificate, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.survey import NAMES, Survey
from umpc.coordinator.studyfile import load_study_file
from umpc.errors import CertificateError, StudyError
from umpc.node.audit.reading import rows
from umpc.protocols.registry import allowed_as
from umpc.study.document import Study
from umpc.transport.authority import Authority, request
from umpc.transport.certificates import SignedIn
from umpc.transport.files import write_public


def sign_in(authority: Authority, folder: Path, *studies: Study) -> None:
    """Give the coordinator a certificate for an hour, and for these studies."""
    csr = request("coordinator", "coordinator", folder).read_bytes()
    who = SignedIn("sub-1", "st-mary", tuple(allowed_as(each).hex() for each in studies))
    names = {"name": "coordinator", "role": "coordinator"}
    write_public(folder / "cert.pem", authority.sign(csr, days=1 / 24, signed_in=who, **names))


@pytest.mark.parametrize("hub", [False, True], ids=["direct", "hub"])
def test_real_nodes_answer_the_studies_in_the_certificate_and_note_who_asked(lab, hub):
    here = lab(2)
    if hub:
        here.deployment.start_hub()
    here.start()
    authority, folder = here.deployment.authority, here.folder / "coordinator"
    listed = load_study_file(here.study_file(name="tau")).study("coordinator")
    sign_in(authority, folder, listed)
    assert here.run(name="tau").code == 0
    for others in ({"name": "other"}, {"name": "tau", "epsilon": "2"}):
        assert here.run(**others).code == StudyError.exit_code
        assert here.run(command="prepare", **others).code == StudyError.exit_code
    here.wait_for_log("node-1", "may ask other studies")
    trail = list(rows(here.folder / "node-1-ledger.sqlite.audit"))
    notes = {row["note"] for row in trail if row["event"] == "proposal"}
    who = "signed in as 'sub-1' of 'st-mary'"
    assert notes == {who, f"to be prepared ahead; {who}"}
    assert [row["name"] for row in trail if row["event"] == "charge"] == ["tau"]
    assert "'sub-1' of 'st-mary'" in trail[-1]["note"] and trail[-1]["event"] == "refusal"

    authority.issue("coordinator", "coordinator", folder)  # a certificate of the usual kind
    assert here.run(name="other").code == 0


@pytest.fixture
def survey(tmp_path: Path):
    made = Survey(tmp_path, 8)
    yield made.start()
    made.stop()


def test_a_dealer_and_aggregators_of_people_look_at_the_list_too(survey):
    study, other = survey.study(), survey.study(name="other")
    folder, authority = survey.folder / "coordinator", survey.deployment.authority
    survey.open(study)
    survey.fetch(study, survey.people)
    assert survey.send(study, survey.people) == []
    sign_in(authority, folder, other)
    for ask in (survey.open, survey.count):
        with pytest.raises(StudyError, match="may ask other studies"):
            ask(study)
    sign_in(authority, folder, study)
    counted, _ = survey.count(study)
    assert survey.run(counted).records == 8, "whoever comes, the study is the same"
    assert "opened" in survey.events(NAMES[0])


def test_a_certificate_of_another_authority_opens_nothing(lab, tmp_path):
    here = lab(2).start()
    foreign = Authority.create(tmp_path / "foreign")
    folder = here.folder / "coordinator"
    sign_in(foreign, folder, load_study_file(here.study_file()).study("coordinator"))
    assert here.run().code == CertificateError.exit_code
    foreign.write_trust(folder)
    assert here.run().code == CertificateError.exit_code
