"""The demo's own table: a file of real records that another library brings along."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from umpc.cli.table import DemoTable
from umpc.errors import ConfigError, DataError, installing
from umpc.ustat.sampling import TWO_SAMPLE
from umpc.ustat.statistics import Statistic

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
"""The numbers of the demo's own table, in the order of its file."""
DIAGNOSIS, CLASSES = "diagnosis", ("malignant", "benign")
"""The last column, and its classes as the file numbers them."""
COLUMNS = (*BREAST_CANCER, DIAGNOSIS)


def usual_columns(statistic: Statistic) -> tuple[list[str], str | None]:
    """A column for each argument, and the public label of a statistic of two classes.

    A label or a stratum is the diagnosis, and other arguments are the first numbers in order.
    """
    labels = {"label", "stratum", *(rule.argument for rule in statistic.rules if rule.classes)}
    numbers = iter(BREAST_CANCER)
    found = [DIAGNOSIS if each in labels else next(numbers) for each in statistic.arguments]
    return found, f"{DIAGNOSIS}={CLASSES[0]}" if statistic.sampling == TWO_SAMPLE else None


def breast_cancer(columns: Sequence[str] | None) -> DemoTable:
    """569 real records that ship with scikit-learn (Wolberg, Street, Mangasarian 1995).

    Only the file is read. The library itself would take two seconds to import.

    Raises: ConfigError without scikit-learn; DataError for a column that does not exist.
    """
    file = _file_of_scikit_learn("datasets/data/breast_cancer.csv")
    names = tuple(columns or ("mean radius", "mean texture"))
    absent = [name for name in names if name not in COLUMNS]
    if absent:
        raise DataError(
            f"the demo's table has no column {', '.join(absent)}; it has {', '.join(COLUMNS)}"
        )
    # The first line has counts and the classes' names; a line ends with the class.
    lines = file.read_text(encoding="utf-8").splitlines()[1:]
    rows = [_row(line.split(",")) for line in lines]
    places = [COLUMNS.index(name) for name in names]
    return DemoTable(names, [tuple(row[place] for place in places) for row in rows])


def _row(texts: Sequence[str]) -> list[str]:
    """The numbers of a line, and the word of its class."""
    *numbers, label = texts
    return [*(repr(float(text)) for text in numbers), CLASSES[int(label)]]


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
