"""The study: the one document that coordinator, dealer and every node agree on before anything happens.

It travels as canonical JSON. A hash of it is the study's identity: a node answers with the hash of what it read,
and everything later (joint seed, material, budget, stored result) is bound to it. It holds the kernel as text,
never code.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

import msgspec

from umpc import __version__
from umpc.crypto.prg import digest
from umpc.errors import EncodingError, InvalidEpsilon, StudyError, VersionMismatch
from umpc.protocols.central.settings import CENTRAL
from umpc.protocols.gopa.settings import GOPA
from umpc.protocols.local.settings import ASKS, ONE_MESSAGE, SHUFFLED
from umpc.study.parts import FieldBins, FieldText, Participant, exact
from umpc.study.rules import check_rules
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import Schema

MAX_BYTES = 1 << 20


class Study(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, dict=True):
    """What is computed, by whom, at what price.

    kernels: one for each sum that is released, over `degree` records. split: each sum's part of epsilon, equal if
    empty. estimator: what is computed from the released means. edges: "all", a multiple of n such as "2n", pairings of
    all records such as "1p", or a number.
    sampling: "balanced" over all records, or "two_sample": the first record of an edge has the first of a public
    label's two values, the second the other. epsilon: exact text. max_colluding: how many nodes may pool what they know
    without weakening ε. noise: "distributed", every node adds its own, so much that the honest ones' suffices; or
    "in_mpc", a committee draws it under shares, just as much as is needed, and nobody knows it; or
    with delta "skellam", distributed for all sums together, and "binomial", a committee's fair coins. protocol: "u-mpc"
    releases the noisy sum; "bell-2pc" a noisy value of every pair, with noise "pair_laplace" or "randomised_response"
    inside the pair's circuit, by advanced composition if there is a delta; "bell-ldp", "bell-auc", "ghazi-ldp" and
    "ghazi-rounds" a randomised answer of every record, with noise "local" and backend "none" (`studies.local`);
    "ghazi-shuffle" noisy sums of cells, with noise "shuffled": every node adds its own, and two shufflers hide whose is
    whose; "gopa" each node's sum under noise "gopa", most of which cancels (`studies.gopa`); "central" shows the
    coordinator all records, and it adds the noise (`studies.central`). backend: how edges of several owners are
    evaluated: "shared", under masks that a dealer knows, or "garbled", by the two owners alone. preprocessing:
    "dealer", or "none": then there is no dealer, and `dealer` is None. bins, rounding: how records become cells, for
    "bell-ldp", "ghazi-ldp", "ghazi-rounds" and "ghazi-shuffle". levels: of the tree of "bell-auc", else 0.
    """

    name: str
    statistic: str
    kernels: tuple[str, ...]
    fields: tuple[FieldText, ...]
    epsilon: str
    edges: str
    max_colluding: int
    coordinator: str
    dealer: Participant | None
    nodes: tuple[Participant, ...]
    degree: int = 2
    estimator: str = "mean"
    split: tuple[str, ...] = ()
    sampling: str = "balanced"
    protocol: str = "u-mpc"
    noise: str = "distributed"
    delta: str = ""
    backend: str = "shared"
    preprocessing: str = "dealer"
    bins: tuple[FieldBins, ...] = ()
    rounding: str = "simple"
    levels: int = 0
    shufflers: tuple[Participant, ...] = ()
    seconds_per_step: int = 600
    version: str = __version__

    def encode(self) -> bytes:
        return msgspec.json.encode(self)

    @cached_property
    def hash(self) -> bytes:
        """The study's identity, 32 bytes: everything but addresses.

        A node that moves is the same node, for its certificate proves its name; so the study stays the same, and asked
        again it costs nothing.
        """
        nodes = tuple(Participant(node.name, "") for node in self.nodes)
        dealer = self.dealer and Participant(self.dealer.name, "")
        named = {
            "dealer": dealer,
            "shufflers": tuple(Participant(each.name, "") for each in self.shufflers),
        }
        return digest(b"umpc study 1", msgspec.structs.replace(self, nodes=nodes, **named).encode())

    @cached_property
    def schema(self) -> Schema:
        return Schema(field.schema() for field in self.fields)

    @cached_property
    def parsed_kernels(self) -> tuple[Kernel, ...]:
        symmetric = not self.two_sample
        return tuple(
            Kernel.from_text(text, self.schema, self.degree, symmetric) for text in self.kernels
        )

    @property
    def two_sample(self) -> bool:
        return self.sampling == "two_sample"

    @property
    def label(self) -> str:
        """The field that tells the two classes apart. Raises: StudyError where there is not just one."""
        public = [field.name for field in self.fields if field.public]
        if len(public) != 1 or len(self.schema[public[0]].categories) != 2:
            raise StudyError(
                f"two_sample sampling takes exactly one public field with two categories, got "
                f"{', '.join(public) or 'no public field'}; mark the label's field with public = true"
            )
        return public[0]

    @cached_property
    def epsilons(self) -> tuple[Fraction, ...]:
        """Each sum's part of ε. Raises: StudyError where the parts do not add up to 1."""
        parts = [exact(part, "split") for part in self.split] or [
            Fraction(1, len(self.kernels))
        ] * len(self.kernels)
        if len(parts) != len(self.kernels) or min(parts) <= 0 or sum(parts) != 1:
            raise StudyError(
                f"split takes {len(self.kernels)} positive part(s) of epsilon, one for each sum, that add up to 1; "
                f'got {", ".join(self.split)}; exact parts are written as "1/3"'
            )
        return tuple(self.exact_epsilon * part for part in parts)

    @cached_property
    def exact_epsilon(self) -> Fraction:
        try:
            return exact(self.epsilon, "epsilon")
        except StudyError as error:
            raise InvalidEpsilon(error.message) from error

    @cached_property
    def exact_delta(self) -> Fraction:
        """The δ that the study asks for; noise of finite bits adds its own."""
        return exact(self.delta, "delta") if self.delta else Fraction(0)

    @property
    def committee_draws(self) -> bool:
        """Whether the noise is drawn under shares."""
        return self.noise in ("in_mpc", "binomial")

    @property
    def noise_of_pairs(self) -> bool:
        """Whether every pair's value gets its own noise, and is released."""
        return self.protocol == "bell-2pc"

    @property
    def one_message(self) -> bool:
        """Whether a node sends one message that is made of its own records, and talks to no other node."""
        return self.protocol in (*ONE_MESSAGE, *SHUFFLED, GOPA, CENTRAL)

    @property
    def asks(self) -> bool:
        """Whether that message leads to a question, whose answer is the node's second and last one."""
        return self.protocol == ASKS

    @property
    def shuffled(self) -> bool:
        """Whether that message goes to two shufflers, who take its parts out of order, and not to the coordinator."""
        return self.protocol in SHUFFLED

    @property
    def in_cells(self) -> bool:
        """Whether records become cells or bins, and the estimate is of those."""
        return self.protocol in (*ONE_MESSAGE, *SHUFFLED)

    @property
    def central(self) -> bool:
        """Whether the coordinator is a trusted curator, to whom every node shows its records."""
        return self.protocol == CENTRAL

    @property
    def honest(self) -> int:
        """h = N − t: the nodes whose noise alone must suffice."""
        return len(self.nodes) - self.max_colluding

    def over_all_sets(self) -> Study:
        """The same study with E = all sets of records."""
        return msgspec.structs.replace(self, edges="all")

    def index_of(self, node: str) -> int:
        for index, participant in enumerate(self.nodes):
            if participant.name == node:
                return index
        raise StudyError(
            f"node {node!r} is not one of the study's nodes: {', '.join(n.name for n in self.nodes)}"
        )

    def check(self) -> Study:
        """Everything that can be said without data. Raises: StudyError and its kinds."""
        if self.version != __version__:
            raise VersionMismatch(
                f"the study is for umpc {self.version}, this process runs umpc {__version__}; install the same version "
                f"everywhere"
            )
        check_rules(self)
        return self


def decode_study(data: bytes) -> Study:
    """A study from its canonical bytes, checked.

    Raises: EncodingError where the bytes are no study or not canonical, else as Study.check.
    """
    if len(data) > MAX_BYTES:
        raise EncodingError(f"a study has at most {MAX_BYTES} bytes, got {len(data)}")
    try:
        version = msgspec.json.decode(data, type=_Version).version
        if version != __version__:
            raise VersionMismatch(
                f"the study is for umpc {version}, this process runs umpc {__version__}; install the same version "
                f"everywhere"
            )
        study = msgspec.json.decode(data, type=Study)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise EncodingError(f"the study's bytes do not decode: {error}") from error
    if study.encode() != data:
        raise EncodingError("the study's bytes are not in canonical form")
    return study.check()


class _Version(msgspec.Struct):
    version: str
