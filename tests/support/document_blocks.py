"""The blocks of a document that are marked to run, and how they run from an empty folder.

    <!-- has: data.csv -->      a file that the reader has: a table with age and balance
    <!-- run -->                the block after it runs in the page's folder, line by line
    <!-- run: join -->          another test types this block; docs/site.md has such ones
    <!-- file: study.toml -->   the block after it is this file
    <!-- shows -->              the last command printed these lines, in this order
    <!-- not run: needs docker -->   no test runs the block after it, for this reason

A block of `sh` has a command a line, a block of `python` runs as a whole. A comment
`# exit code 35` says how a command ends; without it, it ends with 0. `&` starts a process, which
`kill %1` ends (the first one of the page), or the end of the page. In a block that shows output,
`…` stands for any text. Ports of 127.0.0.1 become free ones. A question of a command is answered
with `y`.

Commands run in this process, except for those that serve, lead a study or start others: these are
forked from a process that has imported everything.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from click.testing import CliRunner

from tests.support.ports import reserved_port
from tests.system.forked import Forked
from umpc.cli.main import umpc
from umpc.deployment.processes import UMPC, stop
from umpc.errors import UmpcError

ROOT = Path(__file__).parents[2]
MARK = re.compile(
    r"^<!-- (?P<kind>run|file|shows|has)(?:: (?P<name>[\w.-]+))? -->\n"
    r"(?:```(?P<language>\w+)\n(?P<text>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)
NOT_RUN = re.compile(r"<!-- not run: [a-z].* -->")
LOCAL = re.compile(r"127\.0\.0\.1:(\d{4,5})")
ENDS = re.compile(r"# exit code (\d+)$")
OWN_PROCESS = {("demo",), ("study", "run"), ("study", "prepare")}
"""Commands that start processes or an event loop."""
SECONDS = 120
TABLE = "age,balance\n" + "".join(f"{(7 * i) % 50},{(13 * i) % 90 - 20.5}\n" for i in range(60))
"""The table that a reader has: 60 records."""


@dataclass(frozen=True)
class Block:
    """One marked block. Args: kind: run, file, shows or has. name: of a file, or of the block."""

    kind: str
    name: str
    language: str
    text: str

    @property
    def runs(self) -> bool:
        """Whether the block runs in the page's own order."""
        return self.kind == "run" and not self.name


def blocks(document: str) -> list[Block]:
    """Return the marked blocks of a document. Raises: ValueError for a mark without a block."""
    found = [
        Block(*(match[part] or "" for part in ("kind", "name", "language", "text")))
        for match in MARK.finditer(document)
    ]
    for each in found:
        if not each.text and each.kind != "has":
            raise ValueError(f"no block follows <!-- {each.kind} {each.name} -->")
    return found


def unmarked(document: str) -> list[int]:
    """Return the lines of blocks that no mark says how to treat, and of TOML that is none."""
    found = []
    lines = document.splitlines()
    begins = 0
    for number, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if not begins:
            begins = number + 1
            before = lines[number - 1] if number else ""
            if not (NOT_RUN.fullmatch(before) or MARK.match("\n".join(lines[number - 1 :]))):
                found.append(begins)
            continue
        if lines[begins - 1] == "```toml":
            tomllib.loads("\n".join(lines[begins:number]))
        begins = 0
    return found


class Reader:
    """A person in an empty folder who does what one page says, from its top to its end."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.printed = ""
        self._names: dict[str, object] = {}
        self._ports: dict[str, int] = {}
        self._started: list[subprocess.Popen] = []

    def reads(self, document: str) -> None:
        """Follow every marked block. Raises: AssertionError that names what the page got wrong."""
        try:
            with contextlib.chdir(self.folder):
                for block in blocks(document):
                    self._follows(block)
        finally:
            stop(self._started)

    def _follows(self, block: Block) -> None:
        if block.kind == "has":
            Path(block.name).write_text(TABLE, encoding="utf-8")
        elif block.kind == "file":
            Path(block.name).write_text(self._local(block.text), encoding="utf-8")
        elif block.kind == "shows":
            self._compares(block.text)
        elif block.runs and block.language == "python":
            self.executes(block.text)
        elif block.runs:
            self.printed = "".join(self._types(line) for line in lines_of(block.text))

    def _compares(self, text: str) -> None:
        rest = [line.strip() for line in self.printed.splitlines()]
        for expected in filter(str.strip, text.splitlines()):
            pattern = ".*".join(map(re.escape, expected.strip().split("…")))
            while rest and not re.fullmatch(pattern, rest[0]):
                rest.pop(0)
            assert rest, f"{expected!r} is not in:\n{self.printed}"

    def _local(self, text: str) -> str:
        """Return the text with a free port for every port of 127.0.0.1."""
        return LOCAL.sub(lambda match: f"127.0.0.1:{self._port(match[1])}", text)

    def _port(self, port: str) -> int:
        if port not in self._ports:
            self._ports[port] = reserved_port()
        return self._ports[port]

    def _types(self, line: str) -> str:
        """Run one command to its end, or start it. Returns: what it printed."""
        ends = ENDS.search(line)
        command = self._local(line.partition(" #")[0].strip())
        if kill := re.fullmatch(r"kill %(\d+)", command):
            stop([self._started[int(kill[1]) - 1]])
            return ""
        if not command.startswith("umpc "):
            subprocess.run(command, shell=True, check=True)
            return ""
        words = shlex.split(command)[1:]
        if words[-1] == "&":
            self._starts(words[:-1])
            return ""
        output = None
        if ">" in words:
            output = Path(words[-1])
            words = words[: words.index(">")]
        code, printed, error = self.ended(words)
        assert code == (int(ends[1]) if ends else 0), f"{line}: ended with {code}: {error}"
        if output is not None:
            output.write_text(printed, encoding="utf-8")
        return printed + error

    def _starts(self, words: list[str]) -> None:
        words, errors = (words[:-1], words[-1][2:]) if words[-1].startswith("2>") else (words, "")
        with open(errors or os.devnull, "wb") as log:
            process = self.started([*words, "--while-stdin-open"], log)
        self._started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"ready: "), (words, process.wait())

    def executes(self, text: str) -> None:
        """Run a block of Python. It finds the names of the blocks before it."""
        exec(compile(text, "page", "exec"), self._names)

    def started(self, words: list[str], log: IO[bytes]) -> subprocess.Popen:
        """Start a command of umpc that serves. Args: log: for its standard error."""
        given, pipe = [*UMPC, *_absolute(words)], subprocess.PIPE
        return Forked(given, stdin=pipe, stdout=pipe, stderr=log)

    def ended(self, words: list[str]) -> tuple[int, str, str]:
        """Run one command of umpc. Returns: its exit code and both its outputs."""
        return _ended(words)


def lines_of(text: str) -> Iterator[str]:
    """Yield the commands of a block, without comments and with continued lines joined."""
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip() and not line.startswith("#"):
            yield line


def _ended(words: list[str]) -> tuple[int, str, str]:
    """Run one command in this process, or in a forked one. Returns: as `Reader.ended`."""
    if any(tuple(words[: len(begin)]) == begin for begin in OWN_PROCESS):
        given = [*UMPC, *_absolute(words)]
        with Forked(
            given, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            try:
                printed, error = process.communicate(timeout=SECONDS)
            finally:
                stop([process])
        return process.returncode, printed.decode(), error.decode()
    ended = CliRunner().invoke(umpc, words, input="y\n")
    failure = ended.exception
    if isinstance(failure, UmpcError):
        return failure.exit_code, ended.stdout, failure.message
    if failure is not None and not isinstance(failure, SystemExit):
        raise failure
    return ended.exit_code, ended.stdout, ended.stderr


def _absolute(words: list[str]) -> list[str]:
    """Return files of this folder by their full paths: a forked process is in another folder."""
    return [
        str(Path(word).absolute()) if place > 1 and Path(word).exists() else word
        for place, word in enumerate(words)
    ]
