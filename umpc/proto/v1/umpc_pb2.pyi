from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Step(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STEP_UNSPECIFIED: _ClassVar[Step]
    NODE_SEED: _ClassVar[Step]
    MATERIAL: _ClassVar[Step]
    MASKED_FIELDS: _ClassVar[Step]
    OPEN: _ClassVar[Step]
    OT_OFFER: _ClassVar[Step]
    OT_CHOICE: _ClassVar[Step]
    OT_TREES: _ClassVar[Step]
    OT_EXTEND: _ClassVar[Step]
    LABELS: _ClassVar[Step]
    GARBLED: _ClassVar[Step]
    COINS: _ClassVar[Step]
    SHARES: _ClassVar[Step]
    PAD: _ClassVar[Step]
    HEAP: _ClassVar[Step]
    OT_MULTIPLES: _ClassVar[Step]
    OT_OPEN_BITS: _ClassVar[Step]
    HISTOGRAM: _ClassVar[Step]
    TOTAL: _ClassVar[Step]
    TRIPLES: _ClassVar[Step]
    TOSS: _ClassVar[Step]
    LIST: _ClassVar[Step]
    OPENING: _ClassVar[Step]
    INVERSES: _ClassVar[Step]
    PROOF: _ClassVar[Step]
    ANSWER: _ClassVar[Step]
    STATEMENT: _ClassVar[Step]
    COMMITMENT: _ClassVar[Step]

class HubKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HUB_KIND_UNSPECIFIED: _ClassVar[HubKind]
    HUB_OPEN: _ClassVar[HubKind]
    HUB_ACCEPT: _ClassVar[HubKind]
    HUB_REFUSE: _ClassVar[HubKind]
    HUB_SEALED: _ClassVar[HubKind]
    HUB_RESUME: _ClassVar[HubKind]
STEP_UNSPECIFIED: Step
NODE_SEED: Step
MATERIAL: Step
MASKED_FIELDS: Step
OPEN: Step
OT_OFFER: Step
OT_CHOICE: Step
OT_TREES: Step
OT_EXTEND: Step
LABELS: Step
GARBLED: Step
COINS: Step
SHARES: Step
PAD: Step
HEAP: Step
OT_MULTIPLES: Step
OT_OPEN_BITS: Step
HISTOGRAM: Step
TOTAL: Step
TRIPLES: Step
TOSS: Step
LIST: Step
OPENING: Step
INVERSES: Step
PROOF: Step
ANSWER: Step
STATEMENT: Step
COMMITMENT: Step
HUB_KIND_UNSPECIFIED: HubKind
HUB_OPEN: HubKind
HUB_ACCEPT: HubKind
HUB_REFUSE: HubKind
HUB_SEALED: HubKind
HUB_RESUME: HubKind

class HelloRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class HelloReply(_message.Message):
    __slots__ = ("name", "role", "version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    role: str
    version: str
    def __init__(self, name: _Optional[str] = ..., role: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class ContactRequest(_message.Message):
    __slots__ = ("study",)
    STUDY_FIELD_NUMBER: _ClassVar[int]
    study: bytes
    def __init__(self, study: _Optional[bytes] = ...) -> None: ...

class ContactReply(_message.Message):
    __slots__ = ("contacted",)
    CONTACTED_FIELD_NUMBER: _ClassVar[int]
    contacted: _containers.RepeatedCompositeFieldContainer[Contacted]
    def __init__(self, contacted: _Optional[_Iterable[_Union[Contacted, _Mapping]]] = ...) -> None: ...

class Contacted(_message.Message):
    __slots__ = ("name", "version", "failure")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    failure: Failure
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ...) -> None: ...

class CoordinatorMessage(_message.Message):
    __slots__ = ("propose", "agree", "begin", "evaluate", "release", "abort", "park", "ask", "drop", "part", "total_confirmed", "piece")
    PROPOSE_FIELD_NUMBER: _ClassVar[int]
    AGREE_FIELD_NUMBER: _ClassVar[int]
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    EVALUATE_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    ABORT_FIELD_NUMBER: _ClassVar[int]
    PARK_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    DROP_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    TOTAL_CONFIRMED_FIELD_NUMBER: _ClassVar[int]
    PIECE_FIELD_NUMBER: _ClassVar[int]
    propose: Propose
    agree: Agree
    begin: Begin
    evaluate: Evaluate
    release: Release
    abort: Abort
    park: Park
    ask: Ask
    drop: Drop
    part: Frame
    total_confirmed: TotalConfirmed
    piece: Piece
    def __init__(self, propose: _Optional[_Union[Propose, _Mapping]] = ..., agree: _Optional[_Union[Agree, _Mapping]] = ..., begin: _Optional[_Union[Begin, _Mapping]] = ..., evaluate: _Optional[_Union[Evaluate, _Mapping]] = ..., release: _Optional[_Union[Release, _Mapping]] = ..., abort: _Optional[_Union[Abort, _Mapping]] = ..., park: _Optional[_Union[Park, _Mapping]] = ..., ask: _Optional[_Union[Ask, _Mapping]] = ..., drop: _Optional[_Union[Drop, _Mapping]] = ..., part: _Optional[_Union[Frame, _Mapping]] = ..., total_confirmed: _Optional[_Union[TotalConfirmed, _Mapping]] = ..., piece: _Optional[_Union[Piece, _Mapping]] = ...) -> None: ...

class Piece(_message.Message):
    __slots__ = ("data", "left")
    DATA_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    left: int
    def __init__(self, data: _Optional[bytes] = ..., left: _Optional[int] = ...) -> None: ...

class Propose(_message.Message):
    __slots__ = ("study", "ahead")
    STUDY_FIELD_NUMBER: _ClassVar[int]
    AHEAD_FIELD_NUMBER: _ClassVar[int]
    study: bytes
    ahead: bool
    def __init__(self, study: _Optional[bytes] = ..., ahead: _Optional[bool] = ...) -> None: ...

class Agree(_message.Message):
    __slots__ = ("members",)
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    members: _containers.RepeatedCompositeFieldContainer[Member]
    def __init__(self, members: _Optional[_Iterable[_Union[Member, _Mapping]]] = ...) -> None: ...

class Begin(_message.Message):
    __slots__ = ("openings", "signatures")
    OPENINGS_FIELD_NUMBER: _ClassVar[int]
    SIGNATURES_FIELD_NUMBER: _ClassVar[int]
    openings: _containers.RepeatedScalarFieldContainer[bytes]
    signatures: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, openings: _Optional[_Iterable[bytes]] = ..., signatures: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Evaluate(_message.Message):
    __slots__ = ("signatures",)
    SIGNATURES_FIELD_NUMBER: _ClassVar[int]
    signatures: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, signatures: _Optional[_Iterable[bytes]] = ...) -> None: ...

class TotalConfirmed(_message.Message):
    __slots__ = ("signatures",)
    SIGNATURES_FIELD_NUMBER: _ClassVar[int]
    signatures: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, signatures: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Release(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Park(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Ask(_message.Message):
    __slots__ = ("question",)
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    question: bytes
    def __init__(self, question: _Optional[bytes] = ...) -> None: ...

class Drop(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Abort(_message.Message):
    __slots__ = ("culprit", "reason", "keep")
    CULPRIT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    culprit: str
    reason: str
    keep: bool
    def __init__(self, culprit: _Optional[str] = ..., reason: _Optional[str] = ..., keep: _Optional[bool] = ...) -> None: ...

class NodeMessage(_message.Message):
    __slots__ = ("accepted", "opened", "prepared", "ready", "released", "progress", "failure", "parked", "answer", "held", "part", "total_signed")
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    OPENED_FIELD_NUMBER: _ClassVar[int]
    PREPARED_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    PARKED_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SIGNED_FIELD_NUMBER: _ClassVar[int]
    accepted: Accepted
    opened: Opened
    prepared: Prepared
    ready: Ready
    released: Released
    progress: Progress
    failure: Failure
    parked: Parked
    answer: Answer
    held: Held
    part: Frame
    total_signed: TotalSigned
    def __init__(self, accepted: _Optional[_Union[Accepted, _Mapping]] = ..., opened: _Optional[_Union[Opened, _Mapping]] = ..., prepared: _Optional[_Union[Prepared, _Mapping]] = ..., ready: _Optional[_Union[Ready, _Mapping]] = ..., released: _Optional[_Union[Released, _Mapping]] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ..., parked: _Optional[_Union[Parked, _Mapping]] = ..., answer: _Optional[_Union[Answer, _Mapping]] = ..., held: _Optional[_Union[Held, _Mapping]] = ..., part: _Optional[_Union[Frame, _Mapping]] = ..., total_signed: _Optional[_Union[TotalSigned, _Mapping]] = ...) -> None: ...

class Member(_message.Message):
    __slots__ = ("name", "records", "commitment", "public_key", "first_class", "certificate", "signature")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    COMMITMENT_FIELD_NUMBER: _ClassVar[int]
    PUBLIC_KEY_FIELD_NUMBER: _ClassVar[int]
    FIRST_CLASS_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    name: str
    records: int
    commitment: bytes
    public_key: bytes
    first_class: int
    certificate: bytes
    signature: bytes
    def __init__(self, name: _Optional[str] = ..., records: _Optional[int] = ..., commitment: _Optional[bytes] = ..., public_key: _Optional[bytes] = ..., first_class: _Optional[int] = ..., certificate: _Optional[bytes] = ..., signature: _Optional[bytes] = ...) -> None: ...

class Accepted(_message.Message):
    __slots__ = ("study_hash", "member", "waiting")
    STUDY_HASH_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    study_hash: bytes
    member: Member
    waiting: WaitingAttempt
    def __init__(self, study_hash: _Optional[bytes] = ..., member: _Optional[_Union[Member, _Mapping]] = ..., waiting: _Optional[_Union[WaitingAttempt, _Mapping]] = ...) -> None: ...

class WaitingAttempt(_message.Message):
    __slots__ = ("opened", "prepared", "seconds")
    OPENED_FIELD_NUMBER: _ClassVar[int]
    PREPARED_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    opened: Opened
    prepared: Prepared
    seconds: int
    def __init__(self, opened: _Optional[_Union[Opened, _Mapping]] = ..., prepared: _Optional[_Union[Prepared, _Mapping]] = ..., seconds: _Optional[int] = ...) -> None: ...

class Released(_message.Message):
    __slots__ = ("attempt", "share", "records", "first_class", "sent", "missing", "policy")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    FIRST_CLASS_FIELD_NUMBER: _ClassVar[int]
    SENT_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    attempt: bytes
    share: bytes
    records: int
    first_class: int
    sent: _containers.RepeatedCompositeFieldContainer[Sent]
    missing: _containers.RepeatedScalarFieldContainer[str]
    policy: str
    def __init__(self, attempt: _Optional[bytes] = ..., share: _Optional[bytes] = ..., records: _Optional[int] = ..., first_class: _Optional[int] = ..., sent: _Optional[_Iterable[_Union[Sent, _Mapping]]] = ..., missing: _Optional[_Iterable[str]] = ..., policy: _Optional[str] = ...) -> None: ...

class Held(_message.Message):
    __slots__ = ("attempt", "records", "first_class", "missing")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    FIRST_CLASS_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    attempt: bytes
    records: int
    first_class: int
    missing: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, attempt: _Optional[bytes] = ..., records: _Optional[int] = ..., first_class: _Optional[int] = ..., missing: _Optional[_Iterable[str]] = ...) -> None: ...

class Answer(_message.Message):
    __slots__ = ("answer",)
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    answer: bytes
    def __init__(self, answer: _Optional[bytes] = ...) -> None: ...

class Opened(_message.Message):
    __slots__ = ("opening", "signature")
    OPENING_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    opening: bytes
    signature: bytes
    def __init__(self, opening: _Optional[bytes] = ..., signature: _Optional[bytes] = ...) -> None: ...

class Prepared(_message.Message):
    __slots__ = ("attempt", "bytes_received", "ahead", "signature")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    BYTES_RECEIVED_FIELD_NUMBER: _ClassVar[int]
    AHEAD_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    attempt: bytes
    bytes_received: int
    ahead: bool
    signature: bytes
    def __init__(self, attempt: _Optional[bytes] = ..., bytes_received: _Optional[int] = ..., ahead: _Optional[bool] = ..., signature: _Optional[bytes] = ...) -> None: ...

class TotalSigned(_message.Message):
    __slots__ = ("signature",)
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    signature: bytes
    def __init__(self, signature: _Optional[bytes] = ...) -> None: ...

class Parked(_message.Message):
    __slots__ = ("bytes", "seconds")
    BYTES_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    bytes: int
    seconds: int
    def __init__(self, bytes: _Optional[int] = ..., seconds: _Optional[int] = ...) -> None: ...

class Ready(_message.Message):
    __slots__ = ("bytes_received", "rounds", "sent")
    BYTES_RECEIVED_FIELD_NUMBER: _ClassVar[int]
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    SENT_FIELD_NUMBER: _ClassVar[int]
    bytes_received: int
    rounds: int
    sent: _containers.RepeatedCompositeFieldContainer[Sent]
    def __init__(self, bytes_received: _Optional[int] = ..., rounds: _Optional[int] = ..., sent: _Optional[_Iterable[_Union[Sent, _Mapping]]] = ...) -> None: ...

class Sent(_message.Message):
    __slots__ = ("step", "round", "bytes")
    STEP_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    step: Step
    round: int
    bytes: int
    def __init__(self, step: _Optional[_Union[Step, str]] = ..., round: _Optional[int] = ..., bytes: _Optional[int] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("step", "done", "total")
    STEP_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    step: str
    done: int
    total: int
    def __init__(self, step: _Optional[str] = ..., done: _Optional[int] = ..., total: _Optional[int] = ...) -> None: ...

class Failure(_message.Message):
    __slots__ = ("error", "message", "culprit", "step")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CULPRIT_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    error: str
    message: str
    culprit: str
    step: str
    def __init__(self, error: _Optional[str] = ..., message: _Optional[str] = ..., culprit: _Optional[str] = ..., step: _Optional[str] = ...) -> None: ...

class PeerMessage(_message.Message):
    __slots__ = ("hello", "frame")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    hello: PeerHello
    frame: Frame
    def __init__(self, hello: _Optional[_Union[PeerHello, _Mapping]] = ..., frame: _Optional[_Union[Frame, _Mapping]] = ...) -> None: ...

class PeerHello(_message.Message):
    __slots__ = ("attempt", "channel", "own", "known")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    OWN_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    attempt: bytes
    channel: bytes
    own: NodeStart
    known: NodeStart
    def __init__(self, attempt: _Optional[bytes] = ..., channel: _Optional[bytes] = ..., own: _Optional[_Union[NodeStart, _Mapping]] = ..., known: _Optional[_Union[NodeStart, _Mapping]] = ...) -> None: ...

class NodeStart(_message.Message):
    __slots__ = ("number", "name")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    number: int
    name: bytes
    def __init__(self, number: _Optional[int] = ..., name: _Optional[bytes] = ...) -> None: ...

class DealRequest(_message.Message):
    __slots__ = ("study", "members", "openings", "signatures", "piece")
    STUDY_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    OPENINGS_FIELD_NUMBER: _ClassVar[int]
    SIGNATURES_FIELD_NUMBER: _ClassVar[int]
    PIECE_FIELD_NUMBER: _ClassVar[int]
    study: bytes
    members: _containers.RepeatedCompositeFieldContainer[Member]
    openings: _containers.RepeatedScalarFieldContainer[bytes]
    signatures: _containers.RepeatedScalarFieldContainer[bytes]
    piece: Piece
    def __init__(self, study: _Optional[bytes] = ..., members: _Optional[_Iterable[_Union[Member, _Mapping]]] = ..., openings: _Optional[_Iterable[bytes]] = ..., signatures: _Optional[_Iterable[bytes]] = ..., piece: _Optional[_Union[Piece, _Mapping]] = ...) -> None: ...

class AnswerRequest(_message.Message):
    __slots__ = ("attempt", "statements")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    STATEMENTS_FIELD_NUMBER: _ClassVar[int]
    attempt: bytes
    statements: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, attempt: _Optional[bytes] = ..., statements: _Optional[_Iterable[bytes]] = ...) -> None: ...

class PeopleList(_message.Message):
    __slots__ = ("study", "keys")
    STUDY_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    study: bytes
    keys: bytes
    def __init__(self, study: _Optional[bytes] = ..., keys: _Optional[bytes] = ...) -> None: ...

class PeopleOpening(_message.Message):
    __slots__ = ("progress", "opened", "counted")
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    OPENED_FIELD_NUMBER: _ClassVar[int]
    COUNTED_FIELD_NUMBER: _ClassVar[int]
    progress: Progress
    opened: PeopleOpened
    counted: PeopleCounted
    def __init__(self, progress: _Optional[_Union[Progress, _Mapping]] = ..., opened: _Optional[_Union[PeopleOpened, _Mapping]] = ..., counted: _Optional[_Union[PeopleCounted, _Mapping]] = ...) -> None: ...

class PeopleOpened(_message.Message):
    __slots__ = ("box_key", "certificate", "signature")
    BOX_KEY_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    box_key: bytes
    certificate: bytes
    signature: bytes
    def __init__(self, box_key: _Optional[bytes] = ..., certificate: _Optional[bytes] = ..., signature: _Optional[bytes] = ...) -> None: ...

class PeopleStudy(_message.Message):
    __slots__ = ("hash", "already", "opened")
    HASH_FIELD_NUMBER: _ClassVar[int]
    ALREADY_FIELD_NUMBER: _ClassVar[int]
    OPENED_FIELD_NUMBER: _ClassVar[int]
    hash: bytes
    already: int
    opened: _containers.RepeatedCompositeFieldContainer[PeopleOpened]
    def __init__(self, hash: _Optional[bytes] = ..., already: _Optional[int] = ..., opened: _Optional[_Iterable[_Union[PeopleOpened, _Mapping]]] = ...) -> None: ...

class PeoplePart(_message.Message):
    __slots__ = ("hash", "data")
    HASH_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    hash: bytes
    data: bytes
    def __init__(self, hash: _Optional[bytes] = ..., data: _Optional[bytes] = ...) -> None: ...

class PeopleCounted(_message.Message):
    __slots__ = ("statement", "signature", "certificate")
    STATEMENT_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    statement: bytes
    signature: bytes
    certificate: bytes
    def __init__(self, statement: _Optional[bytes] = ..., signature: _Optional[bytes] = ..., certificate: _Optional[bytes] = ...) -> None: ...

class PeopleSigned(_message.Message):
    __slots__ = ("hash", "statement", "signatures", "certificates")
    HASH_FIELD_NUMBER: _ClassVar[int]
    STATEMENT_FIELD_NUMBER: _ClassVar[int]
    SIGNATURES_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATES_FIELD_NUMBER: _ClassVar[int]
    hash: bytes
    statement: bytes
    signatures: _containers.RepeatedScalarFieldContainer[bytes]
    certificates: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, hash: _Optional[bytes] = ..., statement: _Optional[bytes] = ..., signatures: _Optional[_Iterable[bytes]] = ..., certificates: _Optional[_Iterable[bytes]] = ...) -> None: ...

class SecretsRequest(_message.Message):
    __slots__ = ("hash", "requests")
    HASH_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    hash: bytes
    requests: _containers.RepeatedCompositeFieldContainer[SecretRequest]
    def __init__(self, hash: _Optional[bytes] = ..., requests: _Optional[_Iterable[_Union[SecretRequest, _Mapping]]] = ...) -> None: ...

class SecretRequest(_message.Message):
    __slots__ = ("place", "device", "signature")
    PLACE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    place: int
    device: bytes
    signature: bytes
    def __init__(self, place: _Optional[int] = ..., device: _Optional[bytes] = ..., signature: _Optional[bytes] = ...) -> None: ...

class SubmitRequest(_message.Message):
    __slots__ = ("hash", "boxes")
    HASH_FIELD_NUMBER: _ClassVar[int]
    BOXES_FIELD_NUMBER: _ClassVar[int]
    hash: bytes
    boxes: _containers.RepeatedCompositeFieldContainer[PersonBox]
    def __init__(self, hash: _Optional[bytes] = ..., boxes: _Optional[_Iterable[_Union[PersonBox, _Mapping]]] = ...) -> None: ...

class PersonBox(_message.Message):
    __slots__ = ("place", "box")
    PLACE_FIELD_NUMBER: _ClassVar[int]
    BOX_FIELD_NUMBER: _ClassVar[int]
    place: int
    box: bytes
    def __init__(self, place: _Optional[int] = ..., box: _Optional[bytes] = ...) -> None: ...

class PeopleReplies(_message.Message):
    __slots__ = ("replies",)
    REPLIES_FIELD_NUMBER: _ClassVar[int]
    replies: _containers.RepeatedCompositeFieldContainer[PersonReply]
    def __init__(self, replies: _Optional[_Iterable[_Union[PersonReply, _Mapping]]] = ...) -> None: ...

class PersonReply(_message.Message):
    __slots__ = ("data", "failure")
    DATA_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    failure: Failure
    def __init__(self, data: _Optional[bytes] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ...) -> None: ...

class ShuffleRequest(_message.Message):
    __slots__ = ("begin", "frame")
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    begin: DealRequest
    frame: Frame
    def __init__(self, begin: _Optional[_Union[DealRequest, _Mapping]] = ..., frame: _Optional[_Union[Frame, _Mapping]] = ...) -> None: ...

class ShuffleReply(_message.Message):
    __slots__ = ("attempt", "delivered")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    attempt: bytes
    delivered: bool
    def __init__(self, attempt: _Optional[bytes] = ..., delivered: _Optional[bool] = ...) -> None: ...

class OrderRequest(_message.Message):
    __slots__ = ("study", "attempt", "seed")
    STUDY_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    study: bytes
    attempt: bytes
    seed: bytes
    def __init__(self, study: _Optional[bytes] = ..., attempt: _Optional[bytes] = ..., seed: _Optional[bytes] = ...) -> None: ...

class OrderReply(_message.Message):
    __slots__ = ("attempt",)
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    attempt: bytes
    def __init__(self, attempt: _Optional[bytes] = ...) -> None: ...

class CollectRequest(_message.Message):
    __slots__ = ("study", "attempt")
    STUDY_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    study: bytes
    attempt: bytes
    def __init__(self, study: _Optional[bytes] = ..., attempt: _Optional[bytes] = ...) -> None: ...

class CollectReply(_message.Message):
    __slots__ = ("run", "frame")
    RUN_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    run: bytes
    frame: Frame
    def __init__(self, run: _Optional[bytes] = ..., frame: _Optional[_Union[Frame, _Mapping]] = ...) -> None: ...

class Delivery(_message.Message):
    __slots__ = ("attempt", "members", "openings", "masked", "seed", "signatures", "policy")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    OPENINGS_FIELD_NUMBER: _ClassVar[int]
    MASKED_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    SIGNATURES_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    attempt: bytes
    members: _containers.RepeatedCompositeFieldContainer[Member]
    openings: _containers.RepeatedScalarFieldContainer[bytes]
    masked: bytes
    seed: bytes
    signatures: _containers.RepeatedScalarFieldContainer[bytes]
    policy: str
    def __init__(self, attempt: _Optional[bytes] = ..., members: _Optional[_Iterable[_Union[Member, _Mapping]]] = ..., openings: _Optional[_Iterable[bytes]] = ..., masked: _Optional[bytes] = ..., seed: _Optional[bytes] = ..., signatures: _Optional[_Iterable[bytes]] = ..., policy: _Optional[str] = ...) -> None: ...

class HubFrame(_message.Message):
    __slots__ = ("join", "welcome", "envelope", "notice", "pulse", "leave", "batch")
    JOIN_FIELD_NUMBER: _ClassVar[int]
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    ENVELOPE_FIELD_NUMBER: _ClassVar[int]
    NOTICE_FIELD_NUMBER: _ClassVar[int]
    PULSE_FIELD_NUMBER: _ClassVar[int]
    LEAVE_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    join: HubJoin
    welcome: HubWelcome
    envelope: HubEnvelope
    notice: HubNotice
    pulse: HubPulse
    leave: HubLeave
    batch: HubBatch
    def __init__(self, join: _Optional[_Union[HubJoin, _Mapping]] = ..., welcome: _Optional[_Union[HubWelcome, _Mapping]] = ..., envelope: _Optional[_Union[HubEnvelope, _Mapping]] = ..., notice: _Optional[_Union[HubNotice, _Mapping]] = ..., pulse: _Optional[_Union[HubPulse, _Mapping]] = ..., leave: _Optional[_Union[HubLeave, _Mapping]] = ..., batch: _Optional[_Union[HubBatch, _Mapping]] = ...) -> None: ...

class HubJoin(_message.Message):
    __slots__ = ("instance", "listens")
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    LISTENS_FIELD_NUMBER: _ClassVar[int]
    instance: bytes
    listens: bool
    def __init__(self, instance: _Optional[bytes] = ..., listens: _Optional[bool] = ...) -> None: ...

class HubWelcome(_message.Message):
    __slots__ = ("grace_seconds",)
    GRACE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    grace_seconds: int
    def __init__(self, grace_seconds: _Optional[int] = ...) -> None: ...

class HubPulse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class HubLeave(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class HubBatch(_message.Message):
    __slots__ = ("frames",)
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    frames: _containers.RepeatedCompositeFieldContainer[HubFrame]
    def __init__(self, frames: _Optional[_Iterable[_Union[HubFrame, _Mapping]]] = ...) -> None: ...

class HubMember(_message.Message):
    __slots__ = ("role", "name", "instance")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    role: str
    name: str
    instance: bytes
    def __init__(self, role: _Optional[str] = ..., name: _Optional[str] = ..., instance: _Optional[bytes] = ...) -> None: ...

class HubEnvelope(_message.Message):
    __slots__ = ("source", "target", "session", "kind", "number", "body")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    source: HubMember
    target: HubMember
    session: bytes
    kind: HubKind
    number: int
    body: bytes
    def __init__(self, source: _Optional[_Union[HubMember, _Mapping]] = ..., target: _Optional[_Union[HubMember, _Mapping]] = ..., session: _Optional[bytes] = ..., kind: _Optional[_Union[HubKind, str]] = ..., number: _Optional[int] = ..., body: _Optional[bytes] = ...) -> None: ...

class HubHandshake(_message.Message):
    __slots__ = ("certificate", "key", "signature")
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    certificate: bytes
    key: bytes
    signature: bytes
    def __init__(self, certificate: _Optional[bytes] = ..., key: _Optional[bytes] = ..., signature: _Optional[bytes] = ...) -> None: ...

class HubNotice(_message.Message):
    __slots__ = ("kind", "member", "session")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        KIND_UNSPECIFIED: _ClassVar[HubNotice.Kind]
        ABSENT: _ClassVar[HubNotice.Kind]
        GONE: _ClassVar[HubNotice.Kind]
        CONGESTED: _ClassVar[HubNotice.Kind]
        AWAY: _ClassVar[HubNotice.Kind]
    KIND_UNSPECIFIED: HubNotice.Kind
    ABSENT: HubNotice.Kind
    GONE: HubNotice.Kind
    CONGESTED: HubNotice.Kind
    AWAY: HubNotice.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    kind: HubNotice.Kind
    member: HubMember
    session: bytes
    def __init__(self, kind: _Optional[_Union[HubNotice.Kind, str]] = ..., member: _Optional[_Union[HubMember, _Mapping]] = ..., session: _Optional[bytes] = ...) -> None: ...

class HubEnd(_message.Message):
    __slots__ = ("code", "details", "words")
    CODE_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    WORDS_FIELD_NUMBER: _ClassVar[int]
    code: int
    details: str
    words: _containers.RepeatedCompositeFieldContainer[HubWord]
    def __init__(self, code: _Optional[int] = ..., details: _Optional[str] = ..., words: _Optional[_Iterable[_Union[HubWord, _Mapping]]] = ...) -> None: ...

class HubWord(_message.Message):
    __slots__ = ("key", "text")
    KEY_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    key: str
    text: str
    def __init__(self, key: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class HubStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class HubStatusReply(_message.Message):
    __slots__ = ("seats", "seconds", "waiting", "memory", "most_memory")
    SEATS_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    MOST_MEMORY_FIELD_NUMBER: _ClassVar[int]
    seats: _containers.RepeatedCompositeFieldContainer[HubSeat]
    seconds: int
    waiting: int
    memory: int
    most_memory: int
    def __init__(self, seats: _Optional[_Iterable[_Union[HubSeat, _Mapping]]] = ..., seconds: _Optional[int] = ..., waiting: _Optional[int] = ..., memory: _Optional[int] = ..., most_memory: _Optional[int] = ...) -> None: ...

class HubSeat(_message.Message):
    __slots__ = ("role", "name", "listens", "seconds", "waiting", "relayed", "sent", "silent")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    LISTENS_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    RELAYED_FIELD_NUMBER: _ClassVar[int]
    SENT_FIELD_NUMBER: _ClassVar[int]
    SILENT_FIELD_NUMBER: _ClassVar[int]
    role: str
    name: str
    listens: bool
    seconds: int
    waiting: int
    relayed: int
    sent: int
    silent: int
    def __init__(self, role: _Optional[str] = ..., name: _Optional[str] = ..., listens: _Optional[bool] = ..., seconds: _Optional[int] = ..., waiting: _Optional[int] = ..., relayed: _Optional[int] = ..., sent: _Optional[int] = ..., silent: _Optional[int] = ...) -> None: ...

class Frame(_message.Message):
    __slots__ = ("step", "round", "owners", "chunk", "count", "width", "payload", "more")
    STEP_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    step: Step
    round: int
    owners: _containers.RepeatedScalarFieldContainer[int]
    chunk: int
    count: int
    width: int
    payload: bytes
    more: _containers.RepeatedCompositeFieldContainer[Frame]
    def __init__(self, step: _Optional[_Union[Step, str]] = ..., round: _Optional[int] = ..., owners: _Optional[_Iterable[int]] = ..., chunk: _Optional[int] = ..., count: _Optional[int] = ..., width: _Optional[int] = ..., payload: _Optional[bytes] = ..., more: _Optional[_Iterable[_Union[Frame, _Mapping]]] = ...) -> None: ...
