"""The study: the one document that coordinator, dealer and every node agree on before anything happens.

It travels as canonical JSON. A hash of it is the study's identity: a node answers with the hash of what it read,
and everything later (joint seed, material, budget, stored result) is bound to it. It holds the kernel as text,
never code.
"""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from functools import cached_property

import msgspec

from umpc import __version__
from umpc.errors import DuplicateParticipant, EncodingError, InvalidEpsilon, StudyError, VersionMismatch
from umpc.mpc.prg import digest
from umpc.studies.central import CENTRAL, MECHANISMS, check_central
from umpc.studies.gopa import GOPA, check_gopa
from umpc.studies.local import ASKS, ONE_MESSAGE, SHUFFLED, check_local
from umpc.studies.parts import FieldBins, FieldText, Participant, exact
from umpc.ustat.estimators import ESTIMATORS
from umpc.ustat.kernel import Kernel
from umpc.ustat.sampling import read_rule
from umpc.ustat.schema import Schema

MAX_BYTES = 1 << 20
MAX_DEGREE = 8
MAX_SUMS = 16
PROTOCOLS = ("u-mpc", "bell-2pc", *ONE_MESSAGE, *SHUFFLED, GOPA, CENTRAL)
PAIR_NOISES = ("pair_laplace", "randomised_response")
NOISES = ("distributed", "in_mpc", "skellam", "binomial", *PAIR_NOISES, "local", "shuffled", GOPA, *MECHANISMS)
BACKENDS = ("shared", "garbled", "none")
PREPROCESSINGS = ("dealer", "none")
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


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
        named = {"dealer": dealer, "shufflers": tuple(Participant(each.name, "") for each in self.shufflers)}
        return digest(b"umpc study 1", msgspec.structs.replace(self, nodes=nodes, **named).encode())

    @cached_property
    def schema(self) -> Schema:
        return Schema(field.schema() for field in self.fields)

    @cached_property
    def parsed_kernels(self) -> tuple[Kernel, ...]:
        symmetric = not self.two_sample
        return tuple(Kernel.from_text(text, self.schema, self.degree, symmetric) for text in self.kernels)

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
        parts = [exact(part, "split") for part in self.split] or [Fraction(1, len(self.kernels))] * len(self.kernels)
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
        raise StudyError(f"node {node!r} is not one of the study's nodes: {', '.join(n.name for n in self.nodes)}")

    def check(self) -> Study:
        """Everything that can be said without data. Raises: StudyError and its kinds."""
        if self.version != __version__:
            raise VersionMismatch(
                f"the study is for umpc {self.version}, this process runs umpc {__version__}; install the same version "
                f"everywhere"
            )
        self._check_participants()
        if self.exact_epsilon <= 0:
            raise InvalidEpsilon(f"epsilon must be positive, got {self.epsilon}; a usual value is 1")
        if not 0 <= self.max_colluding < len(self.nodes):
            raise StudyError(
                f"max_colluding must be between 0 and {len(self.nodes) - 1} for {len(self.nodes)} nodes, "
                f"got {self.max_colluding}"
            )
        self._check_statistic()
        self._check_protocol()
        check_local(self)
        check_gopa(self)
        if self.central:
            check_central(self)
        if not self.one_message:
            self._check_noise()
            self._check_backend()
        if len({field.name for field in self.fields}) != len(self.fields):
            raise StudyError(f"a field is named twice: {', '.join(field.name for field in self.fields)}")
        if not 1 <= self.seconds_per_step <= 86_400:
            raise StudyError(f"seconds_per_step must be between 1 and 86400, got {self.seconds_per_step}")
        read_rule(self.edges)
        _ = self.epsilons, self.parsed_kernels
        return self

    def _check_protocol(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise StudyError(f"protocol must be one of {', '.join(PROTOCOLS)}, got {self.protocol!r}")
        if self.noise_of_pairs and (self.backend, self.degree) != ("garbled", 2):
            raise StudyError(
                f'protocol = "bell-2pc" is of pairs, by backend = "garbled"; got degree {self.degree} and '
                f"{self.backend!r}"
            )

    def _check_noise(self) -> None:
        others = [n for n in NOISES if n not in (*PAIR_NOISES, "local", "shuffled", GOPA, *MECHANISMS)]
        noises = PAIR_NOISES if self.noise_of_pairs else others
        if self.noise not in noises:
            raise StudyError(f'noise of "{self.protocol}" must be one of {", ".join(noises)}, got {self.noise!r}')
        if self.committee_draws and len(self.nodes) < 2:
            raise StudyError(f'noise = "{self.noise}" takes at least two nodes; a single one draws it: "distributed"')
        if (self.noise in ("skellam", "binomial")) != bool(self.delta) and not self.noise_of_pairs:
            raise StudyError(f'delta goes with noise = "skellam" or "binomial"; got {self.delta!r} with {self.noise!r}')
        if self.delta and not 0 < self.exact_delta < 1:
            raise StudyError(f"delta must be between 0 and 1, got {self.delta}; a usual value is 1e-9")

    def _check_backend(self) -> None:
        backends = [backend for backend in BACKENDS if backend != "none"]
        if self.backend not in backends:
            raise StudyError(f"backend must be one of {', '.join(backends)}, got {self.backend!r}")
        if self.preprocessing not in PREPROCESSINGS:
            raise StudyError(f"preprocessing must be one of {', '.join(PREPROCESSINGS)}, got {self.preprocessing!r}")
        if (self.backend == "garbled") != (self.preprocessing == "none"):
            raise StudyError(
                f'backend = "garbled" and preprocessing = "none" go together: garbled edges take nothing from a '
                f"dealer, shared ones cannot do without; got {self.backend!r} with {self.preprocessing!r}"
            )
        if self.preprocessing == "dealer":
            if self.dealer is None:
                raise StudyError('the study names no dealer; name one, or say preprocessing = "none"')
            return
        if self.dealer is not None:
            raise StudyError(f'preprocessing = "none" has no dealer; leave {self.dealer.name!r} out')
        if self.degree > 2:
            raise StudyError(
                f"without a dealer an edge has one or two owners, and a statistic over {self.degree} records can have "
                f'edges of three and more; take preprocessing = "dealer"'
            )

    def _check_statistic(self) -> None:
        if not 1 <= self.degree <= MAX_DEGREE:
            raise StudyError(f"a statistic is over 1 to {MAX_DEGREE} records, got degree {self.degree}")
        if not 1 <= len(self.kernels) <= MAX_SUMS:
            raise StudyError(f"a study releases 1 to {MAX_SUMS} sums, got {len(self.kernels)} kernels")
        if self.estimator not in ESTIMATORS:
            raise StudyError(f"estimator must be one of {', '.join(sorted(ESTIMATORS))}, got {self.estimator!r}")
        if ESTIMATORS[self.estimator].sums != len(self.kernels):
            raise StudyError(
                f"the estimator {self.estimator!r} takes {ESTIMATORS[self.estimator].sums} sum(s), "
                f"the study has {len(self.kernels)} kernel(s)"
            )
        if self.sampling not in ("balanced", "two_sample"):
            raise StudyError(f'sampling must be "balanced" or "two_sample", got {self.sampling!r}')
        if self.two_sample:
            _ = self.label
        if self.two_sample and self.degree != 2:
            raise StudyError(f"two_sample sampling is of pairs, got degree {self.degree}")

    def _check_participants(self) -> None:
        names = [node.name for node in self.nodes] + [self.coordinator]
        names += [self.dealer.name] if self.dealer else []
        names += [shuffler.name for shuffler in self.shufflers]
        for name in names:
            if not _NAME.fullmatch(name):
                raise StudyError(f"a participant's name has lower-case letters, digits and inner dashes, got {name!r}")
        counts = Counter(names)
        for name in names:
            if counts[name] > 1:
                raise DuplicateParticipant(
                    f"two participants are named {name!r}; give each of its participants a name of its own"
                )
        if not self.nodes:
            raise StudyError("a study needs at least one node, got none")


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
