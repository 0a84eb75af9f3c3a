"""The documents agree with the repository: their links, their paths, their lists, their width."""

from __future__ import annotations

import re
import runpy
import subprocess
from pathlib import Path

import pytest

import umpc
from umpc.counts import COUNTED
from umpc.errors import error_classes, installing
from umpc.protocols.registry import PROTOCOLS
from umpc.ustat.statistics import LIBRARY

ROOT = Path(umpc.__file__).parents[1]
WRITTEN = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "umpc_papers" / "docs").glob("*.md"),
    ROOT / "bench" / "README.md",
    ROOT / "reproduction" / "README.md",
    ROOT / "native" / "README.md",
    ROOT / "clients" / "r" / "README.md",
]
DOCUMENTS = {path.relative_to(ROOT).as_posix(): path for path in sorted(WRITTEN)}
COLUMNS = 100
README_LINES = 150
FROM_A_REGISTRY = re.compile(
    r"umpc\[|(?:pipx?|uv|conda|mamba|npm|apt|apt-get|brew) (?:install|add)\b"
    r"[^\n`;&|#]*?[ '\"]umpc\b(?![-:/])"
    r"|install\.packages\([^)]*umpc|(?:pull|FROM) umpc\b"
)
"""A name that a program would look for in a registry: pip, pipx, uv, conda, npm, apt, R, docker."""
WHEEL_FILE = re.compile(r"umpc-(\d+\.\d+\.\d+)-")

each_document = pytest.mark.parametrize("name", DOCUMENTS)


def text_of(name: str) -> str:
    return DOCUMENTS[name].read_text(encoding="utf-8")


def without_code(text: str) -> str:
    """The text without its code blocks."""
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings, as forges and the site make them."""
    headings = re.findall(r"^#+ (.*)$", without_code(path.read_text("utf-8")), re.MULTILINE)
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {line.strip().replace(" ", "-") for line in words}


@each_document
def test_prose_is_at_most_100_columns_wide(name):
    """A table's row cannot be broken, so rows may be longer."""
    lines = enumerate(text_of(name).splitlines(), start=1)
    wide = [number for number, line in lines if len(line) > COLUMNS and not line.startswith("|")]
    assert wide == [], f"{name}: lines {wide} have more than {COLUMNS} columns"


def test_readme_is_short():
    lines = [line for line in text_of("README.md").splitlines() if not line.startswith("<!-- ")]
    assert len(lines) <= README_LINES
    assert max(map(len, lines)) <= COLUMNS, "README keeps its tables' rows short, too"


@each_document
def test_every_link_leads_somewhere(name):
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(text_of(name))):
        if target.startswith(("http:", "https:")):
            continue
        file, _, anchor = target.partition("#")
        path = (DOCUMENTS[name].parent / file).resolve() if file else DOCUMENTS[name]
        assert path.exists(), f"{name} links to {target}, which does not exist"
        if anchor:
            assert "--" not in anchor, f"{name}: the site has one hyphen where forges have two"
            assert anchor in anchors(path), f"{name} links to {target}, a heading that is not there"


FOLDERS = "umpc|umpc_papers|spec|tests|bench|reproduction|docs|native|deploy"
PATH = re.compile(rf"(?<![\w./-])((?:{FOLDERS})/[\w./-]*\w/?)(?![\w*<…])")


OF_NOW = [name for name in DOCUMENTS if not name.startswith("docs/history/0")]
"""A former decision names files as they were when it was taken."""
FORMER = re.compile(r"(?:history/|\]\()\d{4}\b|\bdecision \d")


@pytest.mark.parametrize("name", OF_NOW)
def test_every_path_that_is_named_exists(name):
    missing = [path for path in PATH.findall(text_of(name)) if not (ROOT / path).exists()]
    assert missing == [], f"{name} names {missing}"


def test_the_statistics_of_the_documentation_are_the_librarys():
    row = re.compile(r"^\| `(\w+)` \| \d records? \|", re.MULTILINE)
    named = row.findall(text_of("docs/statistics.md"))
    assert sorted(named) == sorted(LIBRARY)


def test_the_statistics_of_counts_are_listed_with_their_roles():
    row = re.compile(r"^\| `(\w+)` \| ([\w\[\], ]+) \| [^|]+ \|$", re.MULTILINE)
    (table,) = re.findall(
        r"^\| `statistic` \| columns \| what.*?\n\n", text_of("docs/statistics.md"), re.S | re.M
    )
    wanted = {
        name: ", ".join((*each.roles, *(f"[{role}]" for role in each.optional)))
        for name, each in COUNTED.items()
    }
    assert dict(row.findall(table)) == {"statistic": "columns", **wanted}


def test_the_page_of_answers_names_statistics_that_exist_and_all_of_counts():
    page = text_of("docs/answers.md")
    section = page.split("## From question to statistic")[1].split("\n## ")[0]
    named = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| [^|]+ (\|[^|]+)\|", section, re.M)))
    known = {*LIBRARY, *COUNTED}
    keys = {"statistic", "strata", "weight"}
    assert set(named) - keys <= known and set(COUNTED) <= set(named)


def test_every_statistic_is_allowed_or_not_where_nodes_lie():
    """tests/ustat/test_robust.py knows which; the document must place each of them once."""
    section = text_of("docs/statistics.md").split("## If other nodes may lie")[1].split("\n## ")[0]
    firsts = re.findall(r"^\| ([^|]*) \|", section, re.MULTILINE)
    named = [name for cell in firsts for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(named) == sorted(LIBRARY)


def test_the_architecture_has_every_folder_and_every_protocol():
    page = text_of("docs/architecture.md")
    folders = {path.parent.name for path in (ROOT / "umpc").glob("*/__init__.py")}
    assert {name for name in folders if f"](../umpc/{name})" not in page} == set()
    (table,) = re.findall(r"^\| `protocol` \| folder \|\n(.*?)\n\n", page, re.DOTALL | re.MULTILINE)
    assert set(re.findall(r"`([a-z0-9-]+)`", table)) == set(PROTOCOLS)


def test_a_version_of_the_changelog_has_each_kind_of_change_once():
    for version in text_of("CHANGELOG.md").split("\n## ")[1:]:
        kinds = re.findall(r"^### (.*)$", version, re.MULTILINE)
        assert kinds and len(kinds) == len(set(kinds)), version.partition("\n")[0]


def test_every_former_decision_is_listed():
    listed = re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", text_of("docs/history/README.md"))
    assert listed == [path.name for path in sorted((ROOT / "docs" / "history").glob("0*.md"))]


def test_what_holds_today_is_told_without_history():
    """No document or code of now leads to a former decision; the log of changes may."""
    found = [name for name in OF_NOW if name != "CHANGELOG.md" and FORMER.search(text_of(name))]
    folders = [ROOT / folder for folder in FOLDERS.split("|") if folder != "tests"]
    files = [path for folder in folders for path in folder.rglob("*.py")]
    found += [str(path) for path in files if FORMER.search(path.read_text(encoding="utf-8"))]
    assert found == ["docs/history/README.md"] and FORMER.search("docs/history/0001-one-package.md")


def test_a_word_that_is_easily_mixed_up_has_one_meaning():
    """The glossary's first table has three columns; no row elsewhere explains such a word again."""
    _, first, rest = re.split(r"^## .*$", text_of("docs/glossary.md"), maxsplit=2, flags=re.M)
    words = re.findall(r"^\| (\w+) \| [^|]+ \| [^|]*\|$", first, re.MULTILINE)
    elsewhere = re.findall(r"^\| (\w+)[ ,|]", rest, re.MULTILINE)
    assert {"run", "attempt", "link", "session", "channel", "stream"} < set(words)
    assert len(words) == len(set(words)) and words[0] == "word" and words[1:]
    assert set(words[1:]) & set(elsewhere) == {"cell"}, "a cell of values is a grid's"


@pytest.mark.parametrize("name", ["architecture", "threats"])
def test_a_picture_is_the_one_that_its_source_draws(name):
    drawn = runpy.run_path(str(ROOT / "docs" / f"{name}.py"))["picture"]()
    assert drawn == (ROOT / "docs" / f"{name}.svg").read_text(encoding="utf-8")


def test_every_threat_of_the_picture_has_its_row():
    marks = runpy.run_path(str(ROOT / "docs" / "threats.py"))["THREATS"]
    assert re.findall(r"^\| (T\d+) \|", text_of("docs/threats.md"), re.MULTILINE) == list(marks)


def test_the_exit_codes_are_those_of_the_errors():
    script = runpy.run_path(str(ROOT / "docs" / "exit_codes.py"))
    page = text_of("docs/exit_codes.md")
    assert script["written"](page) == page, "run `make settings`"
    codes = {str(cls.exit_code) for cls in error_classes().values()}
    assert codes < set(re.findall(r"^\| (\d+) \|", page, re.MULTILINE))


def test_the_picture_refuses_words_that_do_not_fit():
    box = runpy.run_path(str(ROOT / "docs" / "architecture.py"))["box"]
    with pytest.raises(ValueError, match="does not fit"):
        box(0, 0, 100, 50, "white", "a title that is far too long for this box")


def test_make_help_lists_every_target():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    (targets,) = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    asked = ["make", "--no-print-directory", "help"]
    helped = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True)
    listed = {line.split()[0] for line in helped.stdout.splitlines()}
    assert listed == set(targets.split())


def test_no_text_takes_umpc_from_a_package_registry_which_has_none():
    """Extras are installed from a clone or from a wheel file (docs/releasing.md, names)."""
    kinds = ("*.md", "*.py", "*.ipynb", "*.R", "*.Rd", "*.Rmd", "*.sh", "*.yml", "*.service")
    folders = [*(each for each in FOLDERS.split("|") if each != "tests"), "clients"]
    texts = [path for each in folders for kind in kinds for path in (ROOT / each).rglob(kind)]
    texts += [*ROOT.glob("*.md"), *ROOT.glob("*.yml"), ROOT / "Dockerfile", ROOT / "Makefile"]
    read = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in texts}
    former = ("CHANGELOG.md", "docs/history/")
    of_now = {name: text for name, text in read.items() if not name.startswith(former)}
    assert [name for name, text in of_now.items() if FROM_A_REGISTRY.search(text)] == []
    versions = {each for text in of_now.values() for each in WHEEL_FILE.findall(text)}
    assert versions == {umpc.__version__}
    assert "pip install '.[sql]'" in installing("sql")


@pytest.mark.parametrize(
    "text",
    [
        "pip install 'umpc[sql]'",
        "pip install umpc",
        "pip install --upgrade umpc==0.2.0",
        "pipx install umpc",
        "uv add umpc",
        "conda install -c conda-forge umpc",
        'install.packages("umpc")',
        "docker pull umpc:0.2.0",
        "FROM umpc:0.2.0",
    ],
)
def test_a_name_in_a_registry_is_found(text):
    assert FROM_A_REGISTRY.search(text)
