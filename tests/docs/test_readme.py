"""What README.md shows is what runs: its study, its kernel, its commands."""

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

README = (Path(umpc.__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def block(language: str, words: str) -> str:
    """The one code block of a language that contains the words."""
    found = [
        body for body in re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL) if words in body
    ]
    assert len(found) == 1, f"{len(found)} blocks of {language} contain {words!r}"
    return found[0]


def test_the_study_loads_and_is_sound(tmp_path):
    (tmp_path / "study.toml").write_text(block("toml", "kendall-2026"))
    study = load_study_file(tmp_path / "study.toml").study("coordinator")
    assert study.statistic in LIBRARY and [node.name for node in study.nodes] == ["north", "south"]


def test_the_study_of_the_help_text_loads_and_is_sound(tmp_path):
    text = CliRunner().invoke(command, ["study", "--help"]).output
    lines = text[text.index("  name = ") : text.index("Options:")].splitlines()
    (tmp_path / "study.toml").write_text("\n".join(line.strip() for line in lines))
    assert load_study_file(tmp_path / "study.toml").study("coordinator").statistic in LIBRARY


def test_the_kernel_is_explained(tmp_path, monkeypatch):
    (tmp_path / "kernels.py").write_text(block("python", "close_in_age"))
    monkeypatch.chdir(tmp_path)
    (line,) = re.findall(r"`umpc (kernels explain [^`]*)`", README)
    ended = CliRunner().invoke(command, shlex.split(line))
    assert ended.exit_code == 0 and "sensitivity   120000 per edge" in ended.output, ended.output


REFUSALS = re.findall(
    r"^\| `(.*?)` \| (.*?) \|$", README[README.index("| a kernel that says") :], re.MULTILINE
)


@pytest.mark.parametrize(("body", "words"), REFUSALS)
def test_what_is_refused_is_refused_in_these_words(body, words):
    schema = Schema(
        [FieldText("age", "0", "127").schema(), FieldText("balance", "-10000", "110000").schema()]
    )
    with pytest.raises(UmpcError) as refusal:
        Kernel(trace(eval(f"lambda a, b: {body}")), schema)
    message = refusal.value.message
    for part in words.split(" … "):
        assert part in message, message
        message = message[message.index(part) :]


def test_there_are_refusals_to_show():
    assert len(REFUSALS) == 6


COMMANDS = r"umpc (?:demo|study|node|dealer|shuffler|ca|kernels)[^`\n#]*"


@pytest.mark.parametrize("line", sorted(set(re.findall(COMMANDS, README))))
def test_every_command_and_option_exists(line):
    """Commands of README, asked for help instead of being run."""
    words = [word for word in shlex.split(line.replace(">", " ").replace(":", ": "))[1:]]
    path = [
        words[0],
        *([words[1]] if words[0] != "demo" and len(words) > 1 and words[1].isalpha() else []),
    ]
    helped = CliRunner().invoke(command, [*path, "--help"])
    assert helped.exit_code == 0, helped.output
    for option in (word.rstrip(".,") for word in words if word.startswith("--")):
        assert option in helped.output, f"umpc {' '.join(path)} has no {option}"
