"""A study's settings that trade one error for another, tuned for a table like the sites' own.

The protocol says which settings those are: the number of bins, levels or pairings. The table is
public, or older than the sites' data, so that the settings tell nothing about their records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

from umpc.errors import StudyError
from umpc.planning.reference_table import ConstantAnswer, PredictedError, ReferenceTable
from umpc.protocols.base.protocol import Line
from umpc.protocols.registry import checked, protocol_of
from umpc.study.attempt import Attempt
from umpc.study.document import Study
from umpc.study.settings import keys_of


@dataclass(frozen=True)
class Tuned:
    """A study with its best settings.

    Args:
        changed: the settings that are not those of the given study, as a study file has them.
        error, before: the predicted errors of the tuned study and of the given one.
        constant: the best answer without any record; None where the table does not tell.
        notes: what else the protocol says of its choices: a label, and a text.
    """

    study: Study
    changed: Mapping[str, Any]
    error: PredictedError
    before: PredictedError
    constant: ConstantAnswer | None = None
    notes: tuple[Line, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The object under `tuned` that `umpc plan --tune --format json` prints."""
        return {
            "settings": dict(self.changed),
            "mse": self.error.mse,
            "mse_now": self.before.mse,
            "beats_constant": self.beats_constant,
        }

    @property
    def beats_constant(self) -> bool | None:
        """Whether the tuned study tells more than the best constant; None where it is not known."""
        return None if self.constant is None else sqrt(self.error.mse) < self.constant.error

    def in_words(self) -> str:
        """The line that `umpc plan --tune` prints."""
        now = f"error {sqrt(self.before.mse):.3g}"
        keys = ", ".join(f"{key} = {_written(value)}" for key, value in self.changed.items())
        found = f"{keys}; error {sqrt(self.error.mse):.3g} instead of {sqrt(self.before.mse):.3g}"
        if not self.changed:
            found = f"the study's own settings are the best that were tried; {now}"
        if self.constant is None:
            return found
        beside = f"the constant {self.constant.value:.4g} has error {self.constant.error:.3g}"
        if self.beats_constant:
            return f"{found}; {beside}"
        return f"no setting here beats answering with a constant: {found}, and {beside}"


def tune(attempt: Attempt, table: ReferenceTable) -> Tuned:
    """The best settings of a study over so many records.

    Raises: StudyError where the protocol has nothing to tune, errors cannot be told, or no setting
    that was tried lets the estimate depend on the records.
    """
    study = attempt.study
    protocol = protocol_of(study)
    found = protocol.tuned(attempt, table)
    if found is None:
        raise StudyError(
            f"protocol = {study.protocol!r} has no setting that trades one error for another; "
            "leave --tune out, or take a protocol of bins or pairings"
        )
    other = attempt.with_study(checked(found))
    protocol.check_new_run(found)
    return Tuned(
        found,
        _changed(study, found),
        protocol.error(other, table),
        protocol.error(attempt, table),
        table.constant,
        tuple(protocol.describe_tuned(attempt, table)),
    )


def _changed(study: Study, found: Study) -> dict[str, Any]:
    """The settings of `found` that differ, as a study file has them."""
    changed = {}
    for key in keys_of(type(study.settings)):
        value = getattr(found.settings, key)
        if value != getattr(study.settings, key):
            changed[key] = value
    if "bins" in changed:
        changed["bins"] = {each.field: each.count or list(each.cuts) for each in changed["bins"]}
    return changed


def _written(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {each}" for key, each in value.items()) + "}"
    return f'"{value}"' if isinstance(value, str) else str(value)
