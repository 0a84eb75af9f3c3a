"""The protocol object: everything that the rest of umpc asks of a protocol.

There is one instance of each protocol, which `protocols/registry.py` finds by its name. The node,
the coordinator, the planner and the commands ask it and never look at its name. To add a protocol:
derive from `StudyProtocol` in a folder of its own, and name the class in an entry point of the
group `umpc.protocols`. CONTRIBUTING.md has the steps.

| question | method |
|---|---|
| What may a study say? | `settings`, `chosen_by`, `complete`, `check`, `describe` |
| What leaves a node? | `columns_read`, `discloses`, `questions_of` |
| What is promised, and who is trusted? | `promise`, `trust` |
| How private is it? | `delta` |
| Who does what? | `attempt`, `node_class`, `coordinator_class`, `given_to_sides`, `dealing` |
| What will it cost, and miss? | `cost`, `describe_run`, `error`, `tuned`, `trial`, `variants` |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np

from umpc.crypto.signing import Credentials, Sign, Verify
from umpc.dp.events import Event
from umpc.errors import EncodingError, LocalProtocolError, StudyError
from umpc.mpc.chunks import Chunk
from umpc.planning.reference_table import PredictedError, ReferenceTable
from umpc.protocols.base.bins import read_bins
from umpc.protocols.base.coordinator import CoordinatorSide
from umpc.protocols.base.promise import (
    NOBODY,
    Promise,
    PromiseTerms,
    Trust,
    disclosed,
    to_sites,
    to_the_protected,
)
from umpc.protocols.base.seed_agreement import Entropy
from umpc.study import messages as m
from umpc.study.attempt import Attempt
from umpc.study.cost import Cost
from umpc.study.document import Study
from umpc.study.messages import Frame
from umpc.study.parts import Course, FieldText
from umpc.study.rules import words_of
from umpc.study.settings import HONEST, Settings, edge_change, keys_of, name_of, read_settings
from umpc.study.sizes import ClassCounts, Member, Sizes
from umpc.ustat.clear import Columns
from umpc.ustat.sampling import BALANCED, TWO_SAMPLE

if TYPE_CHECKING:
    from umpc.protocols.base.node import NodeSide
    from umpc.study.report import Report

EVALUATED = {
    "shared": "evaluated under secret sharing",
    "garbled": "garbled between their two owners",
    "triples": "evaluated by triples that their owners make",
    "none": "the nodes evaluate no set together",
}
Line = tuple[str, str]
"""A label, and what a person reads beside it."""
ExactKind = Literal["edges", "bins", "all", "none"]
EndsOf = Callable[["Report"], tuple[float, float]]
"""Both ends of an interval of a report."""


@dataclass(frozen=True)
class Trial:
    """A small study whose run time predicts that of the whole one.

    records: how many made-up or sampled records it takes. factor: how much more work the whole is.
    """

    study: Study
    records: int
    factor: float


class Dealing(Protocol):
    """The dealer's part of one attempt: a seed for each node, then the material of each chunk."""

    def seed_frame(self, node: int) -> Frame:
        """A node's seed."""
        ...

    def deal_one(self, chunk: Chunk) -> Iterator[tuple[int, Frame]]:
        """The material of one chunk: (node, frame) for each owner, in the attempt's order."""
        ...


@runtime_checkable
class AnsweringDealer(Dealing, Protocol):
    """The dealer of a protocol whose nodes ask once more, after all have said something."""

    def is_signed(self, node: int, key: bytes, question: bytes) -> bool:
        """Whether a node, by its public key, signed its statement of this attempt."""
        ...

    def answer(self, questions: Sequence[bytes], sign: Sign) -> Iterator[Frame]:
        """The dealer's signed word on all nodes' statements, once.

        Args: questions: each node's statement with its signature, which was checked.
        """
        ...


@runtime_checkable
class CheckingDealer(AnsweringDealer, Protocol):
    """A dealer who answers by α, which it has kept since people got its keys."""

    alpha: int | None


class HelperInbox(Protocol):
    """A node's frames at one helper, until all are there."""

    @property
    def data(self) -> bytes: ...

    def take(self, frame: Frame) -> None: ...


class HelperSide(Protocol):
    """One run of an attempt at a helper to which all nodes deliver, such as a shuffler."""

    def inbox(self, node: int) -> HelperInbox:
        """For a node's frames."""
        ...

    def deliver(self, node: int, message: bytes) -> None:
        """A node's whole message. Raises: RemoteProtocolError."""
        ...

    def heap(self) -> Iterator[Frame]:
        """The frames for the coordinator, once all nodes have delivered."""
        ...


@dataclass(frozen=True)
class Variant:
    """One way to run a statistic by a protocol, for the planner's table.

    label: the protocol, and what it runs with.
    entries: settings for a study file, beside those that are carried over from the user's file.
    edges: a number of edges for these sizes and a table like the sites'; None keeps the file's.
    is_tuned: whether the study takes the settings that `StudyProtocol.tuned` finds for the table.
    """

    label: str
    entries: Mapping[str, Any]
    edges: Callable[[Sizes, ReferenceTable], int | None] | None = None
    is_tuned: bool = False


class StudyProtocol(ABC):
    """One protocol."""

    settings: type[Settings]
    """The settings that a study of this protocol has; its tag is the protocol's name."""
    adversaries: tuple[str, ...] = (HONEST,)
    """The grades of promise for which docs/privacy.md has an argument."""
    samplings: tuple[str, ...] = (BALANCED, TWO_SAMPLE)
    """The ways to take E that a study of this protocol may ask for."""
    chosen_by: Mapping[str, str] = MappingProxyType({})
    """Settings by which a study file that names the usual protocol, or none, chooses this one."""
    questions: int = 0
    """How many questions a node answers after its release, each once, in every study."""
    protects_people: bool = False
    """Whether all noise follows from `Sizes.sensitivities`, which may be those of one person."""
    takes_several: bool = False
    """Whether a study may report several values (`umpc/study/parts.py`)."""
    estimates_variance: bool = False
    """Whether a kernel of pairs may be released over triples, with a sum for its variance."""

    shares_cells: bool = False
    """Whether disjoint cells of pairs share ε, under discrete Laplace noise in each."""

    @property
    def name(self) -> str:
        return name_of(self.settings)

    # --- the study -----------------------------------------------------------------------------

    def read_settings(self, entries: Mapping[str, Any], nodes: int, epsilon: str) -> Settings:
        """Settings from a study file's entries; what a file leaves out has its usual value.

        Args: nodes, epsilon: of the study, which some usual values depend on.

        Raises: StudyError that names the key.
        """
        if "bins" in keys_of(self.settings):
            entries = read_bins(entries)
        return read_settings(self.settings, entries)

    def read_lists(
        self, entries: Mapping[str, Any], read: Callable[[str], tuple[str, int]]
    ) -> Mapping[str, Any]:
        """A file's entries, with digest and length in place of each list of keys that they name.

        Args: read: the name of a list's file → both. Raises: StudyError.
        """
        return entries

    def complete_entries(self, entries: Mapping[str, Any]) -> Mapping[str, Any]:
        """A file's entries, with those that every study of this protocol has."""
        return entries

    def own_sums(
        self, settings: Mapping[str, Any], fields: Sequence[FieldText]
    ) -> tuple[str, str] | None:
        """The kernel over single records, and the estimator, that no file of this protocol names.

        None where a file names a statistic or a kernel. Args: settings, fields: the file's own.
        """
        return None

    def sure_statistic(self, study: Study) -> str:
        """The study's own name of its statistic, where rules here make sure that it is that one.

        Empty where only kernels tell.
        """
        return ""

    def words(self, study: Study) -> str:
        """Say in words what a study computes, for a site that decides."""
        return words_of(study)

    def check_ahead(self, study: Study) -> None:
        """Raises: StudyError where nothing of a study can be prepared ahead of its run."""
        raise StudyError(
            f"a study of protocol = {self.name!r} has nothing to prepare ahead; run it"
        )

    def usual_of_grade(self, entries: Mapping[str, Any], adversary: str) -> Mapping[str, Any]:
        """A file's entries, with the usual values that only this grade of promise has."""
        return entries

    def usual_of_degree(self, entries: Mapping[str, Any], degree: int) -> Mapping[str, Any]:
        """A file's entries, with the values that follow from others and from the records of a set.

        A value that a file leaves out follows here where all others but one would be refused.
        """
        return entries

    def complete(self, study: Study) -> Study:
        """The study with usual values for settings that depend on its kernels or fields."""
        return study

    def former_ways(self, study: Study) -> Iterator[Study]:
        """The studies that the file of this one may have been before, by another protocol.

        A site that released one of them is not asked for this one: it would be charged twice.
        """
        return iter(())

    def proven_lie(
        self, study: Study, evidence: bytes, verify: Verify, dealer: bytes
    ) -> tuple[str, str]:
        """The name of a node that lied, and how: all that evidence shows by itself.

        Args:
            verify: checks certificates, whatever the date.
            dealer: the dealer's certificate; it may be empty where its word is not needed.

        Raises: EncodingError where the evidence proves no lie; CertificateError.
        """
        raise EncodingError(f"no lie in a study of {self.name!r} has evidence")

    def check_grade(self, study: Study) -> None:
        """Raises: StudyError where the study's grade of promise has no argument here."""
        if study.adversary not in self.adversaries:
            raise StudyError(
                f"protocol = {self.name!r} makes no promise if nodes lie, and the study asks for "
                f'adversary = "{study.adversary}"; take protocol = "u-mpc" with a statistic of '
                f'comparisons such as kendall_tau, or adversary = "{HONEST}"'
            )

    def check_sampling(self, study: Study) -> None:
        """Raises: StudyError where the protocol does not take E in the study's way."""
        if study.sampling not in self.samplings:
            raise StudyError(
                f'sampling = "{study.sampling}" draws the sets of protocol = "u-mpc", and '
                f"{self.name!r} takes none that way; leave sampling out"
            )

    @abstractmethod
    def check(self, study: Study) -> None:
        """The protocol's own rules, as far as they need no data. Raises: StudyError."""

    def check_new_run(self, study: Study) -> None:
        """The protocol's rules for a study that no node has released (`registry.check_new_run`).

        Raises: StudyError where the estimate would be the same whatever the records are.
        """
        if reason := self.why_constant(study):
            raise StudyError(f"the estimate would be the same whatever the records are: {reason}")

    def why_constant(self, study: Study) -> str:
        """Why the estimate does not depend on the records, and what to do; empty if it does."""
        if any(kernel.interval.width for kernel in study.parsed_kernels):
            return ""
        return (
            "each of its kernels has one value for all records between the bounds; change the "
            "kernel, or the bounds of its fields"
        )

    def describe(self, study: Study) -> Iterator[Line]:
        """Lines for people, from the study alone, beside those that every study has."""
        yield from ()

    def describe_sums(self, study: Study) -> Iterator[Line]:
        """Lines about each released number, and how far it changes with a record."""
        sums = f"{len(study.kernels)} sum(s) over sets of {study.degree} record(s)"
        yield "", f"{study.estimator} of {sums}"
        for part in study.several:
            stratum = f" inside {study.stratum_field} = {part.stratum!r}" if part.stratum else ""
            share = study.exact_epsilon * study.split_by_name[part.name]
            told = f"{part.estimator} of {part.sums} sum(s), epsilon {share}"
            yield "  reports", f"{part.name!r}{stratum}: {told}"
        if study.strata_share_epsilon:
            yield "", "strata share epsilon: their sums change together no more than one may"
        for kernel, epsilon in zip(study.parsed_kernels, study.epsilons, strict=True):
            interval = kernel.interval
            yield "kernel", kernel.text
            yield "  range", f"[{interval.low}, {interval.high}], in steps of {kernel.unit}"
            change = edge_change(kernel, study.edge_grade)
            told = f"{change} per edge when one record is replaced; gets epsilon {epsilon}"
            yield "  changes by", told

    def has_links(self, study: Study) -> bool:
        """Whether nodes open links to each other in a run of the study."""
        return False

    def course(self, study: Study) -> Course | None:
        """The course that a study is a step of, whose ε is paid once; None without one."""
        return None

    def questions_of(self, study: Study) -> int:
        """How many questions a node answers after its release of this study, each once."""
        return self.questions

    def delivered(self, place: int, node: int, study: Study, kept: m.Delivery) -> Iterator[Frame]:
        """The frames that helper `place` gets from a node of a study with helpers, at every call.

        Args: node: its number. kept: what its ledger keeps.
        """
        raise LocalProtocolError(f"{self.name} has no helpers that nodes deliver to")

    def helper(self, attempt: Attempt, name: str, seed: bytes) -> HelperSide:
        """One run of an attempt at one helper. Args: seed: 32 bytes that all helpers share."""
        raise LocalProtocolError(f"{self.name} has no helpers that nodes deliver to")

    def columns_read(self, study: Study, node: str) -> frozenset[str]:
        """The columns that a node reads."""
        people = {study.people.column} if study.people else set()
        return frozenset({field.name for field in study.fields} | people)

    def discloses(self, study: Study) -> tuple[str, ...]:
        """The fields whose raw values the coordinator is shown, of all records."""
        return ()

    def numbers_records(self, study: Study) -> bool:
        """Whether what a node sends depends on the order of its records, which is then secret."""
        return True

    # --- the promise ---------------------------------------------------------------------------

    def promise(self, terms: PromiseTerms) -> Promise:
        """The promise to records or people, to the sites, and what is disclosed, in words."""
        return Promise(
            self.promise_to_the_protected(terms),
            self.promise_to_sites(terms),
            disclosed(terms, self.released(terms)),
        )

    def promise_of(self, study: Study) -> Promise:
        """The promise of a study before it runs."""
        return self.promise(PromiseTerms.of_study(study))

    def promise_to_the_protected(self, terms: PromiseTerms) -> str:
        """The promise to each record, or to each person."""
        return to_the_protected(terms)

    def promise_to_sites(self, terms: PromiseTerms) -> str:
        """Who may do what without weakening epsilon, and who is trusted."""
        return to_sites(terms, self.trusted(terms))

    def released(self, terms: PromiseTerms) -> str:
        """The release, in words."""
        return "one noisy number" if terms.sums == 1 else f"{terms.sums} noisy sums"

    def trusted(self, terms: PromiseTerms) -> Trust:
        """Whom the sites must trust beside themselves."""
        return NOBODY

    def trust(self, study: Study) -> Trust:
        """Whom the sites of a study must trust beside themselves."""
        return self.trusted(PromiseTerms.of_study(study))

    def noise_withstands(self, study: Study) -> str:
        """Against whom the noise protects, in words."""
        return f"withstands {study.max_colluding} of {len(study.nodes)} nodes that collude"

    # --- the report ----------------------------------------------------------------------------

    def value_without_noise(self, is_all: bool, sets: str) -> str:
        """The value that the interval of the noise is for, in words.

        Args: is_all: whether E is all sets. sets: the plural name of a set, such as "pairs".
        """
        return f"the value on {'all' if is_all else 'the sampled'} {sets}"

    def describe_noise(self, noise: str) -> str:
        """The law of the noise, for the report. Args: noise: the study's setting."""
        return f"noise {noise!r}"

    def describe_coins(self, coins: str) -> str:
        """Whom the coins of a committee's noise depend on, in words; empty where none are tossed.

        Args: coins: of the study or of its report.
        """
        return ""

    def with_less_noise(self, study: Study) -> Study | None:
        """The study with less noise for more bytes, where that is not the usual; else None."""
        return None

    def compare_noise(self, attempt: Attempt) -> Iterator[Line]:
        """The noise of a run beside that of a plainer mechanism; nothing where there is none."""
        yield from ()

    def describe_gain(self, noise: str, nodes: int, max_colluding: int) -> str:
        """How much less noise the study could have had, for the report; empty where none."""
        return ""

    def describe_collusion(self, max_colluding: int) -> str:
        """The nodes that may collude without learning more, for the report."""
        return f"up to {max_colluding} may collude"

    def describe_evaluation(self, backend: str) -> str:
        """How sets of records of several owners are evaluated, for the report."""
        return EVALUATED[backend]

    def describe_helpers(self) -> Iterator[tuple[str, str, str]]:
        """Rows of the report about processes without data: a label, a number, a note."""
        yield from ()

    # --- the privacy ---------------------------------------------------------------------------

    def delta(self, sizes: Sizes) -> Fraction:
        """δ of the release: what the study asks for, and what finite draws add."""
        return sizes.study.exact_delta

    def known_delta(self, study: Study) -> Fraction:
        """The part of δ that follows from the study alone."""
        return study.exact_delta

    def events(self, sizes: Sizes) -> tuple[Event, ...]:
        """The mechanism of the release, for a site whose ledger composes closer than ε and δ.

        Empty where nothing is known but that the release is (ε, δ)-DP.
        """
        return ()

    def known_events(self, study: Study) -> tuple[Event, ...]:
        """A mechanism that the release costs no more than, from the study alone; as `events`."""
        return ()

    # --- the sides -----------------------------------------------------------------------------

    def approved_as(self, study: Study) -> Study:
        """The study that a person at a site accepts, where another one follows from it."""
        return study

    def check_members(self, study: Study, members: Sequence[Member], keys: Sequence[bytes]) -> None:
        """The dealer's check of members who have agreed, as far as it depends on the protocol.

        Args: keys: the nodes' public keys, by their certificates. Raises: RemoteProtocolError.
        """
        return

    def attempt(
        self, study: Study, members: Sequence[Member], openings: Sequence[bytes]
    ) -> Attempt:
        """The attempt that these members and openings define. Raises: RemoteProtocolError."""
        return Attempt(study, members, openings)

    def node(
        self,
        own: Credentials,
        study: Study,
        columns: Mapping[str, np.ndarray],
        records: int,
        entropy: Entropy,
    ) -> NodeSide:
        """One node's part. Args: as in SeedAgreement."""
        kind, more = self.node_class(study), self.given_to_sides(study)
        side = kind(own, study, columns, records, entropy, *more)
        side.own_protocol = self
        return side

    def given_to_sides(self, study: Study) -> tuple[Any, ...]:
        """More arguments of the classes of both sides, after those of `node` and `coordinator`."""
        return ()

    def node_class(self, study: Study) -> type[NodeSide]:
        """The class of a node's part, loaded where a node needs it."""
        raise NotImplementedError

    def coordinator(self, study: Study, verify: Verify) -> CoordinatorSide:
        """The coordinator's part of a checked study.

        Args: verify: checks the nodes' certificates.
        """
        side = self.coordinator_class(study)(study, verify, *self.given_to_sides(study))
        side.protocol = self
        return side

    @abstractmethod
    def coordinator_class(self, study: Study) -> type[CoordinatorSide]:
        """The class of the coordinator's part."""

    def dealing(self, attempt: Attempt, entropy: Entropy) -> Dealing | None:
        """The dealer's part; None for the material of edges under masks, or for no material."""
        return None

    # --- cost and error ------------------------------------------------------------------------

    @abstractmethod
    def cost(self, attempt: Attempt) -> Cost:
        """Rounds and bytes of an attempt, exactly."""

    @abstractmethod
    def describe_run(self, attempt: Attempt) -> Iterator[Line]:
        """Lines for people: noise, rounds and bytes of a run over so many records."""

    @abstractmethod
    def error(self, attempt: Attempt, table: ReferenceTable) -> PredictedError:
        """How far the estimate will be from the statistic of all sets of a table like the sites'.

        Raises: StudyError where that cannot be told.
        """

    def expected_report(self, attempt: Attempt, table: ReferenceTable) -> Report:
        """The report of a run over a table whose noise happens to be 0, for its intervals.

        Raises: StudyError for a protocol that cannot tell it.
        """
        raise StudyError(
            f"intervals are predicted for pairs and for the grid, and this study is of {self.name}"
        )

    def half_width(
        self, attempt: Attempt, table: ReferenceTable, ends: EndsOf | None = None
    ) -> float | None:
        """Half the 95 % interval that a report will have, as a mean; None where it has none.

        Args: ends: of another interval of the report.
        Raises: StudyError for a protocol that cannot tell it, or by `ends`.
        """
        report = self.expected_report(attempt, table)
        if ends is None:
            return report.half_width
        low, high = ends(report)
        return (high - low) / 2

    def tuned(self, attempt: Attempt, table: ReferenceTable) -> Study | None:
        """The study with the settings of the least error over a table like the sites' own.

        None where the protocol has no setting that trades one error for another.

        Raises: StudyError where errors cannot be told.
        """
        return None

    def describe_tuned(self, attempt: Attempt, table: ReferenceTable) -> Iterator[Line]:
        """Lines for people about the choices that `tuned` compares, beside the best one."""
        yield from ()

    def sets_used(self, attempt: Attempt) -> int:
        """How many sets of records the estimate averages over."""
        return attempt.sizes.edges

    def trial(self, study: Study, records: int) -> Trial | None:
        """A trial of a study that nodes run alone; None where nodes evaluate edges together."""
        return None

    def table_work(self, attempt: Attempt) -> tuple[float, float] | None:
        """Seconds of work on tables that pass through the coordinator; None where there are none.

        Returns: before the data at the dealer, and on the data at a node, about.
        """
        return None

    def trial_over_edges(self, study: Study) -> Study:
        """The study without noise over all sets, to measure the work for one edge."""
        return study.replaced(edges="all", max_colluding=0)

    def variants(self, error: float | None) -> Iterator[Variant]:
        """The ways to run a statistic by this protocol, for the planner's table.

        Args: error: a root mean squared error that is asked for.
        """
        yield Variant(self.name, {})

    def carried(self, entries: Mapping[str, Any], *, own: bool) -> dict[str, Any]:
        """The settings of a study file that this protocol takes over when a planner turns to it.

        Args: own: whether the file is of this protocol.
        """
        return {}

    def quantised(
        self, study: Study, columns: Columns, first: int, counts: Sequence[ClassCounts]
    ) -> float | None:
        """The statistic of the records' bins; None where no record becomes a bin.

        Args: columns: of all nodes, the first class first. first: how many records that class has.
        counts: of every node.
        """
        return None

    def exact_over_edges(self) -> ExactKind:
        """Which value without noise the estimate is compared with, where all records are known.

        "edges": that over E. "bins": that of the records' bins. "all": that over all sets.
        """
        return "edges"
