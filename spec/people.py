"""People with one value each: one message of a person, and shares of their histogram.

The setting of Sinh & Ramon 2025, section 1: n people with one value each. `docs/people.md` has the
promise, who sees what, and attacks. The dealer knows a random cell r for each person and deals keys
of the point function at r (`point_functions.py`). A person sends x − r mod D to two aggregators,
sealed. Each rotates what its key expands to by that number, and adds up. The sums are shares of the
histogram, and the aggregators go on as two nodes of `grid.py` whose tables are these shares.

    deal      dealer → aggregator  a seed of roots, and the keys of all places, in blocks
    fetch     person → dealer      a request, signed by the key of its place
              dealer → person      the secret of which r is made, sealed to the device, once
    send      person → aggregator  a box: number, nonce, signature
    close     no message is taken any more
    compare   each aggregator → the other one    a row for each place: (place, receipt)
              both sign the rows that are equal, once: now n, sensitivity and masks are fixed
              each keeps the list as both signed it, byte by byte
    release   both run attempts of the grid until one ends, and each adds all the noise
"""

import hashlib
from typing import Any

from spec import grid, point_functions
from spec.joint_seed import is_signature, sign
from spec.people_messages import Person, Row, Study, accept, offset, send
from spec.point_functions import Key
from spec.prg import cut, derive, digest, stream
from spec.refused import require
from spec.sharing import decode

# --- deal: dealer → aggregators ---


def hash_key(study: Study) -> bytes:
    """The public key of the trees' hash: another one in each study."""
    return digest(b"umpc trees of people 1", study["hash"])[:16]


def roots(study: Study, seed: bytes) -> list[int]:
    """The roots of an aggregator's keys, by place."""
    data = stream(derive(seed, "roots of people", study["hash"]), 16 * len(study["people"]))
    return [int.from_bytes(part, "little") for part in cut(data, 16)]


def deal(study: Study, secrets: list[bytes], seeds: list[bytes]) -> list[Key]:
    """The keys of all places, the same bytes for both. Args: secrets: by place. seeds: of both,
    for this call alone: other keys over the same roots would show the cell."""
    rows = zip(secrets, *(roots(study, seed) for seed in seeds), strict=True)
    cells, key = study["cells"], hash_key(study)
    return [
        point_functions.generate(cells, offset(study, place, secret), [*both], key)
        for place, (secret, *both) in enumerate(rows)
    ]


def blocks(study: Study, keys: list[Key]) -> list[bytes]:
    """The keys on the wire: those of some places together, so that nobody holds all."""
    return [point_functions.encode(some) for some in cut(keys, study["places_at_once"])]


def dealt_digest(study: Study, keys: list[Key]) -> bytes:
    """A digest of the keys, by which both aggregators know that they have the same."""
    return hashlib.sha256(b"umpc keys of people 1" + b"".join(blocks(study, keys))).digest()


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


def counted_text(study: Study, statement: bytes) -> bytes:
    """The bytes that both sign, so that no statement serves another study."""
    return digest(b"umpc signed people 1", study["hash"], statement)


def check_counted(study: Study, statement: bytes, signatures: list[bytes], blamed: str) -> int:
    """Dealer and aggregators: both signed one list. Returns: n.

    Statement and signatures are put into the study's document. The hash of this document takes the
    study's place in commitments, members, attempts and all that is made of them (`joint_seed.py`).
    """
    text = counted_text(study, statement)
    for key, signature in zip(study["keys"], signatures, strict=True):
        require(is_signature(key, text, signature), "both signed the people", blamed)
    return int.from_bytes(statement[:8], "little")


def keep_counted(kept: list[bytes], statement: bytes, signatures: list[bytes]) -> list[bytes]:
    """The list by which an aggregator adds up, on its disk. It releases for no other one.

    One can write a signature (r, s) as (r, −s), and an aggregator can sign again. The study then
    has another hash, and one list would have two releases. Args: kept: [] before the first call.
    """
    shown = [statement, *signatures]
    require(kept in ([], shown), "a list is kept as both signed it")
    return shown


def check_members(study: Study, n: int, records: list[int]) -> None:
    """Each aggregator's member has n in place of its number of records: noise follows from n."""
    for name, said in zip(study["names"], records, strict=True):
        require(said == n, "both say how many people", name)


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
        hash_key(study),
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
    counted_hash: bytes,
) -> dict[str, Any]:
    """A study of honest processes, from the keys to the release.

    Args: dealt: secrets by place; seeds of roots, mask_seeds and randoms of both aggregators.
    owns: of both aggregators box_secret, signing_key, nonces of two signatures, noise. instead:
    places, and what comes from there in place of the person's boxes; b"" is nothing. counted_hash:
    that of the document with statement and signatures.
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
    dealt_keys = dealt_digest(study, keys)
    statements = [counted_statement(study, each, dealt_keys) for each in rows]
    signatures = [
        sign(own["signing_key"], counted_text(study, statement), own["nonces"][0])
        for own, statement in zip(owns, statements, strict=True)
    ]
    n = check_counted(study, statements[0], signatures, study["relay"])
    tables = [table_share(study, side, dealt["seeds"][side], keys, rows[side]) for side in (0, 1)]
    # the attempt's identity is made of this hash (`joint_seed.attempt_id`), which stands for it
    summed = grid.run(
        matrix,
        ring,
        counted_hash,
        dealt["mask_seeds"],
        dealt["randoms"],
        tables,
        [[own["signing_key"], own["nonces"][1]] for own in owns],
        study["relay"],
    )
    return {
        "keys": b"".join(blocks(study, keys)),
        "sent": [sent[place] for place in sorted(sent)],
        "counted": listed(rows[0]),
        "signatures": signatures,
        "n": n,
        "tables": tables,
        "shares": summed["shares"],
        "released": release(summed["shares"], [own["noise"] for own in owns], ring),
    }
