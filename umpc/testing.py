"""Checks taken out, steps replaced, limits made small: the only door by which a test changes umpc.

No command and no configuration reaches this module. No other module imports it, but the one of the
papers' steps. A test shows with it that it would notice a missing check, a liar or broken code:

    with without("an opening fits"):
        ...    the same refusal as before must not come

    with lying("node", own_noise=lambda honest, node, attempt: [0] * attempt.sums):
        ...    all nodes of this process run this function in place of the honest one

    with limited(heartbeat, BEAT_SECONDS=0.01):
        ...    little data and little time reach a limit

A check is an `if` that only raises, or an `except` that names the culprit. `without` compiles its
function anew without it, and puts the new code into the function itself. So every importer of the
function runs it. All contexts are for one thread.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial
from importlib import import_module
from types import CodeType, FunctionType, ModuleType
from typing import Any
from unittest.mock import patch

from umpc.errors import LocalProtocolError

AGREE = "umpc.protocols.base.seed_agreement:SeedAgreement.agree"
LEDGER = "umpc.node.budget.ledger:Ledger"
TRANSFERS = "umpc.mpc.transfers"
CHANNELS = f"{TRANSFERS}.channel_set_up"
GARBLED = "umpc.mpc.garbled"
U_MPC = "umpc.protocols.u_mpc"
NODE = f"{U_MPC}.node:UMpcNode"
GRID = "umpc.protocols.grid"
CHECKED = "umpc.protocols.people.checked"
VERIFIED = f"{GRID}.verified:Verified"
VECTOR = f"{GRID}.masked_form:MaskLayout.read"
PEOPLE = "umpc.people.messages"

CHECKS: dict[str, tuple[str, ...]] = {
    "a certificate lists the study": (
        "may ask other studies",
        "umpc.transport.certificates:SignedIn.check",
    ),
    "packed length": ("bits take", "umpc.crypto.ring:unpack"),
    "packed padding": ("the padding after", "umpc.crypto.ring:unpack"),
    "members are the study's": ("or another entry than", AGREE),
    "the own member is intact": ("or another entry than", AGREE),
    "a member is signed": ("does not fit its member", "umpc.study.attempt:check_member"),
    "an opening fits": ("does not fit its commitment", "umpc.study.attempt:check_openings"),
    "all signed the members": ("has not signed", "umpc.study.attempt:check_signatures"),
    "all signed the attempt": ("has not signed", "umpc.study.attempt:check_signatures"),
    "a key is usable": (
        "unusable",
        "umpc.crypto.zero_shares:KeyAgreement._exchange",
        f"{PEOPLE}:_seal",
    ),
    "there are enough records": ("needs at least", "umpc.ustat.sampling:edge_count"),
    "there are so many edges": ("ask for fewer or all", "umpc.ustat.sampling:_count"),
    "length of keys": ("keys of width", "umpc.mpc.masked.dcf:ComparisonKeys.decode"),
    "length of point keys": ("point keys of", "umpc.mpc.fss.point:PointKeys.decode"),
    "a number is a cell": (
        "a person's number is",
        "umpc.mpc.fss.point:add_up",
        f"{PEOPLE}:open_box",
    ),
    "each place has a key of its own": ("have two places", "umpc.people.places:keys_digest"),
    "a place is the study's": ("a message names place", f"{PEOPLE}:check_place"),
    "the key of a place asks": ("is not signed by the key of", f"{PEOPLE}:check_secret_request"),
    "a place has one device": ("another device has", f"{PEOPLE}:check_device"),
    "a person's secret opens": ("the dealer's answer for place", f"{PEOPLE}:open_secret"),
    "a box opens": ("does not open: it is made", f"{PEOPLE}:open_box"),
    "a person signed the number": ("the message in the box of", f"{PEOPLE}:open_box"),
    "one number a place": ("has sent another message before", f"{PEOPLE}:check_again"),
    "a list is sealed by the other site": ("is not sealed by the other", f"{PEOPLE}:open_list"),
    "a list of rows opens": ("of linked rows does not open", f"{PEOPLE}:open_list"),
    "a list has a number for each row": (
        "was expected from",
        "umpc.people.linked:RowList.check",
    ),
    "both sites have the same keys": (
        "are not those of this site, though",
        "umpc.people.linked:RowList.check_keys",
    ),
    "a list has each place once": ("do not ascend by place", f"{PEOPLE}:both_have"),
    "enough people came": ("the study promises its people", f"{PEOPLE}:counted_statement"),
    "both signed the people": ("not both aggregators have", f"{PEOPLE}:check_counted"),
    "a list is kept as both signed it": (
        "has signed another list of people than the study has",
        f"{PEOPLE}:check_kept",
    ),
    "both say how many people": (
        "and both aggregators signed",
        "umpc.protocols.people.terms:check_count",
    ),
    "shape of a message": ("bytes was due", "umpc.crypto.rounds:check_reply"),
    "length of material": ("material of", "umpc.mpc.masked.material:DealtPart.decode_all"),
    "length of opened bits": ("must take", "umpc.mpc.masked.bit_shares:read_opens"),
    "padding of opened bits": ("the padding", "umpc.mpc.masked.edge_layout:EdgeLayout._loose"),
    "an offer is of points": ("other bytes", f"{CHANNELS}:receive_seeds", f"{CHANNELS}:multiple"),
    "a key is a point": ("other bytes", f"{CHANNELS}:multiple"),
    "a key is not the offer": ("the offered point itself", f"{CHANNELS}:send_seeds"),
    "nothing follows the trees": ("bits after its trees", f"{CHANNELS}:open_sender"),
    "trees of seeds are trees": (
        "trees of seeds that do not fit",
        f"{CHANNELS}:sender_channel",
    ),
    "choices are the same in all digits": (
        "choices of transfers that do not fit",
        f"{TRANSFERS}.correlated_ot:CorrelatedSender._check",
    ),
    "what is told of coins was committed to": (
        "of the check of coins",
        f"{TRANSFERS}.coins_from_transfers:_check_commitments",
    ),
    "numbers of coins are bits": ("is no bit", f"{TRANSFERS}.coins_from_transfers:check_opened"),
    "length of garbled edges": ("garbled edges of", f"{GARBLED}.garbling:GarbledEdges.decode"),
    "colors differ": ("for colors to differ", f"{GARBLED}.garbling:garble"),
    "shape of a total": ("bits came in", VECTOR),
    "shape of a table": ("bits came in", VECTOR),
    "shape of a list": ("bits came in", VECTOR),
    "shape of a proof": ("bits came in", VECTOR),
    "shape of an answer": ("bits came in", VECTOR),
    "all tables are there": ("was due", VECTOR),
    "all proofs are there": ("was due", VECTOR),
    "elements are below p": ("words from p on", "umpc.crypto.prime_field:PrimeField.checked"),
    "all signed the total": ("the same total", "umpc.protocols.grid.attempt:check_signed"),
    "a table is signed": (
        "other bytes than",
        f"{VERIFIED}Transcript.check_opened",
        f"{GRID}.protocol:VerifiedTotal.end_exchange",
    ),
    "a statement is signed": (
        "has not signed",
        f"{VERIFIED}Transcript.questions",
        "umpc.dealer.server:AskedAttempt._made",
    ),
    "the dealer has not answered": (
        "answered before",
        f"{VERIFIED}Dealing.answer",
        f"{CHECKED}:PeopleDealing.answer",
    ),
    "both signed one total": ("of two totals", f"{CHECKED}:PeopleDealing.answer"),
    "a commitment is signed": ("nothing was opened", f"{CHECKED}:CheckedTotal.check_commitments"),
    "both open what they committed to": (
        "what was committed to",
        f"{CHECKED}:CheckedTotal.check",
    ),
    "the total is that of the people": (
        "not that of the people",
        f"{CHECKED}:CheckedTotal.check",
    ),
    "all statements are there": ("has not signed", "umpc.dealer.server:AskedAttempt._made"),
    "all statements name one root": ("of two transcripts", f"{VERIFIED}Dealing.answer"),
    "a proof is as signed": ("other bytes than", f"{VERIFIED}Transcript.check_statements"),
    "the dealer signed its answer": (
        "is not the one that it signed",
        f"{GRID}.verified:check_dealer",
    ),
    "the evidence proves the lie": (
        "do not show whose fault",
        f"{GRID}.evidence:check_evidence",
    ),
    "the answer is about what was signed": (
        "heard another statement",
        f"{VERIFIED}Transcript.check_statements",
    ),
    "products of a node": ("that does not hold", f"{VERIFIED}Transcript.check_proof"),
    "a table is that of its records": (
        "not the histogram of its records",
        f"{GRID}.protocol:VerifiedTotal._check_signed",
    ),
    "classes are as told": (
        "not the histogram of its records",
        f"{GRID}.protocol:VerifiedTotal._check_signed",
    ),
    "the total is that of all tables": (
        "not the sum of the nodes' records",
        f"{GRID}.verified_node:VerifiedTable._check",
    ),
    "the sum is a multiple": ("add up to a multiple", f"{GRID}.protocol:GridCoordinator._totals"),
    "the source is alive": ("again and again", "umpc.dp.random_bits:random_words"),
    "a study is charged once": ("charged before. Ask for", f"{LEDGER}.reserve"),
    "one run at a time": ("another run of the study", f"{LEDGER}.reserve"),
    "delta is reserved once": ("an open reservation without delta", f"{LEDGER}.reserve_delta"),
    "a share is held of a reserved study": ("before a share is held", f"{LEDGER}.hold"),
    "one attempt is charged": ("another one was charged before", f"{LEDGER}.charge"),
    "a charge is of a held attempt": ("was expected before the charge", f"{LEDGER}.charge"),
    "epsilon is left": ("study asks for epsilon", f"{LEDGER}._check_left#insufficient("),
    "delta is left": ("study asks for delta", f"{LEDGER}._check_left#insufficient("),
}
"""Check → words of the message with which it refuses, and the functions that do so.

Where a message is made elsewhere, # and words of the statement that raises follow the function.
"""

Steps = Mapping[str, Mapping[str, str]]
STEPS: Steps = {
    "node": {
        NODE: "__init__ begin own_noise random_words receive_seed toss fields_for protocol "
        "evaluates_in_own_way",
        f"{U_MPC}.node": "zero_shares",
        "umpc.ustat.hypergraph:Hypergraph": "degrees",
        "umpc.protocols.vector.protocol": "clip_columns",
        "umpc.protocols.counts.protocol:CountsNode": "own_noise edge_values",
        f"{TRANSFERS}.coins_from_transfers": "drawn_numbers BitTriples derive chosen",
        f"{TRANSFERS}.correlated_ot:CorrelatedReceiver": "extend",
        f"{TRANSFERS}.correlated_ot:RowHash": "after",
        f"{GARBLED}.sides:Side": "own_bits fork",
        "umpc.node.run.link:PeerLink": "send",
        f"{GRID}.lookup_proof": "inverses make_proof values_of",
        f"{GRID}.verified_node": "derive",
        f"{TRANSFERS}.correlated_ot": "packed_row stretched",
        f"{TRANSFERS}.ot_products": "hash_blocks both_pads",
        f"{TRANSFERS}.batch_columns": "derive",
        f"{TRANSFERS}.batch_columns:LeafStreams": "bytes",
        f"{TRANSFERS}.channels": "keys_of",
        f"{TRANSFERS}.ot_inner_products": "inner_pads",
        "umpc.mpc.triples.cells": "make_triples Stream",
        f"{GARBLED}.sides": "derive fresh_labels make_tables read_tables GateHash FixedKeyHash",
        f"{GRID}.node:NodeTable": "put",
        "umpc.node.people_store": "file_digest",
        "umpc.people.linked:RowList": "of",
        "umpc.protocols.overlap.node": "framed",
        "umpc.protocols.overlap.node:OverlapNode": "own_texts",
        f"{GRID}.node_without_dealer:DealerlessNode": "counted",
        "umpc.protocols.base.seed_agreement": "check_members",
        f"{TRANSFERS}.channels:Channels": "forked",
        "umpc.node.run.prepare": "fresh_delta chain_sender chain_receiver",
    },
    "dealer": {
        "umpc.dealer.material:MaterialDealer": "__init__ frames",
        "umpc.dealer.people": "generate check_secret_request",
        "umpc.mpc.masked.tasks": "one_hot_rows bit_of deal_chunks",
        f"{GRID}.attempt:GridDealing": "__init__ deal_one",
        f"{GRID}.verified": "derive",
    },
    "process": {
        "umpc.api.study": "run_study prepare_study",
        "umpc.cli.doctor": "check_private",
        "umpc.cli.main": "umpc",
        "umpc.cli.server_options": "open_server",
        "umpc.dealer.server": "attempt_of peer_of",
        "umpc.deployment.processes:Deployment": "command",
        "umpc.enrolment.site_side": "post",
        "umpc.hub.server": "peer_of",
        "umpc.node.audit.reading": "seal",
        "umpc.node.audit.trail:AuditTrail": "append",
        "umpc.node.backup.restoring:Restoration": "put",
        "umpc.node.links": "greet_or_fail",
        "umpc.node.run.chunks:RunningChunks": "finish_given",
        "umpc.node.table.object_store:ObjectStore": "read",
        "umpc.node.table.reading": "batches",
        "umpc.planning.reference_table:ReferenceTable": "blocks",
        "umpc.planning.seconds": "simulate measure_machine seconds_of",
        "umpc.transport.authority": "key_digest",
        "umpc.transport.connections": "shown_certificate refuse_if_taken begin_end",
        "umpc.transport.hub.session:Session": "fail",
        "umpc.transport.identity": "check_private keep_watch",
        "umpc.transport.identity:IdentityFolder": "latest",
    },
    "machine": {
        "umpc.cli.memory": "time",
        "umpc.coordinator.conductor": "time",
        "umpc.hub.server": "counted_sleep",
        "umpc.transport.heartbeat": "processor_share",
        "umpc.transport.heartbeat:SharedLook": "received_bytes",
        "umpc.transport.heartbeat:Silence": "heard",
        "umpc.transport.identity": "clock",
        "umpc.native.garbled": "stretch transpose_into make_rows read_rows garble evaluate",
    },
    "coordinator": {
        "umpc.coordinator.links:NodeLink": "ask deliver abort",
        "umpc.protocols.base.coordinator:CoordinatorSide": "agree resume check_signed "
        "check_prepared",
        f"{U_MPC}.protocol": "check_sums",
        "umpc.protocols.auto": "grid_needs pairs_needs",
        f"{U_MPC}.protocol:UMpcCoordinator": "finish",
    },
    "demo": {"umpc.deployment.fork_server": "fork_server"},
    "everybody": {
        "umpc.study.document:Study": "honest epsilons",
        "umpc.study.sizes": "edge_change max_degree two_sample_max_degree",
        "umpc.study.sizes:Sizes": "of",
        "umpc.study.attempt": "digest",
        "umpc.mpc.attempt": "edges_of compile_program noise_plan committee_size",
        f"{GRID}.attempt:GridAttempt": "factor",
        f"{GRID}.lookup_proof": "challenge_x challenge_rho challenge_r root_of inverses_digest",
        "umpc.protocols.vector.protocol": "scales_of",
        "umpc.protocols.counts.protocol": "law_of",
        f"{U_MPC}.noise_binding": "noise_of_sums",
        f"{U_MPC}.protocol": "noise_of_sums",
        "umpc.dp.calibration:DistributedLaplace": "draw tail_bound log_ratio",
        "umpc.dp.skellam:SkellamShare": "draw tail_bound",
        "umpc.dp.skellam:DistributedSkellam": "honest_variances",
        "umpc.dp.committee:CommitteeLaplace": "thresholds",
        "umpc.dp.committee": "threshold_of least_coins",
        CHANNELS: "send_seeds receive_seeds multiple base_multiple",
        f"{TRANSFERS}.channels": "open_sender open_receiver",
        f"{GARBLED}.sides": "open_sender open_receiver",
        "umpc.mpc.masked.material": "derive_each",
        "umpc.mpc.masked.material:SeededPart": "expand_all",
        "umpc.mpc.masked.plan:Plan": "chunk_edges",
        "umpc.mpc.masked.plan:Program": "small_cell chunks_in_flight",
        "umpc.mpc.masked.plan_items": "compare",
        f"{GARBLED}.gates:GateHash": "second permute",
        f"{GARBLED}.piece_tables": "times_alpha",
        "umpc.mpc.masked.edge_layout": "wire_masks",
        "umpc.mpc.masked.cells": "wire_masks",
        "umpc.dealer.material": "wire_masks",
        f"{GRID}.node": "mask_stream",
        CHECKED: "pads",
        "umpc.protocols.people.node": "pads",
        f"{GRID}.attempt": "mask_stream",
        "umpc.ustat.kernel:Kernel": "evaluate",
        "umpc.dp.distributed_gaussian:GaussianShare": "draw",
        "umpc.ustat.kernel": "exact_interval polynomial_of",
        "umpc.ustat.edge_blocks": "carry_out",
        "umpc.ustat.sampling": "random_edges level",
        "umpc.dp.geometric_poisson": "first_accepted",
        "umpc.dp.distributed_gaussian": "first_accepted",
        "umpc.inference.report_inference": "upper_second",
    },
}
"""Role → module or class → the functions, properties and values in it that are steps of the role.

A test names a step without its underscores. A step that stands in several places is one step.
*everybody* computes from public values alone, and each process does it for itself. A
*process* has disk, network and users around it. A *machine* has clocks, counters and compiled code.
"""


Limits = Mapping[str, str]
LIMITS: Limits = {
    "umpc.approval_page.server": "MOST_CONNECTIONS",
    "umpc.cli.memory": "COLLECT_SECONDS",
    "umpc.cli.node_page": "MOST_WAITING",
    "umpc.cli.table": "EDGES_AT_ONCE EXACT_EDGES",
    "umpc.coordinator.client": "PAUSE_SECONDS",
    "umpc.dealer.people": "MOST_PLACES",
    "umpc.dealer.server": "REMEMBERED SMALLEST_TASK",
    "umpc.enrolment.listener": "REQUEST_SECONDS",
    "umpc.enrolment.sign_in": "SECONDS",
    "umpc.hub.relay": "HUB_BYTES",
    "umpc.hub.server": "PULSE_SECONDS SILENT_SECONDS",
    "umpc.monitoring.metrics": "CALL_SECONDS",
    "umpc.mpc.attempt": "FEW_EDGES",
    "umpc.mpc.chunks": "WAVE_CHUNKS",
    "umpc.mpc.garbled.cells": "WINDOW",
    "umpc.mpc.garbled.garbling": "EDGES",
    "umpc.mpc.garbled.plan": "CHECK_ROOM CHOICES_AT_ONCE EDGES LABELS_AT_ONCE MAX_PAYLOAD",
    "umpc.mpc.masked.cells": "FIELDS_BYTES",
    "umpc.mpc.masked.plan": "MATERIAL_BYTES MAX_CHUNK",
    "umpc.mpc.masked.plan_items": "ONE_PIECE PIECE",
    "umpc.mpc.transfers.correlated_ot": "PART",
    "umpc.mpc.transfers.message_shapes": "MAX_PAYLOAD PART",
    "umpc.mpc.transfers.ot_products": "PART",
    "umpc.mpc.triples.plan": "MAX_CHUNK",
    "umpc.native": "CHOSEN LIBRARY VERSION",
    "umpc.native.field": "CHOSEN",
    "umpc.native.garbled": "CHOSEN",
    "umpc.node.approvals": "LOCK_SECONDS MAX_PENDING MAX_PENDING_BYTES",
    "umpc.node.people_store": "BLOCKS_AT_ONCE ROWS_AT_ONCE",
    "umpc.node.records": "PROGRESS_SECONDS",
    "umpc.node.run.chunks": "SMALLEST_TASK",
    "umpc.node.run.link": "FRAME_BYTES MAX_WAITING",
    "umpc.node.table.object_store": "PIECE RETRIES",
    "umpc.people.messages": "PLACES_AT_ONCE",
    "umpc.people_page.server": "MOST_PER_SECOND SILENT_SECONDS",
    "umpc.planning.prediction": "LEAST_A_CELL MOST_DRAWN",
    "umpc.planning.reference_table": "MOST_PAIRS",
    "umpc.planning.seconds": "LONG_ENOUGH NARROWINGS TRIAL_RECORDS",
    "umpc.protocols.grid.cross_terms": "MAX_PAYLOAD MAX_TRANSFERS",
    "umpc.protocols.grid.masked_form": "FRAME_BYTES",
    "umpc.protocols.grid.operators.cuts": "CACHED",
    "umpc.protocols.grid.operators.layout": "CACHED",
    "umpc.protocols.grid.operators.leg": "CHUNK",
    "umpc.transport.blocking": "MESSAGE_SECONDS",
    "umpc.protocols.overlap.messages": "FRAME_BYTES",
    "umpc.protocols.overlap.settings": "LOG_OF_DELTA",
    "umpc.transport.connections": "BEATEN STOPPED",
    "umpc.transport.heartbeat": "BEAT_SECONDS SILENT_SECONDS SURVEY SUSPECT_SECONDS",
    "umpc.transport.hub.connection": "DIAL_SECONDS FIRST_PAUSE TELL_SECONDS TICK_SECONDS",
    "umpc.transport.hub.numbering": "WINDOW",
    "umpc.transport.hub.session": "OPEN_SECONDS PROBE_SECONDS",
    "umpc.transport.identity": "LOOK_SECONDS",
    "umpc.transport.patience": "RUN_QUEUE SHARE_SECONDS",
    "umpc.transport.people_door": "MOST_CONNECTIONS MOST_IN_ALL MOST_LISTS SWEEP_SECONDS",
    "umpc.transport.stream": "CONNECT_SECONDS",
    "umpc.transport.stream_reader": "REASON_SECONDS",
    "umpc.ustat.cell_rows": "AT_ONCE",
    "umpc.ustat.clear": "BLOCK_EDGES",
    "umpc.ustat.error_law": "LEAST_LOGARITHM NOTHING",
    "umpc.ustat.ranges": "CHUNK",
}
"""Module → its limits, waits, choices and flags that a test may make small or fix."""


@contextmanager
def without(check: str) -> Iterator[None]:
    """Run umpc without one of its `CHECKS`. Raises: LocalProtocolError where it is not found."""
    message, *places = CHECKS[check]
    parts = [place.partition("#") for place in places]
    functions = [_function_at(place) for place, _, _ in parts]
    before = [function.__code__ for function in functions]
    for function, (_, _, words) in zip(functions, parts, strict=True):
        function.__code__ = _without(function, words or message)
    try:
        yield
    finally:
        for function, code in zip(functions, before, strict=True):
            function.__code__ = code


@contextmanager
def lying(role: str, /, table: Steps = STEPS, **steps: Callable[..., Any]) -> Iterator[None]:
    """Replace steps of a role, for all of its parties in this process.

    Each function gets the honest one, and then its arguments; of a property, the object. A value
    that is no function, such as a clock, becomes what the function makes of it.

    Raises: LocalProtocolError for a step that the role does not have.
    """
    known = [(owner, name) for owner, names in table[role].items() for name in names.split()]
    unknown = steps.keys() - {name.strip("_") for _, name in known}
    if unknown:
        raise LocalProtocolError(f"{role} has no step {', '.join(sorted(unknown))}")
    with ExitStack() as stack:
        for owner, name in known:
            if step := steps.get(name.strip("_")):
                stack.enter_context(patch.object(at := _owner(owner), name, _lie(at, name, step)))
        yield


@contextmanager
def limited(module: ModuleType, /, table: Limits = LIMITS, **values: Any) -> Iterator[None]:
    """Give limits of a module other values. Raises: LocalProtocolError for one not in `LIMITS`."""
    known = table.get(module.__name__, "").split()
    if unknown := values.keys() - set(known):
        raise LocalProtocolError(f"{module.__name__} has no limit {', '.join(sorted(unknown))}")
    with patch.multiple(module, **values):
        yield


def _lie(owner: Any, name: str, step: Callable[..., Any]) -> Any:
    """The object that stands in the place of an honest function, property or value."""
    honest = inspect.getattr_static(owner, name)
    if isinstance(honest, property):
        return property(partial(step, honest.fget))
    if isinstance(honest, cached_property):
        return property(partial(step, honest.func))
    if isinstance(honest, classmethod):
        return staticmethod(partial(step, honest.__get__(None, owner)))
    if not callable(honest):
        return step(honest)

    def lied(*given: Any, **named: Any) -> Any:
        return step(honest, *given, **named)

    return lied


def _owner(place: str) -> Any:
    """The module, or the class, at "module" or "module:Class"."""
    module, _, path = place.partition(":")
    found: Any = import_module(module)
    for name in path.split(".") if path else ():
        found = inspect.getattr_static(found, name)
    return found


def _function_at(place: str) -> FunctionType:
    """The function at "module:name", or "module:Class.name"."""
    found = _owner(place)
    function = inspect.unwrap(getattr(found, "__func__", found))
    if not isinstance(function, FunctionType) or function.__code__.co_freevars:
        raise LocalProtocolError(f"{place} is no function whose code can be replaced")
    return function


def _without(function: FunctionType, words: str) -> CodeType:
    """The code of a function without its refusals with these words."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    removal = _Removal(words)
    (definition,) = removal.visit(tree).body
    if not removal.count:
        raise LocalProtocolError(f"{function.__qualname__} refuses nothing with {words!r}")
    definition.decorator_list = []
    flags = function.__code__.co_flags & __future__.annotations.compiler_flag
    file = function.__code__.co_filename
    module = compile(ast.fix_missing_locations(tree), file, "exec", flags, dont_inherit=True)
    (code,) = (each for each in module.co_consts if isinstance(each, CodeType))
    return code


class _Removal(ast.NodeTransformer):
    """Takes out each `if` or `except` that does nothing but refuse with these words."""

    def __init__(self, words: str):
        self._words = words
        self.count = 0

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        if node.orelse or not self._refuses(node.body):
            return node
        self.count += 1
        return ast.Expr(node.test)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        self.generic_visit(node)
        if self._refuses(node.body):
            self.count += 1
            node.body = [ast.Raise()]
        return node

    def _refuses(self, body: list[ast.stmt]) -> bool:
        last = body[-1]
        return isinstance(last, ast.Raise) and self._words in ast.unparse(last)
