"""The admission of a study: the site's rules as they are now, the approval, and the records.

The file of rules is read again at every proposal. All other settings count as they were when the
node started.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import numpy as np

from umpc.node.approvals import Approvals
from umpc.node.audit.study_rows import Record, nothing, of_rules
from umpc.node.config import (
    NodeConfig,
    changed_keys,
    choose_dataset,
    key_digests,
    load_datasets,
)
from umpc.node.field_sets import FieldSets, field_sets_beside
from umpc.node.policy import Policy
from umpc.node.reading_progress import reading_beside
from umpc.node.records import Records, load_records
from umpc.node.told_order import is_told, tell_order
from umpc.protocols.registry import protocol_of
from umpc.study.document import Study

log = logging.getLogger("umpc.node")

SETTLE_SECONDS = 0.1
"""Time between two readings of a changed configuration.

The node reads until two of them agree, because an editor may write in pieces.
"""


def reload_config(config: NodeConfig, path: Path) -> NodeConfig:
    """Read a data set's configuration again, found by its ledger, else by its name.

    Raises: ConfigError where the file no longer has this data set.
    """
    found = load_datasets(path)
    return next((each for each in found if each.ledger == config.ledger), None) or choose_dataset(
        found, config.dataset
    )


class Admission:
    """Whether a site takes part in a study.

    Args:
        config: the configuration at the node's start.
        name: the node's name.
        read: reads the configuration again, by default as `reload_config`.
        record: appends to the audit trail.
    """

    def __init__(
        self,
        config: NodeConfig,
        name: str,
        approvals: Approvals,
        read: Callable[[Path], NodeConfig] | None = None,
        record: Record = nothing,
    ):
        self.config = config
        self.name = name
        self.approvals = approvals
        self.field_sets = FieldSets(field_sets_beside(config.ledger))
        self._read_again = read or (lambda path: reload_config(config, path))
        self._rules_follow_from_text = read is None
        self._text: bytes | None = None
        """The file's content at the last reading, from which the present rules follow."""
        self._record = record
        self._read = config
        self._started_with: dict[str, str] = {}
        with suppress(OSError, ValueError):  # it is for advice only
            self._started_with = key_digests(config.file)

    def admit(self, study: Study) -> None:
        """Check all rules of the site that need no data, and the approval.

        Raises: PolicyRefused, ApprovalPending.
        """
        self._permitting(study)

    def load(self, study: Study) -> Records:
        """Return the records of a study that was admitted, and whose ε is reserved.

        Their order is uniformly random and secret, unless nothing that leaves the node depends on
        it. The node tells the values to nobody but the administrator, in the log.

        Raises: PolicyRefused (min_records), TooManySchemas, and as `load_records`.
        """
        self.field_sets.count(study, self.name)
        records = load_records(
            self.config.source,
            tuple(each.schema() for each in study.fields),
            node=self.name,
            where=study.condition,
            person=study.people,
            progress=reading_beside(self.config.ledger),
        )
        self.policy().check_records(records.count, self.name)
        for misfit in records.misfits:
            log.warning("for the administrator only: study %r, %s", study.name, misfit)
            if misfit.is_of_most:
                log.error(
                    "for the administrator only: study %r: MOST VALUES of field %r DO NOT FIT, and "
                    "count as another value; compare its unit and its words with the study's: run "
                    "`umpc node doctor --study study.toml`",
                    study.name,
                    misfit.name,
                )
        if protocol_of(study).numbers_records(study):
            return records.numbered_anew(os.urandom, tell_order)
        if is_told():
            tell_order(np.arange(records.count))
        return records

    def permit(self, study: Study, records: int) -> None:
        """Check the rules once more, for a study whose records were read before.

        Raises: PolicyRefused, ApprovalPending.
        """
        self._permitting(study).check_records(records, self.name)

    def permit_delta(self, delta: Fraction) -> None:
        """Check the δ of a release, which is known as soon as all numbers of records are.

        Raises: PolicyRefused.
        """
        self.policy().check_delta(delta, self.name)

    def _permitting(self, study: Study) -> Policy:
        """Return the rules after they allowed the study. Raises: PolicyRefused, ApprovalPending."""
        policy = self.policy()
        policy.check(study, self.name)
        course = protocol_of(study).course(study)
        identity = course.id if course else b""
        self.approvals.require(study, self.name, approval=policy.approval, identity=identity)
        return policy

    def policy(self) -> Policy:
        """Return the rules that the configuration has now.

        All other settings count as they were at the start. The file is read each time, and its
        content is checked anew only if it has changed: a study asks for the rules four times.
        """
        text = self._content()
        if text is None or text != self._text:
            self._text = None
            self._read_rules()
            self._text = text if self._content() == text else None
        return self._read.policy

    def _content(self) -> bytes | None:
        """Return the file's bytes; None where only the reading itself can say what is there."""
        try:
            return self.config.file.read_bytes() if self._rules_follow_from_text else None
        except OSError:
            return None

    def _read_rules(self) -> None:
        """Read the configuration until two readings agree. Raises: ConfigError."""
        before = read = self._read
        while (now := self._read_again(self.config.file)) != read:
            read = now
            time.sleep(SETTLE_SECONDS)
        if now != before:
            if now.policy != before.policy:
                self._record(of_rules("policy", now.policy))
            self._read = now
            log.info("%s changed; its [policy] counts from now on", now.file)
            if stale := changed_keys(self._started_with, now.file):
                log.warning(
                    "%s: %s changed, and counts from the next start on", now.file, ", ".join(stale)
                )
