"""`umpc.local_consortium`: real processes on this machine, one node for each data frame."""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

from umpc.api.entries import Asked, PythonKernel, helper_entries, plain
from umpc.api.fields import (
    Bounds,
    Label,
    checked_label,
    columns_at,
    field_of,
    fields_of,
    records_of,
    with_categories,
    with_label,
)
from umpc.api.in_memory import Frames, frame_table, named_frames
from umpc.api.result import Result
from umpc.api.study import ProposedStudy
from umpc.coordinator.studyfile import OF_COUNTS, named_protocol
from umpc.deployment.fork_server import fork_server
from umpc.deployment.processes import MISSING, Deployment, stop
from umpc.errors import StudyError
from umpc.node.table.batch import ReadColumn
from umpc.protocols.registry import is_open
from umpc.ustat.condition import fields_read
from umpc.ustat.statistics import find_statistic

DELTA = "1/100"
"""The δ that each node allows for all studies: finite bits of noise take some of it."""


class LocalConsortium:
    """A dealer and nodes as processes of this machine, with certificates of their own.

    They end with the `with` block, or with `close`, or with this process.

        with umpc.local_consortium({"north": df_a, "south": df_b}, bounds=bounds) as sites:
            result = sites.estimate("kendall_tau", ["age", "balance"], epsilon=1)

    Args:
        frames: one for each site; or site name → frame.
        bounds: column → bounds, as of `umpc.estimate`. Only these columns are written for the node.
        label: a public label and the class that should score higher, for statistics of two
            classes.
        budget: the ε that each node allows for all studies together.
        person: the column that tells people apart; every study then needs `person` with this name
            and `records_per_person`.
    Warns: UserWarning where a value counts as another one.
    Raises: StudyError, DataError, NotNumeric; PeerUnavailable where a process does not start.
    """

    def __init__(
        self,
        frames: Frames,
        bounds: Mapping[str, Bounds],
        *,
        label: Label | None = None,
        budget: Any = 10,
        person: str | None = None,
    ):
        sites = named_frames(frames)
        label = checked_label(label)
        read = [*bounds, *([label[0]] if label else []), *([person] if person else [])]
        names = list(dict.fromkeys(read))
        sources = {site: frame_table(frame, names, site) for site, frame in sites.items()}
        found = {site: columns_at(source, names) for site, source in sources.items()}
        self.label = label
        self.person = person
        # fields that fit the values of all sites; of the label its classes
        fields = fields_of(list(bounds), bounds, found)
        self.bounds: dict[str, Bounds] = {field.name: field for field in fields}
        labelled = with_label(bounds, label, found, named_last=True)
        if label is not None and isinstance(labelled, Mapping):
            self.bounds[label[0]] = labelled[label[0]]
        schemas = [field_of(name, given, None).schema() for name, given in self.bounds.items()]
        for site, source in sources.items():
            records_of(source, schemas)  # which warns, as umpc.estimate does
            found[site] = columns_at(with_categories(source, schemas), names)
        self._records = sum(len(next(iter(each.values())).texts) for each in found.values() if each)
        self._numbers = count(1)
        self._stack = ExitStack()
        try:
            self._start(found, str(plain(budget)))
        except BaseException:
            self.close()
            raise

    def _start(self, sites: Mapping[str, Mapping[str, ReadColumn]], budget: str) -> None:
        """Write each site's table, and start all processes."""
        self.folder = Path(
            self._stack.enter_context(tempfile.TemporaryDirectory(prefix="umpc-sites-"))
        )
        popen = self._stack.enter_context(fork_server())
        self._deployment = Deployment(self.folder, popen=popen)
        self._stack.callback(stop, self._deployment.processes)
        self._deployment.start_dealer()
        rules = _rules(self.label, list(self.bounds), self.person)
        for site, columns in sites.items():
            table = _write_table(self.folder / f"{site}.csv", columns)
            self._deployment.start_node(site, table, budget, MISSING, more=rules, delta=DELTA)
        self._addresses = {
            name: served.address for name, served in self._deployment.wait_until_ready().items()
        }
        self.nodes = {site: self._addresses[site] for site in sites}

    def study(
        self,
        statistic: Asked,
        columns: Sequence[str] | None = None,
        *,
        epsilon: Any,
        name: str | None = None,
        protocol: str | None = None,
        **settings: Any,
    ) -> ProposedStudy:
        """A study of these sites. Args: as of `umpc.Study`; it has a new name by default."""
        chosen = {key: plain(value) for key, value in settings.items()}
        protocol = named_protocol(protocol, statistic)
        helpers = helper_entries(protocol, chosen)
        if is_open(protocol, chosen):
            settings.setdefault("records", self._records)
        used = {*(columns or self.bounds), *fields_read(settings.get("where"))}
        used.update(settings.get(key, "") for key in ("strata", "weight"))
        is_counted = protocol == OF_COUNTS
        two_sample = self.label is not None and not is_counted and _is_two_sample(statistic)
        label = self.label if two_sample else None
        return ProposedStudy(
            name or f"local-{next(self._numbers)}",
            statistic,
            columns,
            bounds={each: given for each, given in self.bounds.items() if each in used or label},
            epsilon=epsilon,
            nodes=self.nodes,
            identity=self.folder / "coordinator",
            label=label,
            dealer=self._helpers([helpers["dealer"]["name"]] if "dealer" in helpers else []),
            shufflers=self._helpers([each["name"] for each in helpers.get("shufflers", [])]),
            protocol=protocol,
            **settings,
        )

    def estimate(
        self,
        statistic: Asked,
        columns: Sequence[str] | None = None,
        *,
        epsilon: Any,
        progress: bool = True,
        **settings: Any,
    ) -> Result:
        """Run a study of these sites. Args: as of `study`."""
        return self.study(statistic, columns, epsilon=epsilon, **settings).run(progress=progress)

    def _helpers(self, names: Sequence[str]) -> dict[str, str]:
        """The addresses of these processes; shufflers start when a study first needs them."""
        missing = [name for name in names if name not in self._addresses]
        for name in missing:
            self._deployment.start_shuffler(name)
        if missing:
            served = self._deployment.wait_until_ready()
            self._addresses |= {name: each.address for name, each in served.items()}
        return {name: self._addresses[name] for name in names}

    def close(self) -> None:
        """End all processes, and remove their files."""
        self._stack.close()

    def __enter__(self) -> LocalConsortium:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<umpc.local_consortium of {', '.join(self.nodes)}>"


local_consortium = LocalConsortium


def _is_two_sample(statistic: Asked) -> bool:
    if isinstance(statistic, PythonKernel):
        return statistic.sampling == "two_sample"
    names = [statistic] if isinstance(statistic, str) else [str(each[0]) for each in statistic]
    return any(find_statistic(name).sampling == "two_sample" for name in names)


def _rules(label: Label | None, columns: Sequence[str], person: str | None) -> str:
    """The nodes' policy: their owner is the one who asks, so they allow everything."""
    labels = [f"public_labels = {json.dumps([label[0]])}"] if label else []
    rules = ["[policy]", "trusted_curator = true", "min_colluding = 0", *labels]
    rules.append(f"public_filters = {json.dumps(list(columns))}")
    if person is not None:
        rules.append(f"person = {json.dumps(person)}")
    return "\n" + "\n".join(rules) + "\n"


def _write_table(path: Path, columns: Mapping[str, ReadColumn]) -> Path:
    """A node's CSV file. Raises: StudyError for a site without records."""
    texts = [[text or "" for text in column.texts] for column in columns.values()]
    if not texts or not texts[0]:
        raise StudyError(f"site {path.stem!r}: at least one record was expected, and there is none")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*texts, strict=True))
    return path
