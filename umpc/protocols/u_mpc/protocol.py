"""U-MPC: the protocol object.

*Drawn committee.* The noise that a drawn committee would add, where the usual noise is every node's
own.

Beyond USUAL_COMMITTEE nodes each node adds noise by default, of which that of any honest ones
suffices: N/(N − t) times the variance of one draw. A committee draws once under shares, at a price
in bytes that a study's author may want to pay.

*Coordinator.* The coordinator's side of U-MPC: it checks the nodes' noisy shares and adds them up.

*Reveals*: the coordinator learns shares that are uniform to it, and the noisy sums. It refuses a
sum that no records and no noise can give.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import sqrt
from typing import TYPE_CHECKING, Any

from umpc.crypto.prg import Stream
from umpc.crypto.ring import RINGS, Ring
from umpc.dp.composition import concentrated_rho
from umpc.dp.events import ConcentratedEvent, Event
from umpc.errors import AlreadyReleased, LocalProtocolError, RemoteProtocolError
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.backends import predict
from umpc.planning.reference_table import PredictedError, ReferenceTable
from umpc.protocols.base.coordinator import CoordinatorSide
from umpc.protocols.base.promise import DEALER, NOBODY, PromiseTerms, Trust
from umpc.protocols.base.protocol import EndsOf, Line, StudyProtocol, Variant
from umpc.protocols.u_mpc.noise_binding import (
    check_edges,
    delta_of_sums,
    events_of_sums,
    least_delta_of_bits,
    noise_of_sums,
    ring_for,
    shared_attempt,
)
from umpc.protocols.u_mpc.settings import (
    MOST_EPSILON_IN_MPC,
    USUAL_COMMITTEE,
    Law,
    UMpcSettings,
    check_settings,
    noisy_sums,
    sum_reports,
    usual_settings,
    without_dealer,
)
from umpc.protocols.u_mpc.theory import edges_for_error, edges_for_noise, error_of_sums, usual_edges
from umpc.study import messages as m
from umpc.study.attempt import Attempt
from umpc.study.cost import NO_COST, Cost, Measured
from umpc.study.document import Study
from umpc.study.making_report import (
    Limits,
    check_sums,
    edge_range,
    released_sums,
    report_of,
)
from umpc.study.report import Report, SumReport
from umpc.study.settings import ADVERSARIES, HONEST, Settings
from umpc.study.sizes import Member, Sizes
from umpc.ustat.error_law import ErrorLaw
from umpc.ustat.over_noise import Reach, mean_reach
from umpc.ustat.sampling import SAMPLINGS

if TYPE_CHECKING:
    from umpc.protocols.base.node import NodeSide

USUAL_DELTA = Fraction(1, 10**9)
"""Up to this δ of finite bits no administrator need have thought of it."""
LOUD = "1000000000"
"""An ε under which there is hardly any noise."""


NOISE_IN_WORDS = {
    "distributed": "discrete Laplace, each node adds its part",
    "in_mpc": "discrete Laplace, drawn under secret sharing",
    "skellam": "Skellam, each node adds its part",
    "binomial": "binomial, drawn under secret sharing",
}

COINS_IN_WORDS = {
    "none": "",
    "transfers": "made by the nodes alone; no dealer can change or know the noise",
    "dealt": "dealt by the dealer; the noise needs a dealer that deals as the protocol says",
}


class JointSums(StudyProtocol):
    """Noisy sums under one joint sensitivity: no sum has a part of ε of its own."""

    adversaries: tuple[str, ...] = ADVERSARIES
    samplings: tuple[str, ...] = SAMPLINGS
    protects_people = True
    takes_several = True

    def has_links(self, study: Study) -> bool:
        return len(study.nodes) > 1 and (study.degree > 1 or study.coins != "none")

    def describe(self, study: Study) -> Iterator[Line]:
        if told := self.describe_coins(study.coins):
            yield "coins", f"{study.coins}: {told}"
        # a site may have to raise its budget of δ
        if (delta := least_delta_of_bits(study)) > USUAL_DELTA:
            yield (
                "delta",
                f"at least {float(delta):.2g}, because finite bits of noise cost more at a large "
                f'epsilon; sites allow little of it by default: take noise = "distributed", or '
                f"have them raise delta under [budget]",
            )
        if getattr(study.settings, "members_checked", 0):
            yield (
                "members_checked",
                "without effect: every node checks all members; leave it out of a new study",
            )

    def describe_noise(self, noise: str) -> str:
        return NOISE_IN_WORDS[noise]

    def describe_coins(self, coins: str) -> str:
        return COINS_IN_WORDS[coins]

    def check_ahead(self, study: Study) -> None:
        """Everything before the data can be prepared ahead."""

    def trusted(self, terms: PromiseTerms) -> Trust:
        # Records that meet no others need no material, and coins only where they are dealt.
        # docs/privacy.md: who must be trusted for what
        needs_dealer = terms.degree > 1 or terms.coins == "dealt"
        return DEALER if terms.has_dealer and needs_dealer else NOBODY

    def noise(self, sizes: Sizes) -> Sequence[Law]:
        """The noise of each kernel's sums."""
        return noise_of_sums(sizes)

    def sums(self, study: Study) -> int:
        """How many numbers are released, but for one of each edge."""
        return len(study.kernels)

    def _deviations(self, sizes: Sizes) -> list[float]:
        """The standard deviation of each mean's noise."""
        rows = zip(sizes.study.parsed_kernels, self.noise(sizes), strict=True)
        return [law.std * float(kernel.unit) / sizes.edges for kernel, law in rows]

    def _noise_lines(self, attempt: Attempt) -> Iterator[Line]:
        bits = shared(attempt).ring.bits
        for deviation in self._deviations(attempt.sizes):
            yield (
                "noise",
                f"standard deviation {deviation:.4g} of a mean, in a ring of {bits} bits",
            )

    def compare_noise(self, attempt: Attempt) -> Iterator[Line]:
        """A line where two deviations of a mean's noise are more than all its possible values."""
        sizes, study = attempt.sizes, attempt.study
        ranges = (edge_range(study, kernel) for kernel in study.parsed_kernels)
        rows = zip(self.noise(sizes), ranges, strict=True)
        part = max(2 * law.std / (sizes.edges * max(high - low, 1)) for law, (low, high) in rows)
        if part >= 1:
            yield (
                "too much noise",
                f"it is more than all possible values of a sum; about epsilon = "
                f"{10 * part * float(study.exact_epsilon):.2g} would leave a tenth of them. Or run "
                f"over more records",
            )

    def delta(self, sizes: Sizes) -> Fraction:
        laws = list(self.noise(sizes))
        return delta_of_sums(sizes, laws * (self.sums(sizes.study) // len(laws)))

    def attempt(
        self, study: Study, members: Sequence[Member], openings: Sequence[bytes]
    ) -> Attempt:
        return shared_attempt(study, members, openings, self.noise, self.sums(study))

    def node_class(self, study: Study) -> type[NodeSide]:
        from umpc.protocols.u_mpc.node import UMpcNode

        return UMpcNode

    def coordinator_class(self, study: Study) -> type[CoordinatorSide]:
        return UMpcCoordinator

    def cost(self, attempt: Attempt) -> Cost:
        return predict(shared(attempt))

    def describe_run(self, attempt: Attempt) -> Iterator[Line]:
        sizes = attempt.sizes
        study = attempt.study
        cost = self.cost(attempt)
        yield (
            "sets",
            f"{sizes.edges:,} of {sizes.records:,} records, a record in at most "
            f"{sizes.max_degree:,}",
        )
        yield from self._noise_lines(attempt)
        if study.adversary != HONEST:
            for deviation in self._deviations(sizes.if_honest):
                yield "", f'{deviation:.4g} if adversary = "{HONEST}"'
        yield "rounds", f"{cost.rounds}, the reveal included"
        yield "bytes", traffic(cost)
        if shared(attempt).makes_ahead:
            ahead = predict(shared(attempt), prepared=True)
            yield (
                "",
                f"prepared ahead: {ahead.bytes_online:,} online in {ahead.rounds} rounds, "
                f"{ahead.bytes_offline:,} before",
            )

    def error(self, attempt: Attempt, table: ReferenceTable) -> PredictedError:
        return error_of_sums(attempt.sizes, table, self.noise(attempt.sizes))

    def expected_report(self, attempt: Attempt, table: ReferenceTable) -> Report:
        sizes, kernels = attempt.sizes, attempt.study.parsed_kernels
        rows = zip(table.means, kernels, strict=True)
        totals = [round(float(mean) * sizes.edges / float(kernel.unit)) for mean, kernel in rows]
        sums = sum_reports(sizes, totals, self.noise(sizes))
        return report_of(attempt.study, sums, attempt, Fraction(0), Measured())

    def half_width(
        self, attempt: Attempt, table: ReferenceTable, ends: EndsOf | None = None
    ) -> float | None:
        study = attempt.study
        if not study.pair_ends:
            return super().half_width(attempt, table, ends)
        # an interval between thresholds has one of a few lengths, which the noise decides
        sums = self.expected_report(attempt, table).sums
        laws = [ErrorLaw([each.noise], [1.0]) for each in released_sums(sums, study.parsed_kernels)]
        stream = Stream(bytes(32))

        def reach() -> Reach | None:
            rows = zip(sums, laws, stream.reals(len(sums)), strict=True)
            noisy = [replace(each, mean=each.mean + law.below(at)) for each, law, at in rows]
            report = report_of(study, noisy, attempt, Fraction(0), Measured())
            low, high = ends(report) if ends else (report.low, report.high)
            if report.estimate is None or low is None or high is None:
                return None
            return report.estimate - low, high - report.estimate

        found = mean_reach(reach)
        return None if found is None else sum(found) / 2

    def trial_over_edges(self, study: Study) -> Study:
        return study.replaced(
            edges="all", epsilon=LOUD, delta="", max_colluding=0, noise="distributed"
        )

    def variants(self, error: float | None) -> Iterator[Variant]:
        """A planner compares ways to one number, and these protocols release many."""
        yield from ()


class UMpc(JointSums):
    """Noisy sums over E, under secret sharing."""

    settings: type[Settings] = UMpcSettings
    estimates_variance = True
    shares_cells = True

    def read_settings(self, entries: Mapping[str, Any], nodes: int, epsilon: str) -> Settings:
        return super().read_settings(usual_settings(entries, nodes, epsilon), nodes, epsilon)

    def usual_of_grade(self, entries: Mapping[str, Any], adversary: str) -> Mapping[str, Any]:
        return entries if adversary == HONEST else {"noise": "distributed", **entries}

    def usual_of_degree(self, entries: Mapping[str, Any], degree: int) -> Mapping[str, Any]:
        return without_dealer(entries, degree)

    def complete(self, study: Study) -> Study:
        if study.settings_as(UMpcSettings).edges:
            return study
        return study.replaced(edges=usual_edges(study))

    def check(self, study: Study) -> None:
        check_settings(study)

    def with_less_noise(self, study: Study) -> Study | None:
        if study.noise != "distributed" or len(study.nodes) <= USUAL_COMMITTEE:
            return None
        if study.adversary != HONEST or study.exact_epsilon > MOST_EPSILON_IN_MPC:
            return None
        return study.replaced(noise="in_mpc")

    def describe_gain(self, noise: str, nodes: int, max_colluding: int) -> str:
        honest = nodes - max_colluding
        if noise != "distributed" or nodes <= USUAL_COMMITTEE or honest >= nodes:
            return ""
        # variance of N parts calibrated for h: N/h of one draw
        times = sqrt(nodes / honest)
        return (
            f'noise = "in_mpc" has 1/{times:.3g} of this noise\'s standard deviation; '
            f"`umpc plan` says at how many bytes"
        )

    def events(self, sizes: Sizes) -> tuple[Event, ...]:
        return events_of_sums(sizes)

    def known_events(self, study: Study) -> tuple[Event, ...]:
        if study.noise != "skellam":
            return ()
        # no tighter law is known before sizes are
        return (ConcentratedEvent(concentrated_rho(study.exact_epsilon, study.exact_delta)),)

    def variants(self, error: float | None) -> Iterator[Variant]:
        yield Variant(self.name, {})
        yield Variant(f"{self.name}, sampling = noise", {}, edges_for_noise)
        if error is not None:
            yield Variant(f"{self.name}, as asked for", {}, partial(edges_for_error, error=error))
        yield Variant(f"{self.name}, no dealer", {"backend": "garbled", "preprocessing": "none"})
        yield Variant(f"{self.name}, triples", {"backend": "triples", "preprocessing": "none"})

    def carried(self, entries: Mapping[str, Any], *, own: bool) -> dict[str, Any]:
        found = {"edges": entries["edges"]} if own and "edges" in entries else {}
        dealer = entries.get("dealer") or {"name": "dealer", "address": ""}
        return {**found, "dealer": dealer}


def traffic(cost: Cost) -> str:
    """The bytes of a run, in words."""
    return (
        f"{cost.bytes_online:,} online, {cost.bytes_offline:,} before, {cost.bytes_dealt:,} of "
        f"them from the dealer"
    )


def shared(attempt: Attempt) -> SharedAttempt:
    """An attempt over shared edges. Raises: LocalProtocolError for any other."""
    if not isinstance(attempt, SharedAttempt):
        raise LocalProtocolError("an attempt over shared edges was expected")
    return attempt


# --- coordinator ----------------------------------------------------------------------------------


class UMpcCoordinator(CoordinatorSide):
    """One study, one attempt. Lists are in the study's order of nodes."""

    def check_sizes(self, members: Sequence[Member]) -> None:
        sizes = Sizes.of(self.study, members)
        # refused before any node draws or charges
        check_edges(sizes)
        ring_for(sizes, [law.tail_bound() for law in self.protocol.noise(sizes)])

    protocol: UMpc

    @property
    def attempt(self) -> SharedAttempt:
        return shared(super().attempt)

    def finish(self, answers: Sequence[m.Released], measured: Measured) -> Report:
        values = [self.attempt.released_values(node) for node in range(len(self.names))]
        shares = self._shares(answers, self.attempt.id, [self.attempt.ring], values)
        return self._report(shares, self.attempt, measured)

    def replay(self, answers: Sequence[m.Released], measured: Measured) -> Report:
        sizes = Sizes.of(self.study, answers)
        shares = self._shares(answers, answers[0].attempt, RINGS, [1] * len(answers))
        return self._report(shares, sizes, measured)

    def _report(
        self, shares: Sequence[bytes], run: SharedAttempt | Sizes, measured: Measured
    ) -> Report:
        """Add up the shares and say what the numbers mean."""
        # a run has an attempt and a cost; a replay has sizes only
        sizes = run if isinstance(run, Sizes) else run.sizes
        sums, cost = self._sums(shares, sizes), NO_COST
        if isinstance(run, SharedAttempt):
            is_ahead = measured.prepared and run.makes_ahead
            cost = predict(run, prepared=True) if is_ahead else self.protocol.cost(run)
        delta, limits = self.protocol.delta(sizes), self._limits(sums)
        return report_of(self.study, sums, run, delta, measured, cost, limits)

    def _limits(self, sums: Sequence[SumReport]) -> Limits | None:
        """The value that intervals are for, where it is not the value on all sets."""
        return None

    def _sums(self, shares: Sequence[bytes], sizes: Sizes) -> list[SumReport]:
        totals, laws = self._totals(shares, sizes), self.protocol.noise(sizes)
        # outside every kernel's range plus noise: somebody lied
        check_sums(sizes, totals, [law.tail_bound() for law in laws])
        return sum_reports(sizes, totals, laws, self.protocol.noise(sizes.if_honest))

    def _totals(self, shares: Sequence[bytes], sizes: Sizes) -> list[int]:
        """The noisy sums."""
        # the aggregator adds all shares; zero shares cancel
        return noisy_sums(shares, self.protocol.sums(self.study))

    def _shares(
        self,
        answers: Sequence[m.Released],
        attempt: bytes,
        rings: Iterable[Ring],
        values: Sequence[int],
    ) -> list[bytes]:
        """The nodes' shares, if they are of one attempt and have their size.

        Args: values: how many numbers of each sum every node releases.
        """
        rings = list(rings)
        sums = self.protocol.sums(self.study)
        for name, answer, count in zip(self.names, answers, values, strict=True):
            # a replay does not know the ring, so it tries both
            sizes = [ring.bytes * sums * count for ring in rings]
            if len(answer.share) not in sizes:
                raise RemoteProtocolError(
                    f"{name} released {len(answer.share)} bytes, {' or '.join(map(str, sizes))} "
                    f"were due for {sums} sum(s)",
                    culprit=name,
                    step="release",
                )
        for name, answer in zip(self.names, answers, strict=True):
            # shares of two rings do not add up
            other_ring = len(rings) > 1 and len(answer.share) != len(answers[0].share)
            if answer.attempt != attempt or other_ring:
                raise AlreadyReleased(
                    f"{name} released the study {self.study.name!r} in another attempt than the "
                    f"others, so the shares do not add up; give the study a new name to run it "
                    f"anew",
                    culprit=name,
                )
        return [answer.share for answer in answers]
