"""Traces of a real node: one study with its attempt and its steps, and its repetition."""

from __future__ import annotations

from tests.support.collector import attributes, collector
from tests.system.test_onemessage import STUDY


def test_a_node_sends_the_spans_of_its_studies_and_no_more(lab):
    with collector() as got:
        here = lab(2, {"node-1": {"UMPC_TRACES": got.address}}).start(dealer=False)
        for _ in range(2):  # the second run repeats what is stored
            outcome = here.run(**STUDY)
            assert outcome.code == 0, outcome.error
        here.stop()
    assert here.loud_lines() == []
    assert got.spans().keys() == {"node-1"}
    spans = got.spans()["node-1"]
    names = {span.span_id: span.name for span in spans}
    shown = [(names.get(span.parent_span_id, ""), span.name) for span in spans]
    steps = ["prepare", "evaluate", "release"]
    first = [("study", "propose"), *(("attempt", step) for step in steps), ("study", "attempt")]
    again = [("study", "propose"), ("study", "release")]
    assert shown == [*first, ("", "study"), *again, ("", "study")]
    studies = [attributes(span) for span in spans if span.name == "study"]
    assert [each["umpc.outcome"] for each in studies] == ["success", "success"]
    assert len({each["umpc.study"] for each in studies}) == 1
    assert outcome.report["study_hash"].startswith(studies[0]["umpc.study"])
    keys = {key for span in spans for key in attributes(span)}
    assert keys == {"umpc.outcome", "umpc.study"} and not any(span.events for span in spans)
    for word in ("balance", "coordinator", "records"):
        assert word not in got.texts()
