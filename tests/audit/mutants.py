"""Broken code: each function breaks one thing, and names the audit that finds it.

A mutant takes a `MonkeyPatch` and replaces functions of `umpc`, so that one audit runs on right and
on broken code. Found by: “loss” is a proved privacy loss, “law” a wrong law of the noise.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.studies import Entropy
from umpc.crypto.prg import digest
from umpc.crypto.zero_shares import zero_shares
from umpc.dealer.session import DealerSession
from umpc.dp.calibration import DistributedLaplace
from umpc.dp.committee import CommitteeLaplace
from umpc.dp.skellam import SkellamShare
from umpc.protocols.u_mpc import preparing_node as node_side
from umpc.protocols.u_mpc.node import UMpcNode
from umpc.study import sizes, statements
from umpc.study.document import Study
from umpc.ustat.hypergraph import Hypergraph
from umpc.ustat.sampling import max_degree, two_sample_max_degree
from umpc_papers.central.messages import CuratorMessages
from umpc_papers.exact_sampling import truth_threshold
from umpc_papers.ghazi_shuffle import messages as shuffle_messages
from umpc_papers.ghazi_shuffle.mechanism import Embedding
from umpc_papers.local import (
    bell_auc,
    bell_ldp,
    bell_ldp_protocol,
    bin_search,
    ghazi_ldp,
    local_mean,
)
from umpc_papers.local.search_settings import split_epsilon

Patch = pytest.MonkeyPatch

# --- too little noise


def half_the_range(patch: Patch) -> None:
    """Δf is half of the kernel's range, as if a neighbour only lacked the record. Loss 2ε."""
    whole = sizes.edge_change
    patch.setattr(sizes, "edge_change", lambda kernel, adversary: whole(kernel, adversary) / 2)


def fewer_edges(patch: Patch) -> None:
    """δ_max is 1 for every E: noise for one edge per record.

    Nodes refuse it; see `nobody_counts_edges`.
    """
    patch.setattr(sizes, "max_degree", lambda *counts: min(1, max_degree(*counts)))
    patch.setattr(
        sizes, "two_sample_max_degree", lambda *counts: min(1, two_sample_max_degree(*counts))
    )


def nobody_counts_edges(patch: Patch) -> None:
    """Apply `fewer_edges`, and let no node count the edges of its records. Loss δ_max·ε."""
    fewer_edges(patch)
    patch.setattr(
        Hypergraph, "degrees", lambda graph, node: np.zeros(graph.counts[node], dtype=np.int64)
    )


def last_node_without_noise(patch: Patch) -> None:
    """An honest node adds nothing, so h − 1 shares of h remain. Loss and law.

    The noise then has shape (h − 1)/h.
    """

    def own_noise(node, attempt):
        last = node.index == len(attempt.members) - 1
        return [0] * len(attempt.study.kernels) if last else NOISE(node, attempt)

    patch.setattr(UMpcNode, "_own_noise", own_noise)


def everybody_counts_as_honest(patch: Patch) -> None:
    """h = N for every t: noise of shape (N − t)/N. Loss and law.

    Papers do so that promise ε without colluders.
    """
    patch.setattr(Study, "honest", property(lambda study: len(study.nodes)))


def no_noise(patch: Patch) -> None:
    """No node adds anything. Unbounded loss."""
    for law in (DistributedLaplace, SkellamShare):
        patch.setattr(law, "draw", lambda law, bits: 0)


def whole_epsilon_for_every_sum(patch: Patch) -> None:
    """Each sum takes all of ε, though losses add up. Loss: the number of sums times ε."""
    patch.setattr(
        Study, "epsilons", property(lambda study: (study.exact_epsilon,) * len(study.kernels))
    )


def one_noise_for_all_sums(patch: Patch) -> None:
    """A node adds one number to all of its sums, so that their differences are exact.

    Loss; every law is right.
    """
    patch.setattr(
        UMpcNode,
        "_own_noise",
        lambda node, attempt: NOISE(node, attempt)[:1] * len(node.study.kernels),
    )


NOISE = UMpcNode._own_noise

# --- noise drawn by a committee


def coins_scaled(patch: Patch) -> None:
    """Coins for 0.7 times the scale. Law with few runs, loss ε/0.7 with many."""
    real = CommitteeLaplace.thresholds.func

    def thresholds(law: CommitteeLaplace) -> tuple[int, ...]:
        half = real(CommitteeLaplace(law.epsilon * 10 / 7, law.sensitivity))
        half = half[: len(half) // 2]
        return (half + (0,) * (law.digits - len(half))) * 2

    patch.setattr(CommitteeLaplace, "thresholds", property(thresholds))


def second_geometric_missing(patch: Patch) -> None:
    """Coins with negative weights never fall, so the noise is never negative.

    Unbounded loss, and law.
    """
    real = CommitteeLaplace.thresholds.func

    def thresholds(law: CommitteeLaplace) -> tuple[int, ...]:
        return real(law)[: law.digits] + (0,) * law.digits

    patch.setattr(CommitteeLaplace, "thresholds", property(thresholds))


def no_coin_falls(patch: Patch) -> None:
    """All thresholds are 0, so there is no noise. Unbounded loss, and law."""
    patch.setattr(CommitteeLaplace, "thresholds", property(lambda law: (0,) * (2 * law.digits)))


def first_member_draws_zeros(patch: Patch) -> None:
    """One member of the committee draws only zeros. No audit finds it.

    That is harmless while another member draws.
    """
    words = UMpcNode._random_words

    def random_words(node, count):
        return words(node, count) * np.uint64(node.index > 0)

    patch.setattr(UMpcNode, "_random_words", random_words)


def dealer_deals_zeros(patch: Patch) -> None:
    """The seeds of all masks are zeros, so a member that sees û knows the coins. Loss."""
    start = DealerSession.__init__
    patch.setattr(
        DealerSession, "__init__", lambda dealer, attempt, entropy: start(dealer, attempt, bytes)
    )


def member_and_dealer_known(patch: Patch) -> None:
    """Both: the other member knows the coins from its own numbers, without any message. Loss."""
    first_member_draws_zeros(patch)
    dealer_deals_zeros(patch)


# --- shares, and randomness used twice


def no_zero_shares(patch: Patch) -> None:
    """Nodes send their sums with their own noise only. Loss, and uniformity.

    That noise is enough for all shares together, but not for one.
    """
    patch.setattr(node_side, "zero_shares", lambda *arguments: [0] * arguments[-1])


def one_zero_share_for_all_sums(patch: Patch) -> None:
    """A node's shares of all sums have one mask, so their differences are bare. Uniformity."""
    patch.setattr(node_side, "zero_shares", lambda *given: zero_shares(*given)[:1] * given[-1])


def noise_kept(patch: Patch) -> None:
    """A node draws its noise once for all studies: two releases' noise cancels. Loss of pairs."""
    kept = {}

    def own_noise(node, attempt):
        key = node._entropy, node.index
        if key not in kept:
            kept[key] = NOISE(node, attempt)
        return kept[key]

    patch.setattr(UMpcNode, "_own_noise", own_noise)


def nodes_restored(patch: Patch) -> None:
    """A node's randomness starts anew with every study, as in a copied machine. Loss of pairs.

    Openings, keys, E and noise repeat.
    """
    start = UMpcNode.__init__

    def restored(node, own, study, columns, records, entropy):
        start(node, own, study, columns, records, Entropy(f"{entropy.seed} of {own.name}"))

    patch.setattr(UMpcNode, "__init__", restored)


def dealer_restored(patch: Patch) -> None:
    """The dealer's randomness starts anew with every study. Loss of pairs of messages.

    Values then have the same masks.
    """
    start = DealerSession.__init__

    def restored(dealer, attempt, entropy):
        start(dealer, attempt, Entropy(f"{entropy.seed} of the dealer"))

    patch.setattr(DealerSession, "__init__", restored)


def all_restored(patch: Patch) -> None:
    """Nodes and dealer start anew, so coins repeat too. Loss of pairs of releases.

    This concerns noise that a committee draws.
    """
    nodes_restored(patch)
    dealer_restored(patch)


def seed_of_the_first_node(patch: Patch) -> None:
    """The joint seed is the hash of one node's opening, which chooses E. The law of E finds it.

    ε does not break: the noise covers every E within δ_max. E is just no longer drawn at random.
    """

    def first_opening_only(tag: bytes, *parts: bytes) -> bytes:
        return digest(tag, *(parts[:1] if tag == b"umpc joint seed 1" else parts))

    patch.setattr(statements, "digest", first_opening_only)


# --- one message of every node


def truth_told_too_often(patch: Patch) -> None:
    """Every answer of a record is that of 2ε. Loss 2ε."""
    # Without its cache, which would keep the mutant's answers for later tests.
    patch.setattr(local_mean, "best_answer", local_mean.best_answer.__wrapped__)
    for protocol in (bell_ldp, bell_auc, bin_search, ghazi_ldp, local_mean):
        patch.setattr(
            protocol, "truth_threshold", lambda epsilon, k: truth_threshold(2 * epsilon, k)
        )


def whole_epsilon_for_the_second_answer(patch: Patch) -> None:
    """A record's second answer has all of ε, as if the first one were free. Loss ε + ε₁."""
    patch.setattr(
        bell_ldp_protocol,
        "split_epsilon",
        lambda study: (split_epsilon(study)[0], study.exact_epsilon),
    )


def curator_takes_too_much(patch: Patch) -> None:
    """A trusted curator adds the noise of 1000ε. Unbounded loss, as far as runs can tell."""
    real = CuratorMessages.choice
    patch.setattr(
        CuratorMessages,
        "choice",
        lambda of, n: replace(real(of, n), epsilon=1000 * of.study.exact_epsilon),
    )


# --- shuffled messages


def every_record_counts_as_honest(patch: Patch) -> None:
    """h = n for any colluders, as in the papers: noise of shape h/n.

    Loss with many runs, and law.
    """
    patch.setattr(shuffle_messages, "honest_records", lambda counts, colluding: sum(counts))


def a_record_is_in_one_cell_only(patch: Patch) -> None:
    """L = 1, as if a replaced record left one cell and entered none. Loss 2ε, and law."""
    patch.setattr(Embedding, "sensitivity", property(lambda embedding: 1))
