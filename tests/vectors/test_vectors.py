"""Our code computes every good vector, and refuses every bad one as its file says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.vectors.catalogue import PARTS
from tests.vectors.part import FOLDER, Values
from umpc.errors import UmpcError

FILES = {path.stem: json.loads(path.read_text("utf-8")) for path in FOLDER.glob("*.json")}
GOOD = [(part, each["name"]) for part, file in sorted(FILES.items()) for each in file["good"]]
BAD = [(part, each["name"]) for part, file in sorted(FILES.items()) for each in file["bad"]]


def vector(part: str, kind: str, name: str) -> Values:
    (found,) = (each for each in FILES[part][kind] if each["name"] == name)
    return found


def test_there_is_a_file_for_every_part_with_the_vectors_that_the_code_names():
    assert FILES.keys() == PARTS.keys()
    for name, part in PARTS.items():
        assert [each["name"] for each in FILES[name]["good"]] == list(part.good)
        assert [each["name"] for each in FILES[name]["bad"]] == list(part.bad)
        assert FILES[name]["about"] == part.about


@pytest.mark.parametrize(("part", "name"), GOOD)
def test_our_code_computes_the_outputs_of_a_good_vector(part, name):
    given = vector(part, "good", name)
    assert same(PARTS[part].run(given["inputs"]), given["outputs"])


@pytest.mark.parametrize(("part", "name"), BAD)
def test_a_bad_vector_is_refused_with_the_error_and_the_step_that_it_names(part, name):
    given = vector(part, "bad", name)
    with pytest.raises(UmpcError) as caught:
        PARTS[part].take(given["inputs"])
    error = caught.value
    found = (type(error).__name__, error.step, error.culprit)
    assert found == (given["error"], given["step"], given["culprit"])


def same(found: Any, due: Any) -> bool:
    """Compare JSON values exactly; estimates, which are floating-point numbers, nearly."""
    if isinstance(due, float):
        return found == pytest.approx(due, rel=1e-9, abs=1e-12)
    if isinstance(due, dict):
        return found.keys() == due.keys() and all(same(found[key], due[key]) for key in due)
    if isinstance(due, list):
        pairs = zip(found, due, strict=False)
        return len(found) == len(due) and all(same(one, other) for one, other in pairs)
    return found == due


def test_every_backend_has_ten_golden_transcripts_and_they_differ():
    found = {name: file["good"] for name, file in FILES.items() if name.startswith("transcripts_")}
    assert len(found) == 7
    for studies in found.values():
        assert len({str(each["outputs"]["messages"]) for each in studies}) == len(studies) >= 10
