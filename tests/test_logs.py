"""umpc.logs: each line says when, how grave, which process, which study and step; no data."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from umpc import logs
from umpc.cli.main import umpc
from umpc.errors import UmpcError

HEAD = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (INFO|WARNING|ERROR) node north "
STUDY = bytes.fromhex("3f2a9c0d1e2b4f56") + bytes(24)


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """The stream of the log; pytest's own handlers are put back afterwards."""
    root, own, other = (logging.getLogger(name) for name in (None, "umpc", "asyncio"))
    before = root.handlers[:], [each.level for each in (root, own, other)]
    root.handlers[:] = []
    yield io.StringIO()
    root.handlers[:] = before[0]
    for each, level in zip((root, own, other), before[1], strict=True):
        each.setLevel(level)


def written(stream: io.StringIO) -> list[str]:
    return stream.getvalue().splitlines()


def fails(text: str) -> None:
    raise ValueError(text)


def test_each_line_has_date_level_process_study_and_step(lines):
    logs.start_logging("node north", stream=lines)
    log = logging.getLogger("umpc.node")
    steps = iter(("propose", "release"))

    async def run() -> None:
        with logs.about(lambda: (STUDY.hex()[:16], next(steps))):
            log.info("study %s accepted: %d records", "'tau'", 60)
            await asyncio.to_thread(log.warning, "the share leaves")
        log.info("after it")

    asyncio.run(run())
    log.info("dealt", extra=logs.belongs(STUDY, "prepare"))
    place = "study=3f2a9c0d1e2b4f56 step="
    expected = (
        f"{place}propose: study 'tau' accepted: 60 records",
        f"{place}release: the share leaves",
        "study=- step=-: after it",
        f"{place}prepare: dealt",
    )
    found = written(lines)
    assert len(found) == len(expected)
    for line, end in zip(found, expected, strict=True):
        assert re.fullmatch(HEAD + re.escape(end), line), line


def test_json_lines_have_the_same_facts_and_stay_lines(lines):
    logs.start_logging("node north", style="json", stream=lines)
    with logs.about(lambda: ("3f2a", "")):
        logging.getLogger("umpc.node").warning("a name\nof two lines \x1b[31m %s", "é")
    entry = json.loads(lines.getvalue())
    assert len(written(lines)) == 1
    assert re.fullmatch(r"[0-9-]{10}T[0-9:.]{12}Z", entry.pop("at"))
    assert entry == {
        "level": "WARNING",
        "process": "node north",
        "study": "3f2a",
        "step": None,
        "message": "a name of two lines  [31m é",
    }


@pytest.mark.parametrize("style", logs.FORMATS)
def test_a_fault_shows_its_place_and_never_a_value(lines, style):
    logs.start_logging("node north", style=style, stream=lines)
    log = logging.getLogger("umpc.node")
    try:
        fails("could not convert '53.2' to float")
    except ValueError:
        log.exception("an error of umpc's own")
        logging.getLogger("grpc._cython.cygrpc").exception("Unexpected\nTraceback: 53.2")
    log.error("a failure", exc_info=UmpcError("a clear line"))
    text = lines.getvalue()
    assert len(written(lines)) == 3 and "53.2" not in text and "Traceback" not in text
    own, other, clear = written(lines)
    assert "ValueError" in own and "test_logs.py" in own and "fails" in own
    assert "grpc._cython.cygrpc: Unexpected" in other and "test_logs" not in other
    assert "UmpcError: a clear line" in clear


def test_levels_count_for_umpc_and_others_write_from_warnings_on(lines):
    for level, expected in (("debug", 4), ("info", 3), ("warning", 2), ("error", 0)):
        lines.seek(0)
        lines.truncate()
        logs.start_logging("node north", level, stream=lines)
        for say in ("debug", "info", "warning"):
            getattr(logging.getLogger("umpc.node"), say)(say)
        logging.getLogger("duckdb").info("never")
        logging.getLogger("duckdb").warning("always")
        assert len(written(lines)) == expected + (level == "error"), level


def test_a_long_message_is_cut(lines):
    logs.start_logging("node north", stream=lines)
    logging.getLogger("umpc.node").info("x" * 10 * logs.MOST_CHARACTERS)
    assert len(lines.getvalue()) < logs.MOST_CHARACTERS + 100


def test_the_servers_take_level_and_format_also_from_the_environment():
    run = CliRunner().invoke
    for process in ("node", "dealer", "shuffler"):
        told = run(umpc, [process, "start", "--help"]).output
        assert "--log-level" in told and "UMPC_LOG_FORMAT" in told
    wrong = run(umpc, ["dealer", "start", "--identity", "x"], env={"UMPC_LOG_LEVEL": "loud"})
    assert wrong.exit_code != 0 and "loud" in wrong.output


def test_every_log_of_both_packages_is_below_umpc():
    """Whatever is outside counts as another library's, of which only warnings are written."""
    named = re.compile(r"^log = logging\.getLogger\((.*)\)$", re.MULTILINE)
    root = Path(logs.__file__).parents[1]
    names = [
        name
        for package in ("umpc", "umpc_papers")
        for path in (root / package).rglob("*.py")
        for name in named.findall(path.read_text(encoding="utf-8"))
    ]
    assert len(names) > 20
    assert [name for name in names if not name.startswith('"umpc.')] == []
