"""People with one value each: one message of a person, and shares of their histogram.

The setting of Sinh & Ramon 2025, section 1: n people with one value each. `docs/people.md` has the
promise, who sees what, and attacks. The dealer knows a random cell r for each person and deals keys
of the point function at r (`point_functions.py`). A person sends x − r mod D to two aggregators,
sealed. Each rotates what its key expands to by that number, and adds up. The sums are shares of the
histogram, and the aggregators go on as two nodes of `grid.py` whose tables are these shares.

    deal      dealer → person      its place, and the secret of which r is made
              dealer → aggregator  a seed of roots, and the keys of all places
    send      person → aggregator  a box: number, nonce, signature
    close     no message is taken any more
    compare   each aggregator → the other one    a row for each place: (place, receipt)
              both sign the rows that are equal, once: now n, sensitivity and masks are fixed
    release   both run attempts of the grid until one ends, and each adds all the noise
"""

from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from spec import grid, point_functions
from spec.joint_seed import is_signature, sign
from spec.point_functions import Key
from spec.prg import cut, derive, digest, stream
from spec.refused import require
from spec.sharing import decode
from spec.zero_shares import public_key

Study = dict[str, Any]
"""hash; hash_key (of the trees, 16 bytes, public); cells (D); fewest people; names, keys (of
certificates) and box_keys (X25519, made for this study) of both aggregators; people: the key of
each place, with which a person signs; relay: the coordinator. The hash is of all of these, and of
bins and closing time."""
Person = dict[str, Any]
"""place, secret; cell; signing_key; randomness: nonce (32 bytes), signature_nonces and box_secrets
(of X25519), one for each aggregator. A box secret seals one text: who asks again sends the same
bytes."""
Row = tuple[int, int, bytes]
"""An aggregator's row of a person: place, number, and the receipt."""
NUMBER_BYTES = 4
NONCE_BYTES = 32
BOX_BYTES = 32 + NUMBER_BYTES + NONCE_BYTES + 64 + 16
"""The sender's key, the sealed text, and its tag: every box has this size."""

# --- deal: dealer → person, dealer → aggregators ---


def offset(study: Study, place: int, secret: bytes) -> int:
    """r, uniform but for D/2^128: person and dealer know it, and nobody else.

    It is made of the study's hash and the place, so no number serves two of them.
    """
    word = int.from_bytes(derive(secret, "person's cell", study["hash"], place)[:16], "little")
    return word * study["cells"] >> 128


def moved_on(secret: bytes) -> bytes:
    """An enrolment's secret after a study. The former one is deleted at both ends, and at the
    dealer all that was dealt, so who takes the secret later opens no number of an earlier study."""
    return derive(secret, "next study")


def roots(study: Study, seed: bytes) -> list[int]:
    """The roots of an aggregator's keys, by place."""
    data = stream(derive(seed, "roots of people", study["hash"]), 16 * len(study["people"]))
    return [int.from_bytes(part, "little") for part in cut(data, 16)]


def deal(study: Study, secrets: list[bytes], seeds: list[bytes]) -> list[Key]:
    """The keys of all places, the same bytes for both. Args: secrets: by place. seeds: of both.

    Once for these seeds: other keys over the same roots would show the cell.
    """
    rows = zip(secrets, *(roots(study, seed) for seed in seeds), strict=True)
    return [
        point_functions.generate(
            study["cells"], offset(study, place, secret), [*both], study["hash_key"]
        )
        for place, (secret, *both) in enumerate(rows)
    ]


def dealt_digest(keys: list[Key]) -> bytes:
    """A digest of the keys, by which both aggregators know that they have the same."""
    return digest(b"umpc keys of people 1", point_functions.encode(keys))


# --- send: person → both aggregators ---


def receipt(study: Study, place: int, number: int, nonce: bytes) -> bytes:
    """The person signs it, the aggregators compare it, and the public list shows it.

    The dealer knows r. Without the nonce it would find x by trying all numbers.
    """
    numbers = [each.to_bytes(8, "little") for each in (place, number)]
    return digest(b"umpc person 1", study["hash"], *numbers, nonce)


def send(study: Study, person: Person) -> list[bytes]:
    """A person's two boxes, which may go through anybody but are opened by one aggregator each."""
    number = (person["cell"] - offset(study, person["place"], person["secret"])) % study["cells"]
    return send_number(study, person, [number, number])


def send_number(study: Study, person: Person, numbers: list[int]) -> list[bytes]:
    """The boxes of these numbers, one for each aggregator. An honest person has one number."""
    boxes = []
    for side, number in enumerate(numbers):
        told = receipt(study, person["place"], number, person["nonce"])
        signature = sign(person["signing_key"], told, person["signature_nonces"][side])
        text = number.to_bytes(NUMBER_BYTES, "little") + person["nonce"] + signature
        secret = person["box_secrets"][side]
        boxes.append(seal(study, side, person["place"], secret, text))
    return boxes


def box_key(study: Study, side: int, place: int, shared: bytes, sender: bytes) -> bytes:
    """The key of one box. A box for another study, aggregator or place does not open."""
    key = study["box_keys"][side]
    return derive(shared, "box", study["hash"], side, place, sender, key)


def seal(study: Study, side: int, place: int, secret: bytes, text: bytes) -> bytes:
    """The sender's public key, and the text under AES-256-GCM. Each key serves one box."""
    theirs = X25519PublicKey.from_public_bytes(study["box_keys"][side])
    shared = X25519PrivateKey.from_private_bytes(secret).exchange(theirs)
    key = box_key(study, side, place, shared, public_key(secret))
    return public_key(secret) + AESGCM(key).encrypt(bytes(12), text, None)


def unseal(study: Study, side: int, place: int, secret: bytes, box: bytes) -> bytes:
    """The text of a box. Args: secret: of the aggregator's box key."""
    require(len(box) == BOX_BYTES, "a box opens")
    sender = X25519PublicKey.from_public_bytes(box[:32])
    try:
        shared = X25519PrivateKey.from_private_bytes(secret).exchange(sender)
        key = box_key(study, side, place, shared, box[:32])
        return AESGCM(key).decrypt(bytes(12), box[32:], None)
    except (InvalidTag, ValueError):
        require(False, "a box opens")
        raise


def accept(
    study: Study, side: int, secret: bytes, stored: list[Row], place: int, box: bytes
) -> list[Row]:
    """An aggregator takes one message. Returns: what it stores, before the receipt leaves.

    Args: stored: all rows on its disk. A row that comes again changes nothing, so whoever got no
    receipt asks again.
    """
    require(0 <= place < len(study["people"]), "a place is the study's")
    text = unseal(study, side, place, secret, box)
    number = int.from_bytes(text[:NUMBER_BYTES], "little")
    nonce, signature = text[NUMBER_BYTES:-64], text[-64:]
    require(number < study["cells"], "a number is a cell")
    told = receipt(study, place, number, nonce)
    require(is_signature(study["people"][place], told, signature), "a person signed the number")
    # two numbers under one r are two votes; an aggregator that has both knows how they differ
    former = [row for row in stored if row[0] == place]
    require(former in ([], [(place, number, told)]), "one number a place")
    return stored if former else [*stored, (place, number, told)]


# --- compare: aggregator ↔ aggregator, after the closing time ---


def listed(stored: list[Row]) -> list[tuple[int, bytes]]:
    """The list that an aggregator sends: (place, receipt), in the order of places."""
    return sorted((place, told) for place, _, told in stored)


def counted(
    study: Study, stored: list[Row], theirs: list[tuple[int, bytes]], other: str
) -> list[Row]:
    """The rows that both have. Who sent one aggregator nothing, or something else, is not in it."""
    places = [place for place, _ in theirs]
    require(places == sorted(set(places)), "a list has each place once", other)
    both = {(place, told) for place, told in theirs}
    found = sorted(row for row in stored if (row[0], row[2]) in both)
    require(len(found) >= max(2, study["fewest"]), "enough people came")
    return found


def counted_statement(study: Study, rows: list[Row], dealt: bytes) -> bytes:
    """Both sign it, once a study: n, which the dealer reads, and a digest that fixes every number
    and all keys. It hides the numbers from the dealer, because a receipt does.

    Args: dealt: the digest of the keys.
    """
    parts = [place.to_bytes(8, "little") + told for place, told in listed(rows)]
    fixed = digest(b"umpc counted people 1", study["hash"], dealt, *parts)
    return len(rows).to_bytes(8, "little") + fixed


def check_counted(study: Study, statement: bytes, signatures: list[bytes], blamed: str) -> bytes:
    """Dealer and aggregators: both signed one list. Returns: what takes the study's place from
    here on, in commitments, members, attempts and all that is made of them (`joint_seed.py`)."""
    for key, signature in zip(study["keys"], signatures, strict=True):
        require(is_signature(key, statement, signature), "both signed the people", blamed)
    return digest(b"umpc study of people 1", study["hash"], statement)


# --- release ---


def table_share(study: Study, side: int, seed: bytes, keys: list[Key], rows: list[Row]) -> Any:
    """An aggregator's share of the histogram modulo 2^64. Then it deletes keys and numbers."""
    own = roots(study, seed)
    return point_functions.add_up(
        side,
        study["cells"],
        [keys[place] for place, _, _ in rows],
        [number for _, number, _ in rows],
        [own[place] for place, _, _ in rows],
        study["hash_key"],
    )


def release(shares: list[int], noises: list[int], ring: int) -> int:
    """S + noise. Each aggregator drew all the noise (`noise.own_share(1, …)`), and may be the only
    honest one. The sensitivity is (n − 1)·Δf: one person is replaced, and n is public."""
    # zero shares (`zero_shares.py`) hide all but the sum from the coordinator
    return decode(sum(shares) + 2 * sum(noises), ring) // 2


def run(
    study: Study,
    people: list[Person],
    dealt: dict[str, Any],
    owns: list[dict[str, Any]],
    matrix: grid.Matrix,
    ring: int,
    instead: list[tuple[int, list[bytes]]],
) -> dict[str, Any]:
    """A study of honest processes, from the keys to the release.

    Args: dealt: secrets by place; seeds of roots, mask_seeds and randoms of both aggregators.
    owns: of both aggregators box_secret, signing_key, nonces of two signatures, noise. instead:
    places, and what comes from there in place of the person's boxes; b"" is nothing.
    """
    keys = deal(study, dealt["secrets"], dealt["seeds"])
    sent = {each["place"]: send(study, each) for each in people} | dict(instead)
    stored: list[list[Row]] = [[], []]
    for place, pair in sent.items():
        for side, box in enumerate(pair):
            secret = owns[side]["box_secret"]
            if box:
                stored[side] = accept(study, side, secret, stored[side], place, box)
    lists = [listed(rows) for rows in stored]
    rows = [counted(study, stored[s], lists[1 - s], study["names"][1 - s]) for s in (0, 1)]
    dealt_keys = dealt_digest(keys)
    statements = [counted_statement(study, each, dealt_keys) for each in rows]
    signatures = [
        sign(own["signing_key"], statement, own["nonces"][0])
        for own, statement in zip(owns, statements, strict=True)
    ]
    bound = check_counted(study, statements[0], signatures, study["relay"])
    tables = [table_share(study, side, dealt["seeds"][side], keys, rows[side]) for side in (0, 1)]
    # the attempt's identity is made of `bound` (`joint_seed.attempt_id`); here it stands for it
    summed = grid.run(
        matrix,
        ring,
        bound,
        dealt["mask_seeds"],
        dealt["randoms"],
        tables,
        [[own["signing_key"], own["nonces"][1]] for own in owns],
        study["relay"],
    )
    noises = [own["noise"] for own in owns]
    return {
        "keys": point_functions.encode(keys),
        "sent": [sent[place] for place in sorted(sent)],
        "counted": listed(rows[0]),
        "signatures": signatures,
        "bound_study": bound,
        "tables": tables,
        "shares": summed["shares"],
        "released": release(summed["shares"], noises, ring),
    }
