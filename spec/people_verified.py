"""People with one value each, where an aggregator or the coordinator may lie: the total's check.

`docs/people.md`, "When an aggregator lies", has the proof. The dealer follows the protocol. Keys
are authenticated (`point_functions.py`): aggregator u gets shares in F of the table h and of α·h,
for one α in a study, which the dealer alone knows. The grid of `grid.py` runs in F, and between the
total and the shares of the result it is checked that the total is h under the masks.

    total     aggregator → coordinator → both   h_u under its mask; the total
    sign      aggregator → coordinator → dealer a digest of the total, signed
    answer    dealer → all                      once, if both signed one total: a coin, T, U
    commit    aggregator → coordinator → other  H(salt, z_u), signed
    open      aggregator → coordinator → other  salt and z_u; nothing goes on unless Σ z_u = 0

A coin comes after the total. z_u leaves after the other's commitment. A study opens no second check
before the first one has passed: a check that fails shows α.
"""

from hashlib import sha256
from typing import Any

from spec import field
from spec.field import Element, decode, dot, elements, encode, encode_pairs, lift, pairs
from spec.joint_seed import is_signature, sign
from spec.prg import derive, digest
from spec.refused import require

Study = dict[str, Any]
"""attempt; cells (D); of both aggregators names and keys; relay."""


def challenge(study: Study, coin: bytes) -> list[Element]:
    """χ ∈ K^D."""
    seed = derive(coin, "people check", study["attempt"])
    return pairs(elements(seed, 2 * study["cells"]))


def mask(study: Study, seed: bytes) -> list[int]:
    """a_u."""
    return elements(derive(seed, "grid mask", study["attempt"]), study["cells"])


def pads(study: Study, seed: bytes) -> tuple[Element, int]:
    """s_u and t_u: with them the dealer's T and U are uniform to each other one."""
    v, w, t = elements(derive(seed, "people pads", study["attempt"]), 3)
    return (v, w), t


def total_text(study: Study, of_total: bytes) -> bytes:
    """The bytes that both sign of the total, as in `grid.py`. Args: of_total: its SHA-256."""
    return digest(b"umpc total 1", study["attempt"], of_total)


# --- the dealer's answer ---


def answer(
    study: Study, alpha: int, seeds: list[bytes], questions: list[list[bytes]], coin: bytes
) -> bytes:
    """Coin, T = α·⟨χ, a⟩ − s_0 − s_1, U = α − t_0 − t_1: once in an attempt.

    Args: questions: of both the total's SHA-256 and the signature.
    """
    for key, (of_total, signature) in zip(study["keys"], questions, strict=True):
        signed = is_signature(key, total_text(study, of_total), signature)
        require(signed, "a statement is signed", study["relay"])
    # with two totals a liar could choose one after the coin
    require(questions[0][0] == questions[1][0], "both signed one total", study["relay"])
    chi, t = challenge(study, coin), field.ZERO
    for seed in seeds:
        t = field.add(t, dot(lift(mask(study, seed)), chi))
    t, u = field.multiply((alpha, 0), t), alpha
    for seed in seeds:
        of_masks, of_total_pad = pads(study, seed)
        t, u = field.subtract(t, of_masks), u - of_total_pad
    return coin + encode_pairs([t]) + encode([u % field.P])


def answer_text(study: Study, of_total: bytes, told: bytes) -> bytes:
    """The bytes that the dealer signs of its answer."""
    return digest(b"umpc answer to people 1", total_text(study, of_total), told)


# --- the check between both aggregators ---


def checked(
    study: Study, place: int, seed: bytes, tags: list[int], total: bytes, told: bytes
) -> bytes:
    """z_u = ⟨χ, m_u⟩ + s_u − t_u·v with v = ⟨χ, Ĥ⟩, and T − U·v for the first one, 16 bytes.

    Args: tags: m_u.
    """
    cells = decode(total, study["cells"], "length of a total", study["relay"])
    *t, u = decode(told[32:], 3, "length of an answer", None)
    chi = challenge(study, told[:32])
    own, times = pads(study, seed)
    if place == 0:
        own, times = field.add(own, (t[0], t[1])), times + u
    # Σ z_u = ⟨χ, m⟩ + α·⟨χ, a⟩ − α·⟨χ, Ĥ⟩
    of_total = field.multiply((times, 0), dot(lift(cells), chi))
    return encode_pairs([field.subtract(field.add(dot(lift(tags), chi), own), of_total)])


def commitment(study: Study, place: int, of_total: bytes, told: bytes, opening: bytes) -> bytes:
    """H(salt, z_u), bound to total, answer and place, so that nobody can copy it.

    Args: opening: a salt of 48 bytes, and z_u.
    """
    text = total_text(study, of_total)
    return digest(b"umpc check of people 1", text, told, bytes([place]), opening)


def commitment_text(committed: bytes) -> bytes:
    """The bytes that an aggregator signs."""
    return digest(b"umpc commitment of people 1", committed)


def check_commitments(study: Study, commitments: list[list[bytes]]) -> None:
    """Before z_u leaves. Args: commitments: of both, with their signatures."""
    for key, (committed, signature) in zip(study["keys"], commitments, strict=True):
        signed = is_signature(key, commitment_text(committed), signature)
        require(signed, "a commitment is signed", study["relay"])


def check(
    study: Study, of_total: bytes, told: bytes, committed: list[bytes], openings: list[bytes]
) -> None:
    """Before any share of the result. Args: openings: salt and z_u of both."""
    for place, (each, opening) in enumerate(zip(committed, openings, strict=True)):
        fits = each == commitment(study, place, of_total, told, opening)
        require(fits, "both open what they committed to")
    zs = pairs([word for each in openings for word in decode(each[48:], 2, "length of z", None)])
    require(field.total(zs) == field.ZERO, "the total is that of the people")


def run(
    study: Study,
    alpha: int,
    seeds: list[bytes],
    shares: list[list[list[int]]],
    signing: list[list[int]],
    coin: bytes,
    salts: list[bytes],
    added: list[int],
) -> dict[str, Any]:
    """All of a check. Args: shares: of both h_u and m_u. signing: of both a key, and nonces of two
    signatures. added: by a liar to the total, before both hear it; zeros, if nobody lies."""
    masked = [field.masked(h, mask(study, s)) for (h, _), s in zip(shares, seeds, strict=True)]
    total = encode(field.masked(field.masked(*masked), added))
    of_total = sha256(total).digest()
    text = total_text(study, of_total)
    signatures = [sign(key, text, nonce) for key, nonce, _ in signing]
    told = answer(study, alpha, seeds, [[of_total, each] for each in signatures], coin)
    rows = enumerate(zip(seeds, shares, salts, strict=True))
    openings = [
        salt + checked(study, u, seed, tags, total, told) for u, (seed, (_, tags), salt) in rows
    ]
    committed = [
        commitment(study, u, of_total, told, opening) for u, opening in enumerate(openings)
    ]
    pair = zip(committed, signing, strict=True)
    signed = [[each, sign(key, commitment_text(each), n)] for each, (key, _, n) in pair]
    check_commitments(study, signed)
    check(study, of_total, told, committed, openings)
    return {
        "masked": masked,
        "total": total,
        "signatures": signatures,
        "answer": told,
        "commitments": signed,
        "openings": openings,
    }
