"""A study in words, before it runs: lines of a label and a text."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from ipaddress import ip_address

from umpc.errors import ConfigError
from umpc.planning.prediction import attempt_over, worst_survivors
from umpc.protocols.registry import protocol_of
from umpc.study.attempt import describe_losses
from umpc.study.computation import computation_hash, unusual
from umpc.study.document import Study
from umpc.study.making_report import SETS
from umpc.study.parts import Participant
from umpc.study.rules import classes_of, columns_of, words_of
from umpc.transport.addresses import is_behind_hub, parse_hub, split_address
from umpc.ustat.expression import Constant, Select
from umpc.ustat.statistics import LIBRARY

Line = tuple[str, str]


def describe_study(study: Study) -> Iterator[Line]:
    """Lines that follow from the study alone."""
    yield "study", f"{study.name}, hash {study.hash.hex()}"
    yield from describe_question(study)


def describe_question(study: Study) -> Iterator[Line]:
    """The lines but for its name: what it computes, of which records, how, and who takes part.

    Text that only its coordinator vouches for is in quotes.
    """
    yield from _statistic(study)
    yield from protocol_of(study).describe_sums(study)
    if told := _counted_as_zero(study):
        yield "averages", told
    yield "computation", f"hash {computation_hash(study)}, for kernels under [policy]"
    yield from _fields(study)
    if study.people is not None:
        yield "protects", study.protected
    yield "records", study.described_records
    if named := study.named_datasets:
        yield "data sets", ", ".join(f"{node}: {name!r}" for node, name in named.items())
    yield from _privacy(study)
    told = "; each node discloses its number of records with each label" * study.two_sample
    yield "edges", f"{study.edges}, {study.sampling}{told}"
    yield "protocol", study.protocol
    yield "backend", study.backend
    yield "coordinator", study.coordinator
    yield "dealer", study.dealer.name if study.dealer else "none"
    yield "nodes", ", ".join(node.name for node in study.nodes)
    if told := describe_losses(study):
        yield "may miss", told


def _statistic(study: Study) -> Iterator[Line]:
    """The study's own name of its statistic, beside what the library says of its kernels."""
    same = [name for name, known in LIBRARY.items() if columns_of(study, known) is not None]
    told = "but it equals no statistic of the library with default parameters"
    if protocol_of(study).sure_statistic(study):
        told = "read off a table of counts, over the fields in its order"
    elif same:
        told = f"which is the library's {' or '.join(same)}: {words_of(study)}"
    yield "statistic", f"{study.statistic!r}, {told}"


def _fields(study: Study) -> Iterator[Line]:
    """The fields, what their classes mean, and where the study chooses to be coarser."""
    for field in study.fields:
        label = ", a public label" if field.public else ""
        yield "field", f"{field.name!r}: {field.values()}{label}"
    for name, meaning in classes_of(study).items():
        yield "classes", f"{name!r}: {meaning}"
    chosen = unusual(study)
    for bins in chosen.get("bins", ()):
        cuts = f"cut at {', '.join(bins.cuts)}"
        yield "  bins", f"{bins.field!r}: {cuts if bins.cuts else f'{bins.count} of equal width'}"
    if "levels" in chosen:
        yield "levels", str(chosen["levels"])


def _privacy(study: Study) -> Iterator[Line]:
    protocol = protocol_of(study)
    promise = protocol.promise_of(study)
    yield "promise", promise.protected
    yield "adversary", f"{study.adversary}. {promise.sites}"
    yield "disclosed", promise.disclosed
    yield "epsilon", study.epsilon
    if delta := protocol.known_delta(study):
        yield "delta", str(delta) if study.delta else f"{float(delta):.3g}"
    yield "noise", f"{study.noise}, {protocol.noise_withstands(study)}"
    yield from protocol.describe(study)


def _counted_as_zero(study: Study) -> str:
    """A sentence where the mean of one's own kernel counts sets outside a condition as 0."""
    kernels = [kernel.expression for kernel in study.parsed_kernels]
    is_own = study.estimator == "mean" and study.statistic not in LIBRARY
    if not is_own or not isinstance(kernels[0], Select):
        return ""
    if kernels[0].otherwise != Constant(Fraction(0)):
        return ""
    sets = SETS.get(study.degree, "sets")
    return (
        f"over all {sets}, of which those that do not meet the condition count 0; return the "
        f'condition as a second sum, with estimator = "ratio", to average over those that do'
    )


def describe_addresses(study: Study) -> Iterator[Line]:
    """Check the addresses of all participants; a line where all are on this machine.

    Raises: ConfigError for an address of a wrong form, one to listen at, or one of the machine
        itself where other participants are elsewhere: they would call their own machine.
    """
    roles = {"node": study.nodes, "shuffler": study.shufflers}
    roles["dealer"] = (study.dealer,) if study.dealer else ()
    is_here: dict[str, bool] = {}
    for role, participants in roles.items():
        for each in participants:
            is_here[f"{role} {each.name!r} at {each.address}"] = _is_here(role, each)
    here = [who for who, found in is_here.items() if found]
    if here and len(here) < len(is_here):
        raise ConfigError(
            f"{', '.join(here)}: this address is each caller's own machine, and other participants "
            "are elsewhere. Write the name at which the others reach it, as in "
            "north.example.org:7100"
        )
    if here:
        yield "addresses", "all on this machine: other machines cannot take part"


def _is_here(role: str, participant: Participant) -> bool:
    """Whether an address means the machine of whoever calls it. Raises: ConfigError."""
    address = participant.address
    try:
        place = parse_hub(address).address if is_behind_hub(address) else address
        host, port = split_address(place)
    except ConfigError as error:
        raise ConfigError(f"{role} {participant.name!r}: {error.message}") from None
    try:
        number = ip_address(host)
    except ValueError:
        number = None
    if port == 0 or (number is not None and number.is_unspecified):
        raise ConfigError(
            f"{role} {participant.name!r}: {address!r} is an address to listen at, and one to call "
            "was expected. Write the name or the address of that machine, as in "
            "north.example.org:7100"
        )
    return host == "localhost" or (number is not None and number.is_loopback)


def describe_prediction(study: Study, records: str) -> Iterator[Line]:
    """Lines about what a run over these numbers of records costs, with an E drawn for the purpose.

    Args: records: each node's, as 300,300,200. Raises: StudyError.
    """
    protocol = protocol_of(study)
    yield from protocol.describe_run(attempt_over(study, records))
    if fewest := worst_survivors(study, records):
        survivors, counts = fewest
        yield "if missing", f"{', '.join(survivors.names_missing)}; the others then have"
        for label, text in protocol.describe_run(attempt_over(survivors, counts)):
            yield f"  {label}", text
