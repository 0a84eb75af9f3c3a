"""Comparisons by pieces in whole studies: what either owner sees is uniform, whatever the other
one's numbers are.

`mpc/garbled/test_pieces.py` attacks tables alone. Here the sides of a link make them, with the
masks, tweaks and transfers of every chunk. x has 8 bits, so two pieces, and y has one bit and no
piece. All records of a node have one value, so that a pad or mask that is used twice shows. Each
record of the evaluator has more edges in a chunk than a block of pads has lanes.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from tests.support.doors import limits
from tests.support.garbled import garbled_study, without_points
from tests.support.limits import no_mask_of_choices, small_garbled_chunks
from tests.support.mpc_studies import ALPHA, uniformity
from tests.support.studies import AUC, KENDALL, LOUD, Columns, Entropy, random_tables, table
from tests.support.transfers import extension_rows
from umpc.crypto.prg import FixedKeyHash
from umpc.mpc.garbled import cells
from umpc.mpc.garbled.piece_tables import LANES, ROW_BITS, Places, bits_of_wires
from umpc.simulation import simulate
from umpc.testing import lying

GARBLERS, EVALUATORS = 240, 8
"""Records of either node."""
IN_CHUNK = 80
"""Edges of a record of the evaluator in each of three chunks."""
CHUNK = IN_CHUNK * EVALUATORS
ROWS = 16
"""Rows of either piece's table."""
CATEGORIES = 16
FIRST = 1
"""The number of the chunks' first batch of transfers."""
DATA = [(3, 3), (-90, 3), (90, -90)]
"""The garbler's value and the evaluator's."""


@pytest.fixture(autouse=True, scope="module")
def fast():
    with without_points():
        yield


@dataclass
class Seen:
    """Tables, bits, labels and messages of both sides of a link, chunk after chunk.

    tables: their payloads, and the places of their edges. own: the evaluator's row of the first
    piece. bits: those that the evaluator finds, (4, n), in the order of wires. masks: the garbler's
    parts of these bits. labels: the evaluator's, a batch of transfers after the other. The first
    batch is the records'. extensions: the messages of these batches, (32 digits, bytes).
    """

    tables: list[tuple[bytes, Places]] = field(default_factory=list)
    own: int = 0
    bits: list[np.ndarray] = field(default_factory=list)
    masks: list[np.ndarray] = field(default_factory=list)
    labels: list[np.ndarray] = field(default_factory=list)
    extensions: list[np.ndarray] = field(default_factory=list)

    def watching(self) -> AbstractContextManager[None]:
        """Note what the sides do, with the mutants that are there."""

        def make_tables(honest, pieces, keys, values, masks, *others, **options):
            made = honest(pieces, keys, values, masks, *others, **options)
            self.masks.append(bits_of_wires(pieces, masks).reshape(4, -1))
            return made

        def read_tables(honest, payload, pieces, keys, values, places, *others):
            found = honest(payload, pieces, keys, values, places, *others)
            self.tables.append((payload, places))
            self.own = int(values[0][0])
            self.bits.append(bits_of_wires(pieces, found).reshape(4, -1))
            return found

        def extend(honest, channel, choices):
            batch, message = honest(channel, choices)
            self.labels.append(batch.blocks)
            self.extensions.append(extension_rows(message.payload, len(choices)))
            return batch, message

        return lying("node", make_tables=make_tables, read_tables=read_tables, extend=extend)


def watched(study, tables: list[Columns], chunk: int, seed: str) -> Seen:
    """Run a study of two nodes in chunks of so many edges."""
    seen = Seen()
    with limits() as limit:
        small_garbled_chunks(limit, chunk)
        # Records then occur in all chunks, in each with their edges together.
        limit(cells, WINDOW=1)
        with seen.watching():
            simulate(study, tables, Entropy(seed))
    return seen


def joint(*columns: np.ndarray, width: int = 1) -> np.ndarray:
    """Small categories of several columns of `width` bits each."""
    return sum(each.astype(np.int64).ravel() << width * n for n, each in enumerate(columns))


def rows_of(payload: bytes, places: Places) -> np.ndarray:
    """The rows of the first piece, two bits each: (IN_CHUNK, EVALUATORS, ROWS)."""
    packed = np.frombuffer(payload, np.uint8, CHUNK * ROWS * ROW_BITS // 8).reshape(CHUNK, -1)
    rows = np.empty((CHUNK, ROWS), dtype=np.uint8)
    rows[places.order] = (packed[..., None] >> np.arange(0, 8, 2) & 3).reshape(CHUNK, -1)
    return rows.reshape(EVALUATORS, IN_CHUNK, ROWS).swapaxes(0, 1)


def views(garbler: int, evaluator: int, seed: str) -> dict[str, np.ndarray]:
    """Categories of the view of the evaluator, and of that of the garbler, at these values.

    The difference of two rows of one edge has no mask in it. So where two edges of equal values
    share a pad, their differences are equal.
    """
    study = garbled_study(KENDALL, 2, x=("-100", "100"), y=("0", "1"), epsilon=LOUD)
    values = ((garbler, GARBLERS), (evaluator, EVALUATORS))
    tables = [table([value] * count, [0] * count) for value, count in values]
    seen = watched(study, tables, CHUNK, f"{seed} {garbler} {evaluator}")
    return of_evaluator(seen) | of_garbler(seen)


def of_evaluator(seen: Seen) -> dict[str, np.ndarray]:
    bits, labels = np.array(seen.bits), np.array(seen.labels[FIRST:])
    colors = (labels[..., 0] & 1).reshape(bits.shape)
    rows = np.stack([rows_of(*each) for each in seen.tables])
    rows = np.delete(rows, seen.own, axis=-1)[..., :3]
    first, second = rows[..., 0] ^ rows[..., 1], rows[..., 0] ^ rows[..., 2]

    def differences(later: tuple, earlier: tuple) -> np.ndarray:
        return joint(*(each[later] ^ each[earlier] for each in (first, second)), width=2)

    every = slice(None)
    return {
        "bits": joint(*bits.swapaxes(0, 1)),
        "bits of two chunks": joint(*(bits[1:] ^ bits[:-1]).swapaxes(0, 1)),
        "bits and labels": joint(bits[:, 0], bits[:, 1], colors[:, 0], colors[:, 1]),
        "rows": joint(rows[..., 0], rows[..., 1], width=2),
        "rows of two edges": differences((every, slice(1, None)), (every, slice(-1))),
        "rows of two blocks": differences((every, slice(LANES, None)), (every, slice(-LANES))),
        "rows of two chunks": differences((slice(1, None),), (slice(-1),)),
    }


def of_garbler(seen: Seen) -> dict[str, np.ndarray]:
    rows = np.unpackbits(np.array(seen.extensions[FIRST:]), axis=2, bitorder="little")
    masks, turned = np.array(seen.masks), rows[1:] ^ rows[:-1]
    return {
        "extension": joint(*(rows[:, row] for row in (0, 1, 2, 31))),
        "extension and masks": joint(rows[:, 0], rows[:, 31], masks, rows[:, 1]),
        "extension of two chunks": joint(*(turned[:, row] for row in (0, 1, 2, 31))),
    }


@pytest.mark.usefixtures("both_ways")
def test_what_the_owners_of_pieces_see_is_uniform_whatever_the_others_numbers_are():
    for values in DATA:
        for name, sample in views(*values, "views of pieces").items():
            p = uniformity(sample, CATEGORIES)
            assert p > ALPHA, f"{name} is not uniform: p = {p:.1e}, N = {len(sample)}, {values}"


@pytest.mark.usefixtures("both_ways")
def test_all_labels_and_masks_of_a_link_differ_in_whatever_chunk_and_cell_they_are():
    assert repeated("every chunk") == set()


def repeated(seed: str) -> set[str]:
    """Return what occurs twice on a link of two cells with several chunks each."""
    study = garbled_study(AUC, 2, sampling="two_sample", x=("-100", "100"), epsilon=LOUD)
    tables = random_tables([20, 20], "every chunk", -100, 100)
    for each in tables:
        each["label"] = np.repeat([0, 1], 10)
    seen = watched(study, tables, 40, seed)
    assert len(seen.masks) == 6
    labels = np.concatenate(seen.labels)
    masks = {each.tobytes() for each in seen.masks}
    found = {"labels": len(np.unique(labels, axis=0)) < len(labels), "masks": len(masks) < 6}
    return {name for name, is_repeated in found.items() if is_repeated}


# --- power: the same tests find every protection that is left out ---------------------------------


def no_masks():
    def make_tables(honest, pieces, keys, values, masks, *others, **options):
        masks[:] = 0
        return honest(pieces, keys, values, masks, *others, **options)

    return lying("node", make_tables=make_tables)


def one_tweak_for_all_chunks():
    """Both sides take 0 for the number of the first edge of each chunk."""

    def first(honest, *given, **options):
        return honest(*given[:-1], 0, **options)

    return lying("node", make_tables=first, read_tables=first)


def without(left_out: slice, labels: tuple) -> list:
    kept = list(labels)
    del kept[left_out]
    return kept


def masks_without(left_out: slice):
    """Masks whose seed lacks some of the labels ("rows", two owners, number of the chunk)."""

    def derived(honest, seed, *labels):
        return honest(seed, *(without(left_out, labels) if labels[0] == "rows" else labels))

    return lambda: lying("node", derive=derived)


def forks_without(left_out: slice):
    """Forks that lack some of the labels ("coins", two owners, number of the chunk)."""

    def fork(honest, side, *labels):
        return honest(side, *without(left_out, labels))

    return lambda: lying("node", fork=fork)


class Zeros(FixedKeyHash):
    def __call__(self, blocks):
        return np.zeros_like(blocks)


class Repeated(FixedKeyHash):
    def __call__(self, blocks):
        return (super().__call__(blocks) & np.uint64(3)) * np.uint64(0x5555555555555555)


def no_hash():
    """The pads of rows are 0."""
    return lying("node", FixedKeyHash=lambda honest, key: Zeros(key))


def one_pad_for_all_lanes():
    return lying("node", FixedKeyHash=lambda honest, key: Repeated(key))


def one_tweak_for_all_blocks():
    def zeros(honest, *given, **options):
        changed = (
            replace(each, number=np.zeros_like(each.number)) if isinstance(each, Places) else each
            for each in given
        )
        return honest(*changed, **options)

    return lying("node", make_tables=zeros, read_tables=zeros)


def one_tag():
    """A fork has the streams of its channel."""

    def root(honest, seed, *labels):
        return seed if labels[0] == "ot fork" else honest(seed, *labels)

    return lying("node", derive=root)


OWNERS, NUMBER = slice(1, 3), slice(3, None)


IN_NUMPY = [(no_hash, "rows"), (one_pad_for_all_lanes, "rows of two edges")]
"""The compiled kernel takes the key and has a π of its own."""


@pytest.mark.usefixtures("in_numpy")
@pytest.mark.parametrize(("mutate", "finder"), IN_NUMPY)
def test_power_the_views_show_a_pad_left_out(mutate, finder):
    with mutate():
        p = uniformity(views(3, 3, "power")[finder], CATEGORIES)
    assert p < ALPHA, f"{finder} does not find the mutant: p = {p:.1e}"


def test_power_the_views_show_a_protection_left_out():
    mutants = [
        (no_masks, "bits"),
        (masks_without(NUMBER), "bits of two chunks"),
        (one_tweak_for_all_blocks, "rows of two blocks"),
        (one_tweak_for_all_chunks, "rows of two chunks"),
        (no_mask_of_choices, "extension"),
        (forks_without(NUMBER), "extension of two chunks"),
        (one_tag, "extension of two chunks"),
    ]
    for mutate, finder in mutants:
        with mutate():
            p = uniformity(views(3, 3, "power")[finder], CATEGORIES)
        assert p < ALPHA, f"{finder} does not find the mutant: p = {p:.1e}"


@pytest.mark.usefixtures("both_ways")
def test_power_labels_and_masks_that_occur_twice_are_found():
    labels = [forks_without(NUMBER), forks_without(OWNERS), one_tag]
    masks = [masks_without(NUMBER), masks_without(OWNERS)]
    for mutate in labels + masks:
        with mutate():
            assert repeated("power") == {"labels" if mutate in labels else "masks"}
