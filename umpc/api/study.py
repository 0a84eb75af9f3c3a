"""`umpc.Study`: a study against real nodes, from Python. The commands are made of it.

Modules that only some calls need are loaded there, because `umpc study run` starts with this one.

*Event loop.* Run a coroutine from plain code, also where an event loop runs already, as in a
notebook.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from umpc.api.entries import (
    Asked,
    PythonKernel,
    columns_asked,
    plain,
    study_entries,
    study_file,
)
from umpc.coordinator.client import (
    RETURN_SECONDS,
    Contact,
    contact_all,
    prepare_study,
    run_study,
)
from umpc.coordinator.conductor import Preparation
from umpc.coordinator.links import Tell, silent
from umpc.coordinator.studyfile import StudyFile, load_study_file
from umpc.coordinator.studyfile_text import study_text, write_study_file
from umpc.errors import ProvenLie, StudyError, UmpcError
from umpc.protocols.registry import check_new_run
from umpc.study.attempt import Attempt
from umpc.study.document import Study
from umpc.study.report import Report
from umpc.text_file import keep_evidence
from umpc.transport.identity import Identity, due, load_identity

if TYPE_CHECKING:
    from umpc.api.description import Line
    from umpc.api.fields import Bounds
    from umpc.api.result import Result
    from umpc.planning.study_plan import StudyPlan

Participants = Mapping[str, str]
"""Name in its certificate → address of a process."""


class ProposedStudy:
    """A study that a statistician proposes to the sites' nodes. `umpc.Study` is its public name.

        study = umpc.Study(
            "kendall-2026", "kendall_tau", ["age", "balance"], epsilon=1,
            bounds={"age": (0, 127, 1), "balance": (-10000, 110000, "0.01")},
            nodes={"north": "north.example.org:7100", "south": "south.example.org:7100"},
            dealer={"dealer": "dealer.example.org:7100"}, identity="coordinator")
        study.plan(records=[300, 200])
        result = study.run()

    Args:
        name: a new name is a new study, with new noise and a new charge.
        statistic: of the library, or a function decorated with `umpc.kernel`; or a list of several
            statistics of the library, each with its columns.
        columns: the fields that the statistic takes, in its order.
        bounds: column → (lower, upper, resolution) or a list of categories. The resolution says how
            precise values are: 1 for whole numbers.
        epsilon: the privacy of the result, against replacing one record.
        nodes: name → address of each site's node.
        identity: the coordinator's folder with ca.pem, cert.pem and key.pem.
        label: for a statistic of two classes, its public label and the class that should score
            higher; for a kernel of Python, the class of its first record.
        dealer, shufflers: name → address of the processes that the protocol needs.
        settings: any further keys of a study file, which `umpc study --help` lists.
    Raises: StudyError naming the key that is wrong, and its kinds.
    """

    returning: float = RETURN_SECONDS
    """Seconds for which a run waits for sites that were lost after they were ready."""

    def __init__(
        self,
        name: str,
        statistic: Asked,
        columns: Sequence[str] | None = None,
        *,
        bounds: Mapping[str, Bounds],
        epsilon: Any,
        nodes: Participants,
        identity: str | Path,
        label: tuple[str, str] | None = None,
        dealer: Participants | None = None,
        shufflers: Participants | None = None,
        **settings: Any,
    ):
        from umpc.api.fields import checked_label, fields_of, with_label

        label = checked_label(label)
        columns, names = columns_asked(statistic, columns, bounds, label and label[0], settings)
        is_own = isinstance(statistic, PythonKernel)
        labelled = with_label(bounds, label, {}, named_last=not is_own)
        fields = fields_of(names, labelled, {}, label and label[0])
        dealers = participants(dealer or {})
        if len(dealers) > 1:
            raise StudyError(f"one dealer was expected, got {', '.join(dealer or {})}")
        self._entries = study_entries(
            statistic,
            columns,
            fields,
            name=name,
            epsilon=epsilon,
            nodes=participants(nodes),
            identity=str(identity),
            dealer=dealers[0] if dealers else None,
            shufflers=participants(shufflers or {}),
            **{key: plain(value) for key, value in settings.items()},
        )
        self.file: StudyFile = study_file(self._entries, statistic)

    @classmethod
    def load(cls, path: str | Path) -> ProposedStudy:
        """The study of a study.toml. Raises: StudyError naming file and key."""
        study = cls.__new__(cls)
        study._entries = {}
        study.file = load_study_file(Path(path))
        return study

    def save(self, folder: str | Path) -> Path:
        """Write study.toml into a folder, for the command line.

        Raises: StudyError for a study with a kernel of Python, or one that was loaded from a file.
        """
        return write_study_file(Path(folder), self._as_file())

    def text(self, about: Mapping[str, str]) -> str:
        """The text of its study.toml. Args: about: key → a comment. Raises: as `save`."""
        return study_text(self._as_file(), about)

    def _as_file(self) -> dict[str, Any]:
        if not self._entries or "kernel" in self._entries:
            raise StudyError(
                "a study made of Python arguments with a statistic of the library was expected: "
                "copy the file of any other one, with its kernel's file"
            )
        return self._entries

    # --- what it is ----------------------------------------------------------------------------

    @cached_property
    def identity(self) -> Identity:
        """The coordinator's certificates and key. Raises: CertificateError."""
        return load_identity(self.file.identity, "coordinator")

    @cached_property
    def document(self) -> Study:
        """The checked document that all sites sign. Raises: StudyError, CertificateError."""
        return self.file.study(self.identity.name)

    @property
    def name(self) -> str:
        return self.file.entries.name

    @property
    def chosen(self) -> str:
        """The reason for the protocol, where the study left it open; else empty."""
        return self.file.chosen

    def due(self) -> list[str]:
        """Sentences about the coordinator's certificates that end soon."""
        return list(due(self.identity))

    # --- before it runs ------------------------------------------------------------------------

    def plan(
        self,
        records: Sequence[int] | str,
        like: str | Path | None = None,
        *,
        delay: float = 10.0,
        bandwidth: float = 100.0,
        tell: Callable[[str], None] = lambda text: None,
    ) -> StudyPlan:
        """Predict errors, rounds, bytes and seconds, as `umpc plan` does. No site is asked.

        Args:
            records: each node's number of records.
            like: a CSV file like the sites' own, for errors that depend on data.
            delay: between any two sites, one way, in milliseconds. bandwidth: in megabits a second.
        """
        from umpc.planning.seconds import Network
        from umpc.planning.study_plan import plan_study

        network = Network(delay / 1e3, bandwidth * 125_000)
        file = None if like is None else Path(like)
        return plan_study(self.file, _counts(records), network, file, tell=tell)

    def check(self, records: Sequence[int] | str | None = None) -> list[Line]:
        """Describe the study in lines of a label and a text. No site is asked.

        Args: records: each node's number of records, to predict what a run costs as well.
        Raises: StudyError for what a new study may not have; RangeError where a field's bounds do
            not fit the statistic; ConfigError for an address at which nobody can be called.
        """
        from umpc.api.description import describe_addresses, describe_prediction, describe_study

        check_new_run(self.document)
        lines = [*describe_study(self.document), *describe_addresses(self.document)]
        if self.chosen:
            lines.append(("chosen", self.chosen))
        if records is not None:
            lines += describe_prediction(self.document, _counts(records))
        return lines

    def contact(self) -> tuple[list[Contact], list[Contact]]:
        """Call all processes: who answers the coordinator, and whom each node reaches."""
        return run_now(contact_all(self.document, self.identity))

    # --- the run -------------------------------------------------------------------------------

    def prepare(self, *, progress: bool = True) -> Preparation:
        """Do all work that needs no data, so that the run takes moments.

        Args: progress: whether steps are shown on standard error, or in the notebook.
        Raises: UmpcError naming who failed.
        """
        return run_now(self.prepare_async(progress=progress))

    async def prepare_async(self, *, progress: bool = True) -> Preparation:
        """`prepare` for an event loop."""
        document = self.document
        with self._led(progress=progress) as led:
            return await prepare_study(document, self.identity, **led)

    def run(self, *, progress: bool = True) -> Result:
        """Run the study. One that ran before returns its stored result and costs nothing.

        A site that is lost after it was ready has `returning` seconds to start again.

        Args: progress: whether steps are shown on standard error, or in the notebook.
        Raises: UmpcError naming who failed; then nothing was released, except as it says.
        """
        return run_now(self.run_async(progress=progress))

    async def run_async(self, *, progress: bool = True) -> Result:
        """`run` for an event loop."""
        report = await self._report(progress=progress)
        from umpc.api.result import Result

        return Result(report)

    def report(self, *, progress: bool = True) -> Report:
        """Run the study as `run` does, and return the report alone."""
        return run_now(self._report(progress=progress))

    async def _report(self, *, progress: bool) -> Report:
        document = self.document
        with self._led(progress=progress) as led:
            told = led.pop("expect", None)

            def expect(attempt: Attempt) -> None:
                if told is not None:
                    told(attempt)
                import_module("umpc.api.result")  # while the run waits for the nodes

            if document.settings.shares_tables:
                document = await self._counted(led.get("tell"))
            led |= {"expect": expect, "returning": self.returning}
            try:
                return await run_study(document, self.identity, **led)
            except ProvenLie as lie:
                if not self._entries:  # the study is a file
                    lie.detail = keep_evidence(self.file.path, lie.evidence)
                raise

    async def _counted(self, tell: Tell | None) -> Study:
        """The study of those people who are counted now; a list of them is written beside it.

        Where rows are linked, there is no list.
        """
        from umpc.coordinator.people import count_people, link_rows

        if self.document.protocol == "linked":
            return await link_rows(self.document, self.identity, tell or silent)
        counted, rows = await count_people(self.document, self.identity, tell or silent)
        if not self._entries:  # the study is a file
            from umpc.people.device import write_counted

            write_counted(self.file.path.with_suffix(".counted.csv"), rows)
        return counted

    @contextmanager
    def _led(self, *, progress: bool) -> Iterator[dict[str, Any]]:
        """The last arguments of `prepare_study` and `run_study`."""
        if not progress:
            yield {}
            return
        from umpc.api.progress import ProgressShow

        with ProgressShow(nodes=[node.name for node in self.document.nodes]) as show:
            yield {"tell": show.tell, "expect": show.expect, "note": show.note}

    def __repr__(self) -> str:
        entries = self.file.entries
        nodes = ", ".join(node.name for node in entries.nodes)
        several = ", ".join(each.statistic for each in entries.statistics or ())
        asked = entries.statistic or entries.kernel or several
        return f"<umpc.Study {self.name!r}: {asked}, epsilon {entries.epsilon}, nodes {nodes}>"


def participants(processes: Participants) -> list[dict[str, str]]:
    """Processes as a study file lists them."""
    return [{"name": name, "address": address} for name, address in processes.items()]


def _counts(records: Sequence[int] | str) -> str:
    """Numbers of records as the command line has them."""
    return records if isinstance(records, str) else ",".join(map(str, records))


# --- event loop -----------------------------------------------------------------------------------

Outcome = TypeVar("Outcome")


def run_now(coroutine: Coroutine[Any, Any, Outcome]) -> Outcome:
    """Run a coroutine to its end: in this thread, or in one of its own beside a running loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_interruptible(coroutine))
    ended: list[Outcome] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            ended.append(asyncio.run(_interruptible(coroutine)))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="umpc")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return ended[0]


async def _interruptible(coroutine: Coroutine[Any, Any, Outcome]) -> Outcome:
    """Await a coroutine. Raises: CancelledError for any failure of one that was interrupted.

    A study that is cancelled closes its connections, and then its peers seem to be lost.
    """
    asyncio.get_running_loop().set_exception_handler(_tell)
    try:
        return await coroutine
    except UmpcError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError from None
        raise


def _tell(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what went wrong in a callback, but for what gRPC says to the loop of an earlier run.

    It may tell a closed loop that a call has ended, in a callback of the present one. Nobody waits
    for that, and each later word of gRPC has a callback of its own.
    """
    is_of_grpc = "PollerCompletionQueue" in context.get("message", "")
    if not (is_of_grpc and isinstance(context.get("exception"), RuntimeError)):
        loop.default_exception_handler(context)
