"""adversary = "lying_nodes": what is refused, what to take instead, and the noise that it costs."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.studies import (
    CLASSES,
    GINI,
    KENDALL,
    SPEARMAN,
    Entropy,
    library_study,
    make_study,
    random_tables,
)
from umpc.errors import KernelError, PolicyRefused, StudyError
from umpc.node.policy import Policy
from umpc.protocols.registry import (
    PROTOCOLS,
    checked,
    find_protocol,
    possible_values,
    protocol_of,
)
from umpc.protocols.u_mpc.noise_binding import noise_of_sums, ring_for
from umpc.protocols.u_mpc.settings import INSTEAD
from umpc.reporting.rows import promise_of
from umpc.simulation import simulate
from umpc.study.document import Study
from umpc.study.parts import FieldText
from umpc.study.settings import ADVERSARIES, HONEST, LYING_NODES
from umpc.study.sizes import Sizes
from umpc.ustat.statistics import LIBRARY


def lying(kernels=KENDALL, **changes) -> Study:
    changes = {"adversary": LYING_NODES, "noise": "distributed", "max_colluding": 2} | changes
    return make_study(kernels, 3, **changes)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"noise": "in_mpc"}, StudyError, "leave the key out"),
        ({"noise": "skellam", "delta": "1e-9"}, StudyError, 'takes noise = "distributed"'),
        ({"noise": "binomial", "delta": "1e-9"}, StudyError, 'takes noise = "distributed"'),
        (
            {"backend": "garbled", "preprocessing": "none", "dealer": None},
            StudyError,
            'takes backend = "shared"',
        ),
        ({"kernels": "(a.x - b.x) * (a.y - b.y) * (1/2)"}, KernelError, "kendall_tau"),
        ({"kernels": GINI}, KernelError, "multiplies a number of one record"),
        ({"kernels": (KENDALL, GINI), "estimator": "ratio"}, KernelError, "randomises each record"),
        ({"kernels": SPEARMAN, "degree": 3}, KernelError, "3 owners"),
        ({"adversary": "verified"}, StudyError, "adversary must be one of honest, lying_nodes"),
    ],
)
def test_what_no_argument_covers_is_refused_and_says_what_to_take(changes, error, words):
    with pytest.raises(error, match=words):
        checked(lying(**changes))


OFFERED = (
    "kendall_tau",
    "goodman_kruskal_gamma",
    "mann_whitney_u",
    "auc",
    "wilcoxon_signed_rank",
    "rand_index",
    "renyi_entropy",
)


@pytest.mark.parametrize("name", OFFERED)
def test_every_statistic_that_a_refusal_offers_is_allowed(name):
    assert name in INSTEAD
    two_sample = LIBRARY[name].sampling == "two_sample"
    columns = ["x", "y"][: len(LIBRARY[name].arguments) - two_sample] or ["x"]
    fields = [FieldText(column, "0", "3", whole=True) for column in columns] + [
        CLASSES
    ] * two_sample
    grade = {"adversary": LYING_NODES, "noise": "distributed", "max_colluding": 2}
    checked(library_study(name, fields, 3, columns, **grade))


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocol_without_an_argument_refuses_the_grade(name):
    protocol = find_protocol(name)
    study = msgspec.structs.replace(lying(), settings=protocol.settings())
    if LYING_NODES in protocol.adversaries:
        protocol.check_grade(study)
        return
    with pytest.raises(
        StudyError, match=r'makes no promise (if nodes lie|under adversary = "lying_nodes")'
    ):
        protocol.check_grade(study)


def test_the_protocols_with_an_argument_are_those_of_the_documentation():
    found = {name for name, each in PROTOCOLS.items() if LYING_NODES in each.adversaries}
    local = {"bell-ldp", "bell-auc", "ghazi-ldp", "ghazi-rounds", "local-mean"}
    assert found == local | {"u-mpc", "grid", "gopa", "people", "linked", "counts"}


@pytest.mark.parametrize("protocol", ["u-mpc", "bell-ldp"])
@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_the_usual_noise_of_the_grade(protocol, adversary):
    usual = find_protocol(protocol).usual_of_grade({"edges": "2n"}, adversary)
    expected = {"edges": "2n"}
    if (protocol, adversary) == ("u-mpc", LYING_NODES):
        expected["noise"] = "distributed"
    assert dict(usual) == expected


def test_a_file_s_own_noise_is_kept():
    usual = find_protocol("u-mpc").usual_of_grade({"noise": "in_mpc"}, LYING_NODES)
    assert usual["noise"] == "in_mpc"


def test_the_noise_is_calibrated_at_the_robust_sensitivity_for_n_minus_t_nodes():
    sizes = Sizes(lying(), 12, 0, 3)
    (law,) = noise_of_sums(sizes)
    assert sizes.max_degree == 11 and sizes.sensitivities == (11 * 6,)
    assert law.sensitivity == 66 and law.honest == 1 and law.nodes == 3
    (honest,) = noise_of_sums(sizes.if_honest)
    assert sizes.if_honest.sensitivities == (11 * 2,)
    assert law.std == pytest.approx(3 * honest.std, rel=1e-3)


def test_single_records_take_no_more_noise_than_in_grade_honest():
    sizes = Sizes(checked(lying("a.x * a.y", degree=1)), 12, 0, 3)
    assert sizes.sensitivities == sizes.if_honest.sensitivities == (9,)


def test_the_ring_holds_the_values_that_flips_can_cause():
    """4 where the honest kernel has at most 1: the ring of 32 bits no longer does."""
    sizes = Sizes(lying(), 40_000, 0, 3)
    assert 1 << 29 < sizes.edges < 1 << 31
    assert ring_for(sizes, [0]).bits == 64 and ring_for(sizes.if_honest, [0]).bits == 32


def test_a_whole_study_says_what_it_promises_and_what_that_costs():
    study = checked(lying(epsilon="1"))
    run = simulate(study, random_tables([4, 5, 3], "grade"), Entropy("grade"))
    report = run.report
    promise = promise_of(report).sites
    assert report.adversary == LYING_NODES
    assert promise == protocol_of(study).promise_of(study).sites
    assert "up to 2 of 3 nodes may send anything" in promise
    assert "the dealer follows the protocol and colludes with nobody" in promise
    assert report.noise_std == pytest.approx(3 * report.noise_std_if_honest, rel=0.02)
    honest = simulate(
        study.replaced(adversary=HONEST), random_tables([4, 5, 3], "grade"), Entropy("grade")
    ).report
    assert honest.noise_std == honest.noise_std_if_honest == report.noise_std_if_honest
    assert "if everybody follows the protocol" in promise_of(honest).sites


@pytest.mark.parametrize("came", ADVERSARIES)
@pytest.mark.parametrize("allowed", [None, *ADVERSARIES])
def test_a_site_accepts_the_grades_of_its_policy(allowed, came):
    policy = Policy(adversary=None if allowed is None else frozenset([allowed]))
    study = lying(adversary=came)
    if allowed in (None, came):
        policy.check(study, "node-0")
        return
    with pytest.raises(PolicyRefused, match=f"adversary '{allowed}' only .* '{came}' came"):
        policy.check(study, "node-0")


def test_the_values_of_the_policy_s_key_are_the_grades():
    assert possible_values("adversary") == ADVERSARIES
