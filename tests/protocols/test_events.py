"""A protocol's words of its mechanism agree with the study's ε and δ."""

from __future__ import annotations

from fractions import Fraction

from tests.support.central import central_study
from tests.support.gopa import gopa_study
from tests.support.local import local_study
from tests.support.studies import GINI, KENDALL, make_study
from umpc.dp.composition import (
    ZCDP,
    Composition,
    concentrated_rho,
    failure_of,
    renyi_epsilon,
    rho_of,
    skellam_curve,
)
from umpc.dp.events import (
    ApproximateEvent,
    ConcentratedEvent,
    FailureEvent,
    LaplaceEvent,
    SkellamEvent,
)
from umpc.node.budget.budget_account import exact_delta
from umpc.protocols.registry import delta_of, protocol_of
from umpc.study.sizes import Sizes

TWO = {"kernels": (KENDALL, GINI), "estimator": "ratio", "epsilon": "1"}
DELTA = {"delta": "1e-6"}


def declared(study, records: int = 30):
    sizes = Sizes(study, records)
    return sizes, protocol_of(study).events(sizes)


def test_the_epsilons_of_the_sums_add_up_to_the_study_s():
    for noise, kind in (("distributed", LaplaceEvent), ("in_mpc", ApproximateEvent)):
        study = make_study(noise=noise, **TWO)
        sizes, events = declared(study)
        sums = [event for event in events if isinstance(event, kind)]
        assert len(sums) == 2 and sum(event.epsilon for event in sums) == study.exact_epsilon
        assert {type(event) for event in events} <= {kind, FailureEvent}
        assert sum(map(failure_of, events)) == delta_of(sizes)
        weight = Composition(ZCDP, Fraction(1, 100)).weigh(
            study.exact_epsilon, exact_delta(delta_of(sizes)), events
        )
        assert weight.plain and weight.delta >= delta_of(sizes)
    study = make_study(noise="binomial", epsilon="20", edges="2n", **DELTA)
    sizes, events = declared(study)
    assert events == (ApproximateEvent(Fraction(20), study.exact_delta),)


def test_skellam_noise_is_declared_as_it_was_calibrated():
    study = make_study(noise="skellam", **TWO, **DELTA)
    sizes, events = declared(study)
    (skellam,) = events
    assert isinstance(skellam, SkellamEvent) and skellam.sensitivities == sizes.sensitivities
    curve = skellam_curve(skellam.variances, skellam.sensitivities)
    assert 0.99 < renyi_epsilon(curve, study.exact_delta) <= 1
    (known,) = protocol_of(study).known_events(study)
    assert known.rho == concentrated_rho(Fraction(1), study.exact_delta)
    assert rho_of(skellam) < 2 * known.rho


def test_gopa_declares_the_rho_of_its_honest_nodes():
    study = gopa_study(**DELTA)
    _, events = declared(study)
    (event,) = events
    assert isinstance(event, ConcentratedEvent)
    most = concentrated_rho(study.exact_epsilon, study.exact_delta)
    assert event.rho <= most * Fraction(1001, 1000) and event.rho > most * Fraction(9, 10)
    assert protocol_of(study).known_events(study) == events


def test_others_declare_nothing_and_count_in_full():
    for study in (local_study("bell-ldp"), central_study(), make_study(protocol="bell-2pc")):
        assert protocol_of(study).known_events(study) == ()
    for study in (local_study("bell-ldp"), central_study()):
        assert declared(study)[1] == ()
