"""People with one value each: the protocol object, and the coordinator's side.

Both aggregators are nodes of a grid whose tables are shares of one histogram. Beside the grid, n
counts once, and nobody goes on unless both have signed whom they count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from umpc.crypto.signing import Verify
from umpc.errors import StudyError
from umpc.mpc.backends import predict
from umpc.mpc.chunks import require
from umpc.people.messages import BOX_BYTES
from umpc.protocols.base.coordinator import CoordinatorSide
from umpc.protocols.base.promise import DEALER, Promise, PromiseTerms, Trust
from umpc.protocols.base.protocol import Dealing, Line, StudyProtocol, Variant
from umpc.protocols.base.seed_agreement import Entropy
from umpc.protocols.grid.attempt import GridAttempt, total_statement
from umpc.protocols.grid.binding import cost_of, grid_of, ring_of
from umpc.protocols.grid.protocol import GridCoordinator, GridProtocol, TotalOfTables
from umpc.protocols.people.checked import (
    ASKS,
    EXCHANGES,
    ROUNDS,
    CheckedTotal,
    PeopleDealing,
    bytes_by_step,
)
from umpc.protocols.people.settings import MOST_CELLS, PeopleSettings, check_people
from umpc.protocols.people.terms import (
    check_count,
    check_signed,
    key_bytes_of,
    survey_of,
    terms_of,
)
from umpc.study import messages as m
from umpc.study.attempt import Attempt
from umpc.study.cost import Cost, Measured, sent_by_round
from umpc.study.document import Study
from umpc.study.messages import Frame
from umpc.study.report import Report
from umpc.study.settings import HONEST, LYING_NODES, Settings
from umpc.study.sizes import Member, Sizes

if TYPE_CHECKING:
    from umpc.protocols.base.node import NodeSide


class PeopleProtocol(GridProtocol):
    """Noisy sums over people who have one value each, and send one message."""

    settings: type[Settings] = PeopleSettings
    shares_cells = False
    adversaries: tuple[str, ...] = (HONEST, LYING_NODES)
    chosen_by: Mapping[str, str] = MappingProxyType({})
    protects_people = False
    counted = "people who are counted"
    to, nodes, others = "To every person", "aggregators", "any other people"
    kept, value = "every other person keeps epsilon", "a person's value"
    spent = "the answers are spent, and people must come again"
    neighbours = "person: with another value of this person"
    several = (
        "A person with several places has this epsilon once for each place. An enrolment has an "
        "account over all its studies; an anonymous token has none."
    )
    told = (
        "How many people are counted is public, and so is who came: everybody may read the list of "
        "counted places."
    )
    check_grade = StudyProtocol.check_grade
    usual_of_grade = StudyProtocol.usual_of_grade
    proven_lie = StudyProtocol.proven_lie
    check_ahead = StudyProtocol.check_ahead
    former_ways = StudyProtocol.former_ways
    read_settings = StudyProtocol.read_settings

    def read_lists(
        self, entries: Mapping[str, Any], read: Callable[[str], tuple[str, int]]
    ) -> Mapping[str, Any]:
        people = entries.get("people")
        if not isinstance(people, Mapping) or "keys" not in people or "places" in people:
            return entries
        keys, places = read(str(people["keys"]))
        return {**entries, "people": {**people, "keys": keys, "places": places}}

    def check(self, study: Study) -> None:
        check_people(study)
        super().check(study)
        grid = grid_of(study)
        if not grid.counts:
            raise StudyError(
                f'a study of protocol = "{study.protocol}" counts people by their cells, and no '
                "cell tells all that this kernel takes of a person; take a kernel of plain fields"
            )
        if not 2 <= grid.cells <= MOST_CELLS:
            raise StudyError(
                f'a study of protocol = "{study.protocol}" has 2 to {MOST_CELLS:,} cells, and '
                f"these fields have {grid.cells:,}: {grid.text}; give the fields bins"
            )
        # before anybody comes: the sum of all of them must fit
        ring_of(Sizes(study, terms_of(study).places))

    def describe(self, study: Study) -> Iterator[Line]:
        yield from super().describe(study)
        yield from self.terms_in_words(study)

    def terms_in_words(self, study: Study) -> Iterator[Line]:
        """Lines that say who may come, and when."""
        people = terms_of(study)
        kind = "of enrolments" if people.enrolled else "each with a token"
        yield "places", f"{people.places:,}, {kind}"
        yield "fewest people", f"{people.fewest:,}; with fewer there is no result"
        yield (
            "bytes a place",
            f"{key_bytes_of(study)} dealt to each aggregator; a person sends 2 × {BOX_BYTES}",
        )
        yield "open", f"from {people.opens} to {people.closes}"
        if people.signed:
            yield "counted", f"{people.signed.n:,} people, as both aggregators signed"

    def promise(self, terms: PromiseTerms) -> Promise:
        return Promise(
            self.promise_to_the_protected(terms),
            self.promise_to_sites(terms),
            f"The study releases {self.released(terms)}. {self.told}",
        )

    def promise_to_the_protected(self, terms: PromiseTerms) -> str:
        size = f"{terms.epsilon:g}"
        but = "" if terms.adversary == HONEST else ", but for a probability of about 2^-64"
        return (
            f"To every {self.neighbours}, any release would have between "
            f"e^-{size} and e^{size} times its probability{but}. {self.several}"
        )

    def promise_to_sites(self, terms: PromiseTerms) -> str:
        nodes = self.nodes
        liars = f"up to {terms.max_colluding} of {terms.nodes} {nodes} and {self.others}"
        if terms.adversary != HONEST:
            return (
                f"{self.to}: if the dealer follows the protocol and colludes with nobody, the "
                f"coordinator, {liars} may send anything: {self.kept}. Two {nodes} under one "
                "administrator are one. A lie about the table is found before any share of a "
                f"result is made. Nobody is named then, {self.spent}; so it is if a line is cut at "
                "that moment. A liar can spoil the result."
            )
        return (
            f"{self.to}: if everybody follows the protocol, the coordinator, {liars} may pool "
            f"what they see: {self.kept}. No two of the dealer and both {nodes} may collude, nor "
            f"may the dealer and the coordinator. Two {nodes} under one administrator are one. The "
            f"dealer, each {nodes[:-1]} and the coordinator could read {self.value} if it changed "
            "its program, and nobody would notice."
        )

    def trusted(self, terms: PromiseTerms) -> Trust:
        if terms.adversary != HONEST:
            return DEALER
        return Trust("helpers", f"dealer, {self.nodes}, coordinator")

    def describe_evaluation(self, backend: str) -> str:
        return f"all sets at once, from one histogram of all {self.counted} that nobody sees"

    def value_without_noise(self, is_all: bool, sets: str) -> str:
        return f"the same value: the histogram gives all {sets} of the {self.counted}"

    def approved_as(self, study: Study) -> Study:
        # who comes decides nothing that a site was asked about
        return survey_of(study)

    def check_members(self, study: Study, members: Sequence[Member], keys: Sequence[bytes]) -> None:
        check_signed(study, members, keys)

    def node_class(self, study: Study) -> type[NodeSide]:
        from umpc.protocols.people.node import PeopleNode

        return PeopleNode

    def coordinator_class(self, study: Study) -> type[CoordinatorSide]:
        return PeopleCoordinator

    def dealing(self, attempt: Attempt, entropy: Entropy) -> Dealing:
        if attempt.study.adversary == HONEST:
            return super().dealing(attempt, entropy)
        return PeopleDealing(require(attempt, GridAttempt), entropy)

    def cost(self, attempt: Attempt) -> Cost:
        return _cost(require(attempt, GridAttempt))

    def variants(self, error: float | None) -> Iterator[Variant]:
        """None: a planner compares ways for tables at sites."""
        yield from ()


def _cost(attempt: GridAttempt) -> Cost:
    """Rounds and bytes of an attempt, exactly."""
    if attempt.study.adversary == HONEST:
        return cost_of(attempt)
    rest, sent = predict(attempt), sent_by_round(bytes_by_step(attempt))
    return replace(rest, sent=(sent, sent), rounds=rest.rounds + ROUNDS)


class PeopleTotal(TotalOfTables):
    """The total of one attempt, and its check."""

    exchanges = EXCHANGES
    asks = ASKS

    def __init__(self, attempt: GridAttempt, keys: Sequence[bytes], verify: Verify):
        super().__init__(attempt, keys)
        self._said = CheckedTotal(attempt, keys)
        self._verify = verify

    def add(self, node: int, frame: Frame) -> bool:
        if self._came[node] < self.attempt.layout.frames:
            return super().add(node, frame)
        self._said.due(node).take(frame, self.attempt.members[node].name)
        return True

    def end_exchange(self) -> None:
        said = self._said
        if all(each.is_complete for each in said.commitments):
            said.check_commitments(None)
        elif all(each.is_complete for each in said.statements) and not said.total:
            said.total = total_statement(self.attempt.id, self.digest)
            said.check_statements(None)

    def told(self, node: int) -> Iterator[Frame]:
        said = self._said
        if not said.total:
            yield from self.total()
        else:
            both = said.commitments if said.commitments[0].is_complete else said.statements
            yield from both[1 - node].frames()

    @property
    def questions(self) -> list[bytes]:
        """Both signatures of the total. The dealer gets a digest of it."""
        return [self.digest + each.data for each in self._said.statements]

    def hear(self, frame: Frame, dealer: bytes) -> bool:
        return self._said.hear(frame, dealer, self._verify)

    def check_signed(self, signatures: Sequence[bytes]) -> None:
        """The check. Args: signatures: what both opened. Raises: FailedCheck."""
        self._said.check(signatures)


class PeopleCoordinator(GridCoordinator):
    """One study, one attempt. Lists are in the study's order of nodes."""

    def _proved_total(self, attempt: GridAttempt) -> TotalOfTables:
        return PeopleTotal(attempt, self._keys, self._verify)

    def check_sizes(self, members: Sequence[Member]) -> None:
        # a plan has no certificates, and nobody has signed anything
        if self._keys:
            check_signed(self.study, members, self._keys)
        super().check_sizes(members)

    def replay(self, answers: Sequence[m.Released], measured: Measured) -> Report:
        check_count(self.study, dict(zip(self.names, answers, strict=True)))
        return super().replay(answers, measured)
