"""The promise of a study in words: to the protected records, to the sites, and what is disclosed.

`StudyProtocol.promise` writes it. Commands, approvals and reports print it, and have no words of
their own. docs/privacy.md proves each sentence.

*Trust.* Trust: whom the sites of a study must trust beside themselves.

Three grades, in ascending order: nobody; helpers, processes without data that collude with nobody;
a curator, one process that sees all records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from umpc.study.report import Report
from umpc.study.settings import HONEST

if TYPE_CHECKING:
    from umpc.study.document import Study

GRADES = ("nobody", "helpers", "curator")


@dataclass(frozen=True)
class Trust:
    """grade: one of GRADES. who: the trusted parties in words, "-" for none."""

    grade: str
    who: str


NOBODY = Trust("nobody", "-")
DEALER = Trust("helpers", "the dealer")
SHUFFLERS = Trust("helpers", "both shufflers")


# --- promise --------------------------------------------------------------------------------------

ALONE = {
    DEALER: "the dealer colludes with nobody",
    SHUFFLERS: "neither shuffler colludes with the coordinator or with the other shuffler",
}
"""The condition on the helpers where everybody follows the protocol."""
OF_LIARS = "the dealer follows the protocol and colludes with nobody"
"""The condition on the dealer, the one helper that a study with lying nodes may have."""


@dataclass(frozen=True)
class PromiseTerms:
    """The facts that a promise depends on. A study states them, and its report repeats them.

    delta: None before a run, where it may depend on numbers of records.
    protected: the records that epsilon is for, in words. is_person: whether they are a person's.
    label: the field that tells two classes apart, or "". where: the condition on records, or "".
    sums: how many noisy sums are released.
    """

    epsilon: float
    delta: float | None
    protected: str
    is_person: bool
    label: str
    where: str
    adversary: str
    max_colluding: int
    nodes: int
    degree: int
    sums: int
    noise: str
    coins: str
    has_dealer: bool

    @classmethod
    def of_study(cls, study: Study) -> PromiseTerms:
        """The terms before a run."""
        return cls(
            epsilon=float(study.exact_epsilon),
            delta=None,
            protected=study.protected,
            is_person=study.people is not None,
            label=study.label if study.two_sample else "",
            where=study.condition.text if study.condition else "",
            adversary=study.adversary,
            max_colluding=study.max_colluding,
            nodes=len(study.nodes),
            degree=study.degree,
            sums=len(study.kernels),
            noise=study.noise,
            coins=study.coins,
            has_dealer=study.dealer is not None,
        )

    @classmethod
    def of_report(cls, report: Report) -> PromiseTerms:
        """The terms of a run, also from a report of an earlier version of this program."""
        public = [values["name"] for values in report.fields if values.get("public")]
        counted = report.first_class_by_node
        is_two_sample = any(counted) or not counted  # a replay knows no counts
        return cls(
            epsilon=report.epsilon,
            delta=report.delta,
            protected=report.protected,
            is_person=report.protected != "one record",
            label=public[0] if public and is_two_sample else "",
            where=report.where,
            adversary=report.adversary,
            max_colluding=report.max_colluding,
            nodes=report.nodes,
            degree=report.degree,
            sums=len(report.sums),
            noise=report.noise,
            coins=report.coins,
            has_dealer=report.preprocessing == "dealer",
        )

    @property
    def unit(self) -> str:
        """The unit that epsilon protects, in one word."""
        return "person" if self.is_person else "record"


@dataclass(frozen=True)
class Promise:
    """The promise of a study, in three lines of whole sentences.

    protected: to each record or person. sites: who may do what, and who is trusted.
    disclosed: what the study releases, and which numbers each site discloses.
    """

    protected: str
    sites: str
    disclosed: str

    @property
    def lines(self) -> tuple[str, str, str]:
        return self.protected, self.sites, self.disclosed

    def __str__(self) -> str:
        return " ".join(self.lines)


def to_the_protected(terms: PromiseTerms, against: str = "") -> str:
    """The promise to each record or person. Args: against: whom it is against, if not everybody."""
    changed = terms.protected if terms.is_person else "this record"
    # δ of finite bits may depend on numbers of records
    if terms.delta is None:
        but = ", but for the probability delta that the report states"
    else:
        but = f", but for a probability of {terms.delta:.2g}" if terms.delta else ""
    size = f"{terms.epsilon:g}"
    sentences = [
        f"To every {terms.unit}{against}: with other values in {changed}, any release would have "
        f"between e^-{size} and e^{size} times its probability{but}.",
        "A person with records at several sites has this epsilon once for each site."
        if terms.is_person
        else "A person with several records has this epsilon once for each record.",
    ]
    if terms.label:
        sentences.append(f"The class, {terms.label!r}, is not protected.")
    if terms.where:
        sentences.append(
            "Fields that a site opens to conditions (public_filters) are not protected."
        )
    return " ".join(sentences)


def to_sites(terms: PromiseTerms, trust: Trust) -> str:
    """The promise of a protocol in which a coalition of limited size keeps epsilon."""
    is_honest = terms.adversary == HONEST
    # docs/privacy.md: each condition is a premise of the proof
    asked = ["everybody follows the protocol"] if is_honest else []
    if trust in ALONE:
        asked.append(ALONE[trust] if is_honest else OF_LIARS)
    given = f"if {' and '.join(asked)}, " if asked else ""
    helpers = "" if trust in ALONE else " There is no dealer."
    if terms.has_dealer and trust not in ALONE:
        helpers = " The dealer deals nothing that the study uses."
    return (
        f"To every site: {given}the coordinator and up to {terms.max_colluding} of {terms.nodes} "
        f"nodes may {_deeds(terms)}: every {terms.unit} at the other nodes keeps epsilon."
        f"{helpers}{_spoiled(terms)}"
    )


def to_sites_alone(terms: PromiseTerms, noise: str) -> str:
    """The promise where a site's own noise suffices. Args: noise: where it is added, in words."""
    return (
        f"To every site: {noise}. The coordinator and all other nodes may {_deeds(terms)}: every "
        f"{terms.unit} keeps epsilon.{_spoiled(terms)}"
    )


def _deeds(terms: PromiseTerms) -> str:
    return "pool what they see" if terms.adversary == HONEST else "send anything"


def _spoiled(terms: PromiseTerms) -> str:
    return "" if terms.adversary == HONEST else " A liar can spoil the result."


def disclosed(terms: PromiseTerms, released: str) -> str:
    """The release, and the exact numbers that a site discloses beside it."""
    fulfil = " that fulfil the condition" if terms.where else ""
    people = f", counting {terms.protected}" if terms.is_person else ""
    classes = f", for each class of {terms.label!r}" if terms.label else ""
    number = f"the exact number of its complete records{fulfil}{people}{classes}"
    return f"The study releases {released}. Each site also discloses {number}."
