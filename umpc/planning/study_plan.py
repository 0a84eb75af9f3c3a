"""A study's plan: its predicted errors and costs, beside those of the other way to run it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from umpc.coordinator.studyfile import StudyFile
from umpc.errors import StudyError, UmpcError
from umpc.planning.prediction import attempt_over, reference_table_of
from umpc.planning.reference_table import ReferenceTable
from umpc.planning.seconds import Machines, Network, predict_memory, seconds_of
from umpc.protocols.auto import other_way
from umpc.protocols.registry import protocol_of
from umpc.study.attempt import Attempt
from umpc.study.document import Study
from umpc.study.rules import check_fields
from umpc.study.settings import HONEST

ERRORS = ("noise_std", "sampling_std", "bins_bias", "mse")
HALF = "half_width"
"""Half the 95 % interval of a report, in the mean."""
OF_CONSTANT = "mse_of_constant"
"""The mean squared error of the best answer without records; None without a table."""
Values = dict[str, float | None]
Tell = Callable[[str], None]


@dataclass(frozen=True)
class StudyPlan:
    """The plan of one study.

    Args:
        attempt: the hypothetical one that is planned.
        values: each predicted error and cost by name; None where it is not known.
        label, beside: the same statistic by the other of pairs and grid; empty for other protocols.
        impossible: the reason why there is no other way; else empty.
        table: the table that errors of data are computed over. machines: trials that were made.
    """

    attempt: Attempt = field(repr=False)
    values: Values
    label: str
    beside: Values | None
    impossible: str
    table: ReferenceTable = field(repr=False)
    machines: Machines = field(repr=False)

    @property
    def study(self) -> Study:
        return self.attempt.study

    def __getitem__(self, name: str) -> float | None:
        return self.values[name]

    def to_dict(self) -> dict[str, Any]:
        """The object that `umpc plan --format json` prints."""
        return {**self.values, **({self.label: self.beside} if self.label else {})}


def plan_study(
    entries: StudyFile,
    records: str,
    network: Network,
    like: Path | None = None,
    delimiter: str = ",",
    missing: Sequence[str] = (),
    tell: Tell = lambda text: None,
) -> StudyPlan:
    """Predict the errors and the costs of a study. No site is asked.

    Args:
        records: each node's number of records, as 300,300,200.
        like, delimiter, missing: a table like the sites' own, for errors that depend on data.
        tell: is told what could not be predicted, and of values that do not fit.
    Raises: StudyError, DataError.
    """
    study = entries.study("coordinator")
    check_fields(study)
    attempt = attempt_over(study, records)
    table = reference_table_of(attempt, like, delimiter, missing, tell)
    machines: Machines = {}
    values = _own(attempt, table, network, machines, tell)
    values |= _if_honest(entries, attempt, records, table) | _if_committee(attempt, records, table)
    label, other = _beside(entries, records, table, network, machines, tell)
    beside, reason = (other, "") if isinstance(other, dict) else (None, other)
    return StudyPlan(attempt, values, label, beside, reason, table, machines)


def _own(
    attempt: Attempt,
    like: ReferenceTable,
    network: Network,
    machines: Machines,
    tell: Tell,
) -> Values:
    """The predicted errors and costs of a study. Args: machines: as of `seconds_of`."""
    protocol = protocol_of(attempt.study)
    cost = protocol.cost(attempt)
    seconds = seconds_of(attempt, cost, like, network, machines)
    errors: Values = dict.fromkeys(ERRORS)
    try:
        protocol.check_new_run(attempt.study)
        error = protocol.error(attempt, like)
        errors = {
            "noise_std": error.noise,
            "sampling_std": error.sampling,
            "bins_bias": error.bins,
            "mse": error.mse,
        }
    except StudyError as reason:
        tell(f"errors are not known: {reason.message}")
    return {
        "edges": attempt.sizes.edges,
        "sets": attempt.sizes.sets,
        **errors,
        HALF: _half_width(attempt, like),
        OF_CONSTANT: like.constant.error**2 if like.constant else None,
        "rounds": cost.rounds,
        "bytes_online": cost.bytes_online,
        "bytes_offline": cost.bytes_offline,
        "memory": predict_memory(attempt, cost),
        "seconds_offline": seconds.offline,
        "seconds_online": seconds.online,
        "seconds_total": seconds.total,
        "seconds_following": seconds.following,
    }


def _half_width(attempt: Attempt, like: ReferenceTable) -> float | None:
    """Half the 95 % interval that a report will have; None where that is not known."""
    try:
        return protocol_of(attempt.study).half_width(attempt, like)
    except StudyError:
        return None


def _beside(
    entries: StudyFile,
    records: str,
    like: ReferenceTable,
    network: Network,
    machines: Machines,
    tell: Tell,
) -> tuple[str, Values | str]:
    """The plan of the same statistic by the grid for a file of pairs, and by pairs for the grid.

    Returns: a label, empty for other protocols; and the values, or why it is not possible.
    """
    other = other_way(entries.protocol, entries.settings)
    if other is None:
        return "", ""
    protocol, settings = other
    label = f"by {protocol.name}"
    try:
        study = entries.turned_to(protocol, settings).new_study("coordinator")
        attempt = attempt_over(study, records)
        return label, _own(attempt, like.turned_to(study), network, machines, tell)
    except UmpcError as reason:
        return label, reason.message


def _if_honest(entries: StudyFile, attempt: Attempt, records: str, like: ReferenceTable) -> Values:
    """Return the noise that grade honest would have, to say what the study's grade costs.

    First with the same setting of the noise, then with the usual one of the file in that grade.
    """
    study = attempt.study
    if study.adversary == HONEST:
        return {}
    protocol = protocol_of(study)
    others = {
        "noise_std_if_honest": study.replaced(adversary=HONEST),
        "noise_std_if_honest_usual": entries.in_grade(HONEST).study("coordinator"),
    }
    found: Values = dict.fromkeys(others)
    for name, other in others.items():
        try:
            found[name] = protocol.error(attempt_over(other, records), like).noise
        except StudyError:
            continue  # `_own` has said why errors are not known
    return found


def _if_committee(attempt: Attempt, records: str, like: ReferenceTable) -> Values:
    """Return the noise that a drawn committee would add, and all bytes then."""
    protocol = protocol_of(attempt.study)
    if (other := protocol.with_less_noise(attempt.study)) is None:
        return {}
    drawn = attempt_over(other, records)
    cost = protocol.cost(drawn)
    found: Values = {"bytes_if_in_mpc": cost.bytes_online + cost.bytes_offline}
    try:
        return {"noise_std_if_in_mpc": protocol.error(drawn, like).noise, **found}
    except StudyError:
        return found  # `_own` has said why errors are not known
