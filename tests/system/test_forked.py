"""The source of forked processes runs the umpc of its own tree, also where another is installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.system import forked


def test_a_copied_checkout_tests_its_own_code(tmp_path):
    copy = tmp_path / "tests" / "system" / "forked.py"
    copy.parent.mkdir(parents=True)
    shutil.copy(Path(forked.__file__), copy)
    (tmp_path / "umpc").mkdir()
    (tmp_path / "umpc" / "__init__.py").write_text('raise SystemExit("the copy\'s umpc")\n')
    done = subprocess.run(
        [sys.executable, str(copy), "node", "0"], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stderr.strip() == "the copy's umpc"
