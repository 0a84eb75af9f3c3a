"""Scores of a logistic regression. It is trained on a third of a table; the rest is private.

Diabetes is the paper's table (section 6) and has to be given (`reproduction.figures.given`). The
bank data take its place, with y = yes as the positive class: real data, but fewer. Numbers are
standardised, all other columns become indicators, and both classes have equal weight, so that
scores spread over [0, 1]. The paper says nothing about these choices.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.harness import RECORDS
from reproduction.figures.draws import seed_of, stream_of
from reproduction.figures.given import file_of, found
from reproduction.figures.paper001.scores import GRID, Scores

TRAINED_ON = 3
"""One record in three is for training."""
NOT_FEATURES = ("encounter_id", "patient_nbr")
RARE = 10
"""Labels with fewer training records than this share an indicator."""


def bank() -> Scores:
    """Scores of the bank data; without these, made-up scores of as many records."""
    file = found("bank")
    if file is None:
        return _made_up()
    names, rows = read_table(file, ";")
    return scores_of("Bank data", names, rows, "y", "yes")


def diabetes() -> Scores:
    """Scores of the Diabetes data. A record is positive if readmitted within 30 days.

    Raises: SystemExit if no file was given, or if it holds other data.
    """
    file = file_of("diabetes")
    names, rows = read_table(file, ",")
    if "readmitted" not in names or not any(
        row[names.index("readmitted")] == "<30" for row in rows
    ):
        raise SystemExit(
            f"{file}: a column `readmitted` with values <30 was expected; columns: "
            f"{', '.join(names[:9])} …"
        )
    return scores_of("Diabetes data", names, rows, "readmitted", "<30")


def read_table(file: Path, delimiter: str) -> tuple[list[str], list[list[str]]]:
    """Column names and rows, as text."""
    with file.open(newline="", encoding="utf-8") as lines:
        names, *rows = csv.reader(lines, delimiter=delimiter)
    return names, rows


def scores_of(
    source: str, names: Sequence[str], rows: Sequence[Sequence[str]], label: str, positive: str
) -> Scores:
    """Scores of the records that the classifier was not trained on."""
    is_positive = np.array([row[names.index(label)] == positive for row in rows])
    columns = [place for place, name in enumerate(names) if name not in (label, *NOT_FEATURES)]
    order = np.argsort(
        stream_of(seed_of(f"training part {len(rows)}"), "part").words(len(rows)), kind="stable"
    )
    training, private = order[: len(rows) // TRAINED_ON], order[len(rows) // TRAINED_ON :]
    probability = _fitted(rows, columns, is_positive, training, private)
    steps = np.minimum((probability * GRID).astype(np.int64), GRID - 1)
    return Scores(source, steps[~is_positive[private]], steps[is_positive[private]])


def _fitted(
    rows, columns: Sequence[int], is_positive: np.ndarray, training: np.ndarray, private: np.ndarray
):
    """(private,) float64: each private record's probability of the positive class."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    table = np.array([[row[place] for place in columns] for row in rows], dtype=object)
    numeric = [place for place in range(table.shape[1]) if all(map(_is_number, table[:, place]))]
    labels = [place for place in range(table.shape[1]) if place not in numeric]
    table[:, numeric] = table[:, numeric].astype(np.float64)
    features = make_column_transformer(
        (StandardScaler(), numeric),
        (OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=RARE), labels),
    )
    model = make_pipeline(features, LogisticRegression(class_weight="balanced", max_iter=1000))
    return model.fit(table[training], is_positive[training]).predict_proba(table[private])[:, 1]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _made_up() -> Scores:
    """3,014 made-up scores. One in nine is positive, and higher by 1/4 on average."""
    count = RECORDS - RECORDS // TRAINED_ON
    words = stream_of(seed_of("made-up scores"), "scores").words(count)
    steps = (words >> np.uint64(44)).astype(np.int64) * 3 // 4
    is_positive = np.arange(count) % 9 == 0
    return Scores("Made-up scores", steps[~is_positive], steps[is_positive] + GRID // 4)
