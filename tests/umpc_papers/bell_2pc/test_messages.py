"""Stored and damaged messages of noisy pairs: the former report again, or a refusal with a name."""

from __future__ import annotations

import pytest

from tests.support.bell import (
    EQUAL,
    bell_study,
    without_transfers,
)
from tests.support.protocols import begun_sides, coordinator_of
from tests.support.silent_pairs import SILENT
from tests.support.studies import (
    GINI,
    KENDALL,
    Entropy,
    random_tables,
)
from tests.support.transfers import WRONG_SHAPES, altered, flip
from umpc.errors import (
    AlreadyReleased,
    EncodingError,
    ImpossibleResult,
    RemoteProtocolError,
)
from umpc.simulation import Simulated, simulate
from umpc.study import messages as m
from umpc.study.cost import Measured
from umpc.testing import lying

pytestmark = pytest.mark.usefixtures("fast")


def released(run: Simulated) -> list[m.Released]:
    sessions = zip(run.transcript.shares, run.nodes, strict=True)
    return [
        m.Released(run.attempt.id, share, node.records, node.accept().first_class)
        for share, node in sessions
    ]


@pytest.mark.parametrize("noise", ["pair_laplace", "randomised_response"])
def test_stored_shares_give_the_same_report_again(noise):
    study = bell_study((EQUAL, GINI), 3, x=("0", "3"), noise=noise, estimator="ratio", edges="2p")
    with without_transfers():
        run = simulate(study, random_tables([5, 0, 4], "replay", 0, 3), Entropy("replay"))
    coordinator = coordinator_of(study)
    assert coordinator.agree(released(run)) is None
    again = coordinator.replay(released(run), Measured(replayed=True))
    kept = ("estimate", "noise_std", "sums", "epsilon", "delta", "edges", "records", "note")
    assert (
        all(getattr(again, name) == getattr(run.report, name) for name in kept) and again.replayed
    )


def test_a_share_of_another_length_or_attempt_names_its_node():
    study, tables = bell_study(), random_tables([5, 4], "lengths", 0, 1)
    with without_transfers():
        run = simulate(study, tables, Entropy("lengths"))
    coordinator, _ = begun_sides(study, tables, Entropy("lengths"))
    assert coordinator.attempt.id == run.attempt.id, "the same entropy, the same attempt"
    answers = released(run)
    for share in (b"", answers[1].share[:-4], answers[1].share + bytes(4), answers[1].share[:-1]):
        wrong = [answers[0], m.Released(run.attempt.id, share, 4, 0)]
        with pytest.raises(RemoteProtocolError, match="node-1 released") as caught:
            coordinator.finish(wrong, Measured())
        assert (caught.value.culprit, caught.value.step) == ("node-1", "release")
    wrong = [answers[0], m.Released(bytes(32), answers[1].share, 4, 0)]
    with pytest.raises(AlreadyReleased, match="another attempt"):
        coordinator.finish(wrong, Measured())
    with pytest.raises(RemoteProtocolError, match="node-1 released"):
        coordinator.replay(
            [answers[0], m.Released(run.attempt.id, answers[1].share[:-1], 4, 0)], Measured()
        )


def test_stored_shares_of_another_number_of_pairs_are_refused():
    """Stored values must cover |E| pairs, whoever shares them: else the report's sum is not that
    over E.
    """
    with without_transfers():
        run = simulate(bell_study(), random_tables([5, 5], "stored", 0, 1), Entropy("stored"))
    answers, coordinator = released(run), coordinator_of(run.attempt.study)
    assert run.attempt.released_values(0) < run.report.edges == 5
    for share in (b"", answers[1].share * 3):
        with pytest.raises((RemoteProtocolError, AlreadyReleased)):
            coordinator.replay([answers[0], m.Released(run.attempt.id, share, 5, 0)], Measured())


def run_altered(step: str, change, label: str) -> Simulated:
    """A study in which one step's messages are changed on the way."""

    def protocol(honest, *given):
        return altered(honest(*given), step, change)

    study = bell_study(KENDALL, x=("0", "3"), epsilon=str(SILENT * 2))
    with lying("node", protocol=protocol):
        return simulate(study, random_tables([5, 5], label), Entropy(label))


@pytest.mark.parametrize(("step", "culprit"), [("coins", "node-1"), ("garbled", "node-0")])
@pytest.mark.parametrize("name", WRONG_SHAPES)
def test_a_message_of_another_shape_names_its_sender(name, step, culprit):
    with pytest.raises((RemoteProtocolError, EncodingError)) as caught:
        run_altered(step, WRONG_SHAPES[name], "shapes")
    assert (caught.value.culprit, caught.value.step) == (culprit, step)


@pytest.mark.parametrize("change", [flip(0, 1), flip(77, 0x80), flip(10**6, 0xFF)])
@pytest.mark.parametrize("step", ["coins", "garbled"])
def test_a_message_of_other_bits_gives_a_possible_number_or_none(step, change):
    """A number that no pair and no noise can give is refused; any other one is not noticed.

    Choices of transfers have a proof, so other choices are noticed, with the chooser's name.
    """
    try:
        run = run_altered(step, change, "bits")
    except ImpossibleResult:
        return
    except RemoteProtocolError as error:
        assert (step, error.culprit, error.step) == ("coins", "node-1", "ot_extend")
        return
    assert step == "garbled"
    assert run.report.edges == 5
    assert -1 <= run.report.estimate <= 1, "noise is silent here"
