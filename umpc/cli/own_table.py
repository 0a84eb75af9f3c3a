"""The demo's own table: a file of real records that another library brings along."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from umpc.cli.table import DemoTable
from umpc.errors import ConfigError, DataError, installing

_MEASURED = (
    "radius",
    "texture",
    "perimeter",
    "area",
    "smoothness",
    "compactness",
    "concavity",
    "concave points",
    "symmetry",
    "fractal dimension",
)
BREAST_CANCER = (
    *(f"mean {name}" for name in _MEASURED),
    *(f"{name} error" for name in _MEASURED),
    *(f"worst {name}" for name in _MEASURED),
)
"""The columns of the demo's own table, in the order of its file."""


def breast_cancer(columns: Sequence[str] | None) -> DemoTable:
    """569 real records that ship with scikit-learn (Wolberg, Street, Mangasarian 1995).

    Only the file is read. The library itself would take two seconds to import.

    Raises: ConfigError without scikit-learn; DataError for a column that does not exist.
    """
    file = _file_of_scikit_learn("datasets/data/breast_cancer.csv")
    names = tuple(columns or ("mean radius", "mean texture"))
    absent = [name for name in names if name not in BREAST_CANCER]
    if absent:
        raise DataError(
            f"the demo's table has no column {', '.join(absent)}; it has {', '.join(BREAST_CANCER)}"
        )
    # The first line has counts and the classes' names; a line ends with the class.
    lines = file.read_text(encoding="utf-8").splitlines()[1:]
    rows = [[repr(float(text)) for text in line.split(",")] for line in lines]
    places = [BREAST_CANCER.index(name) for name in names]
    return DemoTable(names, [tuple(row[place] for place in places) for row in rows])


def _file_of_scikit_learn(path: str) -> Path:
    """A file of the installed library, which is not imported. Raises: ConfigError without it."""
    spec = find_spec("sklearn")
    file = Path(spec.origin).parent / path if spec and spec.origin else None
    if file is None or not file.exists():
        raise ConfigError(
            "the demo's own table is part of scikit-learn, which is not installed: "
            f"{installing('demo')}. Or name a table with --csv FILE --fields X,Y"
        )
    return file
