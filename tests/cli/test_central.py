"""A study with a trusted curator, as people see it: beforehand, at a site, and in its report."""

from __future__ import annotations

import asyncio
import json

import pytest
from click.testing import CliRunner

from tests.cli.test_approve import Site, digits
from tests.support.central import MECHANISMS, central_study, central_tables
from tests.support.studies import Entropy
from tests.support.studyfiles import planned_file
from umpc.cli.main import umpc
from umpc.cli.shared import print_report
from umpc.cli.study import print_prediction
from umpc.coordinator.client import prepare_study
from umpc.coordinator.studyfile import load_study_file
from umpc.errors import StudyError, TooFewRecords
from umpc.planning.prediction import attempt_over
from umpc.protocols.base.protocol import StudyProtocol
from umpc.protocols.registry import PROTOCOLS, possible_values
from umpc.reporting.page import page
from umpc.simulation import simulate
from umpc.study.document import Study
from umpc.study.report import Report
from umpc.study.settings import keys_of
from umpc_papers.central.central_mechanisms import Choice


@pytest.fixture
def file(tmp_path):
    def write(**changes):
        return planned_file(tmp_path, ("north", "south"), protocol="central", **changes)

    return write


def study_of(path) -> Study:
    return load_study_file(path).study("coordinator")


def test_a_file_needs_no_more_than_the_protocol_and_a_mechanism(file):
    study = study_of(file())
    assert (study.edges, study.noise) == ("all", "laplace")
    assert (study.backend, study.preprocessing) == ("none", "none")
    assert study_of(file(noise="hajek")).edges == "all"
    assert study_of(file(noise="hajek_subsampled")).edges == "2n"
    assert study_of(file(noise="coinpress_subsampled", edges="500")).edges == "500"


@pytest.mark.parametrize("noise", MECHANISMS)
def test_a_plan_says_rounds_bytes_and_the_noise(file, noise, capsys):
    path = file(noise=noise)
    ended = CliRunner().invoke(umpc, ["plan", str(path), "--records", "30,40", "--format", "json"])
    assert ended.exit_code == 0, ended.output
    values, study = json.loads(ended.output), study_of(path)
    assert (values["rounds"], values["bytes_offline"]) == (1, 0)
    assert values["bytes_online"] == 64 + sum(
        (bits * n + 7) // 8 for bits in (7, 11) for n in (30, 40)
    )
    if not noise.endswith("subsampled"):
        choice = Choice(noise, study.parsed_kernels[0], study.exact_epsilon)
        assert values["noise_std"] == choice.noise_std(70, choice.family(70, lambda count: 0))
    print_prediction(study, "30,40")
    said = capsys.readouterr().out
    assert "the records were uniform" not in said
    assert f"standard deviation {values['noise_std']:.4g}" in said
    sets = "140 of 2,415 pairs" if noise.endswith("subsampled") else "all 2,415 pairs"
    assert f"sets         {sets} of 70 records" in said


def test_a_plan_says_where_a_mechanism_gains_over_laplace_noise(file):
    """Kendall's tau is not degenerate, so `concentration` is a number that somebody knows."""

    def planned(**changes) -> str:
        command = ["plan", str(file(**changes)), "--records", "300,400"]
        ended = CliRunner().invoke(umpc, command)
        assert ended.exit_code == 0, ended.output
        return " ".join(ended.output.split())

    assert "against laplace" not in planned()
    assert 'noise = "hajek" does not gain here: noise = "laplace" has' in planned(noise="hajek")
    assert 'noise = "hajek" gains here' in planned(noise="hajek", concentration="0.01")
    assert "against laplace" not in planned(noise="laplace")


def test_too_few_records_are_said_beforehand(file):
    with pytest.raises(TooFewRecords, match="at least 8 records, 7 came"):
        print_prediction(study_of(file(noise="hajek_split")), "3,4")
    assert attempt_over(study_of(file()), "3,4").sizes.records == 7


def test_an_administrator_reads_first_what_would_be_shown(tmp_path):
    site, study = Site(tmp_path), central_study("hajek")
    site.ask(study)
    lines = site.said("show", digits(study))
    told = "shows x, y of all records to 'coordinator', as a trusted curator"
    assert lines[0].startswith("in short ") and "the RAW RECORDS of 'x', 'y'" in lines[0]
    assert lines[2] == f"WARNING       RAW RECORDS: {told}"
    assert "noise         hajek, added by the trusted coordinator" in lines
    assert "protocol      central" in lines


@pytest.mark.parametrize("noise", MECHANISMS)
def test_the_report_says_who_saw_what(noise, capsys):
    report = simulate(central_study(noise), central_tables(), Entropy("report")).report
    assert Report.from_dict(report.to_dict()) == report
    print_report(report, "table", {"exact": 0.5, "exact_over_edges": None})
    said = " ".join(capsys.readouterr().out.split())
    for words in (
        "the coordinator has seen all their records",
        "by the coordinator, a trusted curator",
        "predicted 1",
    ):
        assert words in said
    text = page(report)
    for words in (
        "the coordinator has seen all their records",
        "central, by the coordinator, a trusted curator",
        "added by the curator",
    ):
        assert words in text


def noises_of(protocol: StudyProtocol) -> tuple[str, ...]:
    """The values of `noise` that a study of the protocol may have."""
    described = keys_of(protocol.settings).get("noise")
    return described.extra["choices"] if described else (protocol.settings().noise,)


def test_every_mechanism_has_words():
    """The words are the protocol's own: the fallback repeats the setting."""
    shown = []
    for protocol in PROTOCOLS.values():
        for noise in noises_of(protocol):
            words = protocol.describe_noise(noise)
            assert words and repr(noise) not in words, (protocol.name, noise)
            shown.append(noise)
    assert set(MECHANISMS) <= set(shown) == set(possible_values("noise"))
    assert noises_of(PROTOCOLS["central"]) == MECHANISMS


def test_there_is_nothing_to_prepare():
    with pytest.raises(StudyError, match="'central' has nothing to prepare ahead"):
        asyncio.run(prepare_study(central_study(), None))
