"""Figures on a paper's own data, here on made-up files of the same shape."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from reproduction.figures import __main__ as command
from reproduction.figures import given
from reproduction.figures.catalogue import chosen
from reproduction.figures.paper001 import auc, classifier, figure_3, kendall, ratings
from reproduction.figures.paper001.classifier import diabetes
from reproduction.figures.paper001.scores import load
from reproduction.figures.paper003 import data


@pytest.fixture
def nothing_given(monkeypatch):
    for name in given.EXPECTED:
        monkeypatch.setenv(f"UMPC_FIGURES_DATA_{name.upper()}", "")
        monkeypatch.delenv(f"UMPC_FIGURES_DATA_{name.upper()}")
    load.cache_clear(), ratings.load.cache_clear(), auc.moments.cache_clear()
    yield
    load.cache_clear(), ratings.load.cache_clear(), auc.moments.cache_clear()


def test_without_its_file_a_figure_is_left_out_and_the_substitute_is_not(nothing_given, capsys):
    names = [figure.name for figure in filter(command.has_its_data, chosen(["001-3"]))]
    assert names == ["001-figure-3-substitute"]
    said = capsys.readouterr().out
    assert (
        "001-figure-3 is left out: it needs --data diabetes=FILE" in said and "`readmitted`" in said
    )


@pytest.mark.parametrize(
    "wrong", ["diabetes", "diabetes=", "elsewhere=x.csv", "diabetes=no such file.csv"]
)
def test_what_cannot_be_a_file_of_data_is_refused(nothing_given, wrong):
    with pytest.raises(SystemExit, match="--data"):
        given.give([wrong])
    with pytest.raises(SystemExit, match="write --data diabetes=FILE"):
        given.file_of("diabetes")


def test_a_given_table_of_hospital_stays_is_scored_and_measured(nothing_given, tmp_path):
    """Made up in the shape of Strack et al. 2014: the age decides."""
    rng, file = np.random.default_rng(1), tmp_path / "diabetes.csv"
    lines = ["encounter_id,patient_nbr,race,age,time_in_hospital,readmitted"]
    for number in range(900):
        old = rng.random() < 0.5
        readmitted = "<30" if rng.random() < (0.4 if old else 0.02) else rng.choice([">30", "NO"])
        race, age = rng.choice(["?", "A"]), 70 if old else 20
        lines.append(f"{number},{number % 500},{race},[{age}),{number % 9},{readmitted}")
    file.write_text("\n".join(lines) + "\n")
    given.give([f"diabetes={file}"])
    figure = figure_3.FIGURE
    point = figure.points(True)[0]
    assert point.series.startswith("diabetes: ") and len(given.digest_of("diabetes")) == 64
    found = figure.measure(point, bytes(32))
    assert sum(found["negatives"] + found["positives"]) == 600, "a third is for training"
    assert 0.6 < load("diabetes", 0).exact < 0.95
    assert command.has_its_data(figure)


def test_given_ratings_are_measured_and_missing_ones_left_out(nothing_given, tmp_path):
    file = tmp_path / "ratings.csv"
    rows = [f"{i},{i % 6},{(i // 6) % 6}" for i in range(72)] + ["72,-1,3", "73,,2"]
    file.write_text("\n".join(["id,rooms,cleanliness", *rows]) + "\n")
    given.give([f"tripadvisor={file}"])
    (figure, _) = chosen(["001-4"])
    point = figure.points(True)[0]
    assert point.series.startswith("TripAdvisor")
    assert figure.measure(point, bytes(32))["records"] == [72]
    assert kendall.moments(ratings.load("tripadvisor").counts).mean == pytest.approx(0)


def test_reviews_in_the_data_s_own_form_are_read_and_make_passes_both_files(
    nothing_given, tmp_path
):
    file = tmp_path / "all.dat"
    review = "<Author>{0}\n<Content>A <Rooms>9 trap\n<Overall>4\n<Rooms>{1}\n<Cleanliness>{2}\n\n"
    ratings_of = [(4, 5), (0, 3), (-1, 2), (5, -1)]
    text = "<Overall Rating>4\n\n" + "".join(
        review.format(number, *pair) for number, pair in enumerate(ratings_of)
    )
    file.write_text(text + "<Author>none\n<Rooms>3\n")
    given.give([f"tripadvisor={file}"])
    found = ratings.tripadvisor()
    assert found.columns["x"].tolist() == [4, 0] and found.columns["y"].tolist() == [5, 3]
    asked = subprocess.run(
        ["make", "-n", "figures", "DIABETES=a b.csv", "TRIPADVISOR=c.dat", "BANK=d", "HEART=e"],
        cwd=Path(given.__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for told in ("diabetes=a b.csv", "tripadvisor=c.dat", "bank=d", "heart=e"):
        assert f"--data '{told}'" in asked


UCI = "63.0,1.0,1.0,145.0,233.0,1.0,2.0,150.0,0.0,2.3,3.0,0.0,6.0,0\n"
HEART = "site,age,sex,trestbps,chol,num\na,63,1,145,233,0\nb,,1,130,,2\nb,57,0,120,0,3\n"


def test_both_forms_of_the_heart_data_are_one_table(nothing_given, tmp_path):
    lines = UCI + "60,1,4,130,?,0,1,140,1,1.5,3,?,?,2\n57,0,4,120,0,?,0,1,1,1,?,?,?,3\n"
    for name, text in (("heart.data", lines), ("heart.csv", HEART)):
        file = tmp_path / name
        file.write_text(text)
        given.give([f"heart={file}"])
        table, source = given.heart_table(["trestbps", "chol", "num"])
        assert table.rows == [("145", "233", "0"), ("120", "0", "3")] and source == "Heart data"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(SystemExit, match=r"processed\.cleveland\.data"):
        given.heart_table(["num"])


def test_a_given_bank_table_is_read_by_every_figure_of_it(nothing_given, tmp_path):
    file = tmp_path / "bank.csv"
    rows = [f"{20 + i};{'abc'[i % 3]};{'yes' if i % 5 else 'no'};{i * 100}" for i in range(60)]
    file.write_text("\n".join(["age;job;y;balance", *rows]) + "\n")
    given.give([f"bank={file}"])
    assert not given.is_made_up("bank") and not given.is_published("bank")
    assert ratings.bank().records == data.bank(60).records == data.jobs(60).records == 60
    assert data.bank(60).columns["balance"].max() == 5900
    assert sum(classifier.bank().sizes) == 40, "a third is for training"
    assert ratings.label_of("bank").startswith("bank data")


@pytest.mark.parametrize(
    "name, text, said",
    [
        ("diabetes", "a,b\n1,2\n", "`readmitted`"),
        ("diabetes", "a,readmitted\n1,NO\n", "`readmitted`"),
        ("tripadvisor", "rooms,value\n1,2\n", "`cleanliness`"),
        ("tripadvisor", "rooms,cleanliness\n1,6\n", "0 to 5"),
        ("tripadvisor", "rooms,cleanliness\n1,good\n", "0 to 5"),
        ("tripadvisor", "rooms,cleanliness\n-1,-1\n", "0 to 5"),
    ],
)
def test_a_file_that_holds_something_else_is_refused(nothing_given, tmp_path, name, text, said):
    file = tmp_path / "other.csv"
    file.write_text(text)
    given.give([f"{name}={file}"])
    with pytest.raises(SystemExit, match=said):
        {"diabetes": diabetes, "tripadvisor": ratings.tripadvisor}[name]()
