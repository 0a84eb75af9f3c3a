"""README and the documents show what runs: the study, the kernel, the refusals, the commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

import umpc
from umpc.cli.main import umpc as command
from umpc.coordinator.studyfile import load_study_file
from umpc.errors import UmpcError
from umpc.study.parts import FieldText
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import Schema
from umpc.ustat.statistics import LIBRARY
from umpc.ustat.tracing import trace

ROOT = Path(umpc.__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
KERNELS = (ROOT / "docs" / "kernels.md").read_text(encoding="utf-8")
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "umpc_papers" / "docs").glob("*.md")),
]


def block(document: str, language: str, words: str) -> str:
    """The one code block of a language in a document that contains the words."""
    blocks = re.findall(rf"```{language}\n(.*?)```", document, re.DOTALL)
    found = [body for body in blocks if words in body]
    assert len(found) == 1, f"{len(found)} blocks of {language} contain {words!r}"
    return found[0]


def test_the_study_loads_and_is_sound(tmp_path):
    (tmp_path / "study.toml").write_text(block(README, "toml", "kendall-2026"))
    study = load_study_file(tmp_path / "study.toml").study("coordinator")
    assert study.statistic in LIBRARY and [node.name for node in study.nodes] == ["north", "south"]


def test_the_study_of_the_help_text_loads_and_is_sound(tmp_path):
    text = CliRunner().invoke(command, ["study", "--help"]).output
    lines = text[text.index("  name = ") : text.index("Options:")].splitlines()
    (tmp_path / "study.toml").write_text("\n".join(line.strip() for line in lines))
    assert load_study_file(tmp_path / "study.toml").study("coordinator").statistic in LIBRARY


def test_the_kernel_is_explained(tmp_path, monkeypatch):
    (tmp_path / "kernels.py").write_text(block(KERNELS, "python", "close_in_age"))
    monkeypatch.chdir(tmp_path)
    (line,) = re.findall(r"^umpc (kernels explain .*)$", KERNELS, re.MULTILINE)
    ended = CliRunner().invoke(command, shlex.split(line))
    assert ended.exit_code == 0 and "sensitivity   90 per edge" in ended.output, ended.output


REFUSALS = re.findall(
    r"^\| `(.*?)` \| (.*?) \|$", KERNELS[KERNELS.index("| a kernel that says") :], re.MULTILINE
)


@pytest.mark.parametrize(("body", "words"), REFUSALS)
def test_what_is_refused_is_refused_in_these_words(body, words):
    schema = Schema(
        [
            FieldText("age", "0", "127", whole=True).schema(),
            FieldText("balance", "-10000", "110000", whole=True).schema(),
        ]
    )
    with pytest.raises(UmpcError) as refusal:
        Kernel(trace(eval(f"lambda a, b: {body}")), schema)
    message = refusal.value.message
    for part in words.split(" … "):
        assert part in message, message
        message = message[message.index(part) :]


def test_there_are_refusals_to_show():
    assert len(REFUSALS) == 6


SUBCOMMANDS = "demo|study|plan|node|approve|budget|dealer|shuffler|ca|kernels"
COMMAND = re.compile(rf"(?:^|`)\s*(umpc (?:{SUBCOMMANDS})\b[^`\n#]*)", re.MULTILINE)
LINES = sorted(
    {
        line.strip()
        for path in DOCUMENTS
        for line in COMMAND.findall(path.read_text(encoding="utf-8").replace("\\\n", " "))
    }
)


def test_there_are_commands_to_show():
    assert len(LINES) > 30


@pytest.mark.parametrize("line", LINES)
def test_every_command_and_option_exists(line):
    """Commands of the documents, asked for help instead of being run."""
    words = shlex.split(line.replace(">", " ").replace(":", ": "))[1:]
    path = [words[0]]
    if words[0] not in ("demo", "plan") and len(words) > 1 and words[1].isalpha():
        path.append(words[1])
    helped = CliRunner().invoke(command, [*path, "--help"])
    assert helped.exit_code == 0, helped.output
    for option in (word.rstrip(".,") for word in words if word.startswith("--")):
        assert option in helped.output, f"umpc {' '.join(path)} has no {option}"
