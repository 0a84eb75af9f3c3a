"""Comparisons by pieces: both owners' bits are XOR shares of the piece's bits, and rows that the
evaluator does not choose are uniform to it. Mutants leave out each protection.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

import numpy as np
import pytest

from tests.protocols.u_mpc.test_garbled_node import GarbledRun, names
from tests.support.circuits import evaluate_circuit, input_values
from tests.support.mpc_studies import ALPHA, homogeneity, seed_of, uniformity
from tests.support.sessions import first_chunk
from tests.support.transfers import WRONG_SHAPES
from umpc.crypto.prg import FixedKeyHash, Stream
from umpc.crypto.ring import RINGS
from umpc.errors import RemoteProtocolError
from umpc.mpc.garbled.bit_sums import weighted
from umpc.mpc.garbled.circuits import CircuitBuilder, InputBit, outputs_of
from umpc.mpc.garbled.kernel_to_circuit import circuit_of_all
from umpc.mpc.garbled.piece_tables import (
    LANES,
    Places,
    combined,
    make_tables,
    multiples,
    read_tables,
    table_bits,
)
from umpc.mpc.garbled.pieces import (
    EQUAL,
    LESS,
    PIECE,
    Comparisons,
    LookedUp,
    NumberPiece,
    cut,
    pieces_of,
)
from umpc.mpc.garbled.plan import GarbledPlan
from umpc.mpc.transfers.correlated_ot import fresh_delta
from umpc.testing import lying
from umpc.ustat.polynomial import polynomial_of
from umpc.ustat.schema import FieldSchema, Schema
from umpc.ustat.text import from_text

BANK = {"age": (0, 127), "balance": (-3313, 71188)}
TAU = "sign(a.age - b.age) * sign(a.balance - b.balance)"


def circuit(kernel: str, in_pieces: bool = True, **bounds):
    fields = bounds or BANK
    schema = Schema(
        [
            FieldSchema(n, Fraction(low), Fraction(high), Fraction(1))
            for n, (low, high) in fields.items()
        ]
    )
    expression = from_text(kernel)
    unit = polynomial_of(expression, schema).unit
    return circuit_of_all([expression], schema, [unit], in_pieces=in_pieces)


# --- circuits


def test_a_number_is_cut_into_few_pieces_that_cover_it_once():
    for width in range(1, 65):
        pieces = cut(width)
        places = [bit for low, size in pieces[::-1] for bit in range(low, low + size)]
        assert places == list(range(width)) and len(pieces) == -(-width // PIECE)
        assert max(size for _, size in pieces) - min(size for _, size in pieces) <= 1


def test_circuits_of_pieces_compute_what_circuits_of_gates_compute():
    kernels = {
        "[<]": "a.x < b.x",
        "[>]": "b.x < a.x",
        "[=]": "a.x == b.x",
        "sign": "sign(b.x - a.x)",
        "of a product": "sign(a.x - b.x) * (a.x - b.x)",
    }
    for low, high in ((0, 7), (-5, 6), (-200, 90), (-3, -1), (0, 1 << 20)):
        rng = np.random.default_rng(abs(high))
        x, y = (rng.integers(low, high + 1, 400) for _ in range(2))
        y[:100] = x[:100]
        y[100:200] = np.clip(x[100:200] + 1, low, high)
        records = [{"x": x}, {"x": y}]
        for name, kernel in kernels.items():
            pieces, gates = (circuit(kernel, each, x=(low, high)) for each in (True, False))
            assert not pieces_of(gates), name
            values = [
                evaluate_circuit(each, input_values(each, records)) for each in (pieces, gates)
            ]
            assert np.array_equal(*values), (name, low, high)


def test_only_the_owners_own_numbers_are_looked_up():
    kernels = ("a.x < b.y", "a.x + 1 < b.x", "2 * a.x < b.x", "a.x + b.x < 3")
    for kernel in kernels:
        assert not pieces_of(circuit(kernel, x=(0, 63), y=(0, 63))), kernel
    assert not pieces_of(circuit("a.x < b.x", x=(0, 3)))
    assert pieces_of(circuit("2 * a.x < 2 * b.x", x=(0, 63)))


def test_a_difference_whose_lowest_bit_has_no_weight_is_made_of_gates():
    gates = CircuitBuilder()
    wires = {(r, bit): gates.input(InputBit(r, "x", bit)) for r in (0, 1) for bit in (1, 2, 3)}
    number = weighted((wire, (1 - 2 * r) << bit) for (r, bit), wire in wires.items())
    assert Comparisons(gates).below_and_zero(number) is None
    assert len(gates.gates) == 1 + len(wires), "no input is made on the way"


def test_a_pair_of_kendalls_tau_takes_few_gates_and_bytes():
    pieces, gates = (circuit(TAU, each) for each in (True, False))
    ands = [outputs_of(each).and_count for each in (pieces, gates)]
    assert ands[1] > 40 and ands[0] <= 6
    plan = GarbledPlan(pieces, RINGS[0])
    assert (plan.rounds, plan.table_bits) == (3, 2 * (128 + 3 * 64))
    assert plan.edge_bits == plan.garbled_bits + plan.table_bits + 32 * len(plan.coin_wires)
    assert plan.edge_bits // 8 < 1300 < GarbledPlan(gates, RINGS[0]).edge_bits // 8


# --- tables


class Tables:
    """Tables of one piece for edges whose records the evaluator chooses by `index`."""

    def __init__(self, label: str, size: int, index, *, is_first=True, offset=0, repeated=None):
        rng = np.random.default_rng(len(label))
        self.piece = NumberPiece(0, size, offset, "x")
        self.pieces = (LookedUp(self.piece, ((LESS, 0), (EQUAL, 1))),)
        self.index = np.asarray(index)
        self.is_first = is_first
        records = int(self.index.max()) + 1
        self.delta = fresh_delta(seed_of(f"delta {label}"))
        self.zeros = Stream(seed_of(f"labels {label}")).words(2 * size * records)
        self.zeros = self.zeros.reshape(size, records, 2)
        self.y = rng.integers(0, 1 << size, records) if repeated is None else repeated[1]
        self.x = rng.integers(0, 1 << size, len(self.index)) if repeated is None else repeated[0]
        self.masks = Stream(seed_of(f"masks {label}")).bits(2 * len(self.index))
        self.masks = self.masks.reshape(2, -1)
        self.places = Places.of(self.index)
        self.hash = FixedKeyHash(seed_of(f"key {label}"))

    def active(self):
        bits = self.y >> np.arange(self.piece.size)[:, None] & 1
        return self.zeros ^ (-bits).astype(np.uint64)[..., None] & self.delta

    def payload(self, first_edge: int = 0) -> bytes:
        return make_tables(
            self.pieces, [combined(self.zeros)[self.places.records]], [self.x], self.masks,
            self.places, self.delta, self.hash, first_edge, is_first=self.is_first,
        )  # fmt: skip

    def found(self, payload: bytes, first_edge: int = 0):
        keys = [combined(self.active())[self.places.records]]
        rows = [self.y[self.index]]
        return read_tables(payload, self.pieces, keys, rows, self.places, self.hash, first_edge)

    def rows(self, payload: bytes) -> np.ndarray:
        """(n, rows) of two bits, as the evaluator gets them, in the edges' order."""
        packed = np.frombuffer(payload, np.uint8).reshape(len(self.index), -1)
        rows = (packed[:, :, None] >> np.arange(0, 8, 2, dtype=np.uint8) & 3).reshape(
            len(packed), -1
        )
        there = np.empty_like(rows)
        there[self.places.order] = rows
        return there


@pytest.mark.usefixtures("both_ways")
def test_both_parties_bits_are_shares_of_the_comparison():
    for size in range(2, PIECE + 1):
        for is_first in (True, False):
            for offset in (0, 1 << size - 1):
                rng = np.random.default_rng(size)
                index = np.concatenate([rng.integers(0, 9, 150), np.full(2 * LANES + 3, 9)])
                tables = Tables(f"exact {size}", size, index, is_first=is_first, offset=offset)
                payload = tables.payload(7)
                assert 8 * len(payload) == table_bits(tables.pieces) * len(index)
                bits = tables.masks ^ tables.found(payload, 7)
                x, y = tables.x ^ offset, tables.y[index] ^ offset
                first, second = (x, y) if is_first else (y, x)
                assert np.array_equal(bits, [first < second, first == second])


def test_keys_of_rows_are_those_of_the_field():
    """K_v = K_0 ⊕ c_v Δ, with c_v = Σ α^i v_i over GF(2^128): all c_v differ."""
    tables = Tables("field", 5, np.arange(8))
    offsets = multiples(tables.delta, 5)
    assert np.array_equal(combined(tables.active()), combined(tables.zeros) ^ offsets[tables.y])
    assert len(np.unique(offsets, axis=0)) == 32 and not offsets[0].any()
    number = int(tables.delta[0]) | int(tables.delta[1]) << 64
    for row, offset in enumerate(offsets):
        due = reduce(lambda total, bit: total ^ (number << bit) * (row >> bit & 1), range(5), 0)
        for place in range(132, 127, -1):  # modulo x^128 + x^7 + x^2 + x + 1
            due ^= (due >> place & 1) * (1 << 128 | 0x87) << place - 128
        assert int(offset[0]) | int(offset[1]) << 64 == due


def asked(tables: Tables) -> np.ndarray:
    """All blocks that the garbler asks π for, over two chunks."""
    seen = []
    honest = tables.hash

    def hashed(blocks):
        seen.append(blocks.copy())
        return honest(blocks)

    tables.hash = hashed
    tables.payload(0)
    tables.payload(len(tables.index))
    tables.hash = honest
    return np.concatenate(seen)


@pytest.mark.usefixtures("in_numpy")
def test_no_hash_is_asked_for_twice_and_the_test_notices_repeated_blocks():
    tables = Tables("numbers", 3, np.repeat([0, 1, 2], [3 * LANES, 5, 1]))
    blocks = asked(tables)
    assert len(blocks) == 2 * 8 * (3 + 1 + 1) and len(np.unique(blocks, axis=0)) == len(blocks)
    tables.places.number[:] = 0
    blocks = asked(tables)
    assert len(np.unique(blocks, axis=0)) < len(blocks)


# --- the evaluator's view


def view(label: str, x: int, prepare=lambda tables: None) -> dict[str, np.ndarray]:
    """Rows of 2,000 edges, two a record, all with the garbler's value x and the evaluator's 5."""
    index = np.repeat(np.arange(1000), 2)
    given = np.full(2000, x), np.full(1000, 5)
    tables = Tables(f"{label} {x}", 3, index, repeated=given)
    prepare(tables)
    payload = tables.payload()
    rows = tables.rows(payload)
    found = tables.found(payload)
    chosen = (found[0] | found[1] << 1).astype(np.int64)
    rest = np.bitwise_xor.reduce(rows[:, [0, 1, 2, 3]], axis=1).astype(np.int64)
    return {
        "chosen": chosen,
        "rows": rows.reshape(-1).astype(np.int64),
        "four rows": rest | chosen << 2,
        "rows of one record": np.bitwise_xor.reduce(rows.reshape(1000, 2, 8)[:, :, 2:4], (1, 2)),
    }


@pytest.mark.usefixtures("both_ways")
def test_rows_are_uniform_whatever_the_garblers_number_is():
    views = [view("view", x) for x in (1, 5, 7)]
    for name in views[0]:
        for each in views:
            assert uniformity(each[name], 16 if name == "four rows" else 4) > ALPHA, name
        assert homogeneity(views[0][name], views[1][name]) > ALPHA, name
        assert homogeneity(views[0][name], views[2][name]) > ALPHA, name


def no_masks(tables: Tables) -> None:
    tables.masks[:] = 0


def no_hash(tables: Tables) -> None:
    tables.hash = np.zeros_like


def one_pad_for_a_record(tables: Tables) -> None:
    """π gives the same two bits in every lane."""
    real = tables.hash
    tables.hash = lambda blocks: (real(blocks) & np.uint64(3)) * np.uint64(0x5555555555555555)


@pytest.mark.usefixtures("in_numpy")
def test_power_each_protection_left_out_is_found():
    mutants = [
        (no_masks, "chosen"),
        (no_hash, "four rows"),
        (one_pad_for_a_record, "rows of one record"),
    ]
    for mutant, finder in mutants:
        seen = view("power", 1, mutant)[finder]
        assert uniformity(seen, 16 if finder == "four rows" else 4) < ALPHA, mutant.__name__


def difference_of_rows() -> set[int]:
    """Rows 3 and 5, of which the evaluator of row 5 can take away no pad."""
    tables = Tables("parity", 3, np.arange(500), repeated=(np.full(500, 4), np.full(500, 5)))
    rows = tables.rows(tables.payload())
    return set((rows[:, 3] ^ rows[:, 5]).tolist())


@pytest.mark.usefixtures("both_ways")
def test_rows_of_one_parity_have_keys_of_their_own():
    """Labels that are added without powers of α give rows 3 and 5 one key."""
    assert len(difference_of_rows()) == 4
    with lying("everybody", times_alpha=lambda honest, blocks: blocks):
        assert len(difference_of_rows()) == 1


# --- what a peer sends in their place


@pytest.mark.usefixtures("both_ways")
def test_tables_and_choices_of_another_shape_name_their_sender():
    shape, change = next(iter(WRONG_SHAPES.items()))
    for liar, step in ((0, "garbled"), (1, "coins")):
        run = GarbledRun(x=("0", "100"), y=("-7", "100")).agree().begin().seed()
        parties = run.set_up().fields().protocols(first_chunk(run))
        messages = [next(party) for party in parties]
        with pytest.raises(RemoteProtocolError) as caught:
            if liar == 0:
                parties[1].send([change(messages[0])])
            silent = parties[0].send([messages[1]])
            choices = parties[1].send([messages[0]])
            assert not silent.width and choices.width
            parties[0].send([change(choices)])
        assert names(caught.value) == (f"node-{liar}", step), shape
