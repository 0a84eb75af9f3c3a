"""umpc.node.policy: every rule allows and refuses, as written in node.toml and in its message."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from tests.support.central import central_study
from tests.support.fields import number_field
from tests.support.gopa import gopa_study
from tests.support.grid import grid_study
from tests.support.local import local_study
from tests.support.several import several
from tests.support.shuffled import shuffled_study
from tests.support.studies import GINI, KENDALL, library_study, make_study
from umpc.errors import PolicyRefused
from umpc.node.policy import ANYTHING, Policy
from umpc.study.computation import Computation, computation_hash
from umpc.study.document import Study
from umpc.study.parts import FieldBins, FieldText
from umpc.study.settings import HONEST, LYING_NODES


def guarded(study: Study) -> Study:
    """The study with noise that withstands all nodes but one, as a site asks for by default."""
    return study.replaced(max_colluding=len(study.nodes) - 1)


TAU = guarded(make_study())
AUC = guarded(make_study("(sign(a.x - b.x) + 1) * (1/2)", sampling="two_sample"))
LABEL = Policy(public_labels=frozenset({"label"}))
TAU_HASH = computation_hash(TAU)
GINI_HASH = computation_hash(make_study(GINI))
SHUFFLED = guarded(shuffled_study())


def allows(policy: Policy, study: Study = TAU) -> bool:
    try:
        policy.check(study, "north")
    except PolicyRefused:
        return False
    return True


def refusal(policy: Policy, study: Study = TAU) -> str:
    with pytest.raises(PolicyRefused) as caught:
        policy.check(study, "north")
    assert (caught.value.culprit, caught.value.step, caught.value.detail) == (
        "north",
        "propose",
        "",
    )
    assert "\n" not in caught.value.message
    return caught.value.message


RULES = {
    "coordinators": (
        Policy(coordinators=frozenset({"alice", "carol"})),
        TAU,
        "north allows studies of 'alice', 'carol' only (coordinators under [policy]), and one of "
        "'coordinator' came; have one of those run it, or have its administrator add the name",
    ),
    "kernels": (
        Policy(kernels=frozenset({GINI_HASH})),
        TAU,
        "north allows kernels of certain hashes only (kernels under [policy]), and 'custom' "
        f"(no statistic of the library) with the kernel {KENDALL} came; its "
        f"administrator may add {TAU_HASH} to kernels under [policy]",
    ),
    "statistics": (
        Policy(statistics=frozenset({"mean", "covariance"})),
        TAU,
        "north allows the library's 'covariance', 'mean' with default parameters only (statistics "
        f"under [policy]), and 'custom' (no statistic "
        f"of the library) with the kernel {KENDALL} came; "
        f"its administrator may add {TAU_HASH} to kernels under [policy]",
    ),
    "statistics and kernels": (
        Policy(statistics=frozenset({"mean"}), kernels=frozenset()),
        TAU,
        "north allows the library's 'mean' with default parameters and no kernel by its hash only "
        f"(statistics and kernels under [policy]), and 'custom' (no statistic "
        f"of the library) with the kernel {KENDALL} came; "
        f"its administrator may add {TAU_HASH} to kernels under [policy]",
    ),
    "fields": (
        Policy(fields=frozenset({"x", "z"})),
        TAU,
        "north allows the fields 'x', 'z' only (fields under [policy]), and 'y' came; leave that "
        "out of the study, or have its administrator add it",
    ),
    "max_epsilon": (
        Policy(max_epsilon=Fraction(1, 3)),
        make_study(epsilon="0.3333333333333333333334"),
        "north allows at most epsilon 1/3 for a study (max_epsilon under [policy]), and "
        f"{Fraction('0.3333333333333333333334')} came; ask for at most that, "
        "or have its administrator raise it",
    ),
    "public_labels": (
        Policy(public_labels=frozenset({"treatment"})),
        AUC,
        "north allows as public labels 'treatment' only (public_labels under [policy]), and "
        "'label' came; take another statistic, or have its administrator add it",
    ),
    "public_labels by default": (
        ANYTHING,
        AUC,
        "north allows as public labels nothing only (public_labels under [policy]), and 'label' "
        "came; take another statistic, or have its administrator add it",
    ),
    "public_filters": (
        Policy(public_filters=frozenset({"y"})),
        TAU.replaced(where="x >= 1 and y = 1"),
        "north allows conditions on 'y' only (public_filters under [policy]), and where reads 'x': "
        "the number of records that it keeps would be told; leave that out of where, or have its "
        "administrator add it",
    ),
    "public_filters by default": (
        ANYTHING,
        TAU.replaced(where="x >= 1"),
        "north allows conditions on nothing only (public_filters under [policy]), and where reads "
        "'x': the number of records that it keeps would be told; leave that out of where, or have "
        "its administrator add it",
    ),
    "max_delta": (
        Policy(max_delta=Fraction(1, 10**10)),
        guarded(gopa_study(delta="1e-9")),
        "north allows at most delta about 1e-10 for a study (max_delta under [policy]), and about "
        "1e-09 came; ask for less, take noise that costs less delta, or have its administrator "
        "raise it",
    ),
    "dealers": (
        Policy(dealers=frozenset({"alice", "carol"})),
        TAU,
        "north allows the dealers 'alice', 'carol' only (dealers under [policy]), and 'dealer' "
        "came; name others in the study, or have its administrator add it",
    ),
    "shufflers": (
        Policy(shufflers=frozenset({SHUFFLED.shufflers[0].name})),
        SHUFFLED,
        f"north allows the shufflers '{SHUFFLED.shufflers[0].name}' only (shufflers under "
        f"[policy]), and '{SHUFFLED.shufflers[1].name}' came; name others in the study, or have "
        "its administrator add it",
    ),
    "min_colluding by default": (
        ANYTHING,
        make_study(nodes=4, max_colluding=2),
        "north allows only noise that withstands all other nodes together (the default of "
        "min_colluding under [policy]), and max_colluding = 2 of 4 nodes came; raise it in the "
        "study, or have its administrator set min_colluding",
    ),
    "min_nodes": (
        Policy(min_nodes=3),
        TAU,
        "north allows studies of at least 3 nodes only (min_nodes under [policy]), and one of 2 "
        "came; run it with more nodes",
    ),
    "min_colluding": (
        Policy(min_colluding=1),
        make_study(),
        "north allows only noise that withstands at least 1 colluding nodes (min_colluding under "
        "[policy]), and max_colluding = 0 came; raise it in the study, with more nodes if it has "
        "too few",
    ),
    "noise": (
        Policy(noise=frozenset({"in_mpc"})),
        TAU,
        "north allows noise 'in_mpc' only (noise under [policy]), and 'distributed' came; set "
        "noise in the study, or have its administrator add it",
    ),
    "backend": (
        Policy(backend=frozenset({"garbled"})),
        TAU,
        "north allows backend 'garbled' only (backend under [policy]), and 'shared' came; set "
        "backend in the study, or have its administrator add it",
    ),
    "protocol": (
        Policy(protocol=frozenset({"u-mpc", "bell-2pc"})),
        guarded(local_study("bell-ldp")),
        "north allows protocol 'bell-2pc', 'u-mpc' only (protocol under [policy]), and 'bell-ldp' "
        "came; set protocol in the study, or have its administrator add it",
    ),
    "noise of records": (
        Policy(noise=frozenset({"distributed", "in_mpc"})),
        guarded(local_study("ghazi-ldp")),
        "north allows noise 'distributed', 'in_mpc' only (noise under [policy]), and 'local' came; "
        "set noise in the study, or have its administrator add it",
    ),
    "trusted_curator": (
        ANYTHING,
        guarded(central_study()),
        "north allows no trusted curator (trusted_curator under [policy]), and this study would "
        "show all records of these fields to the coordinator 'coordinator': 'x', 'y'; take another "
        "protocol, or have its administrator set trusted_curator = true",
    ),
    "noise of a curator": (
        Policy(trusted_curator=True, noise=frozenset({"laplace"})),
        guarded(central_study("hajek")),
        "north allows noise 'laplace' only (noise under [policy]), and 'hajek' came; set noise in "
        "the study, or have its administrator add it",
    ),
    "coins": (
        Policy(coins=frozenset({"transfers", "none"})),
        guarded(make_study(noise="in_mpc", coins="dealt")),
        "north allows coins 'none', 'transfers' only (coins under [policy]), and 'dealt' came; set "
        "coins in the study, or have its administrator add it",
    ),
    "preprocessing": (
        Policy(preprocessing=frozenset({"none"})),
        TAU,
        "north allows preprocessing 'none' only (preprocessing under [policy]), and 'dealer' came; "
        "set preprocessing in the study, or have its administrator add it",
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_refusal_names_the_rule_what_it_allows_what_came_and_what_to_do(rule):
    policy, study, message = RULES[rule]
    assert refusal(policy, study) == message


@pytest.mark.parametrize(
    ("policy", "study"),
    [
        (ANYTHING, TAU),
        (Policy(coordinators=frozenset({"alice", "coordinator"})), TAU),
        (Policy(kernels=frozenset({TAU_HASH})), TAU),
        (Policy(statistics=frozenset({"mean", "kendall_tau"})), TAU),
        (Policy(statistics=frozenset({"mean"}), kernels=frozenset({TAU_HASH})), TAU),
        (Policy(fields=frozenset({"x", "y", "z"})), TAU),
        (Policy(max_epsilon=Fraction(1, 3)), guarded(make_study(epsilon="1/3"))),
        (Policy(max_delta=Fraction(1, 10**9)), guarded(gopa_study(delta="1e-9"))),
        (Policy(max_delta=Fraction(0)), TAU),
        (Policy(dealers=frozenset({"dealer"}), shufflers=frozenset()), TAU),
        (Policy(shufflers=frozenset(each.name for each in SHUFFLED.shufflers)), SHUFFLED),
        (Policy(dealers=frozenset()), SHUFFLED),
        (LABEL, AUC),
        (Policy(min_colluding=0), make_study(nodes=4)),
        (Policy(min_colluding=2), make_study(nodes=4, max_colluding=2)),
        (Policy(min_nodes=2), TAU),
        (Policy(min_colluding=1), make_study(max_colluding=1)),
        (Policy(noise=frozenset({"distributed", "in_mpc"})), guarded(make_study(noise="in_mpc"))),
        (Policy(backend=frozenset({"shared"}), preprocessing=frozenset({"dealer"})), TAU),
        (Policy(coins=frozenset({"transfers", "none"})), TAU),
        (Policy(coins=frozenset({"transfers"})), guarded(make_study(noise="in_mpc"))),
        (Policy(min_records=10, approval=True), TAU),
        (
            Policy(
                protocol=frozenset({"bell-auc"}),
                statistics=frozenset({"auc"}),
                public_labels=frozenset({"label"}),
            ),
            guarded(local_study("bell-auc")),
        ),
        (
            Policy(statistics=frozenset({"kendall_tau"}), noise=frozenset({"local"})),
            guarded(local_study("bell-ldp")),
        ),
        (Policy(trusted_curator=True), guarded(central_study("hajek"))),
        (Policy(trusted_curator=True), TAU),
    ],
)
def test_what_a_rule_allows(policy, study):
    assert allows(policy, study)


def test_a_site_may_ask_for_the_grade_where_others_lie_or_refuse_it():
    honest, proved = guarded(grid_study()), guarded(grid_study(adversary=LYING_NODES))
    for grade, allowed in ((HONEST, honest), (LYING_NODES, proved)):
        policy = Policy(adversary=frozenset({grade}))
        found = [study for study in (honest, proved) if allows(policy, study)]
        assert found == [allowed]
    words = refusal(Policy(adversary=frozenset({LYING_NODES})), honest)
    assert LYING_NODES in words and "adversary" in words
    assert all(allows(ANYTHING, study) for study in (honest, proved))


def test_an_empty_list_allows_nothing():
    assert "allows studies of nothing only" in refusal(Policy(coordinators=frozenset()))
    assert "allows the fields nothing only" in refusal(Policy(fields=frozenset()))
    assert not allows(Policy(kernels=frozenset())) and not allows(Policy(statistics=frozenset()))


def test_a_protocol_that_is_listed_is_no_word_for_a_trusted_curator():
    policy = Policy(protocol=frozenset({"central"}), noise=frozenset({"laplace"}))
    assert "no trusted curator" in refusal(policy, central_study())


def test_a_study_of_allowed_kernels_is_a_computation_of_its_own():
    study = guarded(make_study([KENDALL, GINI], estimator="ratio"))
    both = Policy(kernels=frozenset({TAU_HASH, GINI_HASH}))
    assert f"add {computation_hash(study)} to kernels" in refusal(both, study)
    assert allows(Policy(kernels=frozenset({computation_hash(study)})), study)


def test_bins_and_levels_are_part_of_the_computation_that_a_hash_allows():
    """With cut points of its choice a coordinator makes another statistic of an allowed kernel."""
    plain = grid_study()
    field = plain.fields[0].name
    cut = FieldBins(field, cuts=("2",))
    others = [plain.replaced(bins=(cut,)), plain.replaced(levels=5)]
    others.append(local_study("bell-ldp", bins=(FieldBins(field, 2),)))
    hashes = {computation_hash(each) for each in (plain, local_study("bell-ldp"), *others)}
    assert len(hashes) == 5
    same = plain.replaced(bins=(FieldBins(field, cuts=("2.0",)),), levels=0)
    assert computation_hash(same) == computation_hash(others[0])
    (usual,) = {each.count for each in local_study("bell-ldp").settings.bins}
    named = local_study("bell-ldp", bins=(FieldBins(field, usual),))
    assert computation_hash(named) == computation_hash(local_study("bell-ldp"))
    assert not Computation.of(named).coarser, "lists of hashes hold that name usual bins"
    only_plain = Policy(kernels=frozenset({computation_hash(plain)}), min_colluding=0)
    assert allows(only_plain, plain)
    assert f"add {computation_hash(others[0])} to kernels" in refusal(only_plain, others[0])


def test_the_delta_of_the_release_is_bounded_with_that_of_finite_draws():
    policy = Policy(max_delta=Fraction(1, 1000))
    policy.check_delta(Fraction(1, 1000), "north")
    ANYTHING.check_delta(Fraction(1, 2), "north")
    with pytest.raises(
        PolicyRefused, match=r"north allows at most delta 1/1000 .* 1/999 came"
    ) as no:
        policy.check_delta(Fraction(1, 999), "north")
    assert (no.value.culprit, no.value.step) == ("north", "prepare")


def test_a_coordinator_alone_makes_no_label_public():
    """It marked a field `public` itself, and read exact class counts at no cost."""
    everything = Policy(
        statistics=frozenset({"auc"}), fields=frozenset({"x", "label"}), min_colluding=0
    )
    assert "public_labels" in refusal(everything, AUC)
    assert allows(replace(everything, public_labels=frozenset({"label"})), AUC)


def test_the_first_broken_rule_is_named():
    assert "max_epsilon" in refusal(Policy(max_epsilon=Fraction(1, 2), min_nodes=9))


def test_a_refusal_stays_one_line_of_bounded_length_whatever_a_study_is_called():
    fields = tuple(
        FieldText(f"{number:03}\n\x1b[2J" + "w" * 99, "0", "1", whole=True) for number in range(300)
    )
    study = make_study(statistic="evil\n" * 99, fields=(*TAU.fields, *fields))
    for policy in (Policy(fields=frozenset()), Policy(kernels=frozenset())):
        message = refusal(policy, study)
        assert message.isprintable() and len(message) < 1500


def test_too_few_records_tell_no_numbers_but_to_the_administrator():
    policy = Policy(min_records=7)
    policy.check_records(7, "north")
    ANYTHING.check_records(0, "north")
    with pytest.raises(PolicyRefused) as caught:
        policy.check_records(6, "north")
    assert caught.value.message == (
        "north has fewer complete records than its policy asks for (min_records under [policy]); "
        "leave out fields that are often missing, or run the study without this node"
    )
    assert caught.value.detail == "6 complete records, min_records = 7"


def test_what_a_report_tells_of_the_rules_names_nobody_and_bounds_no_number_of_records():
    policy = Policy(
        coordinators=frozenset({"coordinator", "carol"}),
        fields=frozenset({"x", "y", "diagnosis"}),
        max_epsilon=Fraction(5, 2),
        max_delta=Fraction(1, 10**9),
        min_records=4321,
        min_nodes=2,
        approval=True,
    )
    assert allows(policy)
    assert policy.told(TAU) == (
        "own lists say which coordinators, fields are allowed; a study costs at most epsilon 2.5; "
        "a study costs at most delta 1e-09; a study has at least 2 sites; the noise withstands all "
        "other sites that collude; enough complete rows; a person accepts each study"
    )
    assert ANYTHING.told(TAU) == (
        "the noise withstands all other sites that collude; no person is asked"
    )
    raw = Policy(trusted_curator=True, min_colluding=0).told(guarded(central_study()))
    assert raw == (
        "the noise withstands 0 sites that collude; RAW RECORDS may go to a coordinator; "
        "no person is asked"
    )


def test_several_statistics_need_a_rule_for_each_and_strata_their_hash():
    """Strata are kernels of their own, which no statistic of the library has."""
    both = guarded(several({"tau": KENDALL, "gini": GINI}, ()))
    tau, gini = "kendall_tau", "gini_mean_difference"
    assert allows(Policy(statistics=frozenset({tau, gini})), both)
    assert not allows(Policy(statistics=frozenset({tau})), both)
    assert not allows(Policy(kernels=frozenset({TAU_HASH, GINI_HASH})), both)
    assert allows(Policy(kernels=frozenset({computation_hash(both)})), both)
    strata = guarded(several({"tau": KENDALL}))
    assert not allows(Policy(statistics=frozenset({tau})), strata)
    assert allows(Policy(kernels=frozenset({computation_hash(strata)})), strata)


def test_a_refusal_names_the_statistic_and_cuts_no_kernel():
    policy = Policy(statistics=frozenset({"mean"}))
    fields = [number_field(name, "0", "2") for name in ("x", "y")]
    tau_b = library_study("kendall_tau_b", fields, 3, ["x", "y"], max_colluding=2)
    assert "and Kendall's tau-b of 'x' and 'y' with the kernel" in refusal(policy, tau_b)
    kernel = " + ".join(["abs(a.x - b.x)"] * 20)
    long = refusal(policy, make_study(kernel, statistic="mine"))
    assert "and 'mine' (no statistic of the library) came" in long and "abs" not in long
