"""Noise inside a pair's circuit is right for every random number, and channels fork."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from tests.support.bell import all_numbers
from tests.support.circuits import evaluate_circuit, input_values
from tests.support.mpc_studies import make_schema
from tests.support.transfers import (
    bits_of,
    correlated,
    delta_of,
    extension_rows,
    open_channel,
)
from umpc.dp.committee import CommitteeLaplace
from umpc.mpc.garbled.circuits import FALSE, TRUE, CircuitBuilder, InputBit
from umpc.mpc.garbled.kernel_to_circuit import NOBODYS, PairNoise, circuit_of_all
from umpc.ustat.kernel import Kernel
from umpc_papers.bell_2pc.pair_mechanisms import BITS, MOST_VALUES, PairResponse
from umpc_papers.bell_2pc.pair_noise import (
    AddedCoins,
    Shift,
    apply_all,
    below,
    words_of,
)

SCHEMA = make_schema(x=("0", "2"))
DOMAIN = np.arange(3)
PAIRS = ({"x": np.repeat(DOMAIN, 3)}, {"x": np.tile(DOMAIN, 3)})
"""All pairs of records."""
KERNELS = {
    "0 and 1": "a.x == b.x",
    "−1 to 1": "sign(a.x - 1) * sign(b.x - 1)",
    "0 to 2": "abs(a.x - b.x)",
    "2 to 4 halves": "abs(a.x - b.x) * (1/2) + 1",
    "−4 to 0": "-1 * a.x * b.x",
}


# --- [number < limit] -----------------------------------------------------------------------------


@pytest.mark.parametrize("width", range(6))
def test_below_is_less_than_for_all_numbers_and_limits(width):
    numbers = np.arange(1 << width, dtype=np.uint64)
    bits = np.array([numbers >> np.uint64(bit) & np.uint64(1) for bit in range(width)]).astype(
        np.uint8
    )
    for limit in range((1 << width) + 2):
        gates = CircuitBuilder()
        literals = [gates.input(InputBit(NOBODYS, "r", bit)) for bit in range(width)]
        less = below(literals, limit, gates)
        circuit = gates.finish([(less & 1, {less >> 1: 1 - 2 * (less & 1)} if less >> 1 else {})])
        used = bits[[bit.bit for bit in circuit.inputs]].reshape(-1, len(numbers))
        assert np.array_equal(evaluate_circuit(circuit, used)[0], numbers < limit), limit
        lowest = (limit & -limit).bit_length() - 1 if limit else width
        assert circuit.and_count == max(0, width - 1 - lowest) * (0 < limit < 1 << width), (
            "an AND a bit that decides"
        )


def test_below_of_0_and_of_everything_takes_no_input():
    gates = CircuitBuilder()
    literals = [gates.input(InputBit(NOBODYS, "r", bit)) for bit in range(4)]
    assert (below(literals, 0, gates), below(literals, 16, gates), below(literals, 99, gates)) == (
        FALSE,
        TRUE,
        TRUE,
    )


# --- gates, clear values and probabilities say the same -------------------------------------------


def kernel(name: str) -> Kernel:
    return Kernel.from_text(KERNELS[name], SCHEMA)


def shift_of(pair_kernel: Kernel, bits: int, wrong: int) -> Shift:
    """Every wrong value with probability wrong/2^bits."""
    low, width = int(pair_kernel.interval.low / pair_kernel.unit), pair_kernel.sensitivity_units
    return Shift(bits, low, width + 1, tuple(step * wrong for step in range(width, 0, -1)))


NOISES = {
    "coins": lambda pair_kernel: AddedCoins(3, (3, 7, 0), (1, -4, 2)),
    "coins of one bit": lambda pair_kernel: AddedCoins(1, (1, 1, 1, 2), (1, 2, -1, 5)),
    "coins of a law": lambda pair_kernel: coins_of(
        CommitteeLaplace(Fraction(1), pair_kernel.sensitivity_units, 2)
    ),
    "no coin": lambda pair_kernel: AddedCoins(4, (), ()),
    "shift": lambda pair_kernel: shift_of(pair_kernel, 5, 3),
    "shift, nearly uniform": lambda pair_kernel: shift_of(
        pair_kernel, 4, 15 // (pair_kernel.sensitivity_units + 1)
    ),
    "shift, certain": lambda pair_kernel: shift_of(pair_kernel, 3, 0),
}


def coins_of(law: CommitteeLaplace) -> AddedCoins:
    return AddedCoins(law.bits, law.thresholds, law.weights)


def in_gates(
    kernels: list[Kernel], noises: list[PairNoise], records, numbers: list[np.ndarray]
) -> np.ndarray:
    """The sums of the whole circuit. numbers: of each kernel (numbers, n) uint64."""
    expressions, units = [each.expression for each in kernels], [each.unit for each in kernels]
    circuit = circuit_of_all(expressions, SCHEMA, units, noises)
    nobodys = {
        f"{place:02}.{draw:06}": row.astype(np.int64)
        for place, rows in enumerate(numbers)
        for draw, row in enumerate(rows)
    }
    assert len(circuit.inputs_of(NOBODYS)) <= sum(noise.numbers * noise.bits for noise in noises)
    return evaluate_circuit(circuit, input_values(circuit, [*records, nobodys]))


def everything(numbers: np.ndarray) -> tuple[tuple[dict, dict], np.ndarray]:
    """All pairs of records with all random numbers."""
    pairs, draws = len(PAIRS[0]["x"]), numbers.shape[1]
    records = tuple({"x": np.repeat(side["x"], draws)} for side in PAIRS)
    return records, np.tile(numbers, (1, pairs))


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("name", KERNELS)
def test_the_circuit_is_what_is_applied_to_clear_values_for_all_random_numbers(name, noise):
    pair_kernel = kernel(name)
    law = NOISES[noise](pair_kernel)
    records, numbers = everything(all_numbers(law))
    expected = law.apply(pair_kernel.evaluate(records), numbers)
    assert np.array_equal(in_gates([pair_kernel], [law], records, [numbers])[0], expected)
    if isinstance(law, Shift):
        assert {*expected} <= set(range(law.low, law.low + law.modulus))


def test_numbers_of_several_kernels_are_different_ones():
    """The first kernel's random numbers leave the second's noise alone, in gates and in clear."""
    kernels = [kernel("0 and 1"), kernel("0 to 2"), kernel("−1 to 1")]
    noises = [AddedCoins(2, (1, 3), (1, -2)), shift_of(kernels[1], 2, 1), AddedCoins(2, (2,), (1,))]
    grids = [all_numbers(each) for each in noises]
    choice = np.array(list(product(*(range(grid.shape[1]) for grid in grids)))).T
    numbers = [grid[:, row] for grid, row in zip(grids, choice, strict=True)]
    records, _ = everything(numbers[0])
    numbers = [everything(each)[1] for each in numbers]
    clear = [pair_kernel.evaluate(records) for pair_kernel in kernels]
    expected = [law.apply(v, r) for law, v, r in zip(noises, clear, numbers, strict=True)]
    assert np.array_equal(in_gates(kernels, noises, records, numbers), expected)
    words = np.concatenate(numbers) << np.uint64(62)
    assert len(words) == words_of(noises) == 4
    assert np.array_equal(apply_all(clear, noises, words), expected)


def test_a_word_counts_by_its_highest_bits():
    law = AddedCoins(2, (1,), (1,))
    words = np.array([[0, (1 << 62) - 1, 1 << 62, (1 << 64) - 1]], dtype=np.uint64)
    assert apply_all([np.zeros(4, dtype=np.int64)], [law], words)[0].tolist() == [1, 1, 0, 0]


def law_of(noise: PairNoise, value: int) -> dict[int, Fraction]:
    """The law of one value's noisy value, by counting random numbers."""
    numbers = all_numbers(noise)
    counts = Counter(noise.apply(np.full(numbers.shape[1], value), numbers).tolist())
    return {noisy: Fraction(count, numbers.shape[1]) for noisy, count in counts.items()}


@pytest.mark.parametrize(
    ("epsilon", "width", "bits"), [(1, 1, 3), (2, 3, 3), (Fraction(1, 2), 1, 2), (5, 2, 5)]
)
def test_the_exact_law_of_coins_is_the_product_of_their_odds(epsilon, width, bits):
    coins = coins_of(CommitteeLaplace(Fraction(epsilon), width, bits))
    law = {7: Fraction(1)}
    for threshold, weight in zip(coins.thresholds, coins.weights, strict=True):
        moved: dict[int, Fraction] = {}
        for value, mass in law.items():
            for step, chance in (
                (weight, Fraction(threshold, 1 << bits)),
                (0, 1 - Fraction(threshold, 1 << bits)),
            ):
                moved[value + step] = moved.get(value + step, Fraction(0)) + mass * chance
        law = moved
    assert law_of(coins, 7) == {value: mass for value, mass in law.items() if mass}


@pytest.mark.parametrize(
    ("low", "width", "wrong"), [(0, 1, 9), (-1, 2, 7), (-5, 4, 4), (3, 0, 0), (2, 7, 3)]
)
def test_the_exact_law_of_a_shift_is_randomised_response(low, width, wrong):
    noise = Shift(5, low, width + 1, tuple(step * wrong for step in range(width, 0, -1)))
    for value in range(low, low + width + 1):
        right = 1 - width * Fraction(wrong, 32)
        expected = {each: Fraction(wrong, 32) for each in range(low, low + width + 1)} | {
            value: right
        }
        assert law_of(noise, value) == expected


def test_the_largest_randomised_response_fits_a_circuit():
    """64 values: 63 comparisons of one number."""
    schema = make_schema(x=("0", "63"))
    pair_kernel = Kernel.from_text("abs(a.x - b.x)", schema)
    law = PairResponse(Fraction(1), 0, MOST_VALUES - 1, 1)
    noise = Shift(BITS, 0, MOST_VALUES, law.thresholds)
    circuit = circuit_of_all([pair_kernel.expression], schema, [pair_kernel.unit], [noise])
    rng = np.random.default_rng(64)
    records = [{"x": rng.integers(0, 64, 500)} for _ in (0, 1)]
    numbers = rng.integers(0, 1 << BITS, (1, 500), dtype=np.uint64)
    bits = input_values(circuit, [*records, {"00.000000": numbers[0].astype(np.int64)}])
    assert np.array_equal(
        evaluate_circuit(circuit, bits)[0], noise.apply(pair_kernel.evaluate(records), numbers)
    )


# --- channels that fork ---------------------------------------------------------------------------


def exchange(sender, receiver, label: str, count: int = 70):
    choices = bits_of(label, count)
    t, message = receiver.extend(choices)
    return sender.extend(message, count), t, choices, message


@pytest.mark.parametrize("fold", [1, 2, 4, 8])
def test_forks_are_correlated_under_the_same_delta(fold):
    sender, receiver = open_channel(f"fork {fold}", fold)
    for label in (("coins", 0, 1, 0), ("coins", 1, 0, 0), ("coins", 0, 1, 1), ()):
        for batch in range(2):
            q, t, choices, _ = exchange(
                sender.fork(*label), receiver.fork(*label), f"{label} {batch}"
            )
            assert correlated(q, t, choices, delta_of(f"fork {fold}")) and q.start == 0


def test_forks_do_not_depend_on_the_order_of_batches():
    labels = [("coins", 0, 1, number) for number in range(4)]
    found = []
    for order in (labels, labels[::-1]):
        sender, receiver = open_channel("order")
        blocks = {
            label: exchange(sender.fork(*label), receiver.fork(*label), "same choices")
            for label in order[:2]
        }
        exchange(sender, receiver, "of the parent")
        blocks |= {
            label: exchange(sender.fork(*label), receiver.fork(*label), "same choices")
            for label in order[2:]
        }
        found.append(
            {
                label: (q.blocks.tobytes(), t.blocks.tobytes())
                for label, (q, t, *_) in blocks.items()
            }
        )
    assert found[0] == found[1]


def test_forks_of_the_two_ends_may_come_in_different_orders():
    sender, receiver = open_channel("crossed")
    first, second = (receiver.fork("coins", number) for number in (1, 2))
    sent = {
        number: fork.extend(bits_of("crossed", 9)) for number, fork in ((1, first), (2, second))
    }
    for number in (2, 1):
        t, message = sent[number]
        assert correlated(
            sender.fork("coins", number).extend(message, 9), t, bits_of("crossed", 9), sender.delta
        )


def test_a_fork_has_neither_its_parents_blocks_nor_those_of_another_label():
    """Nor its rows: under equal rows of pads two messages would differ by r ⊕ r' in each row."""
    sender, receiver = open_channel("distinct")
    labels = [
        ("coins", 0, 1, 0),
        ("coins", 0, 1, 1),
        ("coins", 1, 0, 1),
        ("coins", 0, 11),
        ("coins", "0", 1, 0),
        (),
    ]
    channels = [
        (sender, receiver),
        *((sender.fork(*label), receiver.fork(*label)) for label in labels[:-1]),
    ]
    channels += [
        (sender.fork("x").fork("y"), receiver.fork("x").fork("y")),
        (sender.fork("x"), receiver.fork("x")),
    ]
    blocks, rows = [], []
    for q, _, _, message in (
        exchange(*channel, f"own {i}", 512) for i, channel in enumerate(channels)
    ):
        blocks.append(q.blocks)
        rows.append(extension_rows(message.payload, 512))
    assert len(np.unique(np.concatenate(blocks), axis=0)) == 512 * len(channels)
    for i, mine in enumerate(rows):
        for theirs in rows[:i]:
            assert len(np.unique(mine ^ theirs, axis=0)) == 32


def test_a_fork_shows_none_of_its_secrets():
    sender, receiver = open_channel("quiet")
    for end in (sender.fork("coins", 1), receiver.fork("coins", 1)):
        assert "<redacted>" in repr(end)
