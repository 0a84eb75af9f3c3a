"""The law of all members' view but one does not depend on the coins; their shares are uniform.

One run tosses COINS coins of WIDTH bits. The views of the coins are sorted by how each coin fell,
which only this test knows, and the two samples are compared. Mutants leave a mask out, and must be
found.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.limits import no_mask_of_choices
from tests.support.mpc_studies import ALPHA, homogeneity, uniformity
from tests.support.tossing import Tossed
from tests.support.transfers import extension_rows
from umpc.crypto.prg import Stream, derive
from umpc.mpc.masked.material import CoinToss
from umpc.mpc.transfers import coins_from_transfers as tossing_module
from umpc.mpc.transfers.message_shapes import FACTOR, levels_of
from umpc.testing import lying

COINS, WIDTH = 4000, 4
THRESHOLD = 7 << 60
"""A little below a half, of WIDTH bits: both samples are large."""
LEVELS = levels_of(WIDTH)
WATCHING = [(2, (0,)), (2, (1,)), (3, (0, 1)), (3, (1, 2)), (3, (0, 2))]
"""Members, and which of them put together what they see: all but one."""


class Views:
    """Small categories of the view of every coin of one run, by name.

    uniform: the number of categories over which each must be uniform.
    """

    def __init__(self, label: str, members: int, watching: tuple[int, ...]):
        self.tossed = Tossed(label, members, [CoinToss((THRESHOLD,), (1,))] * COINS).run()
        self.watching = watching
        (self.hidden,) = set(range(members)) - set(watching)
        self.shares = np.array(self.tossed.shares, dtype=np.uint64)[list(watching)]
        leaves, last = (self._opened(3 + level, ands) for level, ands in enumerate(LEVELS))
        low, top = (self.shares >> np.uint64(place) & np.uint64(1) for place in (0, 63))
        self.seen = {
            "leaves": joined(leaves),
            "last": joined(last),
            "last, own masks": joined(last, self._masks()[:, :, -1]),
            "shares": joined(low, top),
            "opened coins": self._coins(),
            "opened numbers": self._numbers(low),
            **self._choices(low),
            **self._corrections(low),
        }
        self.uniform = {
            "leaves": 16,
            "last": 4,
            "last, own masks": 4**members,
            "shares": 4 ** len(watching),
            "opened coins": 2,
        }
        self.uniform |= (
            {"choices": 2 ** (members + 1)} if "choices" in self.seen else {"corrections": 16}
        )

    def _opened(self, number: int, ands: int) -> np.ndarray:
        """(2, ands, COINS): x ⊕ a and y ⊕ b, put together from what every member says."""
        said = {
            line.sender: self.tossed.parts(line)["compared"]
            for line in self.tossed.told
            if line.round == number and "compared" in self.tossed.parts(line)
        }
        rows = np.bitwise_xor.reduce(
            [np.frombuffer(payload, np.uint8) for payload in said.values()]
        )
        return np.unpackbits(rows, count=2 * ands * COINS, bitorder="little").reshape(
            2, ands, COINS
        )

    def _masks(self) -> np.ndarray:
        """(watching, 2, ANDs, COINS): a and b of those who watch."""
        seeds = [
            tossing_module.derive(self.tossed.seeds[n], "toss", "triples", 0) for n in self.watching
        ]
        rows = [
            [Stream(derive(seed, name)).bits(sum(LEVELS) * COINS) for name in "ab"]
            for seed in seeds
        ]
        return np.array(rows).reshape(len(seeds), 2, sum(LEVELS), COINS)

    def _said(self, part: str, receiver: int) -> list[bytes]:
        """All that the hidden member says to another one in this part of messages."""
        return [
            self.tossed.parts(line)[part]
            for line in self.tossed.told
            if (line.sender, line.receiver) == (self.hidden, receiver)
            and part in self.tossed.parts(line)
        ]

    def _coins(self) -> np.ndarray:
        """coin ⊕ checked bit, of all members."""
        said = {
            line.sender: part["coins"]
            for line in self.tossed.told
            if "coins" in (part := self.tossed.parts(line))
        }
        rows = np.bitwise_xor.reduce([np.frombuffer(each, np.uint8) for each in said.values()])
        return np.unpackbits(rows, count=COINS, bitorder="little").astype(np.int64)

    def _numbers(self, low: np.ndarray) -> np.ndarray:
        """The hidden member's opened share at a coin's place, with all that is seen of the coin."""
        (opened,) = self._said("opened", self.watching[0])
        words = np.frombuffer(opened[32:], dtype="<u8")[:COINS]
        seen = [words >> np.uint64(place) & np.uint64(1) for place in range(2)]
        return joined(*seen, low, self._coins())

    def _choices(self, low: np.ndarray) -> dict[str, np.ndarray]:
        """A row of the extension chosen by the hidden member's bits, with the others' shares."""
        if self.hidden < self.watching[0]:
            return {}
        extension = self._said("converted", self.watching[0])[0]
        rows = extension_rows(extension, FACTOR * COINS)
        used, _ = self.tossed.places
        row = np.unpackbits(rows[0], bitorder="little")[used]
        return {"choices": joined(row, low, self._coins())}

    def _corrections(self, low: np.ndarray) -> dict[str, np.ndarray]:
        """The corrections from the hidden member, alone, and with its receiver's results."""
        if self.hidden > self.watching[-1]:
            return {}
        used, _ = self.tossed.places
        words = np.frombuffer(self._said("converted", self.watching[-1])[-1], dtype="<u8")[used]
        four = [words >> np.uint64(place) & np.uint64(1) for place in range(4)]
        made = [self.shares[-1] >> np.uint64(place) & np.uint64(1) for place in range(1, 4)]
        seen = joined(*four, *made, low, self._coins())
        return {"corrections": joined(*four), "corrections, own shares": seen}

    def p_of(self, name: str) -> float:
        """Whether what is seen of coins that fell and of others has one law."""
        fell = self.tossed.coins.astype(bool)
        return homogeneity(self.seen[name][fell], self.seen[name][~fell])


def joined(*rows: np.ndarray) -> np.ndarray:
    """(…, COINS) bits as one category a coin."""
    bits = np.concatenate([row.reshape(-1, COINS).astype(np.int64) for row in rows])
    return (bits << np.arange(len(bits))[:, None]).sum(axis=0)


@pytest.mark.parametrize(("members", "watching"), WATCHING)
def test_what_all_but_one_see_says_nothing_of_the_coins(members, watching):
    views = Views(f"views {members} {watching}", members, watching)
    assert 0.4 < views.tossed.coins.mean() < 0.47
    for name in views.seen:
        assert views.p_of(name) > ALPHA, f"{name} tells how coins fell: p = {views.p_of(name):.1e}"
    for name, categories in views.uniform.items():
        assert uniformity(views.seen[name], categories) > ALPHA, f"{name} is not uniform"


def test_the_hidden_share_is_all_that_is_missing():
    """With it the coin is known: what is compared above is of the coins that fell."""
    views = Views("missing", 2, (0,))
    parity = np.bitwise_xor.reduce(np.array(views.tossed.shares, dtype=np.uint64) & np.uint64(1))
    assert np.array_equal(parity, views.tossed.coins)


# --- power: every mask that is left out is found --------------------------------------------------


def no_masks():
    """Factors are opened as they are."""

    def zeros(honest, *rows):
        return honest(*(np.zeros_like(row) for row in rows))

    return lying("node", BitTriples=zeros)


def the_same_masks():
    """All members draw the same bits for their triples: of three, each knows all masks."""

    def common(honest, seed: bytes, *labels):
        return honest(bytes(32) if "triples" in labels else seed, *labels)

    return lying("node", derive=common)


def no_hash():
    """Pads are the blocks themselves, which differ by Δ."""
    return lying("node", hash_blocks=lambda honest, blocks, session: blocks.blocks)


def bits_that_are_opened():
    """Coins use the bits that are opened, too."""

    def overlapping(honest, challenge: bytes, count: int):
        _, opened = honest(challenge, count)
        return opened[:count], opened

    return lying("node", chosen=overlapping)


@pytest.mark.parametrize(
    ("mutant", "case", "finder"),
    [
        (no_masks, WATCHING[0], "leaves"),
        (no_masks, WATCHING[3], "last"),
        (the_same_masks, WATCHING[2], "last, own masks"),
        (no_mask_of_choices, WATCHING[0], "choices"),
        (no_mask_of_choices, WATCHING[2], "choices"),
        (no_hash, WATCHING[1], "corrections, own shares"),
        (no_hash, WATCHING[3], "corrections, own shares"),
        (bits_that_are_opened, WATCHING[0], "opened numbers"),
        (bits_that_are_opened, WATCHING[3], "opened numbers"),
    ],
)
def test_power_a_mask_left_out_is_found(mutant, case, finder):
    with mutant():
        views = Views(f"power {mutant.__name__} {case}", *case)
    assert views.tossed.sums == views.tossed.expected, (
        "a mutant that breaks the result proves nothing"
    )
    assert views.p_of(finder) < ALPHA, f"the mutant passes with p = {views.p_of(finder):.1e}"
