"""The settings of a study of protocol = "u-mpc", their usual values, and their rules.

*Sums.* The released sums of a study: the nodes' shares added up, with the errors of each mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import sqrt
from typing import Annotated, Any, Protocol

import numpy as np

from umpc.crypto.ring import Ring
from umpc.errors import KernelError, StudyError
from umpc.study.document import Study
from umpc.study.parts import Participant, exact
from umpc.study.report import SumReport
from umpc.study.rules import check_between_0_and_1, check_choice
from umpc.study.settings import LYING_NODES, ProtocolSettings, describe
from umpc.study.sizes import Sizes
from umpc.ustat.design import largest_factor, largest_factor_two_sample
from umpc.ustat.estimators import WITH_VARIANCE
from umpc.ustat.robust import obstacle
from umpc.ustat.sampling import UNBALANCED, largest_random_factor, pairings_of

NOISES = ("distributed", "in_mpc", "skellam", "binomial")
COMMITTEE_NOISES = ("in_mpc", "binomial")
"""The kinds of noise that a committee draws under shares."""
NOISES_WITH_DELTA = ("skellam", "binomial")
COIN_SOURCES = ("transfers", "dealt")
BACKENDS = ("shared", "garbled", "triples")
DEALERLESS = ("garbled", "triples")
"""The backends that take nothing from a dealer."""
MOST_OF_GARBLED = 2
"""The most owners of a garbled edge."""
PREPROCESSINGS = ("dealer", "none")
TRANSFERS = ("unchecked", "checked")
AGAINST_LIARS = f'adversary = "{LYING_NODES}"'
INSTEAD = (
    "Take a statistic that compares values: kendall_tau or goodman_kruskal_gamma in place of "
    "covariance or spearman_rho, mann_whitney_u or auc in place of ranking_hinge, "
    "wilcoxon_signed_rank, rand_index, renyi_entropy; `umpc kernels` marks all. With "
    'backend = "grid" spearman_rho and gini_mean_difference are allowed too. A mean of single '
    "records is, and so is a protocol that randomises each record at its site, which "
    "`umpc plan --protocols` lists"
)
"""The advice where lying nodes have no bound."""
LIES = {
    "garbled": "a node that garbles another circuit",
    "triples": "a node that sends other numbers in transfers",
}
"""The lies of owners without a dealer."""
SHOWN = 80
"""Characters of a kernel's text that a refusal shows."""
USUAL_COMMITTEE = 64
"""Up to this number of nodes the usual noise is drawn by a committee.

All of N nodes are its members where all but one may collude. Then every two of them set up
transfers, which takes about a tenth of a second each."""
MOST_EPSILON_IN_MPC = 16
"""Above this ε, the δ of finite bits would mean nothing."""


class UMpcSettings(ProtocolSettings, frozen=True, kw_only=True, tag="u-mpc"):
    """The noisy sum over E is released.

    edges: empty stands for the usual number, which depends on the kernels (`theory.py`).
    noise: "distributed", where every node adds its own, so much that the honest nodes' suffices; or
        "in_mpc", where a committee draws it under shares, just as much as is needed, and nobody
        knows it. With a delta also "skellam", distributed for all sums together, and "binomial",
        a committee's fair coins.
    coins: where the coins of a committee's noise come from: "transfers" between all its members,
        so that no dealer can change or know the noise; or "dealt", from the dealer, which is then
        trusted to deal them as the protocol says.
    backend: how edges of several owners are evaluated: "shared", under masks that a dealer knows,
        or "garbled", by the two owners alone; or "triples", by all owners alone.
    preprocessing: "dealer"; or "none", and then there is no dealer.
    transfers: without effect. Every receiver proves its choices in transfers; a study that was
        released with "checked" has its identity by it.
    members_checked: without effect. Every node checks all members; a study that was released with
        another number than 0 has its identity by it.
    """

    edges: Annotated[
        str,
        describe(
            "Sets to average over: a number, a multiple of n such as 2n, 1p for one pairing of "
            "all records, all, or up to 500000 for all or about so many. Without edges a study "
            "file asks for up to as many as cost 100 MB."
        ),
    ] = "2n"
    noise: Annotated[
        str,
        describe(
            "How the noise is drawn. The default is in_mpc for 2 to 64 nodes and an ε of at most "
            "16 in grade honest, and distributed otherwise.",
            *NOISES,
        ),
    ] = "distributed"
    delta: Annotated[str, describe("δ of skellam or binomial noise, such as 1e-9.")] = ""
    coins: Annotated[
        str,
        describe(
            "What a committee's noise (in_mpc, binomial) is made of: transfers between the nodes, "
            "so that no dealer can change the noise; or coins dealt by the dealer, with less "
            "traffic between many nodes.",
            *COIN_SOURCES,
        ),
    ] = "transfers"
    backend: Annotated[
        str,
        describe(
            "How edges of several owners are evaluated: shared under masks, garbled between two "
            "owners, or by triples that all owners of an edge make. Take garbled or triples "
            "together with preprocessing none. With grid in its place the study is one of "
            "protocol grid. With auto, or without protocol, backend and edges, it is the cheaper "
            "of both.",
            *BACKENDS,
        ),
    ] = "shared"
    preprocessing: Annotated[
        str,
        describe(
            "Who makes correlated randomness. With none there is no dealer; take backend garbled "
            "for sets of one or two records, and triples for larger ones.",
            *PREPROCESSINGS,
        ),
    ] = "dealer"
    dealer: Annotated[Participant | None, describe("Name and address of the dealer.")] = None
    transfers: Annotated[
        str,
        describe(
            "Without effect: every node proves its choices in transfers, whatever the backend. "
            "Leave it out of a new study. A study that was released with it needs it to be shown "
            "again at no cost.",
            *TRANSFERS,
        ),
    ] = "unchecked"
    members_checked: Annotated[
        int,
        describe(
            "Without effect: every node checks all members. Leave it out of a new study. A study "
            "that was released with it needs it to be shown again at no cost."
        ),
    ] = 0

    @property
    def newer(self) -> tuple[str, ...]:
        return self.added

    @property
    def added(self) -> tuple[str, ...]:
        return ("transfers", "members_checked")

    @property
    def coins_used(self) -> str:
        return self.coins if self.noise in COMMITTEE_NOISES else "none"


def usual_settings(entries: Mapping[str, Any], nodes: int, epsilon: str) -> dict[str, Any]:
    """A file's entries with the usual noise, if they name none; and edges to be completed.

    The usual noise is drawn inside MPC for few nodes, except where ε is so large that the δ of
    finite bits would mean nothing.
    """
    try:
        # above it the δ of finite bits would mean nothing
        small = exact(epsilon, "epsilon") <= MOST_EPSILON_IN_MPC
    except StudyError:
        small = False
    usual = "in_mpc" if 2 <= nodes <= USUAL_COMMITTEE and small else "distributed"
    return {"noise": usual, "edges": "", **entries}


def without_dealer(entries: Mapping[str, Any], degree: int) -> Mapping[str, Any]:
    """A file's entries with both of backend and preprocessing, where one says: without a dealer.

    Args: degree: the records of a set. A garbled edge has at most two owners.
    """
    if entries.get("preprocessing") == "none":
        return {"backend": "garbled" if degree <= MOST_OF_GARBLED else "triples", **entries}
    if entries.get("backend") in DEALERLESS:
        return {"preprocessing": "none", **entries}
    return entries


def check_settings(study: Study) -> None:
    """Raises: StudyError."""
    settings = study.settings_as(UMpcSettings)
    check_noise(study, NOISES, *NOISES_WITH_DELTA)
    check_choice("coins", settings.coins, COIN_SOURCES)
    check_choice("backend", settings.backend, BACKENDS)
    check_choice("preprocessing", settings.preprocessing, PREPROCESSINGS)
    if (settings.backend in DEALERLESS) != (settings.preprocessing == "none"):
        raise StudyError(
            f'backend = "garbled" or "triples" and preprocessing = "none" go together: such edges '
            f"take nothing from a dealer, and shared ones cannot do without; got "
            f"{settings.backend!r} with {settings.preprocessing!r}"
        )
    check_choice("transfers", settings.transfers, TRANSFERS)
    _check_dealer(study, settings)
    # docs/privacy.md: what the argument against liars needs
    if study.adversary == LYING_NODES:
        check_against_liars(study, settings)
    _check_coins(settings)


def check_noise(study: Study, noises: tuple[str, ...], *with_delta: str) -> None:
    """Whether a study has a noise of its protocol, with the nodes and the δ that it takes.

    Args: noises: those of the protocol. with_delta: those that take a δ.
    Raises: StudyError.
    """
    check_choice(f'noise of "{study.protocol}"', study.noise, noises)
    if study.noise in COMMITTEE_NOISES and len(study.nodes) < 2:
        raise StudyError(
            f'noise = "{study.noise}" takes at least two nodes; a single one draws it: '
            f'"distributed"'
        )
    if (study.noise in with_delta) != bool(study.delta):
        raise StudyError(
            f"delta goes with noise = {' or '.join(map(repr, with_delta))}; got {study.delta!r} "
            f"with {study.noise!r}"
        )
    if study.delta:
        check_between_0_and_1(study.delta, study)


def _check_coins(settings: UMpcSettings) -> None:
    if settings.coins != "dealt":
        return
    if settings.noise not in COMMITTEE_NOISES:
        raise StudyError(
            f'coins = "dealt" goes with noise = "in_mpc" or "binomial", which a committee draws; '
            f"got noise = {settings.noise!r}, for which every node draws its own; leave coins out"
        )
    if settings.preprocessing != "dealer":
        raise StudyError(
            f'coins = "dealt" takes a dealer, and preprocessing = {settings.preprocessing!r} has '
            f'none; take coins = "transfers"'
        )


def _check_dealer(study: Study, settings: UMpcSettings) -> None:
    if settings.preprocessing == "dealer":
        if settings.dealer is None:
            raise StudyError('the study names no dealer; name one, or say preprocessing = "none"')
        return
    if settings.dealer is not None:
        raise StudyError(
            f'backend = "{settings.backend}" with preprocessing = "none" has no dealer; leave '
            f"{settings.dealer.name!r} out"
        )
    if study.degree > MOST_OF_GARBLED and settings.backend == "garbled":
        raise StudyError(
            f"a garbled edge has one or two owners, and a statistic over {study.degree} records "
            f'can have edges of three and more; take backend = "triples", or '
            f'preprocessing = "dealer" with backend = "shared"'
        )


def check_against_liars(study: Study, settings: UMpcSettings) -> None:
    """The rules of adversary = "lying_nodes", as docs/privacy.md needs them.

    Raises: StudyError, KernelError, RangeError.
    """
    advice = INSTEAD
    if study.estimator == WITH_VARIANCE:
        advice = "Leave variance out: it is over triples"
    for kernel in study.parsed_kernels:
        # a lie about one record must stay bounded on each edge
        reason = obstacle(kernel.polynomial, kernel.degree)
        if reason:
            raise KernelError(
                f"{AGAINST_LIARS} does not allow the kernel {kernel.text[:SHOWN]}: {reason}. "
                f"{advice}"
            )
        _ = kernel.robust  # refuse a kernel of too many bits
    # owners that make their own material can lie unnoticed
    if settings.backend != "shared":
        raise StudyError(
            f'{AGAINST_LIARS} takes backend = "shared" with a dealer, got {settings.backend!r}: '
            f"{LIES[settings.backend]} would not be noticed"
        )
    # a lying member of a committee could bias its coins
    if settings.noise != "distributed":
        raise StudyError(
            f'{AGAINST_LIARS} takes noise = "distributed", where the honest nodes\' own noise '
            f"suffices, got {settings.noise!r}: leave the key out"
        )


# --- sums -----------------------------------------------------------------------------------------


class Law(Protocol):
    """The law of one sum's noise, in units of the kernel.

    A law may also have `shape`, by default 1; `step`, by default 1; and `shift`, by default 0
    (`umpc/ustat/error_law.py`).
    """

    @property
    def std(self) -> float:
        """The standard deviation."""
        ...

    def tail_bound(self) -> int:
        """An integer that the noise exceeds in magnitude with a probability of at most 2^-64."""
        ...


def sum_reports(
    sizes: Sizes,
    totals: Sequence[int | Fraction],
    laws: Sequence[Law],
    laws_if_honest: Sequence[Law] | None = None,
) -> list[SumReport]:
    """The mean of each sum and its errors.

    Args:
        totals: the noisy sums, in units.
        laws_if_honest: the noise in grade honest; by default that of the study.
    """
    study = sizes.study
    honest = laws_if_honest or laws
    rows = zip(totals, study.parsed_kernels, study.epsilons, laws, honest, strict=True)
    return [
        SumReport(
            kernel=kernel.text,
            # exact rational until here
            mean=float(Fraction(total) * kernel.unit / sizes.edges),
            epsilon=float(epsilon),
            noise_std=law.std * float(kernel.unit) / sizes.edges,
            sampling_std_bound=sampling_bound(float(kernel.interval.width), sizes),
            noise_step=getattr(law, "step", 1.0) * float(kernel.unit) / sizes.edges,
            noise_shape=float(getattr(law, "shape", 1.0)),
            noise_shift=getattr(law, "shift", 0.0) * float(kernel.unit) / sizes.edges,
            noise_std_if_honest=law_if_honest.std * float(kernel.unit) / sizes.edges,
        )
        for total, kernel, epsilon, law, law_if_honest in rows
    ]


def noisy_sums(shares: Sequence[bytes], sums: int, ring: Ring | None = None) -> list[int]:
    """Σ kernel over E plus noise, in units, for each sum.

    The shares are added in their ring, and the totals are read as signed integers.

    Args:
        ring: the ring of shares of every edge's value; without it a share is one element a sum.
    """
    # the width of an element tells the ring
    ring = ring or Ring(8 * len(shares[0]) // sums)
    rows = [
        np.frombuffer(share, dtype=ring.dtype.newbyteorder("<")).reshape(sums, -1)
        for share in shares
    ]
    # zero shares cancel mod 2^w
    totals = [sum(int(ring.total(row[number])) for row in rows) for number in range(sums)]
    # signed: the ring holds sum and noise
    return [ring.decode(total) for total in totals]


def sampling_bound(width: float, sizes: Sizes) -> float:
    """The largest standard deviation from taking E instead of all sets, whatever the records are.

    The variance of a kernel of this width is at most width²/4, and a mean over E keeps at most
    factor/|E| of it (`umpc/ustat/design.py`). P pairings are independent of each other, so their
    variance is P times smaller than that of one pairing.
    """
    # Bell et al. 2020, section 5: independent pairings
    draws = pairings_of(sizes.study.edges)
    edges = sizes.edges // (draws or 1)
    if not draws and edges >= sizes.sets:
        return 0.0  # E is all sets
    if sizes.study.two_sample:
        factor = largest_factor_two_sample(edges, *sizes.classes)
    else:
        factor = largest_factor(edges, sizes.records, sizes.study.degree)
        if sizes.study.sampling in UNBALANCED:
            factor = largest_random_factor(edges, sizes.records, sizes.study.degree, factor)
    # In this order no factor leaves the floats' range, however many sets there are.
    return width * sqrt(float(factor) / (4 * sizes.edges))
