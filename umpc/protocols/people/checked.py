"""The check of a total where an aggregator or the coordinator may lie (docs/people.md).

`adversary = "lying_nodes"`. The dealer follows the protocol and colludes with nobody. Shares are in
F (`umpc/crypto/prime_field.py`): h_u of the table h, and m_u of α·h, for an α of the survey that
the dealer alone knows. Challenges are in K, the extension of F of degree 2.

| exchange | from → to | what |
|---|---|---|
| 1 | aggregator → coordinator → both | ĥ_u = h_u + a_u; the total Ĥ |
| 2 | aggregator → coordinator → dealer, other one | a digest of Ĥ, signed |
|   | dealer → all | once, if both signed one Ĥ: a coin, T, U, and its signature |
| 3 | aggregator → coordinator → other one | H(salt, z_u), signed |
| last | aggregator → coordinator → other one | salt and z_u, in place of a signature of the total |

The coin gives χ ∈ K^D. Each aggregator's seed gives the pads s_u ∈ K and t_u ∈ F. The dealer says
T = α·⟨χ, a⟩ − s_0 − s_1 and U = α − t_0 − t_1. With v = ⟨χ, Ĥ⟩

    z_u = ⟨χ, m_u⟩ + s_u − t_u·v, and T − U·v besides for the first one,
    z_0 + z_1 = ⟨χ, α·h⟩ + α·⟨χ, a⟩ − α·⟨χ, Ĥ⟩ = −α·⟨χ, Ĥ − a − h⟩.

It is 0 if Ĥ is the total of the table. Else it is 0 with a probability of 1/p² over χ, and liars
make it 0 only if they guess α, with a probability of 1/p. They may end an attempt before its check,
and have another coin.

*Reveals*: z_0 = −z_1, which is uniform to the coordinator by s_0. To liars it shows α: whoever
sends z_u never sends another one for the survey unless the sum was 0 (`umpc/node/people_store.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from umpc.crypto import field
from umpc.crypto.prg import SEED_BYTES, Stream, derive, digest
from umpc.crypto.prime_field import PRIME
from umpc.crypto.signing import SIGNATURE_BYTES, Sign, Verify, is_signature
from umpc.errors import FailedCheck, RemoteProtocolError
from umpc.mpc.arrays import Words
from umpc.protocols.grid.attempt import GridAttempt, GridDealing, check_signed, total_statement
from umpc.protocols.grid.lookup_proof import ANSWER, DIGEST_BYTES, STATEMENT
from umpc.protocols.grid.masked_form import HISTOGRAM, STEP, TOTAL
from umpc.protocols.grid.verified import FixedBytes, bytes_of, check_dealer
from umpc.study.messages import Frame, frame_bytes

EXCHANGES = 3
ASKS = 2
"""The dealer is asked after what aggregators say in this exchange."""
ROUNDS = 3
"""Rounds beside the grid's: statements, the dealer's answer, commitments."""
COMMITMENT = "commitment"
K_BYTES = 16
COMMITMENT_BYTES = DIGEST_BYTES + SIGNATURE_BYTES
OPENING_BYTES = SIGNATURE_BYTES
SALT_BYTES = OPENING_BYTES - K_BYTES
"""Salt and z_u take the bytes of a signature, in whose place they travel."""
WORDS = 3
"""Elements of F of a node's pads, and of what the dealer says: one of K, one of F."""
TOLD_BYTES = SEED_BYTES + 8 * WORDS
ANSWER_BYTES = TOLD_BYTES + SIGNATURE_BYTES


# --- what is said, and checked by everybody -------------------------------------------------------


def challenge(attempt: bytes, coin: bytes, cells: int) -> Words:
    """χ: (cells, 2)."""
    # spec/people_verified.py, `challenge`
    return field.field_elements(Stream(derive(coin, "people check", attempt)), 2 * cells).reshape(
        -1, 2
    )


def pads(attempt: bytes, seed: bytes) -> tuple[Words, Words]:
    """s_u, (2,), and t_u, a number. Args: seed: the dealer's, of a node's masks."""
    words = field.field_elements(Stream(derive(seed, "people pads", attempt)), WORDS)
    return words[:2], words[2]


def answer_statement(total: bytes, told: bytes) -> bytes:
    """The bytes that the dealer signs. Args: total: `total_statement`. told: coin, T and U."""
    return digest(b"umpc answer to people 1", total, told)


def commitment_of(total: bytes, told: bytes, node: int, opening: bytes) -> bytes:
    """H(salt, z_u) of one attempt and one node. Args: opening: salt and z_u."""
    return digest(b"umpc check of people 1", total, told, bytes([node]), opening)


def commitment_statement(commitment: bytes) -> bytes:
    """The bytes that a node signs of its commitment, which names all else."""
    return digest(b"umpc commitment of people 1", commitment)


def bytes_by_step(attempt: GridAttempt) -> dict[tuple[str, int], int]:
    """Bytes of all frames that a node sends and gets on data, by (step, round)."""
    found = {(step, 0): attempt.layout.wire_bytes(step) for step in (HISTOGRAM, TOTAL)}
    for step, size in ((STATEMENT, SIGNATURE_BYTES), (COMMITMENT, COMMITMENT_BYTES)):
        # its own, and the other one's
        found[step, 0] = sum(frame_bytes(step, (node,), 0, size, 8, size) for node in (0, 1))
    found[ANSWER, 0] = frame_bytes(ANSWER, (0,), 0, ANSWER_BYTES, 8, ANSWER_BYTES)
    return found


class CheckedTotal:
    """All that is said in one attempt after its total. Args: keys: of both aggregators."""

    def __init__(self, attempt: GridAttempt, keys: Sequence[bytes]):
        self.attempt, self.keys = attempt, keys
        self.statements = [FixedBytes(STATEMENT, node, SIGNATURE_BYTES) for node in (0, 1)]
        self.commitments = [FixedBytes(COMMITMENT, node, COMMITMENT_BYTES) for node in (0, 1)]
        self.answer = FixedBytes(ANSWER, 0, ANSWER_BYTES)
        self.total = b""

    @property
    def told(self) -> bytes:
        """Coin, T and U of the dealer's answer."""
        return self.answer.data[:TOLD_BYTES]

    def due(self, node: int) -> FixedBytes:
        """The next part of a node."""
        both = self.statements[node], self.commitments[node]
        return both[both[0].is_complete]

    def hear(self, frame: Frame, dealer: bytes, verify: Verify) -> bool:
        """The dealer's answer, which must be about this total. Returns: True."""
        named = self.attempt.study.dealer
        self.answer.take(frame, named.name if named else "the dealer")
        statement = answer_statement(self.total, self.told)
        check_dealer(self.attempt, dealer, verify, statement, self.answer.data[TOLD_BYTES:])
        return True

    def check_statements(self, relay: str | None) -> None:
        """Both signed one total. Args, raises: as of `check_commitments`."""
        signatures = [each.data for each in self.statements]
        check_signed(self.total, self.attempt.members, self.keys, signatures, relay)

    def check_commitments(self, relay: str | None) -> None:
        """Both are signed. Args: relay: who passed them on; None: each came from its node.

        Raises: RemoteProtocolError naming the relay, or without one the node.
        """
        rows = zip(self.attempt.members, self.keys, self.commitments, strict=True)
        for member, key, each in rows:
            signed = commitment_statement(each.data[:DIGEST_BYTES])
            if not is_signature(key, signed, each.data[DIGEST_BYTES:]):
                raise RemoteProtocolError(
                    f"the commitment that {member.name} signed was due, and something else came "
                    f"from {relay or member.name}; nothing was opened, and the study can run again",
                    culprit=relay or member.name,
                    step=STEP,
                )

    def check(self, openings: Sequence[bytes]) -> None:
        """Both opened what they committed to, and it adds up to 0. Raises: FailedCheck."""
        # spec/people_verified.py, `check`
        committed = len(openings) == len(self.keys) and all(
            len(opening) == OPENING_BYTES
            and commitment_of(self.total, self.told, node, opening) == each.data[:DIGEST_BYTES]
            for node, (opening, each) in enumerate(zip(openings, self.commitments, strict=True))
        )
        if not committed:
            raise FailedCheck(f"what was opened is not what was committed to: {FAILED}", step=STEP)
        both = [np.frombuffer(opening[SALT_BYTES:], dtype="<u8") for opening in openings]
        if any((each >= field.P).any() for each in both) or field.add(*both).any():
            raise FailedCheck(f"the total is not that of the people: {FAILED}", step=STEP)


FAILED = (
    "an aggregator or the coordinator lied, or a machine of theirs failed, and nobody can say who. "
    "No share was made. The answers are spent: make a new study, and people must come again, or "
    "sites link their rows again"
)


# --- dealer ---------------------------------------------------------------------------------------


class PeopleDealing(GridDealing):
    """The grid's dealer, with one answer about the total.

    alpha: the survey's. It is set before the answer.
    """

    alpha: int | None = None

    def is_signed(self, node: int, key: bytes, question: bytes) -> bool:
        """Whether a node signed a total of this attempt."""
        signed = total_statement(self.attempt.id, question[:DIGEST_BYTES])
        return is_signature(key, signed, question[DIGEST_BYTES:])

    def answer(self, questions: Sequence[bytes], sign: Sign) -> Iterator[Frame]:
        """A coin, T and U, once. The seeds are gone afterwards.

        Raises: RemoteProtocolError for two totals, or a second time.
        """
        relay = self.attempt.study.coordinator
        if not self._seeds or self.alpha is None:
            raise RemoteProtocolError(
                "this attempt was answered before, or the dealer has no keys of the study any "
                "more; run the study again",
                culprit=relay,
                step=STEP,
            )
        seeds, masks = self._seeds, self._sum_of_masks()
        alpha, self.alpha, self._seeds = field.constant(self.alpha), None, []
        digests = {each[:DIGEST_BYTES] for each in questions}
        # with two totals, a liar could choose one after the coin
        if len(digests) != 1 or len(questions) != len(seeds):
            raise RemoteProtocolError(
                f"{relay} passed on signatures of two totals, and an honest coordinator tells one; "
                "there is no answer",
                culprit=relay,
                step=STEP,
            )
        attempt = self.attempt.id
        # the coin is drawn when the total is fixed
        coin = self._entropy(SEED_BYTES)
        chi = challenge(attempt, coin, len(masks))
        # α·⟨χ, a⟩ and α, less the pads of both
        of_masks = field.scale(alpha, field.inner_fk(PRIME.checked(masks), chi))
        words = np.append(of_masks, alpha)
        for seed in seeds:
            words = field.subtract(words, np.append(*pads(attempt, seed)))
        told = coin + bytes_of(words)
        found = FixedBytes(ANSWER, 0, ANSWER_BYTES)
        statement = answer_statement(total_statement(attempt, digests.pop()), told)
        found.data = told + sign(statement)
        yield from found.frames()
