"""umpc.Study: the study of a file, from arguments; what it says before it runs; its coroutines."""

from __future__ import annotations

import asyncio

import pytest

import umpc
from umpc.api.study import run_now
from umpc.coordinator.studyfile import load_study_file
from umpc.errors import ConfigError, RangeError
from umpc.testing import lying
from umpc.transport.authority import Authority


@pytest.fixture(scope="module")
def identity(tmp_path_factory):
    folder = tmp_path_factory.mktemp("authority")
    Authority.create(folder / "authority").issue("boss", "coordinator", folder / "boss")
    return folder / "boss"


def study(identity, **changes):
    given = {
        "statistic": "kendall_tau",
        "columns": ["age", "balance"],
        "bounds": {"age": (0, 127, 1), "balance": (-100, 100, "0.01")},
        "epsilon": 0.5,
        "nodes": {"north": "north:7100", "south": "south:7100"},
        "dealer": {"dealer": "dealer:7100"},
        "identity": identity,
        "edges": "2n",
    }
    return umpc.Study("from-python", **{**given, **changes})


def test_it_is_the_study_of_the_file_that_it_saves(identity, tmp_path):
    made = study(identity)
    path = made.save(tmp_path)
    assert load_study_file(path).study("boss").hash == made.document.hash
    assert umpc.Study.load(path).document.hash == made.document.hash
    assert made.document.coordinator == "boss" and made.due() == []


def test_it_describes_and_plans_itself_as_the_commands_do(identity):
    made = study(identity)
    lines = dict(made.check([40, 50]))
    assert lines["kernel"] == "sign(a.age - b.age) * sign(a.balance - b.balance)"
    assert "0.5" in lines["epsilon"] and "north" in repr(made)
    plan = made.plan([40, 50])
    assert plan["edges"] == 180 and plan["rounds"] == 3 and plan.label in plan.to_dict()


def test_it_says_beforehand_what_a_run_or_its_reader_would_stumble_over(identity):
    assert "delta" not in dict(study(identity, noise="in_mpc").check())
    loud = dict(study(identity, noise="in_mpc", epsilon=30).check())
    assert loud["delta"].startswith("at least 3.5e-06") and 'noise = "distributed"' in loud["delta"]

    @umpc.kernel
    def close(a, b):
        return umpc.select(a.age == b.age, abs(a.balance - b.balance), 0)

    lines = dict(study(identity, statistic=close, columns=None).check())
    assert "do not meet the condition count 0" in lines["averages"]
    assert "averages" not in dict(study(identity).check())


def test_check_and_plan_refuse_fields_that_do_not_fit_and_say_what_classes_mean(identity):
    made = {"statistic": "auc_private", "columns": ["age", "state"]}
    bounds = {"age": (0, 127, 1), "state": (1, 2, 1)}
    refused = study(identity, **made, bounds=bounds)
    for ask in (refused.check, lambda: refused.plan([40, 50])):
        with pytest.raises(RangeError, match=r"field 'state'.*the second counts"):
            ask()
    told = study(identity, **made, bounds={**bounds, "state": ["1", "2"]}).check()
    assert ("classes", "'state': '2' should score above '1'") in told


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("south.org:99999", "address 'south.org:99999' is wrong: expected host:port"),
        ("south.org", "expected host:port"),
        ("fe80::1:27101", "is ambiguous: expected .ipv6.:port"),
        ("0.0.0.0:7100", "is an address to listen at"),
        ("[::]:7100", "is an address to listen at"),
        ("south.org:0", "is an address to listen at"),
        ("localhost:7100", "each caller's own machine, and other participants are elsewhere"),
        ("127.0.0.1:7100", "at 127.0.0.1:7100: this address is each caller's own"),
        ("[::1]:7100", "each caller's own machine"),
        ("hub:relay@localhost:7443", "each caller's own machine"),
        ("hub:relay@hub.org", "expected host:port"),
    ],
)
def test_an_address_at_which_nobody_can_be_called_is_found_by_the_check(identity, address, words):
    for wrong in (
        {"nodes": {"north": "north:7100", "south": address}},
        {"dealer": {"deal": address}},
    ):
        made = study(identity, **wrong)
        with pytest.raises(ConfigError, match=words):
            made.check()


def test_a_trial_on_one_machine_passes_the_check_and_is_called_one(identity):
    nodes = {"north": "127.0.0.1:7101", "south": "localhost:7102"}
    made = study(identity, nodes=nodes, dealer={"dealer": "[::1]:7100"})
    assert "all on this machine" in dict(made.check())["addresses"]
    through = {name: f"hub:relay@hub.org:{port}" for name, port in (("north", 1), ("south", 1))}
    elsewhere = study(identity, nodes=through, dealer={"dealer": "[fe80::1]:7100"})
    assert "addresses" not in dict(elsewhere.check())


def test_a_kernel_of_python_is_traced_and_not_saved(identity, tmp_path):
    @umpc.kernel
    def gap(a, b):
        return abs(a.age - b.age)

    made = study(identity, statistic=gap, columns=None, bounds={"age": (0, 127, 1)})
    assert made.document.kernels == ("abs(a.age - b.age)",) and made.document.statistic == "gap"
    with pytest.raises(umpc.errors.StudyError, match="kernel"):
        made.save(tmp_path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"edge": "2n"}, "`edge` is not a key"),
        ({"nodes": {}}, "node"),
        ({"dealer": {"a": "a:1", "b": "b:1"}}, "one dealer"),
        ({"epsilon": None}, "epsilon"),
    ],
)
def test_a_wrong_argument_is_named(identity, changes, words):
    with pytest.raises(umpc.errors.StudyError, match=words):
        _ = study(identity, **changes).document


def test_a_failure_is_its_typed_error_in_both_ways(identity, capsys):
    async def lost(honest, document, who, *progress, **more):
        raise umpc.errors.PeerLost(f"{document.name} lost a node", culprit="north")

    made = study(identity)

    async def inside() -> None:
        with pytest.raises(umpc.errors.PeerLost):
            await made.run_async(progress=False)
        with pytest.raises(umpc.errors.PeerLost):
            await made.prepare_async()

    with lying("process", run_study=lost, prepare_study=lost):
        for way in (made.run, made.prepare):
            for progress in (False, True):
                with pytest.raises(umpc.errors.PeerLost, match="from-python"):
                    way(progress=progress)
        asyncio.run(inside())
    assert capsys.readouterr().out == ""


def test_a_coroutine_runs_beside_a_running_loop():
    async def seven() -> int:
        return 7

    async def wrong() -> int:
        raise umpc.errors.StudyError("wrong")

    async def notebook() -> int:
        with pytest.raises(umpc.errors.StudyError, match="wrong"):
            run_now(wrong())
        return run_now(seven())

    assert run_now(seven()) == asyncio.run(notebook()) == 7
