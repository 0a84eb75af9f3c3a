"""One study over an OMOP database and an export of a FHIR server, as docs/omop.md and docs/fhir.md
make the two tables: with other names of columns, another word for persons, and words for numbers.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib

from tests.support.document_blocks import ROOT, Reader
from tests.support.ports import reserved_address
from tests.system.forked import Forked
from umpc.coordinator.studyfile_text import write_study_file
from umpc.deployment.processes import UMPC, Deployment, ended_with_us

PAGES = {"north": "docs/omop.md", "south": "docs/fhir.md"}


def test_two_sites_of_different_kinds_are_in_one_study(tmp_path):
    deployment = Deployment(tmp_path, popen=Forked, address=reserved_address)
    with ended_with_us(deployment.processes):
        deployment.start_dealer()
        for name, page in PAGES.items():
            site = tmp_path / name
            site.mkdir()
            Reader(site).reads((ROOT / page).read_text(encoding="utf-8"))
            shutil.rmtree(site / "site", ignore_errors=True)
            deployment.authority.issue(name, "node", site / "site")
            deployment.start(name, ["node", "start", "--config", str(site / "node.toml")])
        served = deployment.wait_until_ready()
        entries = tomllib.loads((tmp_path / "north" / "study.toml").read_text())
        for each in (*entries["nodes"], entries["dealer"]):
            each["address"] = served[each["name"]].address
        study = str(write_study_file(tmp_path, entries))
        run = [*UMPC, "study", "run", study, "--format", "json"]
        ended = subprocess.run(run, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout)
    assert report["records_by_node"] == [60, 60] and report["statistic"] == "kendall_tau_label"
