"""The data sets of a node, and the one that a study is about.

Each data set has its own rules, ledger, approvals and audit trail, and nothing of one counts for
another. A study names its data set at each node. If it names none, a node with one data set takes
that one. A node with several takes the one that released or holds the study already: so a study of
the time before the second data set is still repeated at no cost. In any other case it refuses.

*Reveals*: the refusal names the data sets whose rules would allow this study, and no other. A data
set whose rules do not allow the coordinator is refused as one that does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from umpc.errors import PolicyRefused, StudyError
from umpc.node.admission import Admission
from umpc.node.approval_hook import ApprovalHook
from umpc.node.approvals import Approvals, approvals_beside
from umpc.node.attempts.prepared_attempts import PreparedAttempts
from umpc.node.audit import study_rows
from umpc.node.audit.trail import AuditTrail
from umpc.node.budget.ledger import Ledger
from umpc.node.budget.prepared_costs import prepared_beside
from umpc.node.config import NodeConfig, note_start
from umpc.study.document import Study
from umpc.study.former import former_hashes


@dataclass(frozen=True)
class Dataset:
    """One data set of a node, with everything that belongs to it alone."""

    config: NodeConfig
    ledger: Ledger
    approvals: Approvals
    audit: AuditTrail
    admission: Admission
    parking: PreparedAttempts

    @property
    def name(self) -> str:
        return self.config.dataset

    def knows(self, study: Study) -> bool:
        """Whether the ledger holds or has released the study, also under a former identity."""
        known = (study.whole.hash, *(identity for _, identity in former_hashes(study.whole)))
        return self.ledger.holds(study.whole.hash) or any(map(self.ledger.released, known))

    def allows(self, study: Study) -> bool:
        """Whether the rules, as they are now, allow the study. Raises: ConfigError."""
        try:
            self.admission.policy().check(study, self.config.name)
        except PolicyRefused:
            return False
        return True

    def allows_coordinator(self, study: Study) -> bool:
        """Whether the rules, as they are now, allow the coordinator. Raises: ConfigError."""
        allowed = self.admission.policy().coordinators
        return allowed is None or study.coordinator in allowed


def open_ledger(config: NodeConfig) -> Ledger:
    """Open the ledger of a data set, or make it. Raises: LedgerError."""
    return Ledger(
        config.ledger,
        config.dataset,
        config.epsilon,
        config.delta,
        composition=config.composition,
        anchor=config.anchor,
        hold_seconds=config.hold_seconds,
    )


def open_dataset(config: NodeConfig, ledger: Ledger) -> Dataset:
    """Open the files beside a ledger, and write the start into the audit trail.

    Raises: AuditError, ApprovalError.
    """
    hook = ApprovalHook(config.hook, config.name)
    approvals = Approvals(approvals_beside(config.ledger), tell=hook.tell)
    note_start(config)
    audit = AuditTrail(config.ledger)
    study_rows.add_missing_charges(audit, ledger.history())
    audit.append(study_rows.of_rules("start", config.policy))
    return Dataset(
        config=config,
        ledger=ledger,
        approvals=approvals,
        audit=audit,
        admission=Admission(
            config,
            config.name,
            approvals,
            record=audit.append,
        ),
        parking=PreparedAttempts(
            ledger,
            config.most_prepared,
            config.prepared_seconds,
            file=prepared_beside(config.ledger),
        ),
    )


class Datasets:
    """The data sets of one node, at least one. Args: node: its name."""

    def __init__(self, node: str, found: Sequence[Dataset]):
        self.node = node
        self.found = tuple(found)

    @property
    def first(self) -> Dataset:
        return self.found[0]

    def of(self, study: Study) -> Dataset:
        """Return the study's data set; the first one where it has none. Raises: StudyError."""
        return self._find(study) or self.first

    def check(self, study: Study) -> None:
        """Check that the node may look at the study for one of its data sets.

        Raises: StudyError, ConfigError.
        """
        found = self._find(study)
        if found is not None and (found.knows(study) or found.allows_coordinator(study)):
            return
        named = study.dataset_of(self.node)
        if not named and found is not None:
            return  # the only data set; its rules refuse the coordinator by their name
        came = f"no data set {named!r} for this study" if named else "several data sets"
        wanted = "" if named else ", and the study names none"
        raise StudyError(
            f"{self.node} has {came}{wanted}; {self._listed(study)}",
            culprit=self.node,
            step="propose",
        )

    def _find(self, study: Study) -> Dataset | None:
        named = study.dataset_of(self.node)
        if named:
            return next((each for each in self.found if each.name == named), None)
        if len(self.found) == 1:
            return self.first
        return next((each for each in self.found if each.knows(study)), None)

    def _listed(self, study: Study) -> str:
        """Return the data sets whose rules allow the study, in words."""
        names = [repr(each.name) for each in self.found if each.allows(study)]
        if not names:
            return "its rules allow this study on none that it could name: ask its administrator"
        found = ", ".join(names)
        return f"write dataset = NAME into the study: its rules allow this study on {found}"
