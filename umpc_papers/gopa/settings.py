"""The settings of a study of protocol = "gopa", and their rules."""

from __future__ import annotations

from typing import Annotated

from umpc.errors import StudyError
from umpc.study.document import Study
from umpc.study.settings import ProtocolSettings, describe
from umpc_papers.gopa.graph import Graph, complete_graph, k_out_graph

LEAST_NODES = 2
MOST_NODES = 64


class GopaSettings(ProtocolSettings, frozen=True, kw_only=True, tag="gopa"):
    """Each node's sum is released under noise, most of which cancels."""

    delta: Annotated[str, describe("δ of the release, such as 1e-9. A study must give it.")] = ""
    neighbours: Annotated[
        int,
        describe(
            "How many others each node chooses at random to share noise with. With 0, the default, "
            "all nodes share noise."
        ),
    ] = 0

    @property
    def newer(self) -> tuple[str, ...]:
        return ("neighbours",)


def graph_of(study: Study) -> Graph:
    """The nodes that share noise. Raises: StudyError where max_colluding nodes may cut it."""
    nodes, neighbours = len(study.nodes), study.settings_as(GopaSettings).neighbours
    if not neighbours:
        return complete_graph(nodes)
    return k_out_graph(study.name, nodes, neighbours, study.max_colluding)


def check_settings(study: Study) -> None:
    """Raises: StudyError."""
    settings = study.settings_as(GopaSettings)
    if not LEAST_NODES <= len(study.nodes) <= MOST_NODES:
        raise StudyError(
            f'"gopa" is for {LEAST_NODES} to {MOST_NODES} nodes, which share noise; got '
            f"{len(study.nodes)}"
        )
    if not 0 <= settings.neighbours < len(study.nodes):
        raise StudyError(
            f"neighbours must be 0 for all, or 1 to {len(study.nodes) - 1} of "
            f"{len(study.nodes)} nodes; got {settings.neighbours}"
        )
    graph_of(study)
    facts = (study.degree, study.sampling, study.estimator, len(study.kernels))
    if facts != (1, "balanced", "mean", 1):
        raise StudyError(
            f'"gopa" computes the mean of one kernel over single records, as statistic = "mean"; '
            f"got {study.statistic[:63]!r}, the {study.estimator} of {len(study.kernels)} sum(s) "
            f'over sets of {study.degree} record(s), "{study.sampling}"'
        )
    if not 0 < study.exact_delta < 1:
        raise StudyError(
            f'"gopa" takes a delta between 0 and 1, got {settings.delta!r}; a usual value is 1e-9'
        )
