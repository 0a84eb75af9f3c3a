"""The grid: the protocol object.

*Coordinator.* The coordinator's side of a grid: it adds up masked histograms, and later the nodes'
shares.

*Reveals*: masked histograms and their total, which are uniform; shares that are uniform given their
sums; and the noisy sums.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from umpc.crypto import field
from umpc.crypto.signing import Verify
from umpc.errors import LocalProtocolError, ProvenLie, RemoteProtocolError, UmpcError
from umpc.mpc.arrays import Words
from umpc.mpc.chunks import require
from umpc.planning.reference_table import PredictedError, ReferenceTable
from umpc.protocols.base.bins import bias_of_bins
from umpc.protocols.base.coordinator import CoordinatorAggregation, CoordinatorSide
from umpc.protocols.base.promise import PromiseTerms
from umpc.protocols.base.protocol import Dealing, ExactKind, Line, StudyProtocol, Trial, Variant
from umpc.protocols.base.seed_agreement import Entropy
from umpc.protocols.grid.attempt import GridAttempt, check_signed, total_statement
from umpc.protocols.grid.binding import (
    cost_of,
    grid_attempt,
    grid_of,
    proof_seconds,
    ring_for_members,
    ring_of,
    statistic_of_grid,
    work_seconds,
)
from umpc.protocols.grid.coarse import binned_table, check_coarse, described, limits_of
from umpc.protocols.grid.cross_terms import DealerlessAttempt, transfers_of
from umpc.protocols.grid.evidence import keeping_evidence, proven_by
from umpc.protocols.grid.lookup_proof import (
    cells_by_class,
    check_table,
    shapes_of,
    table_hash,
    verifiers,
)
from umpc.protocols.grid.masked_form import HISTOGRAM, STEP, TOTAL, factor_of
from umpc.protocols.grid.operators import Grid
from umpc.protocols.grid.settings import (
    BACKEND,
    EDGES,
    GridSettings,
    check_grade,
    check_settings,
)
from umpc.protocols.grid.verified import (
    EXCHANGES,
    DealerAnswer,
    FieldVector,
    Part,
    VerifiedTranscript,
    bytes_of,
    incomplete,
    inverses_of_cells,
)
from umpc.protocols.u_mpc.protocol import UMpc, UMpcCoordinator, traffic
from umpc.protocols.u_mpc.settings import UMpcSettings, noisy_sums
from umpc.protocols.u_mpc.theory import error_of_sums
from umpc.study.attempt import Attempt
from umpc.study.cost import Cost
from umpc.study.document import Study
from umpc.study.making_report import Limits, impossible
from umpc.study.messages import Frame
from umpc.study.report import SumReport
from umpc.study.settings import HONEST, LYING_NODES, Settings
from umpc.study.sizes import ClassCounts, Member, Sizes
from umpc.ustat.clear import Columns

if TYPE_CHECKING:
    from umpc.protocols.base.node import NodeSide

FEW_RECORDS = 3
"""The records of a node in a trial without a dealer: its time grows with their number of bits."""
TRIAL_RECORDS = 1000
"""The records of a trial run: its time depends on the number of cells."""


class GridProtocol(UMpc):
    """Noisy sums over all sets, from one masked histogram; chosen by backend = grid."""

    settings: type[Settings] = GridSettings
    samplings = StudyProtocol.samplings
    adversaries: tuple[str, ...] = (HONEST, LYING_NODES)
    chosen_by: Mapping[str, str] = MappingProxyType({"backend": BACKEND})
    estimates_variance = False
    usual_of_degree = StudyProtocol.usual_of_degree
    complete = StudyProtocol.complete
    """A grid is over all sets, so nothing is left open."""

    def numbers_records(self, study: Study) -> bool:
        return False  # a node counts its records, and adds whole numbers: in any order the same

    def check_grade(self, study: Study) -> None:
        check_grade(study)

    def proven_lie(
        self, study: Study, evidence: bytes, verify: Verify, dealer: bytes
    ) -> tuple[str, str]:
        return proven_by(evidence, study, verify, dealer)

    def promise_to_sites(self, terms: PromiseTerms) -> str:
        told = super().promise_to_sites(terms)
        if terms.adversary == HONEST or terms.max_colluding == terms.nodes - 1:
            return told
        few = terms.max_colluding + 1
        return f"{told} The first {few} of the nodes check what is sent, for all others too."

    def has_links(self, study: Study) -> bool:
        talk = study.coins != "none" or study.preprocessing == "none"
        return len(study.nodes) > 1 and talk

    def read_settings(self, entries: Mapping[str, Any], nodes: int, epsilon: str) -> Settings:
        return super().read_settings({"edges": EDGES, **entries}, nodes, epsilon)

    def check(self, study: Study) -> None:
        check_settings(study)
        check_coarse(study)
        grid = grid_of(study)
        if study.adversary != HONEST:
            check_table(study, require(grid, Grid))

    def describe(self, study: Study) -> Iterator[Line]:
        yield from super().describe(study)
        grid = grid_of(study)
        yield "grid", f"{grid.cells:,} cells: {grid.text}"
        yield from described(study)
        if study.preprocessing == "none":
            yield "cross terms", "by transfers between every two nodes; there is no dealer"

    def value_without_noise(self, is_all: bool, sets: str) -> str:
        return "the same value: the grid is over all sets"

    def describe_evaluation(self, backend: str) -> str:
        return "all sets at once, from one histogram of all records that nobody sees"

    def attempt(
        self, study: Study, members: Sequence[Member], openings: Sequence[bytes]
    ) -> Attempt:
        return grid_attempt(study, members, openings)

    def node_class(self, study: Study) -> type[NodeSide]:
        from umpc.protocols.grid.node import GridNode
        from umpc.protocols.grid.node_without_dealer import DealerlessNode

        if study.adversary != HONEST:
            from umpc.protocols.grid.verified_node import VerifiedNode

            return VerifiedNode
        return DealerlessNode if study.preprocessing == "none" else GridNode

    def coordinator_class(self, study: Study) -> type[CoordinatorSide]:
        return GridCoordinator

    def dealing(self, attempt: Attempt, entropy: Entropy) -> Dealing:
        from umpc.protocols.grid.attempt import GridDealing
        from umpc.protocols.grid.verified import VerifiedDealing

        kind = GridDealing if attempt.study.adversary == HONEST else VerifiedDealing
        return kind(require(attempt, GridAttempt), entropy)

    def cost(self, attempt: Attempt) -> Cost:
        return cost_of(require(attempt, GridAttempt))

    def describe_run(self, attempt: Attempt) -> Iterator[Line]:
        sizes = attempt.sizes
        cost = self.cost(attempt)
        yield "sets", f"all {sizes.edges:,} of {sizes.records:,} records"
        yield from self.describe(attempt.study)
        yield from self._noise_lines(attempt)
        yield "rounds", f"{cost.rounds}: {_rounds_in_words(attempt)}, and the reveal"
        yield "bytes", traffic(cost)

    def error(self, attempt: Attempt, table: ReferenceTable) -> PredictedError:
        error = error_of_sums(attempt.sizes, table, self.noise(attempt.sizes))
        settings = attempt.study.settings_as(GridSettings)
        if settings.bins:
            return replace(error, bins=bias_of_bins(binned_table(table).statistic, table))
        if settings.levels:
            small = table.small
            coarse = statistic_of_grid(attempt.study, small.columns, small.first)
            return replace(error, bins=bias_of_bins(coarse, table))
        return error

    def quantised(
        self, study: Study, columns: Columns, first: int, counts: Sequence[ClassCounts]
    ) -> float | None:
        settings = study.settings_as(GridSettings)
        if not (settings.bins or settings.levels):
            return None
        return statistic_of_grid(study, columns, first)

    def trial(self, study: Study, records: int) -> Trial:
        if study.preprocessing == "none":
            nodes = len(study.nodes)
            pair = self.trial_over_edges(study).replaced(nodes=study.nodes[:2])
            few = min(records, FEW_RECORDS * len(pair.nodes))
            bits = [(records // nodes).bit_length(), (few // len(pair.nodes)).bit_length()]
            # the trial is both ends of one link, and a node has an end of each of its own
            ends = (nodes - 1) / len(pair.nodes)
            return Trial(pair, few, ends * max(1, bits[0]) / max(1, bits[1]))
        return Trial(study, min(records, TRIAL_RECORDS), 1.0)

    def table_work(self, attempt: Attempt) -> tuple[float, float] | None:
        if attempt.study.preprocessing == "none":
            return None
        own = require(attempt, GridAttempt)
        settings, work = attempt.study.settings, work_seconds(own.grid)
        is_proved = attempt.study.adversary != HONEST and not settings.shares_tables
        values = sum(shape.products for shape in shapes_of(own)) if is_proved else 0
        return work, work + proof_seconds(values)

    def former_ways(self, study: Study) -> Iterator[Study]:
        # files of this grade that named no backend were of pairs
        if study.adversary == HONEST:
            return
        settings = study.settings_as(GridSettings)
        if settings.bins or settings.levels:
            return
        pairs = UMpc()
        for edges in ("", EDGES):
            own = UMpcSettings(
                edges=edges,
                noise=settings.noise,
                delta=settings.delta,
                dealer=settings.dealer,
            )
            other = study.replaced(settings=own)
            try:
                pairs.check(other)  # else it was refused
                yield pairs.complete(other)
            except UmpcError:
                return

    def exact_over_edges(self) -> ExactKind:
        return "all"

    def variants(self, error: float | None) -> Iterator[Variant]:
        yield Variant(self.name, {})
        yield Variant(f"{self.name}, no dealer", {"preprocessing": "none"})

    def carried(self, entries: Mapping[str, Any], *, own: bool) -> dict[str, Any]:
        if own and entries.get("preprocessing") == "none":
            return {"preprocessing": "none"}
        dealer = entries.get("dealer") or {"name": "dealer", "address": ""}
        return {"dealer": dealer}


def _rounds_in_words(attempt: Attempt) -> str:
    """The rounds before the reveal; without a dealer with the transfers of the busiest node."""
    if not isinstance(attempt, DealerlessAttempt):
        return "masked histograms and their total"
    most = max(transfers_of(attempt.members, attempt.ranges, attempt.width))
    return f"extensions and corrections of at most {most:,} transfers a node"


# --- coordinator ----------------------------------------------------------------------------------


class TotalOfTables(CoordinatorAggregation):
    """The total of one attempt: (cells,) of the ring, and how many frames came from each node.

    Args: keys: the nodes' public keys.
    """

    def __init__(self, attempt: GridAttempt, keys: Sequence[bytes]):
        self.attempt = attempt
        self._keys = keys
        self._total = np.zeros(attempt.layout.cells, dtype=attempt.ring.dtype)
        self._came = [0] * len(attempt.members)

    def add(self, node: int, frame: Frame) -> bool:
        layout = self.attempt.layout
        name = self.attempt.members[node].name
        # spec/grid.py, `run`: ĥ_u, uniform without the node's seed
        start, values = layout.heard(HISTOGRAM, self._came[node], frame, name)
        # Ĥ = Σ ĥ_u = H + a
        cells = slice(start, start + len(values))
        self._total[cells] = layout.ring.plus(self._total[cells], values)
        self._came[node] += 1
        return self._came[node] == layout.frames

    def told(self, node: int) -> Iterator[Frame]:
        return self.total()

    def total(self) -> Iterator[Frame]:
        """The frames of the total, each time anew."""
        layout = self.attempt.layout
        if any(came != layout.frames for came in self._came):
            raise LocalProtocolError("the total is told when all masked histograms have come")
        for start, stop in layout.ranges:
            yield layout.frame(TOTAL, start, self._total[start:stop])

    @property
    def digest(self) -> bytes:
        """The SHA-256 of the total."""
        state = hashlib.sha256()
        for frame in self.total():
            state.update(frame.payload)
        return state.digest()

    def check_signed(self, signatures: Sequence[bytes]) -> None:
        # each node's signature, where it comes from
        statement = total_statement(self.attempt.id, self.digest)
        check_signed(statement, self.attempt.members, self._keys, signatures, None)


class VerifiedTotal(TotalOfTables):
    """The total of one attempt whose nodes may lie, and all that they say of it.

    It keeps each masked table, so that it can name a node whose table is not its list.
    """

    exchanges = asks = EXCHANGES

    def __init__(self, attempt: GridAttempt, keys: Sequence[bytes], verify: Verify):
        super().__init__(attempt, keys)
        nodes = range(len(attempt.members))
        self._verify = verify
        self.transcript = VerifiedTranscript(attempt, keys)
        self.answer = DealerAnswer(attempt)
        self.tables = [FieldVector(HISTOGRAM, attempt.layout) for _ in nodes]
        self._short: list[tuple[Part, ...]] = []
        self._looked: list[Words] = []
        self._counted: list[list[int]] = []
        self._exchange = 0
        self._root = b""
        self._due = self._parts_due()

    def _parts_due(self) -> list[list[Part]]:
        return [incomplete(each.parts[self._exchange]) for each in self.transcript.said]

    def add(self, node: int, frame: Frame) -> bool:
        name = self.attempt.members[node].name
        due = self._due[node]
        if not self._exchange and not self.tables[node].is_complete:
            super().add(node, frame)
            self.tables[node].take(frame, name)
            return False
        part = due[0] if due else self.transcript.said[node].opening
        part.take(frame, name)
        if part.is_complete and due:
            due.pop(0)
        return not due

    def end_exchange(self) -> None:
        """All nodes have said all of an exchange, or last the dealer.

        Raises: RemoteProtocolError, ProvenLie naming a node.
        """
        if self.answer.is_complete:
            # else it is checked when all nodes have signed
            if not self.transcript.all_verify:
                self._check_all([each.signature.data for each in self.transcript.said])
            return
        if self._exchange == 0:
            self.transcript.check_opened(None)
            for each, table, name in zip(
                self.transcript.said, self.tables, self.transcript.names, strict=True
            ):
                state = table_hash(each.opening.salt, len(table.bytes))
                state.update(table.bytes)
                if each.opening.table != state.digest():
                    raise RemoteProtocolError(
                        f"other bytes than {name} signed came: it sent another table; it must be "
                        "started anew",
                        culprit=name,
                        step=STEP,
                    )
            self._root = self.transcript.root(bytes_of(self._total))
            # of each table, what its check needs; evidence of a lie has the table itself
            at_cells = inverses_of_cells(self._root, len(self._total))
            classes = cells_by_class(self.attempt)
            for table in self.tables:
                self._looked.append(field.inner_fk(table.values, at_cells))
                self._counted.append([int(field.total(table.values[each])) for each in classes])
            self._short = [(each.shortened(self.attempt.id),) for each in self.transcript.said]
        self._said = [each.parts[self._exchange] for each in self.transcript.said]
        self._told_total = self._exchange == 0
        self._exchange += 1
        if self._exchange < EXCHANGES:
            self._due = self._parts_due()

    def told(self, node: int) -> Iterator[Frame]:
        if self._told_total:
            yield from self.total()
        # who does not check gets what fixes R, with the total
        short = self._short if self._told_total else []
        said = self._said if node in verifiers(self.attempt) else short
        for number, parts in enumerate(said):
            if number != node:
                for part in parts:
                    yield from part.frames()

    @property
    def questions(self) -> list[bytes]:
        """All nodes' signed statements. Raises: RemoteProtocolError naming a node."""
        return self.transcript.questions(self._root)

    def hear(self, frame: Frame, dealer: bytes) -> bool:
        return self.answer.hear(frame, dealer, self._verify)

    def check_signed(self, signatures: Sequence[bytes]) -> None:
        """All that the nodes said holds, with the dealer's answer; all verifiers say so, too.

        Raises: ProvenLie, RemoteProtocolError naming who lied.
        """
        if self.transcript.all_verify:
            self._check_all(signatures)
        else:
            self.transcript.check_verdicts(self._root, signatures, None)

    def _check_all(self, signatures: Sequence[bytes]) -> None:
        heard = self.transcript, self._root, self.answer
        with keeping_evidence(*heard, self._verify, self.tables):
            self._check_signed(signatures)
        self.tables = []

    def _check_signed(self, signatures: Sequence[bytes]) -> None:
        self.transcript.check_statements(self._root, signatures, self.answer, None)
        for node, (looked, counted) in enumerate(zip(self._looked, self._counted, strict=True)):
            found = self.transcript.check_proof(node, self._root, self.answer)
            # a node's own table must be its own list
            is_table = np.array_equal(found, looked)
            if not is_table or not self.transcript.classes_fit(counted, self.answer, node):
                name = self.transcript.names[node]
                raise ProvenLie(
                    f"the table of {name} is not the histogram of its records; nothing was "
                    "released",
                    culprit=name,
                    step=STEP,
                )


class GridCoordinator(UMpcCoordinator):
    """One study, one attempt. Lists are in the study's order of nodes."""

    _aggregation: TotalOfTables | None = None

    @property
    def aggregation(self) -> CoordinatorAggregation | None:
        if self.study.preprocessing == "none":
            return None
        if self._aggregation is None:
            attempt = require(self.attempt, GridAttempt)
            self._aggregation = (
                TotalOfTables(attempt, self._keys)
                if self.study.adversary == HONEST
                else self._proved_total(attempt)
            )
        return self._aggregation

    def _proved_total(self, attempt: GridAttempt) -> TotalOfTables:
        """The total where nodes may lie."""
        return VerifiedTotal(attempt, self._keys, self._verify)

    def check_sizes(self, members: Sequence[Member]) -> None:
        ring_for_members(self.study, members)

    def _limits(self, sums: Sequence[SumReport]) -> Limits | None:
        return limits_of(self.study, sums)

    def _totals(self, shares: Sequence[bytes], sizes: Sizes) -> list[int]:
        """Half of what the shares add up to, or a sixth; it is whole unless somebody deviated.

        Raises: ImpossibleResult.
        """
        factor = factor_of(self.study.degree)
        multiplied = noisy_sums(shares, len(self.study.kernels), ring_of(sizes))
        # each is 2·S (6·S): another remainder means that somebody deviated
        if any(total % factor for total in multiplied):
            raise impossible(self.study, f"shares add up to a multiple of {factor}")
        return [total // factor for total in multiplied]
