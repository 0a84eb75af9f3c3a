"""`vector`: exact without noise, noise of the joint law, and one identity for all steps."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.support.studies import Entropy, graph_of
from tests.support.vector import plain_study, sums_by_numpy, vector_study, vector_tables
from umpc.errors import StudyError
from umpc.protocols.registry import allowed_as, checked, delta_of, protocol_of
from umpc.protocols.vector.losses import ALLOWED
from umpc.protocols.vector.protocol import noise_of_vector, scales_of
from umpc.protocols.vector.settings import course_of
from umpc.simulation import simulate
from umpc.study.computation import computation_hash
from umpc.study.sizes import Sizes
from umpc.testing import lying
from umpc.ustat.schema import Schema
from umpc_papers.training.training import epsilon_of_steps

SIZES = {"records": 36, "first_class": 24, "holders": 3}


@pytest.fixture
def silent():
    """No noise at all."""
    with lying("everybody", draw=lambda *_: 0):
        yield


@pytest.mark.usefixtures("silent")
def test_without_noise_the_means_are_exact_at_the_predicted_cost():
    cases = [
        vector_study("auc_hinge"),
        vector_study("auc_hinge", ("0", "0")),
        vector_study("contrastive", clip="3/4"),
        vector_study("auc_hinge", backend="triples", preprocessing="none", dealer=None, edges="12"),
    ]
    for number, study in enumerate(cases):
        tables = vector_tables(f"exact {number}")
        report = simulate(study, tables, Entropy(f"exact {number}")).report
        exact = sums_by_numpy(study, tables, graph_of(study, report)) / report.edges
        assert [entry.mean for entry in report.sums] == pytest.approx(list(exact), abs=1e-12)
        assert report.bytes_online == report.bytes_online_predicted > 0
        assert report.bytes_offline == report.bytes_offline_predicted
        assert report.rounds == report.rounds_predicted
        assert report.estimate is None and "vector of 2 mean(s)" in report.note
        assert report.delta == 1e-6


@pytest.mark.usefixtures("silent")
def test_any_kernels_have_the_range_of_each_as_their_scale():
    kernels = ["a.a + b.a", "abs(a.b - b.b)", "a.a * b.a"]
    study = plain_study(kernels, edges="all")
    tables = [{key: table[key] for key in "ab"} for table in vector_tables("any")]
    report = simulate(study, tables, Entropy("any")).report
    a, b = (np.concatenate([table[key] for table in tables]) for key in "ab")
    one, two = np.triu_indices(36, 1)
    exact = [(a[one] + a[two]).mean(), np.abs(b[one] - b[two]).mean() / 2, (a[one] * a[two]).mean()]
    assert [entry.mean for entry in report.sums] == pytest.approx(exact)
    sizes = Sizes(study, **SIZES)
    degree = sizes.max_degree
    assert scales_of(sizes) == (40 * degree, 16 * degree, 400 * degree)
    joint, alone = noise_of_vector(sizes), noise_of_vector(Sizes(plain_study(kernels[:1]), **SIZES))
    assert joint[0].variance > alone[0].variance  # three sums share what one had


def test_a_vector_has_thousands_of_sums():
    study = plain_study(["a.a + b.a", "a.b * b.b"] * 2048, check=False)
    assert checked(study) is study and len(study.kernels) == 4096
    with pytest.raises(StudyError, match="1 to 4096 sums"):
        plain_study(["a.a + b.a", "a.b * b.b"] * 2049)


def test_a_loss_has_one_joint_sensitivity_in_the_norm_of_its_scales():
    for loss, change in (("auc_hinge", 2), ("contrastive", 4)):
        study = vector_study(loss, scales=("5", "1/2"), clip="3/2")
        sizes = Sizes(study, **SIZES)
        most = sizes.max_degree * change * Fraction(3, 2) * ALLOWED
        assert scales_of(sizes) == (5 * most, most)  # b has steps of 1/2
        assert delta_of(sizes) == Fraction(1, 10**6)


def test_steps_of_a_course_share_epsilon_by_zcdp():
    one = vector_study(course="train", steps=1)
    many = vector_study(course="train", steps=9)
    stds = [noise_of_vector(Sizes(study, **SIZES))[0].std for study in (one, many)]
    assert stds[1] / stds[0] == pytest.approx(3, rel=1e-3)
    assert epsilon_of_steps(many, 3) < epsilon_of_steps(many, 9) <= 3
    laplace = vector_study(noise="laplace", delta="", course="train", steps=3)
    assert epsilon_of_steps(laplace, 2) == 2
    law = noise_of_vector(Sizes(laplace, **SIZES))[0]
    assert law.epsilon * 3 == pytest.approx(3 / 2**0.5) and law.epsilon * 3 < 3 / 2**0.5


def test_the_noise_of_runs_has_the_stated_law():
    study = vector_study("auc_hinge", ("0", "0"), edges="12", max_colluding=1)
    tables = vector_tables("noise", 6)
    seen = []
    for run in range(30):
        report = simulate(study, tables, Entropy(f"noise {run}")).report
        exact = sums_by_numpy(study, tables, graph_of(study, report)) / report.edges
        means = np.array([entry.mean for entry in report.sums])
        seen.append((means - exact) / [entry.noise_std for entry in report.sums])
    seen = np.array(seen)
    # 60 independent normal numbers: their mean square has the variance 2/60
    assert abs((seen**2).mean() - 1) < 5.5 * (2 / seen.size) ** 0.5
    assert abs(seen.mean()) < 5.5 / seen.size**0.5
    assert len(set(seen[:, 0])) > 20


def course(**changes):
    study = vector_study(**({"course": "train", "steps": 5} | changes))
    return protocol_of(study).course(study)


def test_all_steps_of_a_course_have_one_identity_and_another_training_has_its_own():
    first = course()
    same = course(step=2, weights=("1", "2"), name="step-2")
    assert first.id == same.id and (same.step, same.steps) == (2, 5)
    others = [
        {"course": "other"},
        {"steps": 6},
        {"epsilon": "4"},
        {"clip": "2"},
        {"edges": "41"},
        {"delta": "1e-7"},
        {"max_colluding": 1},
        {"margin": "2"},
    ]
    ids = {course(**changes).id for changes in others}
    assert len(ids) == len(others) and first.id not in ids
    assert protocol_of(vector_study()).course(vector_study()) is None


def test_a_person_or_a_certificate_allows_a_course_by_its_identity():
    facts = {"course": "train", "steps": 5}
    steps = [vector_study(step=step, name=f"step-{step}", **facts) for step in (1, 2)]
    assert {allowed_as(each) for each in steps} == {course().id}
    assert allowed_as(vector_study()) == vector_study().hash


def test_without_a_loss_other_kernels_are_another_course():
    """An approval of the first step holds for all of its course, and nothing ties these kernels."""
    facts = {"course": "quarterly", "steps": 3, "delta": "1e-6"}
    first, same, other = (
        course_of(plain_study(kernels, step=step, **facts))
        for kernels, step in ((["a.a + b.a"], 1), (["a.a + b.a"], 2), (["a.a * b.a"], 2))
    )
    assert first.id == same.id != other.id


def test_a_site_allows_all_steps_of_a_loss_by_one_hash():
    steps = [vector_study(weights=weights) for weights in (("1", "2"), ("0", "0"))]
    assert len({computation_hash(study) for study in steps}) == 1
    others = [vector_study(clip="2"), vector_study(margin="2"), vector_study(scales=("1", "1"))]
    assert len({computation_hash(study) for study in (*steps, *others)}) == 4


REFUSED = [
    ({"kernels": ("a.a - b.a", "a.b - b.b")}, "not the gradient"),
    ({"delta": ""}, "delta goes with"),
    ({"noise": "laplace"}, "delta goes with"),
    ({"estimator": "mean"}, "estimator|takes 1 sum"),
    ({"dealer": None}, "takes a dealer"),
    ({"backend": "triples"}, "goes with preprocessing"),
    ({"step": 2}, "step and steps"),
    ({"steps": 2}, "name of their course"),
    ({"course": "Not A Name"}, "course's name"),
    ({"margin": "0"}, "margin must be above 0"),
    ({"clip": "0"}, "clip must be above 0"),
    ({"scales": ("1",)}, "one number for each"),
    ({"loss": "logistic", "kernels": ("a.a - b.a",) * 2}, "loss must be one of"),
    ({"loss": ""}, "goes with a loss"),
    ({"sampling": "balanced"}, "is over pairs"),
]


def test_studies_that_break_a_rule_are_refused():
    kernels = vector_study().kernels
    for changes, reason in REFUSED:
        facts = {"kernels": kernels} | changes
        with pytest.raises(StudyError, match=reason):
            vector_study(**facts)
    assert isinstance(vector_study().schema, Schema)
