"""The houses of these tests: each serves many studies, and every test begins it again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.register_assert_rewrite("tests.dialogues.talk", "tests.dialogues.house")

from tests.dialogues.house import NODES, House, certificates  # noqa: E402  (after the line above)
from umpc.testing import limited  # noqa: E402
from umpc.transport import patience  # noqa: E402

NO_QUEUE = Path("/no/queue")
"""The queue of an idle machine: how busy this one is decides nothing in a standing clock."""

RULES = """
[policy]
min_colluding = 0
public_labels = ["label"]
trusted_curator = true
"""


def table(place: int, records: int) -> str:
    """A node's CSV file: x and y for pairs, a, b and a label for vectors."""
    rows = [
        f"{(3 * i + place) % 4},{(i * i + place) % 4},{i % 20},{i % 3},{('case', 'control')[i % 2]}"
        for i in range(records)
    ]
    return "\n".join(["x,y,a,b,label", *rows, ""])


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide everybody's certificates."""
    return certificates(tmp_path_factory.mktemp("keys"))


def served(folder: Path, keys: Path, records: int) -> House:
    tables = {name: table(place, records) for place, name in enumerate(NODES)}
    return House(folder, keys, tables, RULES)


@pytest.fixture(scope="session")
def small_house(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Iterator[House]:
    with served(tmp_path_factory.mktemp("house"), keys, 4) as house:
        yield house


@pytest.fixture(scope="session")
def large_house(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Iterator[House]:
    """Provide nodes with as many records as shuffling needs."""
    with served(tmp_path_factory.mktemp("large-house"), keys, 30) as house:
        yield house


@pytest.fixture
def house(small_house: House) -> Iterator[House]:
    """Provide north, south and west with four records each. Nothing may be left of a test."""
    with limited(patience, RUN_QUEUE=NO_QUEUE):
        small_house.mend()
        yield small_house
        small_house.run(small_house.end())


@pytest.fixture
def roomy(large_house: House) -> Iterator[House]:
    """Provide north, south and west with thirty records each. Nothing may be left of a test."""
    with limited(patience, RUN_QUEUE=NO_QUEUE):
        large_house.mend()
        yield large_house
        large_house.run(large_house.end())
