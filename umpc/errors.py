"""Every failure of umpc: its class and its exit code.

UmpcError
├── StudyError                  the study document is wrong
│   ├── DuplicateParticipant    two nodes with one name
│   ├── KernelError             the kernel cannot be computed as written
│   ├── RangeError              a sum or a value does not fit; names the bound to change
│   ├── InvalidEpsilon          epsilon is unreadable, or out of the allowed range
│   ├── VersionMismatch         two processes run different software
│   └── TooFewRecords           the nodes have too few records together
├── ConfigError                 a site's own configuration is wrong
├── DataError                   a site's table does not fit the study's schema
│   ├── UnknownField            the schema or the table lacks a field
│   ├── NotNumeric              most values of a field do not fit it, such as texts for numbers
│   ├── OutOfBounds             a value is outside its field's bounds
│   ├── EmptyTable              the table has no record
│   └── TooManySchemas          a node was asked with too many different schemas
├── DpError                     the privacy budget or a site's rules do not allow the study
│   ├── InsufficientBudget      a site has too little budget left; names what is left and asked
│   ├── LedgerError             the ledger is damaged or in an impossible state
│   ├── AlreadyReleased         a site released the study before, maybe in another attempt
│   ├── AlreadyRunning          another run of the same study is under way at a site
│   ├── PolicyRefused           a rule of a site's administrator forbids it; names the rule
│   ├── ApprovalPending         a site's administrator has yet to accept the study
│   ├── ApprovalError           the approvals file is unusable, or not exactly one study matches
│   └── AuditError              the audit trail is damaged, or the disk refuses a row
├── MpcError                    a protocol between processes was broken
│   ├── LocalProtocolError      this process broke it: a bug of umpc
│   ├── RemoteProtocolError     a peer broke it; names culprit and step
│   ├── EncodingError           bytes that do not decode
│   ├── ImpossibleResult        a result that no records and no noise can give
│   └── FailedCheck             a check between nodes failed; nothing says who deviated
│       └── ProvenLie           a process lied, and what it signed proves that to everybody
├── TransportError              the network or a certificate failed
│   ├── CertificateError        wrong, expired, unknown or wrong-role certificate
│   ├── AddressInUse            another process listens on the address
│   ├── PeerUnavailable         a peer could not be reached
│   ├── PeerLost                a peer was connected and went away
│   └── StepTimeout             a step took longer than its deadline
├── MessageRefused              a person's message or token is not taken; says why
├── StudyAborted                another participant ended the study
└── PreparationError            a site cannot keep a study that is prepared ahead
    └── PreparationLost         a site no longer has what was prepared for the study

A message says what was expected, what came, from whom, and what to do now. It never holds a data
value, a share, a key or a noise value. Everything that only a site's administrator may read goes
into `detail`. A process writes `detail` to its own log and never sends it.
"""

from __future__ import annotations

from fractions import Fraction


def installing(extra: str) -> str:
    """Return how an optional part is installed. No package registry has umpc."""
    return (
        f"install it with `pip install '.[{extra}]'` in a clone of umpc, or with its wheel file: "
        f"`pip install 'umpc-….whl[{extra}]'`"
    )


class UmpcError(Exception):
    """Base of all failures.

    Args:
        message: public text, for everybody.
        culprit: the name of the process at fault, if it is known.
        step: the step of the study that failed.
        detail: text for the log of this process only.
    """

    exit_code = 1

    def __init__(
        self, message: str, *, culprit: str | None = None, step: str | None = None, detail: str = ""
    ):
        super().__init__(message)
        self.message = message
        self.culprit = culprit
        self.step = step
        self.detail = detail


class StudyError(UmpcError):
    exit_code = 10


class DuplicateParticipant(StudyError):
    exit_code = 11


class KernelError(StudyError):
    exit_code = 12


class RangeError(StudyError):
    exit_code = 13


class InvalidEpsilon(StudyError):
    exit_code = 14


class VersionMismatch(StudyError):
    exit_code = 15


class TooFewRecords(StudyError):
    exit_code = 16


class ConfigError(UmpcError):
    exit_code = 20


class DataError(UmpcError):
    exit_code = 21


class UnknownField(DataError):
    exit_code = 22


class NotNumeric(DataError):
    exit_code = 23


class OutOfBounds(DataError):
    exit_code = 25


class EmptyTable(DataError):
    exit_code = 26


class TooManySchemas(DataError):
    exit_code = 27


class DpError(UmpcError):
    exit_code = 30


class InsufficientBudget(DpError):
    """The ledger sets the balance. An error that came over the network has none."""

    exit_code = 31
    spent: Fraction
    reserved: Fraction
    left: Fraction
    asked: Fraction


class LedgerError(DpError):
    exit_code = 32


class AlreadyReleased(DpError):
    exit_code = 33


class PolicyRefused(DpError):
    exit_code = 34


class ApprovalPending(DpError):
    """waiting: the sites that have yet to decide, as the coordinator knows them."""

    exit_code = 35
    waiting: tuple[str, ...] = ()


class ApprovalError(DpError):
    exit_code = 36


class AuditError(DpError):
    exit_code = 37


class AlreadyRunning(DpError):
    exit_code = 38


class MpcError(UmpcError):
    exit_code = 40


class LocalProtocolError(MpcError):
    exit_code = 41


class RemoteProtocolError(MpcError):
    exit_code = 42


class EncodingError(MpcError):
    exit_code = 43


class ImpossibleResult(MpcError):
    """The message never holds the result: a liar may have put a record's value there."""

    exit_code = 44


class FailedCheck(MpcError):
    exit_code = 45


class ProvenLie(FailedCheck):
    """evidence: what the liar signed (`protocols/grid/evidence.py`). It is never sent."""

    exit_code = 46
    evidence: bytes = b""


class TransportError(UmpcError):
    exit_code = 50


class CertificateError(TransportError):
    exit_code = 51


class AddressInUse(TransportError):
    exit_code = 52


class PeerUnavailable(TransportError):
    exit_code = 53


class PeerLost(TransportError):
    exit_code = 54


class StepTimeout(TransportError):
    exit_code = 55


class StudyAborted(UmpcError):
    exit_code = 60


class MessageRefused(UmpcError):
    exit_code = 61


class PreparationError(UmpcError):
    exit_code = 70


class PreparationLost(PreparationError):
    exit_code = 71


def error_classes() -> dict[str, type[UmpcError]]:
    """Every class by its name. On the wire, a failure is named by its class."""
    found: dict[str, type[UmpcError]] = {}
    pending: list[type[UmpcError]] = [UmpcError]
    while pending:
        cls = pending.pop()
        found[cls.__name__] = cls
        pending.extend(cls.__subclasses__())
    return found


def told_class(name: str) -> type[UmpcError] | None:
    """The class of a failure that another process reports: its word alone proves no lie."""
    found = error_classes().get(name)
    return FailedCheck if found is ProvenLie else found
