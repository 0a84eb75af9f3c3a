"""The data sets of a node, and the one that a study is about.

Each data set has its own rules, ledger, approvals and audit trail, and nothing of one counts for
another. A study names its data set at each node. If it names none, a node with one data set takes
that one. A node with several takes the one that released or holds the study already: so a study of
the time before the second data set is still repeated at no cost. In any other case it refuses.

*Reveals*: the refusal names the data sets whose rules would allow this study, and no other. A data
set whose rules do not allow the coordinator is refused as one that does not exist.

*Admission.* The admission of a study: the site's rules as they are now, the approval, and the
records.

The file of rules is read again at every proposal. All other settings count as they were when the
node started.

*Field sets.* The sets of fields that coordinators have asked a node about, in the Store of its
ledger. For each set of fields a node tells its number of complete records, and for a public label
also the number of records of each class. With a condition it counts the records for which that
holds, so each condition makes another set. These numbers cost no ε. Every further set tells a
little more about which values are missing together, so a node answers for at most MOST sets. The
count survives a restart. Without a condition no number depends on bounds, resolutions or
categories. A condition sees values after these, so they count for the fields that it reads.

`umpc budget fields --forget` lets the count begin anew, also while the node runs.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np

from umpc.crypto.prg import digest
from umpc.crypto.signing import Credentials
from umpc.errors import ConfigError, PolicyRefused, StudyError, TooManySchemas
from umpc.node.approvals import ApprovalHook, Approvals, approvals_beside
from umpc.node.audit.reading import add_missing_charges
from umpc.node.audit.trail import AuditTrail, Record, nothing, of_rules
from umpc.node.budget.ledger import Ledger
from umpc.node.config import (
    NodeConfig,
    changed_keys,
    choose_dataset,
    key_digests,
    load_datasets,
    note_start,
)
from umpc.node.decision import sentence_for
from umpc.node.linked_store import KeyedRows, LinkedStore
from umpc.node.people_store import PeopleStore
from umpc.node.policy import Policy
from umpc.node.records import Records, load_records, reading_beside
from umpc.node.standing import PreparedAttempts
from umpc.node.told_order import VARIABLE, tell_order
from umpc.people.linked import keys_digest
from umpc.protocols.people.split import split_of
from umpc.protocols.people.terms import columns_of, survey_of, terms_of
from umpc.protocols.registry import allowed_as, protocol_of
from umpc.study.computation import former_hashes
from umpc.study.document import Study
from umpc.study.parts import Person
from umpc.study.settings import HONEST
from umpc.ustat.schema import FieldSchema


@dataclass(frozen=True)
class Dataset:
    """One data set of a node, with everything that belongs to it alone."""

    config: NodeConfig
    ledger: Ledger
    approvals: Approvals
    audit: AuditTrail
    admission: Admission
    parking: PreparedAttempts
    people: PeopleStore | None = None

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


def open_people(config: NodeConfig, credentials: Callable[[], Credentials]) -> PeopleStore | None:
    """Open the folder of people or of linked rows, if there is one. Raises: LedgerError."""
    place = config.people
    if config.linked is not None:
        return LinkedStore(config.linked.folder, config.name, credentials)
    if place is None:
        return None
    return PeopleStore(place.folder, config.name, credentials, cap=place.cap)


def open_dataset(config: NodeConfig, ledger: Ledger, people: PeopleStore | None = None) -> Dataset:
    """Open the files beside a ledger, and write the start into the audit trail.

    Raises: AuditError, ApprovalError.
    """
    hook = ApprovalHook(config.hook, config.name, describe=partial(sentence_for, config))
    approvals = Approvals(approvals_beside(config.ledger), tell=hook.tell)
    note_start(config)
    audit = AuditTrail(config.ledger)
    add_missing_charges(audit, ledger.history())
    audit.append(of_rules("start", config.policy))
    admission = Admission(config, approvals, ledger, record=audit.append, people=people)
    with suppress(ConfigError):  # a mistake since the start is told to those who propose
        admission.policy()  # the first study finds the rules read
    parking = PreparedAttempts(ledger, config.most_prepared, config.prepared_seconds)
    return Dataset(config, ledger, approvals, audit, admission, parking, people)


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

        Raises: StudyError, ConfigError; PolicyRefused where a person rejected it, also if its
            result is stored.
        """
        found = self._find(study)
        if found is not None and (found.knows(study) or found.allows_coordinator(study)):
            found.admission.heed(study)
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


# --- approval hook --------------------------------------------------------------------------------

log = logging.getLogger("umpc.node")


# --- admission ------------------------------------------------------------------------------------

SETTLE_SECONDS = 0.1
"""Time between two readings of a changed configuration.

The node reads until two of them agree, because an editor may write in pieces.
"""


KINDS = {
    "": "a table",
    "people": "messages of people, and no table",
    "linked": "a table whose rows have keys ([linked] in node.toml)",
}
"""Words for a site, by the protocol of the shares that it keeps."""


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
        ledger: has the count of the sets of fields that were asked about.
        read: reads the configuration again, by default as `reload_config`.
        record: appends to the audit trail.
        people: of an aggregator, in place of a table; or of linked rows, beside it.
    """

    def __init__(
        self,
        config: NodeConfig,
        approvals: Approvals,
        ledger: Ledger,
        read: Callable[[Path], NodeConfig] | None = None,
        record: Record = nothing,
        people: PeopleStore | None = None,
    ):
        self.config = config
        self.name = config.name
        self.approvals = approvals
        self._ledger = ledger
        self._people = people
        self._read_again = read or (lambda path: reload_config(config, path))
        self._rules_follow_from_text = read is None
        self._text: bytes | None = None
        """The file's content at the last reading, from which the present rules follow."""
        self._record = record
        self._read = config
        self._started_with: dict[str, str] = {}
        with suppress(OSError, ValueError):  # it is for advice only
            self._started_with = key_digests(config.file)

    def admit(self, study: Study) -> str:
        """Check all rules of the site that need no data, and the approval.

        Returns: these rules, in words for the coordinator. Raises: PolicyRefused, ApprovalPending.
        """
        return self._permitting(study).told(study)

    def load(self, study: Study) -> Records:
        """Return the records of a study that was admitted, and whose ε is reserved.

        Their order is uniformly random and secret, unless nothing that leaves the node depends on
        it. The node tells the values to nobody but the administrator, in the log.

        Raises: PolicyRefused (min_records), TooManySchemas, and as `load_records`.
        """
        if people := self._people_of(study):
            shares, n = people.share(study)
            self.policy().check_records(n, self.name)
            return Records(columns_of(shares), n, 0)
        count_fields(self._ledger, study, self.name)
        made = study.settings.made_of_people
        schemas = tuple(each.schema() for each in study.fields if each.name != made)
        records = self._read_table(study, schemas, study.people, made)
        self.policy().check_records(records.count, self.name)
        tell = tell_order if os.environ.get(VARIABLE) else None
        if protocol_of(study).numbers_records(study):
            return records.numbered_anew(os.urandom, tell)
        if tell is not None:
            tell(np.arange(records.count))
        return records

    def keyed_rows(self, study: Study) -> KeyedRows:
        """Return the keys and cells of the linked rows of a study that `admit` has allowed.

        These are the complete rows of the table, each with another key. The key's column is the
        administrator's, and the number of rows is told.

        Raises: StudyError for another number of them than the study has; as `load`.
        """
        count_fields(self._ledger, study, self.name)
        place, split, side = self.config.linked, split_of(study), study.index_of(self.name)
        assert place is not None  # `_check_kind`
        key = Person(place.key, 1)
        records = self._read_table(study, split.fields[side], key, place.key)
        if records.count != (due := terms_of(study).places):
            raise StudyError(
                f"{self.name} has {records.count} complete rows with a key of their own, and the "
                f"study links {due}: both sites must have the same rows, and no others",
                culprit=self.name,
                step="compare",
                detail=f"{records.dropped} rows lack a value or a key; keys are in the column "
                f"{place.key!r}",
            )
        keys = records.columns[place.key].tolist()
        order = sorted(range(len(keys)), key=keys.__getitem__)
        values = split.places(side, records.columns)[order]
        return keys_digest(keys[row] for row in order), values

    def _read_table(
        self,
        study: Study,
        fields: Sequence[FieldSchema],
        person: Person | None,
        persons: str,
    ) -> Records:
        """Read the table, and tell the administrator which values do not fit."""
        records = load_records(
            self.config.source,
            fields,
            node=self.name,
            where=study.condition,
            person=person,
            progress=reading_beside(self.config.ledger),
            persons=persons,
        )
        for misfit in records.misfits:
            log.warning("for the administrator only: study %r, %s", study.name, misfit)
            if misfit.is_of_most:
                log.error(
                    "for the administrator only: study %r: MOST VALUES of field %r DO NOT FIT, and "
                    "count as another value; compare its unit and its words with the study's: run "
                    "`umpc study check study.toml --table node.toml`",
                    study.name,
                    misfit.name,
                )
        return records

    def released(self, study: Study) -> None:
        """Forget a share of people: its release has left, and no other one ever will.

        Raises: StudyError, LedgerError.
        """
        if people := self._people_of(study):
            people.forget_share(survey_of(study).hash)

    def checking(self, study: Study, passed: bool) -> None:
        """Store that a check of people is opened, before it is, or that it has passed.

        Raises: StudyError if one was opened and has not passed; LedgerError.
        """
        if study.adversary != HONEST and (people := self._people_of(study)):
            people.checking(survey_of(study).hash, passed)

    def permit(self, study: Study, records: int) -> str:
        """Check the rules once more, for a study whose records were read before.

        Returns: as `admit`. Raises: PolicyRefused, ApprovalPending.
        """
        policy = self._permitting(study)
        policy.check_records(records, self.name)
        return policy.told(study)

    def permit_delta(self, delta: Fraction) -> None:
        """Check the δ of a release, which is known as soon as all numbers of records are.

        Raises: PolicyRefused.
        """
        self.policy().check_delta(delta, self.name)

    def _permitting(self, study: Study) -> Policy:
        """Return the rules after they allowed the study. Raises: PolicyRefused, ApprovalPending."""
        self._check_kind(study)
        policy = self.policy()
        policy.check(study, self.name)
        if self._people_of(study) and (fewest := terms_of(study).fewest) < policy.min_records:
            raise PolicyRefused(
                f"{self.name} takes part for {policy.min_records} people or linked rows, or more "
                f"(min_records under [policy]), and the study has a result from {fewest} on; raise "
                "fewest, or link more rows",
                culprit=self.name,
                step="propose",
            )
        self.heed(study, approval=policy.approval)
        return policy

    def heed(self, study: Study, *, approval: bool = False) -> None:
        """Check that nobody rejected the study, whether it is new or its result is stored.

        Args: approval: a person must have accepted it, too.
        Raises: PolicyRefused, ApprovalPending.
        """
        shown = protocol_of(study).approved_as(study)
        self.approvals.require(shown, self.name, approval=approval, identity=allowed_as(study))

    def _people_of(self, study: Study) -> PeopleStore | None:
        """Return where the site keeps its share of a study's table; None for a study of records."""
        return self._people if study.settings.shares_tables else None

    def _check_kind(self, study: Study) -> None:
        """Check that a study of people meets an aggregator, and any other one a table.

        Raises: StudyError.
        """
        kept = self._people.protocol if self._people else ""
        wanted = study.protocol if study.settings.shares_tables else ""
        if wanted != kept and (wanted or kept == "people"):
            raise StudyError(
                f"{self.name} has {KINDS[kept]}, and this study needs {KINDS[wanted]}: name "
                "another node",
                culprit=self.name,
                step="propose",
            )

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


# --- field sets -----------------------------------------------------------------------------------

MOST = 32
"""Largest number of different sets of fields for which a node tells numbers of records."""


def count_fields(ledger: Ledger, study: Study, node: str) -> None:
    """Count the study's fields, on disk when this returns. Raises: TooManySchemas, LedgerError."""
    if not ledger.count_fields(digest_of(study), MOST):
        raise TooManySchemas(
            f"{node} was asked about {MOST} different sets of fields, and each tells how many of "
            "its records have these fields; propose one of those sets, or have its administrator "
            "begin the count anew",
            culprit=node,
            detail="run `umpc budget fields --config node.toml --forget` to begin the count anew; "
            "no restart is needed",
        )


def digest_of(study: Study) -> bytes:
    """Return 32 bytes for all of a study that a number of records depends on."""
    parts = []
    for field in sorted(study.fields, key=lambda each: each.name):
        classes = field.categories if field.public else ()
        parts.append(digest(b"umpc field 1", field.name.encode(), *map(str.encode, classes)))
    if study.condition is not None:
        read = set(study.condition.fields)
        seen = [field.schema() for field in study.fields if field.name in read]
        schemas = sorted(repr(schema).encode() for schema in seen)
        parts.append(digest(b"umpc condition 2", study.condition.text.encode(), *schemas))
    if study.people is not None:
        people = study.people
        parts.append(digest(b"umpc person 1", people.column.encode(), b"%d" % people.records))
    return digest(b"umpc field set 1", *parts)
