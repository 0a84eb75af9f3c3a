"""Garbled pairs: a circuit of two nodes' bits, with additive shares of weighted sums as output.

Sinh & Ramon 2025, section 3: F_f by any secure computation; here without a dealer, between the two
owners of an edge. Zahur, Rosulek & Evans 2015: half gates, free XOR, point and permute. A wire's
label of bit 1 is that of bit 0 ⊕ Δ. The lowest bit of a label is its color, p that of bit 0's.

A circuit: inputs, how many; gates ["and" | "xor", left, right], whose output is the next wire;
sums {"constant", "terms": [[wire, weight], …]}. Labels are integers of 128 bits, and lists of
labels are [wire][edge]. The evaluator's own labels come by transfers (`transfers.py`): q_j is the
label of bit 0, and t_j that of its bit.

Output: a bit becomes an additive share by one element an edge, a projection table whose row of
color 0 is not sent (Ball, Malkin & Rosulek 2016). An AND that only sums read is no gate:
with a = its left wire, p_a·b of each product is shared, and the color of a says which sum holds.
"""

from __future__ import annotations

from typing import Any

from spec.prg import aes, tree_hash
from spec.refused import require
from spec.transfers import extend, fresh_delta, set_up

Circuit = dict[str, Any]
Element = dict[str, Any]


def gate_hash(key: bytes, label: int, edge: int, number: int) -> int:
    """H(x, i) = π(y) ⊕ y with y = π(x) ⊕ i (Guo et al. 2020, section 7.4: TMMO).

    The tweak i has the edge and the number of the hash, and is used once under one Δ.
    """
    return tree_hash(key, aes(key, label) ^ (edge ^ number) ^ number << 64)


def elements_of(circuit: Circuit) -> tuple[list[Element], set[int]]:
    """The elements of an edge, units, then products, then switches; and the gates that are none."""
    first = circuit["inputs"]
    read = {wire for _, *wires in circuit["gates"] for wire in wires}
    summed: dict[int, list[tuple[int, int]]] = {}
    for number, each in enumerate(circuit["sums"]):
        for wire, weight in each["terms"]:
            summed.setdefault(wire, []).append((number, weight))
    gates = enumerate(circuit["gates"], first)
    left_out = {w: g for w, g in gates if g[0] == "and" and w in summed and w not in read}
    wires = {gate[2] for gate in left_out.values()} | (summed.keys() - left_out.keys())
    units = sorted(wires)
    found = [{"kind": "unit", "wire": w, "weights": summed.get(w, [])} for w in units]
    switches: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for wire, (_, left, right) in left_out.items():
        for number, weight in summed[wire]:
            part = (len(found), units.index(right), weight)
            switches.setdefault((left, number), []).append(part)
        found.append({"kind": "product", "wire": right, "switch": left})
    for (wire, number), parts in sorted(switches.items()):
        found.append({"kind": "switch", "wire": wire, "sum": number, "parts": parts})
    return found, set(left_out)


def pads(
    elements: list[Element], labels: list[int], first: int, edge: int, key: bytes, ring: int
) -> list[int]:
    """A pad of each element: words of hashes of its wire's label. Args: labels: of each wire."""
    found = [0] * len(elements)
    lanes = 128 // ring
    for wire in sorted({element["wire"] for element in elements}):
        numbers = [n for n, element in enumerate(elements) if element["wire"] == wire]
        for start in range(0, len(numbers), lanes):
            hashed = gate_hash(key, labels[wire], edge, first)
            first += 1
            for lane, number in enumerate(numbers[start : start + lanes]):
                found[number] = hashed >> ring * lane & (1 << ring) - 1
    return found


def garble_edge(
    circuit: Circuit, ring: int, delta: int, inputs: list[int], edge: int, key: bytes
) -> tuple[list[int], list[int], list[int]]:
    """One edge. Args: inputs: labels of bit 0. Returns: tables, elements, the garbler's shares."""
    elements, left_out = elements_of(circuit)
    labels, tables, ands = list(inputs), [], 0
    for wire, (kind, left, right) in enumerate(circuit["gates"], len(inputs)):
        a, b = labels[left], labels[right]
        if kind == "xor" or wire in left_out:
            labels.append(a ^ b)
            continue
        p_a, p_b = a & 1, b & 1
        # GbAnd, first half: the garbler knows p_b. In terms of the labels of color 0 and 1
        a_0, a_1 = (gate_hash(key, a ^ (p_a ^ c) * delta, edge, 2 * ands) for c in (0, 1))
        b_0, b_1 = (gate_hash(key, b ^ (p_b ^ c) * delta, edge, 2 * ands + 1) for c in (0, 1))
        tables.append(a_0 ^ a_1 ^ p_b * delta)
        # second half: the evaluator knows the color of b
        tables.append(b_0 ^ b_1 ^ a)
        labels.append(a_0 ^ b_0 ^ (p_a & p_b) * delta)
        ands += 1
    colored = [[label ^ ((label & 1) ^ c) * delta for label in labels] for c in (0, 1)]
    h_0, h_1 = (pads(elements, each, 2 * ands, edge, key, ring) for each in colored)
    shares = [each["constant"] for each in circuit["sums"]]
    rho: list[int] = []
    sent = []
    for number, element in enumerate(elements):
        p = labels[element["wire"]] & 1
        if element["kind"] == "switch":
            # color 0 of the switch: Σ ω P is right; color 1: Σ ω (v − P). Both end in one mask
            of_products = sum(weight * rho[one] for one, _, weight in element["parts"])
            of_units = sum(weight * rho[unit] for _, unit, weight in element["parts"])
            rho.append(h_0[number])
            sent.append(h_0[number] - h_1[number] + 2 * of_products - of_units)
            shares[element["sum"]] -= of_products + h_0[number]
            continue
        # f·b + ρ for a factor f that only the garbler knows: 1, or the color of the switch
        f = labels[element["switch"]] & 1 if element["kind"] == "product" else 1
        rho.append(h_0[number] - f * p)
        sent.append(h_0[number] - h_1[number] + f * (1 - 2 * p))
        for total, weight in element.get("weights", []):
            shares[total] -= weight * rho[number]
    modulus = 1 << ring
    return tables, [t % modulus for t in sent], [share % modulus for share in shares]


def evaluate_edge(
    circuit: Circuit,
    ring: int,
    tables: list[int],
    sent: list[int],
    inputs: list[int],
    edge: int,
    key: bytes,
) -> list[int]:
    """The evaluator's shares of one edge. Args: inputs: the active labels."""
    elements, left_out = elements_of(circuit)
    labels, ands = list(inputs), 0
    for wire, (kind, left, right) in enumerate(circuit["gates"], len(inputs)):
        a, b = labels[left], labels[right]
        if kind == "xor" or wire in left_out:
            labels.append(a ^ b)
            continue
        # Ev: both halves, each with the table that the color chooses
        first, second = tables[2 * ands : 2 * ands + 2]
        w_g = gate_hash(key, a, edge, 2 * ands) ^ (a & 1) * first
        w_e = gate_hash(key, b, edge, 2 * ands + 1) ^ (b & 1) * (second ^ a)
        labels.append(w_g ^ w_e)
        ands += 1
    values = pads(elements, labels, 2 * ands, edge, key, ring)
    shares = [0] * len(circuit["sums"])
    for number, element in enumerate(elements):
        color = labels[element["wire"]] & 1
        values[number] += color * sent[number]
        for total, weight in element.get("weights", []):
            shares[total] += weight * values[number]
        if element["kind"] == "switch":
            of_products = sum(weight * values[one] for one, _, weight in element["parts"])
            of_units = sum(weight * values[unit] for _, unit, weight in element["parts"])
            shares[element["sum"]] += values[number] + of_products
            shares[element["sum"]] += color * (of_units - 2 * of_products)
    return [share % (1 << ring) for share in shares]


def edges(
    circuit: Circuit,
    ring: int,
    delta: int,
    labels: list[list[int]],
    active: list[list[int]],
    first_edge: int,
    hash_key: bytes,
    sent: bytes | None = None,
) -> dict[str, Any]:
    """Garble some edges and evaluate them. Args: sent: in place of the garbler's message."""
    require(delta & 1 == 1, "colors differ")
    numbers = range(first_edge, first_edge + len(labels[0]))
    columns = [list(column) for column in zip(*labels, strict=True)]
    made = [
        garble_edge(circuit, ring, delta, column, edge, hash_key)
        for column, edge in zip(columns, numbers, strict=True)
    ]
    # on the wire: all tables, then all elements, each for all edges
    tables, elements = (zip(*(each[part] for each in made), strict=True) for part in (0, 1))
    due = b"".join(word.to_bytes(16, "little") for row in tables for word in row)
    due += b"".join(word.to_bytes(ring // 8, "little") for row in elements for word in row)
    message = due if sent is None else sent
    require(len(message) == len(due), "length of garbled edges")
    found = [
        evaluate_edge(circuit, ring, *made[n][:2], [row[n] for row in active], edge, hash_key)
        for n, edge in enumerate(numbers)
    ]
    return {"garbled": message, "garbler": [each[2] for each in made], "evaluator": found}


def pair(
    circuit: Circuit,
    ring: int,
    bits: list[list[int]],
    own_labels: list[list[int]],
    first_edge: int,
    session: bytes,
    hash_key: bytes,
    seeds: list[bytes],
    sent: bytes | None = None,
) -> dict[str, Any]:
    """Edges between two nodes, from their bits to shares.

    Args: bits: [wire][edge], the garbler's wires first. own_labels: of its wires, uniform. seeds:
    of Δ, of the transfers' sender, who garbles, and of their receiver.
    """
    count = len(bits[0])
    channel = set_up(session, 4, fresh_delta(seeds[0]), seeds[1], seeds[2])
    theirs = extend(channel, [bit for row in bits[len(own_labels) :] for bit in row])
    # the evaluator's label of bit 0 is the transfer's block q, and its active label is t = q ⊕ b·Δ
    q, t = (
        [theirs[side][start : start + count] for start in range(0, len(theirs[side]), count)]
        for side in ("sender_blocks", "receiver_blocks")
    )
    rows = zip(own_labels, bits, strict=False)
    active = [[x ^ b * channel["delta"] for x, b in zip(*row, strict=True)] for row in rows]
    labels = [*own_labels, *q], [*active, *t]
    return edges(circuit, ring, channel["delta"], *labels, first_edge, hash_key, sent)
