"""Garbled circuits for the edges between two owners: half-gates, with additive shares as output.

Paper: Zahur, Rosulek & Evans 2015 (eprint 2014/756): free XOR, point and permute, two ciphertexts
per AND. Party 0 garbles, party 1 evaluates. A circuit is garbled for n edges at once, and every
gate is a few operations on (n, 2) arrays (`gates.py`).

A label is 128 bits, (…, 2) uint64. A wire has the labels L0 (bit 0) and L1 = L0 ⊕ Δ (bit 1) with
lsb(Δ) = 1, so the lsb is its *color*; p = lsb(L0) is the color of bit 0. Write L⁰, L¹ for the
labels of color 0 and 1, H for the hash, j, j' for the tweaks of a gate's halves, and a, b, c for
its inputs and its output:

    T_G = H(A⁰, j) ⊕ H(A¹, j) ⊕ p_b Δ                             sent
    T_E = H(B⁰, j') ⊕ H(B¹, j') ⊕ A0                              sent
    C0  = H(A⁰, j) ⊕ H(B⁰, j') ⊕ p_a p_b Δ                        kept by the garbler
    C   = H(A, j) ⊕ color(A) T_G ⊕ H(B, j') ⊕ color(B) (T_E ⊕ A)  found by the evaluator

These are the paper's equations (GbAnd, Ev) with its case distinctions solved. The garbler hashes 4
times an AND, the evaluator twice.

**Output** (`circuits.py`). A bit b becomes additive shares modulo 2^w by one element an edge: a
projection table (Ball, Malkin & Rosulek 2016, eprint 2016/969) whose row of color 0 is not sent. A
wire's pads h_0, h_1 of an element are words of H(L⁰, j) and H(L¹, j). For f·b with a factor f that
the garbler alone may know,

    ρ = h_0 − f p             kept by the garbler
    t = f (1 ⊕ p) + ρ − h_1   sent
    h_color + color · t       found by the evaluator: f b + ρ

because color 0 means b = p, and color 1 means b = 1 ⊕ p. A unit has f = 1: v_b = b + ρ_b. For an
AND a·b that only sums read, f = p_a: P_ab = p_a b + ρ_ab. The evaluator knows color(a) = a ⊕ p_a.
With Y = Σ ω b over all products of a, with R = Σ ω ρ_ab, and with S = Σ ω (ρ_b − ρ_ab), it finds

    color 0: a Y + R = Σ ω P_ab, as a = p_a
    color 1: a Y + S = Σ ω (v_b − P_ab), as a = 1 − p_a

One more element, t = R + k_0 − S − k_1 of pads k of wire a, makes both end in the mask R + k_0. No
message goes back: shares of a sum are sums of shares, of all bits and all edges. The garbler's
shares are −ω ρ, and constants.

**Reveals.** The garbler sees nothing of the evaluator, whose labels it delivers by oblivious
transfer. The evaluator sees one label of each wire, and one of each pair of hashes. The other hash
is a pad of what is sent: of T_G, of T_E, of each t. (For color 0 the pad is h_1. For color 1 it is
h_0, which is in t through ρ and nowhere else that the evaluator sees.) Let H be tweakable circular
correlation robust (TCCR): H(x ⊕ Δ, i) ⊕ bΔ is pseudorandom for x and b of the adversary's choice,
where no (x, i) is asked for twice. Then tables and elements are pseudorandom given the evaluator's
labels, and colors are uniform, as all L0 are. So its view is independent of all inputs. Its shares
are a function of its view, and the garbler's shares are the value minus that. Together they say the
value and nothing else; each is uniform by a pad of its own, h or k. Security is against parties
that follow the protocol: a garbler who garbles another circuit is not caught.

**Tweaks.** i = (e ⊕ g, g): e is the number of the edge, g the number of the hash (ANDs 2t and
2t + 1, then pads). A pair of Δ and hash key must see each e once, in whatever circuit; then no
tweak is used for two things. Labels may repeat: a record's labels serve all its edges.

**Hash.** H(x, i) = π(y) ⊕ y with y = π(x) ⊕ i and π a fixed-key AES-128. This is TMMO of Guo et al.
2020 (eprint 2019/074, section 7.4), which is TCCR for an ideal π, with the public i added. Its
bound is birthday-like: a key is for one attempt, with at most 2^40 hashes. MITCCRH (eprint
2019/1168) needs one AES call in place of two, but an AES key for each gate of each edge. A new
cipher object from Python costs far more than a few blocks, and one key for a whole batch is not
MITCCRH. Remark: three-halves (eprint 2021/749) would send 1.5·128 + 5 bits per AND in place of 256,
for more hashes and bit-sliced control bits, which are many more numpy passes.

*Compiled.* Circuits as the arrays that the compiled kernel reads (`umpc/native/garbled.py`).

The kernel takes a few edges through all gates and output elements, where `gates.py` takes all edges
through one gate after the other. Both give the same bytes: ANDs, hashes and elements have the same
numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from umpc.crypto.ring import Ring
from umpc.errors import EncodingError, LocalProtocolError
from umpc.mpc.arrays import BitArray, RingArray, WordArray
from umpc.mpc.garbled.circuits import (
    LABEL_BITS,
    Circuit,
    OutputElement,
    Product,
    Switch,
    outputs_of,
)
from umpc.mpc.garbled.gates import Evaluator, Garbler, GateHash, schedule_of
from umpc.native import garbled as compiled
from umpc.native.garbled import CircuitArrays

EDGES = 1 << 12
"""Edges worked on together.

A label then has 64 KiB, which hides the cost of a call of numpy, and the live labels take a few
MiB.
"""


def garbled_bits(circuit: Circuit, ring: Ring) -> int:
    """Bits an edge that the garbler sends."""
    outputs = outputs_of(circuit)
    return 2 * LABEL_BITS * outputs.and_count + ring.bits * len(outputs.elements)


def garbled_size(circuit: Circuit, ring: Ring, count: int) -> int:
    """Bytes of `count` garbled edges."""
    return garbled_bits(circuit, ring) // 8 * count


@dataclass(frozen=True)
class GarbledEdges:
    """The garbler's message for n edges.

    tables: (ANDs, 2, n, 2) uint64: T_G and T_E. elements: (elements, n) of the ring.
    """

    tables: WordArray
    elements: RingArray

    def __repr__(self) -> str:
        return f"GarbledEdges(edges={self.tables.shape[2]}, ands={len(self.tables)}, <redacted>)"

    def encode(self) -> bytes:
        """The bytes on the wire, little-endian: all tables, then all elements."""
        order = self.elements.dtype.newbyteorder("<")
        parts = self.tables.astype("<u8", copy=False), self.elements.astype(order, copy=False)
        return b"".join(np.ascontiguousarray(part).data for part in parts)

    @classmethod
    def decode(
        cls, data: bytes | memoryview, circuit: Circuit, ring: Ring, count: int
    ) -> GarbledEdges:
        """The inverse of encode. Raises: EncodingError on a wrong length."""
        due = garbled_size(circuit, ring, count)
        outputs = outputs_of(circuit)
        ands = outputs.and_count
        elements = len(outputs.elements)
        if len(data) != due:
            raise EncodingError(
                f"{count} garbled edges of {ands} ANDs and {elements} elements take {due} bytes, "
                f"got {len(data)}"
            )
        split = 4 * ands * count
        tables = np.frombuffer(data, dtype="<u8", count=split).reshape(ands, 2, count, 2)
        rest = np.frombuffer(data, dtype=ring.dtype.newbyteorder("<"), offset=8 * split)
        return cls(tables, rest.reshape(elements, count))


def garble(
    circuit: Circuit,
    ring: Ring,
    delta: WordArray,
    labels: WordArray,
    first_edge: int,
    gate_hash: GateHash,
) -> tuple[GarbledEdges, RingArray]:
    """The garbler's side for n edges.

    Args:
        delta: (2,) uint64, Δ: uniform but for its lsb, which is 1. It never leaves the garbler.
        labels: (inputs, n, 2) uint64, the labels of bit 0 of each input wire, whoever owns it.
        first_edge: the number of the first of these edges; the numbers of all calls with one Δ are
            disjoint.

    Returns: the message, and this party's share of each sum, for each edge: (sums, n) of the ring.
    Raises: LocalProtocolError where Δ or the labels have another form.
    """
    # Zahur, Rosulek & Evans 2015: lsb(Δ) = 1 tells both labels apart
    if not int(delta[0]) & 1:
        raise LocalProtocolError(
            "the offset of free XOR must have the lowest bit 1, for colors to differ"
        )
    count = _edges(circuit, labels)
    outputs = outputs_of(circuit)
    shares = np.zeros((len(circuit.sums), count), dtype=ring.dtype)
    for row, each in zip(shares, circuit.sums, strict=True):
        # public constants count once, at the garbler
        row[:] = ring.scalar(each.constant)
    if compiled.CHOSEN is not None:
        data = memoryview(bytearray(garbled_size(circuit, ring, count)))
        # views into the message, which the kernel fills
        garbled = GarbledEdges.decode(data, circuit, ring, count)
        given = gate_hash.key, arrays_of(circuit), delta, np.ascontiguousarray(labels), first_edge
        compiled.garble(*given, garbled.tables, garbled.elements, shares)
        return garbled, shares
    garbled = GarbledEdges(
        np.empty((outputs.and_count, 2, count, 2), dtype=np.uint64),
        np.empty((len(outputs.elements), count), dtype=ring.dtype),
    )
    for part in _parts(count):
        first = first_edge + part.start
        # spec/garbled.py, `garble_edge`, for many edges at once
        worker = Garbler(circuit, ring, labels[:, part], first, gate_hash, delta)
        worker.run(garbled.tables[:, :, part], garbled.elements[:, part], shares[:, part])
    return garbled, shares


def evaluate(
    circuit: Circuit,
    ring: Ring,
    garbled: GarbledEdges,
    labels: WordArray,
    first_edge: int,
    gate_hash: GateHash,
) -> RingArray:
    """The evaluator's side: its share of each sum, for each edge: (sums, n) of the ring.

    Args: labels: (inputs, n, 2) uint64, the active label of each input wire.
    """
    count = _edges(circuit, labels)
    # spec/garbled.py, `evaluate_edge`
    shares = np.zeros((len(circuit.sums), count), dtype=ring.dtype)
    if compiled.CHOSEN is not None:
        given = gate_hash.key, arrays_of(circuit), np.ascontiguousarray(labels), first_edge
        tables, elements = map(np.ascontiguousarray, (garbled.tables, garbled.elements))
        compiled.evaluate(*given, tables, elements, shares)
        return shares
    for part in _parts(count):
        worker = Evaluator(circuit, ring, labels[:, part], first_edge + part.start, gate_hash)
        worker.run(garbled.tables[:, :, part], garbled.elements[:, part], shares[:, part])
    return shares


def sum_shares(shares: RingArray) -> list[int]:
    """A party's share of each sum over the edges, as elements of the ring."""
    # a sum of shares is a share of the sum
    return [int(row.sum(dtype=shares.dtype)) for row in shares]


def active_labels(labels: WordArray, bits: BitArray, delta: WordArray) -> WordArray:
    """The labels of these bits (…), from the labels of bit 0 (…, 2).

    The garbler sends them for its own inputs.
    """
    # L ⊕ b·Δ, without a branch on b
    masks = np.uint64(0) - bits.astype(np.uint64)
    active: WordArray = masks[..., None] & delta
    active ^= labels
    return active


def _edges(circuit: Circuit, labels: WordArray) -> int:
    """The number of edges. Raises: LocalProtocolError on labels of another form."""
    if labels.ndim != 3 or len(labels) != len(circuit.inputs) or labels.dtype != np.uint64:
        raise LocalProtocolError(
            f"labels of shape ({len(circuit.inputs)}, edges, 2) were due, got {labels.shape}"
        )
    return int(labels.shape[1])


def _parts(count: int) -> list[slice]:
    return [slice(start, min(start + EDGES, count)) for start in range(0, count, EDGES)]


# --- compiled -------------------------------------------------------------------------------------

UNIT, PRODUCT, SWITCH = 0, 1, 2
"""The numbers of native/garbled_types.h."""
_WORD = (1 << 64) - 1


@lru_cache(maxsize=64)
def arrays_of(circuit: Circuit) -> CircuitArrays:
    """The circuit for the kernel, one AND after another. It is public, and shared."""
    outputs = outputs_of(circuit)
    schedule = schedule_of(circuit)
    wires: list[tuple[int, int, int]] = []
    numbers: list[int] = []
    for wire, own in outputs.wires:
        wires.append((schedule.at_end[wire], len(numbers), len(own)))
        numbers += own
    elements: list[tuple[int, ...]] = []
    terms: list[tuple[int, int, int]] = []
    for element in outputs.elements:
        kind, other, own_terms = _element(element, schedule.at_end)
        place = schedule.at_end[element.wire]
        elements.append((kind, place, other, len(terms), len(own_terms)))
        terms += own_terms
    return CircuitArrays(
        _table(schedule.steps, 5),
        _table(wires, 3),
        np.array(numbers, dtype=np.int64),
        _table(elements, 5),
        np.array(terms, dtype=np.uint64).reshape(-1, 3),
        len(circuit.inputs),
        schedule.slots,
        outputs.and_count,
        len(circuit.sums),
    )


def _element(
    element: OutputElement, places: Mapping[int, int]
) -> tuple[int, int, list[tuple[int, int, int]]]:
    """Kind, the switch's place or the sum, and terms."""
    if isinstance(element, Product):
        return PRODUCT, places[element.switch], []
    if isinstance(element, Switch):
        rows = zip(element.products, element.units, element.weights, strict=True)
        return SWITCH, element.sum, [(one, other, w & _WORD) for one, other, w in rows]
    return UNIT, 0, [(total, 0, w & _WORD) for total, w in element.weights]


def _table(rows: Sequence[tuple[int, ...]], columns: int) -> np.ndarray:
    return np.array(rows, dtype=np.int64).reshape(-1, columns)
