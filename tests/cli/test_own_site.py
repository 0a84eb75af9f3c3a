"""The files of a folder of nodes: each names a node of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.node_files import BUDGET, DATA
from umpc.cli.serve import configurations
from umpc.errors import ConfigError


def test_each_file_of_a_folder_is_a_node_and_names_differ(tmp_path):
    (tmp_path / "bank.csv").write_text("age\n1\n")
    (tmp_path / "id").mkdir()
    for file in ("ca.pem", "cert.pem", "key.pem"):
        (tmp_path / "id" / file).touch(0o600)
    for number, name in enumerate("ab"):
        text = f'name = "{name}"\nidentity = "id"\n{DATA}{BUDGET}'
        (tmp_path / f"{number}.toml").write_text(text)
    assert [each.name for (each,) in configurations(tmp_path)] == ["a", "b"]
    (tmp_path / "2.toml").write_text((tmp_path / "0.toml").read_text())
    with pytest.raises(ConfigError, match=r"2\.toml: the name 'a' is also that of .*0\.toml"):
        configurations(tmp_path)


def test_a_node_does_not_load_duckdb_before_its_first_reading():
    program = (
        "import sys, umpc.cli.serve, umpc.node.config, umpc.node.server\n"
        "sys.exit('duckdb' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
