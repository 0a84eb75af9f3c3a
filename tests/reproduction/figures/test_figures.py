"""reproduction.figures: a figure's way from its points to its files; nothing is measured twice."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from reproduction.figures import __main__ as command
from reproduction.figures import given
from reproduction.figures.catalogue import all_figures, chosen
from reproduction.figures.drawing import tick_label, titled
from reproduction.figures.draws import bits_of, seed_of
from reproduction.figures.figure import Agreement, Figure, Point, Row, row_at, series_of
from reproduction.figures.files import COLUMNS, write_agreement
from reproduction.figures.paper003 import figure_1
from reproduction.figures.store import Store, key_of
from reproduction.figures.sweep import sweep
from reproduction.figures.version import CODE, ROOT, code_version

IMPORTED = re.compile(r"^from ((?:bench|reproduction|umpc|umpc_papers)[.\w]*) import", re.MULTILINE)


class Counted:
    """A tiny figure of two series at two places, two batches each; it counts what it measures.

    fails_after: batches, from then on the run is interrupted. data: the table's name.
    """

    def __init__(self, fails_after: int = 1000, data: str = ""):
        self.data = data
        self.calls: list[tuple[str, float]] = []
        self.seeds: set[bytes] = set()
        self.fails_after = fails_after

    def measure(self, point: Point, seed: bytes):
        if len(self.calls) == self.fails_after:
            raise KeyboardInterrupt
        self.calls.append((point.series, point.x))
        self.seeds.add(seed)
        return {"squared_error": [point.x, point.x + 2], "bytes": 7 * point.x}

    @property
    def figure(self) -> Figure:
        return Figure(
            name="000-figure-1",
            title="tiny",
            quantity="squared_error",
            claim="one | two",
            points=lambda quick: [
                Point(name, x, 2, {"runs": 2}) for name in ("one", "two") for x in (1.0, 10.0)
            ],
            measure=self.measure,
            predict=lambda point: point.x + 1 if point.series == "one" else None,
            agreement=self.agreement,
            data=self.data,
            draw=lambda rows, path, note: path.write_bytes(b"drawn" + note.encode()),
        )

    def agreement(self, rows: Sequence[Row]) -> Agreement:
        return Agreement("agrees", f"{row_at(rows, 'one', 10.0).means['squared_error']:.1f}")


def store_at(folder: Path, version: str = "one", **kind) -> Store:
    return Store(folder / "lines.jsonl", version, **kind)


def test_rows_are_means_over_all_batches_beside_theory(tmp_path):
    counted = Counted()
    row = row_at(sweep(counted.figure, store_at(tmp_path), jobs=1), "one", 10.0)
    assert (row.means, row.runs, row.predicted) == ({"squared_error": 11, "bytes": 70}, 4, 11)
    assert row.errors == {"squared_error": pytest.approx((4 / 3) ** 0.5 / 2), "bytes": 0}
    assert row_at(sweep(counted.figure, store_at(tmp_path), jobs=1), "two", 1.0).predicted is None


def test_a_second_run_measures_nothing(tmp_path):
    counted = Counted()
    first = sweep(counted.figure, store_at(tmp_path), jobs=1)
    assert len(counted.calls) == 8 == len(counted.seeds), "every batch has a seed of its own"
    assert sweep(counted.figure, store_at(tmp_path), jobs=1) == first
    assert len(counted.calls) == 8


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    stopped, counted = Counted(fails_after=3), Counted()
    with pytest.raises(KeyboardInterrupt):
        sweep(stopped.figure, store_at(tmp_path), jobs=1)
    with (tmp_path / "lines.jsonl").open("a") as file:
        file.write('{"key": "torn')
    rows = sweep(counted.figure, store_at(tmp_path), jobs=1)
    assert len(stopped.calls) + len(counted.calls) == 8 and not set(stopped.seeds) & set(
        counted.seeds
    )
    again = Counted()
    assert sweep(again.figure, store_at(tmp_path), jobs=1) == rows and not again.calls, (
        "the torn line spoils no other"
    )


def test_a_stored_batch_and_its_seed_are_known_by_the_same_text_as_ever():
    """Neither depends on where the code lies, so a figure is drawn again from earlier batches."""
    text = key_of("000-figure-1", Point("two", 10.0, 2, {"runs": 2}), 1)
    assert text == '["000-figure-1", "two", 10.0, {"runs": 2}, 1]'
    assert seed_of(text).hex() == "002c0f4e9c1e9330edb769c79364c9e88b16f659af7ce7e1e4bf7f49b2fae03f"


def test_what_other_code_measured_does_not_count_unless_asked_for(tmp_path):
    for version, kind, measured in (
        ("one", {}, 8),
        ("two", {}, 8),
        ("three", {"any_version": True}, 0),
    ):
        counted = Counted()
        sweep(counted.figure, store_at(tmp_path, version, **kind), jobs=1)
        assert len(counted.calls) == measured, version


def test_workers_measure_the_same_as_this_process(tmp_path):
    """Batches depend on their seeds alone, not on who measures them, nor on the order."""
    facts = {"protocol": "umpc", "data": "uniform", "n": 30, "t": 4, "epsilon": "1", "runs": 2}
    points = [Point("Umpc", n, 2, facts | {"n": n}) for n in (20, 30)]
    figure = dataclasses.replace(figure_1.FIGURE, points=lambda quick: points)
    here, there = (sweep(figure, store_at(tmp_path / str(jobs)), jobs=jobs) for jobs in (1, 2))
    assert here == there


def test_the_files_of_a_figure(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "ROOT", tmp_path)
    counted = Counted()
    for _ in range(2):
        command.make(counted.figure, quick=False, redraw=False, jobs=1)
    pictures = tmp_path / "reproduction" / "pictures"
    with (pictures / "000-figure-1.csv").open() as file:
        header, *lines = csv.reader(file)
    assert header == [*COLUMNS, "bytes"]
    assert lines[1] == ["one", "10", "11", "0.57735", "4", "11", "70"] and lines[2][5] == ""
    told = (pictures / "agreement.md").read_text().splitlines()
    assert told[-1] == "| 000-figure-1 | one ¦ two | agrees | 11.0 |" and len(told) == 7
    other = dataclasses.replace(counted.figure, name="000-figure-0")
    command.make(other, quick=False, redraw=False, jobs=1)
    told = (pictures / "agreement.md").read_text().splitlines()
    assert [line.split(" | ")[0] for line in told[-2:]] == ["| 000-figure-0", "| 000-figure-1"]
    versions = json.loads((pictures / "versions.json").read_text())
    assert versions["000-figure-1"]["measured by"] == [code_version()] and set(versions) == {
        "000-figure-0",
        "000-figure-1",
    }
    assert {"python", "numpy", "umpc", "cores", "date", "seeds"} <= versions["000-figure-1"].keys()
    assert (pictures / "000-figure-1.png").read_bytes() == b"drawn"


def test_a_quick_run_writes_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "ROOT", tmp_path)
    command.make(Counted().figure, quick=True, redraw=False, jobs=1)
    assert not (tmp_path / "reproduction").exists()
    told = (tmp_path / "build" / "figures-quick" / "pictures" / "agreement.md").read_text()
    assert told.splitlines()[-1].endswith("| no verdict | a quick run: too few runs |")
    assert "agrees" not in told


def test_a_run_of_some_figures_keeps_the_lines_of_all_others(tmp_path):
    path, agrees = tmp_path / "agreement.md", Agreement("agrees", "so")
    names = ("002-gain", "003-table-2", "001-figure-3-substitute", "003-figure-1")
    for name in (*names, "003-figure-1"):
        write_agreement(dataclasses.replace(Counted().figure, name=name), agrees, path)
    told = [line.split(" | ")[0] for line in path.read_text().splitlines()[-4:]]
    assert told == [f"| {name}" for name in sorted(names)]


# --- tables ---

BANK = "age;job;marital;y;balance\n30;a;b;no;-5\n40;c;d;yes;900\n"


@pytest.fixture
def no_table(tmp_path, monkeypatch):
    """No table beside the project, and none given."""
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(given, "BESIDE", {})
    for name in given.EXPECTED:
        monkeypatch.setenv(f"UMPC_FIGURES_DATA_{name.upper()}", "")
    return tmp_path


def table_of(folder: Path, text: str = BANK) -> Path:
    file = folder / "table.csv"
    file.write_text(text)
    return file


def lines_of(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_a_made_up_table_is_named_everywhere_and_never_in_the_folder_of_the_papers(no_table):
    command.make(Counted(data="bank").figure, quick=False, redraw=False, jobs=1)
    assert not (no_table / "reproduction").exists()
    pictures = no_table / "build" / "figures" / "pictures"
    note = "made-up table in place of the bank data"
    assert (pictures / "000-figure-1.png").read_text() == f"drawn{note}"
    header, *rows = lines_of(pictures / "000-figure-1.csv")
    assert header[-1] == "table" and {row[-1] for row in rows} == {note}
    told = (pictures / "agreement.md").read_text().splitlines()[-1]
    assert f"| made-up table, no verdict | {note}. 11.0 |" in told
    assert json.loads((pictures / "versions.json").read_text())["000-figure-1"]["table"] == note


def test_points_of_another_table_are_never_taken_up(no_table):
    def measured() -> int:
        counted = Counted(data="bank")
        command.make(counted.figure, quick=False, redraw=False, jobs=1)
        return len(counted.calls)

    assert (measured(), measured()) == (8, 0), "made up"
    for text in (BANK, BANK + "50;e;f;no;7\n"):
        given.give([f"bank={table_of(no_table, text)}"])
        assert (measured(), measured()) == (8, 0)
    with pytest.raises(SystemExit, match="a worker has another table of the bank data"):
        sweep(Counted(data="bank").figure, store_at(no_table, data="of another process"), jobs=1)


def test_only_a_table_of_the_published_digest_is_drawn_for_the_papers(no_table, monkeypatch):
    file = table_of(no_table)
    given.give([f"bank={file}"])
    digest = hashlib.sha256(BANK.encode()).hexdigest()
    for known, folder in (((), "build/figures/pictures"), ((digest,), "reproduction/pictures")):
        monkeypatch.setattr(given, "PUBLISHED", {"bank": known})
        command.make(Counted(data="bank").figure, quick=False, redraw=False, jobs=1)
        assert (no_table / "reproduction").exists() == bool(known)
        told = (no_table / folder / "agreement.md").read_text().splitlines()[-1]
        assert (digest[:16] in told) == (not known) and " | agrees | " in told
        versions = json.loads((no_table / folder / "versions.json").read_text())
        assert versions["000-figure-1"]["sha256"] == digest


def test_the_title_of_a_picture_begins_with_what_its_table_is():
    assert titled("made-up table", "bank data") == "made-up table\nbank data"
    assert titled("", "bank data") == "bank data"


def test_every_figure_of_a_table_names_it():
    """Its points' facts, or its place among the figures, tell which table it reads."""
    for figure in all_figures().values():
        facts = [point.facts.get("data", "") for point in figure.points(True)]
        read = {"jobs": "bank", "diagnosis": "heart"}.get(facts[0], facts[0])
        assert figure.data == (read if read in given.EXPECTED else figure.data), figure.name
    named = {name for name, figure in all_figures().items() if figure.data == "bank"}
    assert {"003-table-2", "plan-figure-1", "003-figure-4", "001-figure-3-substitute"} <= named


def test_figures_are_chosen_by_name_short_name_or_paper():
    figures = all_figures()
    assert [figure.name for figure in chosen(["003-1"])] == ["003-figure-1"]
    assert [figure.name for figure in chosen(["003-table-2"])] == ["003-table-2"]
    assert [f.name for f in chosen(["003"])] == [
        name for name in figures if name.startswith("003-")
    ]
    assert [figure.name for figure in chosen([])] == list(figures)
    with pytest.raises(SystemExit, match="there is no figure 003-9"):
        chosen(["003-9"])


def test_rows_are_in_order_within_their_series():
    rows = [
        Row(Point(name, x, 1, {}), {}, {}, 1, None)
        for name, x in (("b", 2.0), ("a", 1.0), ("b", 1.0))
    ]
    assert [(name, [row.x for row in own]) for name, own in series_of(rows).items()] == [
        ("b", [1, 2]),
        ("a", [1]),
    ]


def test_bits_are_of_the_number_asked_for_and_can_be_drawn_again():
    first, second, other = (bits_of(seed_of(key), "noise") for key in ("one", "one", "two"))
    drawn = [first(3) for _ in range(200)]
    assert drawn == [second(3) for _ in range(200)] and set(drawn) == set(range(8))
    assert drawn != [other(3) for _ in range(200)] and first(64) >> 64 == 0


def test_small_places_of_an_axis_are_not_labelled_0():
    places = (0.05, 0.1, 0.5, 1.0, 1.5, 20.0, 1000.0, 99_999.0, 100_000.0)
    assert [tick_label(place) for place in places] == [
        *("0.05", "0.1", "0.5", "1", "1.5", "20", "1,000", "99,999", "1.0e+05")
    ]


def test_only_drawing_and_the_command_need_matplotlib():
    folder = Path(command.__file__).parent
    users = [
        path.name
        for path in folder.rglob("*.py")
        if "matplotlib" in path.read_text(encoding="utf-8")
    ]
    assert sorted(users) == ["__init__.py", "__main__.py", "drawing.py"]


def test_every_program_that_a_figure_imports_is_part_of_the_code_that_measured():
    """A change in it makes a stored point one of other code."""
    files = subprocess.run(
        ["git", "ls-files", "--", *CODE], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    stems = (file.removesuffix(".py").removesuffix("/__init__") for file in files)
    modules = {stem.replace("/", ".") for stem in stems}
    texts = [
        path.read_text(encoding="utf-8") for path in (ROOT / "reproduction/figures").rglob("*.py")
    ]
    imported = {name for text in texts for name in IMPORTED.findall(text)}
    packages = {name.partition(".")[0] for name in imported}
    assert {"umpc_papers", "bench", "reproduction", "umpc"} <= packages
    assert imported <= modules
