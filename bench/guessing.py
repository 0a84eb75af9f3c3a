"""How well somebody guesses an event from times: AUCs of each time alone, and of all together.

An AUC is the chance that a session with the event ranks above one without it; 0.5 is a guess in the
dark, and 0.04 tells as much as 0.96. For all times together, a classifier is fitted on four fifths
of the sessions and ranks the last fifth, five times over; the AUC is the mean of the five.
Each session is ranked once, so its standard error is about that of one time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

Floats = NDArray[np.float64]
Events = NDArray[np.bool_]

FOLDS = 5
RARE = 20
"""Fewer sessions with or without the event give no AUC."""


def auc(times: Floats, event: Events) -> float | None:
    """Return the chance that a time with the event is longer than one without; None if rare."""
    here, there = times[event], times[~event]
    if min(len(here), len(there)) < RARE:
        return None
    return float(stats.mannwhitneyu(here, there).statistic) / (len(here) * len(there))


def standard_error(event: Events) -> float:
    """Return the standard error of an AUC whose times are independent of the event.

    Mann & Whitney 1947: the variance of U is n·m·(n + m + 1)/12.
    """
    here, there = int(event.sum()), int((~event).sum())
    return ((here + there + 1) / (12 * max(1, here) * max(1, there))) ** 0.5


def combined(times: Floats, event: Events) -> dict[str, float | None]:
    """Return the AUC of each classifier over all times: (sessions, times)."""
    # Ranks as normal scores: no outlier of a busy machine rules the fit.
    ranks = stats.rankdata(times, axis=0) / (len(times) + 1)
    boosting = HistGradientBoostingClassifier(max_iter=40, max_depth=3)
    models = {
        "logistic regression": (LogisticRegression(), stats.norm.ppf(ranks)),
        "gradient boosting": (boosting, ranks),
    }
    if min(event.sum(), (~event).sum()) < RARE * FOLDS:
        return dict.fromkeys(models)
    return {name: _cross_fitted(model, values, event) for name, (model, values) in models.items()}


def _cross_fitted(
    model: LogisticRegression | HistGradientBoostingClassifier, times: Floats, event: Events
) -> float:
    """Return the mean AUC over the folds; every fifth session is in one fold."""
    found = []
    # On a busy machine the threads of OpenMP wait for each other for minutes.
    with threadpool_limits(1):
        for fold in range(FOLDS):
            held = np.arange(len(times)) % FOLDS == fold
            model.fit(times[~held], event[~held])
            found.append(auc(model.predict_proba(times[held])[:, 1], event[held]))
    return float(np.mean([value for value in found if value is not None]))
