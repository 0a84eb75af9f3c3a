"""`hajek-grid` in memory, by the real sides: the sum, its noise, its cost, and one question."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.grid import GridRun, grid_study
from tests.support.protocols import assert_refused
from tests.support.studies import LOUD, Entropy, clear_sums, graph_of
from umpc.errors import LocalProtocolError, RemoteProtocolError, StudyError
from umpc.protocols.registry import checked, decode_study, protocol_of
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.simulation import AUTHORITY, Simulated, simulate
from umpc.study import messages as m
from umpc.study.cost import Measured
from umpc.study.document import Study
from umpc.study.sizes import Sizes
from umpc_papers.hajek_grid.binding import bound_of, reach, squares_law, value_law

COUNTS = (40, 0, 25)
ALONE = {"preprocessing": "none", "dealer": None}


def hajek_study(kernels: str = "a.x == b.x", nodes: int = 3, **changes) -> Study:
    facts = {"protocol": "hajek-grid", "delta": "1e-9", "x": ("0", "3"), "y": ("0", "3"), **changes}
    return grid_study(kernels, nodes, **facts)


def tables(counts=COUNTS) -> list[dict[str, np.ndarray]]:
    draw = np.random.default_rng(7)
    return [{"x": draw.integers(0, 4, n), "y": draw.integers(0, 4, n)} for n in counts]


def ran(study: Study, label: str = "hajek grid") -> Simulated:
    fields = {field.name for field in study.fields}
    given = [{name: each[name] for name in fields} for each in tables()]
    return simulate(checked(study), given, Entropy(label))


@pytest.mark.parametrize("shape", [{}, ALONE], ids=["dealer", "no dealer"])
def test_without_noise_it_is_the_sum_over_all_pairs_at_the_predicted_cost(shape):
    for kernel in ("a.x == b.x", "sign(a.x - b.x) * sign(a.y - b.y)"):
        study = hajek_study(kernel, epsilon=LOUD, max_colluding=0, **shape)
        run = ran(study)
        given = [{field.name: each[field.name] for field in study.fields} for each in tables()]
        expected = clear_sums(study, given, graph_of(study, run.report))
        assert [each // 2 for each in noisy_sums(run.transcript.answers, 1)] == expected
        report = run.report
        assert report.rounds == report.rounds_predicted
        assert report.bytes_online_by_step == report.bytes_online_by_step_predicted
        assert report.bytes_offline == report.bytes_offline_predicted
        assert report.delta == 1e-9


def test_the_noise_is_that_of_the_bound_and_the_report_says_so():
    run = ran(hajek_study())
    sizes = run.attempt.sizes
    squares = noisy_sums(run.transcript.shares, 1)[0] // 2
    bound = bound_of(sizes, squares)
    law = value_law(sizes, bound)
    assert run.report.noise_std == pytest.approx(law.std / sizes.edges)
    assert law.epsilon + squares_law(sizes).epsilon == sizes.study.exact_epsilon
    assert f"{bound / sizes.sensitivities[0]:.3g} of the sensitivity" in run.report.note
    # A table whose squares are as large as can be gets the noise for all tables, and no more.
    assert bound_of(sizes, 1 << 60) == sizes.sensitivities[0] == sum(COUNTS) - 1


def test_the_reach_is_exceeded_with_a_chance_of_delta_at_most():
    """The law of the noise of P is symmetric: P(X < -T) = q^T+1/(1 + q) for one honest node."""
    sizes = Sizes(hajek_study(nodes=1, max_colluding=0), 65)
    q = np.exp(-float(squares_law(sizes).log_ratio))
    beyond = q ** (reach(sizes) + 1) / (1 + q)
    assert 1e-12 < beyond <= 1e-9
    smaller = replace(sizes, study=sizes.study.replaced(delta="0.4"))
    assert q ** (reach(smaller) + 1) / (1 + q) <= 0.4


def test_a_node_adds_up_what_all_nodes_released_and_answers_once():
    run = ran(hajek_study())
    node = run.nodes[0]
    with pytest.raises(LocalProtocolError, match="one question is answered"):
        node.answer(run.transcript.question)
    study = checked(hajek_study())
    for change in (lambda asked: asked[:-1], lambda asked: bytes(len(asked)), lambda asked: b""):
        nodes = fresh_nodes(study)
        with pytest.raises(RemoteProtocolError, match="malformed question") as raised:
            nodes[0].answer(change(run.transcript.question))
        assert raised.value.culprit == study.coordinator


def fresh_nodes(study: Study):
    """Return the nodes of a run whose coordinator never asks."""
    fields = {field.name for field in study.fields}
    given = [{name: each[name] for name in fields} for each in tables()]
    run = GridRun(study, given, Entropy("not asked")).up_to_release()
    for node in run.nodes:
        node.release()
    return run.nodes


def test_a_later_process_answers_from_what_the_ledger_kept():
    """The share of S is the same, and the noise has the law of the same bound."""
    study = checked(hajek_study(epsilon=LOUD, max_colluding=0))
    run = ran(study)
    nodes = fresh_nodes(study)
    kept = [(node.told, node.rest) for node in nodes]
    assert all(len(rest) <= 32 for _, rest in kept)
    with pytest.raises(LocalProtocolError, match="recalls none"):
        nodes[0].recall(*kept[0])
    question = b"".join(share for share, _ in kept)
    make = protocol_of(study).node
    answers = []
    for participant, each, (share, rest) in zip(study.nodes, tables(), kept, strict=True):
        own = AUTHORITY.credentials(participant.name)
        later = make(own, study, {"x": each["x"]}, len(each["x"]), Entropy("later"))
        later.recall(share, rest)
        answers.append(later.answer(question))
        with pytest.raises(LocalProtocolError, match="one question is answered"):
            later.answer(question)
    assert noisy_sums(answers, 1) == noisy_sums(run.transcript.answers, 1)
    with pytest.raises(LocalProtocolError, match="after the release, and before the answer"):
        _ = run.nodes[0].rest


def test_a_replay_gives_the_same_report_from_the_stored_shares():
    run = ran(hajek_study())
    study = run.attempt.study
    counts = [member.records for member in run.attempt.members]
    released = [
        m.Released(run.attempt.id, share, count, 0)
        for share, count in zip(run.transcript.shares, counts, strict=True)
    ]
    side = protocol_of(study).coordinator(study, lambda *_: None)
    assert side.ask(released).question == run.transcript.question
    side.hear([m.Answer(answer) for answer in run.transcript.answers])
    again = side.replay(released, Measured())
    assert (again.estimate, again.noise_std) == (run.report.estimate, run.report.noise_std)


def test_a_document_says_all_and_what_does_not_fit_is_refused():
    study = checked(hajek_study(bound_share="1/5"))
    assert decode_study(study.encode()) == study
    assert squares_law(Sizes(study, 65)).epsilon == study.exact_epsilon / 5
    for changes, message in (
        ({"bound_share": "1"}, "bound_share must be above 0 and below 1"),
        ({"delta": ""}, "takes a delta"),
        ({"noise": "in_mpc"}, "noise"),
        ({"levels": 3}, "no levels; take bins"),
        ({"preprocessing": "none"}, "no dealer"),
    ):
        assert_refused(study.replaced(**changes), StudyError, message)
    assert_refused(hajek_study("a.x", degree=1), StudyError, "symmetric kernel of pairs")


def test_a_plan_says_where_it_gains():
    study = checked(hajek_study())
    protocol = protocol_of(study)

    def said(records: int) -> str:
        attempt = ran(study).attempt
        attempt.sizes = Sizes(study, records, 0, 3)
        return dict(protocol.compare_noise(attempt))["against laplace"]

    assert "this does not gain" in said(100)
    assert "this gains" in said(100_000)
