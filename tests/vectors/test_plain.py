"""A second implementation of the primitives, from the README's text alone, agrees with the files.

It uses the standard library and whole integers, and none of our code.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

Values = dict[str, Any]
FOLDER = Path(__file__).parent


def good(part: str) -> list[Any]:
    """Return the good vectors of a part as parameters of a test."""
    vectors = json.loads((FOLDER / f"{part}.json").read_text("utf-8"))["good"]
    return [pytest.param(each["inputs"], each["outputs"], id=each["name"]) for each in vectors]


def derive(seed: bytes, *labels: int | str | bytes) -> bytes:
    text = b""
    for label in labels:
        kind = {int: b"i", str: b"s", bytes: b"b"}[type(label)]
        if isinstance(label, int):
            body = label.to_bytes(8, "little")
        else:
            body = label.encode() if isinstance(label, str) else label
        text += kind + len(body).to_bytes(4, "little") + body
    return hmac.digest(seed, text, "sha256")


def stream(seed: bytes, size: int) -> bytes:
    return Cipher(algorithms.AES(seed), modes.CTR(bytes(16))).encryptor().update(bytes(size))


def digest(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(len(p).to_bytes(8, "little") + p for p in parts)).digest()


@pytest.mark.parametrize(("given", "due"), good("prg"))
def test_seeds_and_streams(given: Values, due: Values):
    labels = [bytes.fromhex(x["hex"]) if isinstance(x, dict) else x for x in given["labels"]]
    derived = derive(bytes.fromhex(given["seed"]), *labels)
    assert derived.hex() == due["derived"]
    data = stream(derived, 40)
    assert data.hex() == due["stream"]
    assert [int.from_bytes(data[i : i + 8], "little") for i in (0, 8)] == due["words_64"]
    assert [int.from_bytes(data[i : i + 4], "little") for i in (0, 4)] == due["words_32"]
    assert [data[i // 8] >> i % 8 & 1 for i in range(12)] == due["bits"]
    assert digest(bytes.fromhex(given["seed"]), derived).hex() == due["digest"]


@pytest.mark.parametrize(("given", "due"), good("shake_stream"))
def test_the_stream_of_the_local_protocols(given: Values, due: Values):
    purpose = given["purpose"].encode()
    label = bytes.fromhex(given["seed"]) + len(purpose).to_bytes(2, "little") + purpose
    data = hashlib.shake_256(label + bytes(8)).digest(128)
    assert data[:40].hex() == due["bytes"]
    words = [int.from_bytes(data[i : i + 8], "little") for i in range(0, 128, 8)]
    assert [int(word < given["threshold"]) for word in words] == due["coins"]


@pytest.mark.parametrize(("given", "due"), good("fixed_key_hash"))
def test_the_hash_of_the_trees(given: Values, due: Values):
    cipher = Cipher(algorithms.AES(bytes.fromhex(given["key"])), modes.ECB()).encryptor()
    for text, hashed in zip(given["blocks"], due["hashed"], strict=True):
        block = bytes.fromhex(text)
        pairs = zip(cipher.update(block), block, strict=True)
        assert bytes(a ^ b for a, b in pairs).hex() == hashed


@pytest.mark.parametrize(("given", "due"), good("packing"))
def test_packing(given: Values, due: Values):
    width = given["width"]
    whole = sum(value << width * place for place, value in enumerate(given["values"]))
    size = -(-width * len(given["values"]) // 8)
    assert whole.to_bytes(size, "little").hex() == due["packed"]


@pytest.mark.parametrize(("given", "due"), good("zero_shares"))
def test_zero_shares(given: Values, due: Values):
    secrets = [X25519PrivateKey.from_private_bytes(bytes.fromhex(s)) for s in given["secrets"]]
    public = [bytes.fromhex(key) for key in due["public_keys"]]
    size, attempt = given["ring_bits"] // 8, bytes.fromhex(given["attempt"])
    modulus = 1 << given["ring_bits"]
    shares = [[0] * given["sums"] for _ in secrets]
    for low in range(len(secrets)):
        for high in range(low + 1, len(secrets)):
            agreed = secrets[low].exchange(X25519PublicKey.from_public_bytes(public[high]))
            data = stream(derive(agreed, "zero share", attempt, low, high), size * given["sums"])
            for number in range(given["sums"]):
                mask = int.from_bytes(data[size * number : size * (number + 1)], "little")
                shares[low][number] = (shares[low][number] + mask) % modulus
                shares[high][number] = (shares[high][number] - mask) % modulus
    assert shares == due["shares"]
    assert all(sum(column) % modulus == 0 for column in zip(*shares, strict=True))


@pytest.mark.parametrize(("given", "due"), good("attempt"))
def test_an_attempt(given: Values, due: Values):
    study, members, encoded = bytes.fromhex(given["study_hash"]), given["members"], []
    openings = [bytes.fromhex(member["opening"]) for member in members]
    for member, opening, commitment in zip(members, openings, due["commitments"], strict=True):
        name = member["name"].encode()
        found = digest(b"umpc commitment 1", study, name, opening)
        assert found.hex() == commitment
        counts = [member[key].to_bytes(8, "little") for key in ("records", "first_class")]
        encoded.append(digest(name, *counts, found, bytes.fromhex(member["public_key"])))
    seed = digest(b"umpc joint seed 1", *openings)
    attempt = digest(b"umpc attempt 1", study, *encoded, seed)
    assert (seed.hex(), attempt.hex()) == (due["joint_seed"], due["attempt"])
    assert derive(attempt, "ggm")[:16].hex() == due["tree_hash_key"]
    assert derive(seed, "edges").hex() == due["edges_seed"]
    chunk = derive(bytes.fromhex(given["node_seed"]), "chunk", 2, 0, 1, given["chunk"])
    assert chunk.hex() == due["chunk_seed"]


@pytest.mark.parametrize(("given", "due"), good("split_and_mix"))
def test_split_and_mix(given: Values, due: Values):
    modulus, count = 1 << given["width"], given["shares"]
    rows = zip(given["values"], due["parts"], due["heap"], due["sums"], strict=True)
    for values, parts, heap, total in rows:
        for place, value in enumerate(values):
            assert sum(parts[place * count : (place + 1) * count]) % modulus == value % modulus
        assert sorted(heap) == sorted(parts)
        assert total == sum(values) and (total - sum(heap)) % modulus == 0
