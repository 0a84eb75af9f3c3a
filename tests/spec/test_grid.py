"""The grid: masked tables, the total and its signatures, shares; and cross terms by transfers."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
from cryptography.hazmat.primitives.asymmetric import ec

from spec.cases.grid import CELLS, MATRIX, RUN, signs
from spec.cases.joint_seed import MEMBERS, OPENINGS, STUDY
from spec.grid import run as run_of_spec
from spec.grid import without_dealer
from spec.joint_seed import sign
from spec.transfers import fresh_delta, set_up
from tests.spec.replaying import replay_tests
from tests.spec.studies import study_of
from tests.spec.test_joint_seed import member_of, verify
from tests.spec.test_transfers import channel_of
from tests.support.fields import number_field
from tests.support.grid import cells_of, grid_study
from umpc.crypto.ring import Ring
from umpc.crypto.rounds import run_in_memory
from umpc.crypto.signing import Credentials, point_of
from umpc.mpc.transfers.ot_inner_products import receive_inner_products, send_inner_products
from umpc.protocols.grid.attempt import GridAttempt, GridDealing
from umpc.protocols.grid.binding import grid_of
from umpc.protocols.grid.masked_form import masked_forms
from umpc.protocols.grid.node import NodeTable
from umpc.protocols.grid.protocol import TotalOfTables
from umpc.study.messages import Frame


def run(
    matrix, ring, attempt, seeds, randoms, tables, signing, relay, told=None, last_signature=None
):
    fields = (number_field("x", "0", "1"), number_field("y", "0", "2"))
    study = study_of(STUDY, [each["name"] for each in MEMBERS], grid_study(fields=fields))
    made = GridAttempt(study, [member_of(m) for m in MEMBERS], OPENINGS, Ring(ring), grid_of(study))
    assert (made.id, study.coordinator, matrix) == (attempt, relay, MATRIX)
    return run_of(made, ring, seeds, randoms, tables, signing, told, last_signature)


def run_of(made, ring, seeds, randoms, tables, signing, told=None, last_signature=None):
    """All of an attempt between its nodes. Args: as `run` has them in the specification."""
    drawn = iter([*seeds, *(each.to_bytes(ring // 8, "little") for each in randoms)])
    dealing = GridDealing(made, lambda size: next(drawn))
    (chunk,) = made.chunks()
    dealt = [cells_of([frame], ring).tolist() for _, frame in dealing.deal_one(chunk)]
    keys = [point_of(ec.derive_private_key(key, ec.SECP256R1()).public_key()) for key, _ in signing]
    (form,) = masked_forms(made.grid, made.ring)
    total, nodes, masked = TotalOfTables(made, keys), [], []
    for number, (table, (key, nonce)) in enumerate(zip(tables, signing, strict=True)):
        own = Credentials(
            made.members[number].name, b"", lambda text, k=key, n=nonce: sign(k, text, n), verify
        )
        node = NodeTable(made, number, dealing.seed_frame(number).payload, own, keys)
        words = np.array(table, dtype=np.uint64)
        node.put(words, [form.own(words)])
        node.deal(dealt[number])
        (frame,) = node.masked()
        total.add(number, frame)
        masked.append(cells_of([frame], ring).tolist())
        nodes.append(node)
    (frame,) = total.total()
    for node in nodes:
        is_last = node is nodes[-1]
        node.take(_with(frame, told, ring) if is_last and told is not None else frame)
    signatures = [node.sign() for node in nodes]
    if last_signature is not None:
        signatures[-1] = last_signature
    for node in nodes:
        node.confirm(signatures)
    shares = [node.shares[0] % (1 << ring) for node in nodes]
    return {
        "dealt": [number for (number,) in dealt],
        "masked": masked,
        "total": frame.payload,
        "signatures": signatures,
        "shares": shares,
        "twice_the_sum": Ring(ring).decode(sum(shares)),
    }


def _with(frame: Frame, payload: bytes, ring: int) -> Frame:
    return replace(frame, payload=payload, count=8 * len(payload) // ring)


def products(vectors, numbers, bits, width, session, **seeds):
    sender, receiver, _ = channel_of(session, 4, **seeds)
    parties = [
        send_inner_products(sender, [np.array(v, dtype=np.uint64) for v in vectors], bits, width),
        receive_inner_products(
            receiver, np.array(numbers, dtype=np.uint64), bits, width, len(vectors), "sender"
        ),
    ]
    (mine, theirs), transcript = run_in_memory(parties)
    extension, corrections = (line.message.payload for line in transcript)
    return {
        "extension": extension,
        "corrections": corrections,
        "sender_shares": mine,
        "chooser_shares": theirs,
    }


test_good_vectors, test_bad_vectors, test_each_check_is_needed = replay_tests(
    "grid", {"run": run, "products": products}
)


def test_without_a_dealer_the_shares_add_up_to_twice_the_sum_over_all_pairs():
    tables = RUN["tables"]
    records = [CELLS[cell] for table in tables for cell in range(6) for _ in range(table[cell])]
    due = sum(signs(*one, *other) for one, other in combinations(records, 2))
    channel = set_up(b"session", 4, fresh_delta(bytes(32)), b"\1" * 32, b"\2" * 32)
    channels = {(a, b): channel for a in range(3) for b in range(3)}
    shares = without_dealer(MATRIX, 32, tables, channels)
    assert sum(shares) % 2**32 == 2 * due % 2**32


def test_all_tables_of_two_nodes_with_two_records_each_against_the_clear():
    """Four cells. The nodes sign with the vectors' keys, and masks are those of the vectors."""
    cells = list(product(range(2), repeat=2))
    matrix = [[signs(*one, *other) for other in cells] for one in cells]
    tables = [table for table in product(range(3), repeat=4) if sum(table) == 2]
    given = {**RUN, "matrix": matrix, "randoms": [7]}
    for each in ("seeds", "signing"):
        given[each] = given[each][:2]
    for one, other in product(tables, repeat=2):
        records = [cells[c] for table in (one, other) for c in range(4) for _ in range(table[c])]
        due = sum(signs(*a, *b) for a, b in combinations(records, 2))
        found = run_of_spec(**{**given, "tables": [list(one), list(other)]})
        assert found["twice_the_sum"] == 2 * due
