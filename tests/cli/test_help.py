"""`umpc study --help` and `umpc demo --help`: each key and setting, in its protocol's own words."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from umpc.cli.demo import demo
from umpc.cli.demo_options import PARTICIPANTS, flag_of, settings_of
from umpc.cli.main import COMMANDS, umpc
from umpc.coordinator.studyfile_entries import describe_keys
from umpc.errors import StudyError
from umpc.protocols.registry import PROTOCOLS
from umpc.study.settings import keys_of
from umpc_papers.commands import SHUFFLER, TRAIN

WIDE = 10_000
"""Columns in which no line has to be broken."""
SETTINGS = [
    (protocol.name, setting) for protocol in PROTOCOLS.values() for setting in settings_of(protocol)
]
each_setting = pytest.mark.parametrize(
    ("protocol", "setting"), SETTINGS, ids=[f"{name}-{setting.key}" for name, setting in SETTINGS]
)


def helped(command: str) -> str:
    ended = CliRunner().invoke(
        umpc, [command, "--help"], terminal_width=WIDE, max_content_width=WIDE
    )
    assert ended.exit_code == 0, ended.output
    return ended.output


def settings_section(text: str, protocol: str) -> str:
    """The settings of one protocol, from a help text; protocols with the same ones share them."""
    (found,) = [
        section
        for section in text.split("\n\n")
        if section.startswith("Settings of")
        and protocol in section.partition("\n")[0].removesuffix(":").split(" of ")[1].split(", ")
    ]
    return found


@each_setting
def test_a_setting_is_described_where_it_is_declared(protocol, setting):
    described = keys_of(PROTOCOLS[protocol].settings)[setting.key]
    assert described.description and setting.text.startswith(described.description)
    assert all(choice in setting.text for choice in setting.choices)


@each_setting
def test_study_help_has_every_setting_of_every_protocol(protocol, setting):
    lines = settings_section(helped("study"), protocol).splitlines()
    assert [setting.key, setting.text] in [line.split(maxsplit=1) for line in lines[1:]]


@each_setting
def test_demo_help_has_every_setting_but_participants(protocol, setting):
    if setting.key in PARTICIPANTS:
        assert f"--{setting.key}" not in helped("demo")
        return
    lines = settings_section(helped("demo"), protocol).splitlines()
    found = {words[0]: words[2] for words in (line.split(maxsplit=2) for line in lines[1:])}
    assert found[flag_of(setting.key)] == setting.text


def test_study_help_has_every_key_of_every_study():
    text = helped("study")
    for key, description in describe_keys().items():
        assert description
        assert [key, description] in [line.split(maxsplit=1) for line in text.splitlines()]


@pytest.mark.parametrize("command", ["study", "demo"])
def test_every_protocol_has_a_line(command):
    (section,) = [part for part in helped(command).split("\n\n") if part.startswith("Protocols:")]
    lines = [line.split(maxsplit=1) for line in section.splitlines()[1:]]
    assert [name for name, _ in lines] == list(PROTOCOLS)
    assert all(words.endswith((".", ". [default]")) for _, words in lines)


def test_every_option_of_the_demo_is_shown_once():
    text = helped("demo").partition("Options:")[2] or helped("demo")
    shown = [line.split()[0] for line in text.splitlines() if line.startswith("  --")]
    settings = {each.key.replace("_", "-") for _, each in SETTINGS}
    sections = [option for option in shown if option[2:] not in settings]
    options = {option for parameter in demo.params for option in parameter.opts}
    assert options == set(shown) - {"--help"} and len(sections) == len(set(sections))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--protocol", "gopa", "--edges", "2n"), "--edges is not a setting of --protocol gopa"),
        (
            ("--protocol", "central", "--bins", "x=3"),
            "which has --noise, --edges, --concen",
        ),
        (("--noise", "hajek"), "one of distributed, in_mpc, skellam, binomial, got 'hajek'"),
    ],
)
def test_the_demo_refuses_a_setting_of_another_protocol(options, words):
    ended = CliRunner().invoke(umpc, ["demo", *options])
    assert isinstance(ended.exception, StudyError) and words in ended.exception.message


def test_levels_are_a_number():
    ended = CliRunner().invoke(umpc, ["demo", "--protocol", "bell-auc", "--levels", "many"])
    assert ended.exit_code == 2 and "not a valid integer" in ended.output


def test_the_list_of_commands_loads_none_of_them():
    """Protocols, numpy and gRPC take most of a second to load."""
    program = (
        "import sys; from umpc.cli.main import umpc; umpc(['--help'], standalone_mode=False); "
        "sys.exit(any(name in sys.modules for name in ('umpc.protocols', 'numpy', 'grpc')))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    lines = [line.split(maxsplit=1) for line in ended.stdout.partition("Commands:")[2].splitlines()]
    own = [[name, each.does] for name, each in COMMANDS.items()]
    of_papers = [["shuffler", SHUFFLER.does], ["train", TRAIN.does]]
    assert [line for line in lines if line] == [*own, *of_papers]


def test_every_command_that_is_listed_exists():
    assert all(umpc.get_command(None, name).name == name for name in COMMANDS)
