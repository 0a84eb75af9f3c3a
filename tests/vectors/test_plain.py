"""A second implementation of the primitives, from the README's text alone, agrees with the files.

It uses the standard library and whole integers, and none of our code.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

Values = dict[str, Any]
FOLDER = Path(__file__).parent


def good(part: str) -> list[Any]:
    """Return the good vectors of a part as parameters of a test."""
    vectors = json.loads((FOLDER / f"{part}.json").read_text("utf-8"))["good"]
    return [pytest.param(each["inputs"], each["outputs"], id=each["name"]) for each in vectors]


@pytest.mark.parametrize(("given", "due"), good("shake_stream"))
def test_the_stream_of_the_local_protocols(given: Values, due: Values):
    purpose = given["purpose"].encode()
    label = bytes.fromhex(given["seed"]) + len(purpose).to_bytes(2, "little") + purpose
    data = hashlib.shake_256(label + bytes(8)).digest(128)
    assert data[:40].hex() == due["bytes"]
    words = [int.from_bytes(data[i : i + 8], "little") for i in range(0, 128, 8)]
    assert [int(word < given["threshold"]) for word in words] == due["coins"]


@pytest.mark.parametrize(("given", "due"), good("split_and_mix"))
def test_split_and_mix(given: Values, due: Values):
    modulus, count = 1 << given["width"], given["shares"]
    rows = zip(given["values"], due["parts"], due["heap"], due["sums"], strict=True)
    for values, parts, heap, total in rows:
        for place, value in enumerate(values):
            assert sum(parts[place * count : (place + 1) * count]) % modulus == value % modulus
        assert sorted(heap) == sorted(parts)
        assert total == sum(values) and (total - sum(heap)) % modulus == 0
