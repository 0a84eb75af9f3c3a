"""Broken code: each function breaks one thing, and names the audit that finds it.

A mutant is a context in which steps of `umpc` are replaced by name (`umpc.testing.lying`). So one
audit runs on right and on broken code. Found by: “loss” is a proved privacy loss, “law” a wrong law
of the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

import numpy as np

from tests.support.studies import Entropy
from umpc.dp.committee import CommitteeLaplace
from umpc.testing import lying
from umpc_papers.testing import lying as lying_in_papers

Broken = AbstractContextManager[None]
Mutant = Callable[[], Broken]

# --- too little noise


def half_the_range() -> Broken:
    """Δf is half of the kernel's range, as if a neighbour only lacked the record. Loss 2ε."""
    return lying("everybody", edge_change=lambda honest, *given: honest(*given) / 2)


def fewer_edges() -> Broken:
    """δ_max is 1 for every E: noise for one edge per record.

    Nodes refuse it; see `nobody_counts_edges`.
    """

    def at_most_one(honest, *counts):
        return min(1, honest(*counts))

    return lying("everybody", max_degree=at_most_one, two_sample_max_degree=at_most_one)


@contextmanager
def nobody_counts_edges() -> Iterator[None]:
    """Apply `fewer_edges`, and let no node count the edges of its records. Loss δ_max·ε."""

    def none(honest, graph, node):
        return np.zeros(graph.counts[node], dtype=np.int64)

    with fewer_edges(), lying("node", degrees=none):
        yield


def last_node_without_noise() -> Broken:
    """An honest node adds nothing, so h − 1 shares of h remain. Loss and law.

    The noise then has shape (h − 1)/h.
    """

    def own_noise(honest, node, attempt):
        last = node.index == len(attempt.members) - 1
        return [0] * len(attempt.study.kernels) if last else honest(node, attempt)

    return lying("node", own_noise=own_noise)


def everybody_counts_as_honest() -> Broken:
    """h = N for every t: noise of shape (N − t)/N. Loss and law.

    Papers do so that promise ε without colluders.
    """
    return lying("everybody", honest=lambda honest, study: len(study.nodes))


def no_noise() -> Broken:
    """No node adds anything. Unbounded loss."""
    return lying("everybody", draw=lambda honest, law, bits: 0)


def whole_epsilon_for_every_sum() -> Broken:
    """Each sum takes all of ε, though losses add up. Loss: the number of sums times ε."""

    def epsilons(honest, study):
        return (study.exact_epsilon,) * len(study.kernels)

    return lying("everybody", epsilons=epsilons)


def one_noise_for_all_sums() -> Broken:
    """A node adds one number to all of its sums, so that their differences are exact.

    Loss; every law is right.
    """

    def own_noise(honest, node, attempt):
        return honest(node, attempt)[:1] * len(node.study.kernels)

    return lying("node", own_noise=own_noise)


# --- noise drawn by a committee


def coins_scaled() -> Broken:
    """Coins for 0.7 times the scale. Law with few runs, loss ε/0.7 with many."""

    def thresholds(honest, law):
        half = honest(CommitteeLaplace(law.epsilon * 10 / 7, law.sensitivity))
        half = half[: len(half) // 2]
        return (half + (0,) * (law.digits - len(half))) * 2

    return lying("everybody", thresholds=thresholds)


def second_geometric_missing() -> Broken:
    """Coins with negative weights never fall, so the noise is never negative.

    Unbounded loss, and law.
    """

    def thresholds(honest, law):
        return honest(law)[: law.digits] + (0,) * law.digits

    return lying("everybody", thresholds=thresholds)


def no_coin_falls() -> Broken:
    """All thresholds are 0, so there is no noise. Unbounded loss, and law."""
    return lying("everybody", thresholds=lambda honest, law: (0,) * (2 * law.digits))


def first_member_draws_zeros() -> Broken:
    """One member of the committee draws only zeros. No audit finds it.

    That is harmless while another member draws.
    """

    def random_words(honest, node, count):
        return honest(node, count) * np.uint64(node.index > 0)

    return lying("node", random_words=random_words)


def dealer_deals_zeros() -> Broken:
    """The seeds of all masks are zeros, so a member that sees û knows the coins. Loss."""
    return lying("dealer", init=lambda honest, dealer, attempt, _: honest(dealer, attempt, bytes))


@contextmanager
def member_and_dealer_known() -> Iterator[None]:
    """Both: the other member knows the coins from its own numbers, without any message. Loss."""
    with first_member_draws_zeros(), dealer_deals_zeros():
        yield


# --- shares, and randomness used twice


def no_zero_shares() -> Broken:
    """Nodes send their sums with their own noise only. Loss, and uniformity.

    That noise is enough for all shares together, but not for one.
    """
    return lying("node", zero_shares=lambda honest, *given: [0] * given[-1])


def one_zero_share_for_all_sums() -> Broken:
    """A node's shares of all sums have one mask, so their differences are bare. Uniformity."""
    return lying("node", zero_shares=lambda honest, *given: honest(*given)[:1] * given[-1])


@contextmanager
def noise_kept() -> Iterator[None]:
    """A node draws its noise once for all studies: two releases' noise cancels. Loss of pairs."""
    entropies, kept = {}, {}

    def start(honest, node, *given):
        honest(node, *given)
        entropies[id(node)] = given[-1]

    def own_noise(honest, node, attempt):
        key = entropies[id(node)], node.index
        if key not in kept:
            kept[key] = honest(node, attempt)
        return kept[key]

    with lying("node", init=start, own_noise=own_noise):
        yield


def nodes_restored() -> Broken:
    """A node's randomness starts anew with every study, as in a copied machine. Loss of pairs.

    Openings, keys, E and noise repeat.
    """

    def restored(honest, node, own, study, columns, records, entropy):
        honest(node, own, study, columns, records, Entropy(f"{entropy.seed} of {own.name}"))

    return lying("node", init=restored)


def dealer_restored() -> Broken:
    """The dealer's randomness starts anew with every study. Loss of pairs of messages.

    Values then have the same masks.
    """

    def restored(honest, dealer, attempt, entropy):
        honest(dealer, attempt, Entropy(f"{entropy.seed} of the dealer"))

    return lying("dealer", init=restored)


@contextmanager
def all_restored() -> Iterator[None]:
    """Nodes and dealer start anew, so coins repeat too. Loss of pairs of releases.

    This concerns noise that a committee draws.
    """
    with nodes_restored(), dealer_restored():
        yield


def seed_of_the_first_node() -> Broken:
    """The joint seed is the hash of one node's opening, which chooses E. The law of E finds it.

    ε does not break: the noise covers every E within δ_max. E is just no longer drawn at random.
    """

    def first_opening_only(honest, tag: bytes, *parts: bytes) -> bytes:
        return honest(tag, *(parts[:1] if tag == b"umpc joint seed 1" else parts))

    return lying("everybody", digest=first_opening_only)


# --- one message of every node


def truth_told_too_often() -> Broken:
    """Every answer of a record is that of 2ε. Loss 2ε."""
    return lying_in_papers(
        "everybody",
        truth_threshold=lambda honest, epsilon, answers: honest(2 * epsilon, answers),
        # Without its cache, which would keep the mutant's answers for later tests.
        best_answer=lambda honest, *given: honest.__wrapped__(*given),
    )


def whole_epsilon_for_the_second_answer() -> Broken:
    """A record's second answer has all of ε, as if the first one were free. Loss ε + ε₁."""
    return lying_in_papers(
        "everybody", split_epsilon=lambda honest, study: (honest(study)[0], study.exact_epsilon)
    )


def curator_takes_too_much() -> Broken:
    """A trusted curator adds the noise of 1000ε. Unbounded loss, as far as runs can tell."""

    def choice(honest, of, records):
        return replace(honest(of, records), epsilon=1000 * of.study.exact_epsilon)

    return lying_in_papers("coordinator", choice=choice)


# --- shuffled messages


def every_record_counts_as_honest() -> Broken:
    """h = n for any colluders, as in the papers: noise of shape h/n.

    Loss with many runs, and law.
    """
    return lying_in_papers(
        "everybody", honest_records=lambda honest, counts, colluding: sum(counts)
    )


def a_record_is_in_one_cell_only() -> Broken:
    """L = 1, as if a replaced record left one cell and entered none. Loss 2ε, and law."""
    return lying_in_papers("everybody", sensitivity=lambda honest, embedding: 1)
