"""The place that a configuration names for the chunks of a node or a dealer."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from umpc.compute.cluster import TLS_FILES, DaskCluster
from umpc.compute.executor import Executor, threads_of_process
from umpc.errors import ConfigError
from umpc.ustat.blocks import CORES

DASK = r"dask://(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]@]+):[0-9]{1,5}"
DASK_EXPECTED = 'a Dask scheduler, like "dask://scheduler:8786"'


def own_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


@dataclass(frozen=True)
class ComputePlace:
    """Where a process computes.

    cores: at most so many of this machine; 0 for all. cluster: a scheduler's address, or empty.
    tls: the folder with the site's files for the cluster.
    """

    cores: int = 0
    cluster: str = ""
    tls: Path | None = None

    def open(self, identity: Path | None = None) -> Executor | None:
        """Open the place; None where one core computes everything, as each study's own thread does.

        From then on all cores compute blocks of operators and of edges in the clear, too, with a
        cluster as without one.

        Args: identity: the folder of the consortium's certificate.
        Raises: ConfigError, PeerUnavailable.
        """
        cores = min(self.cores or own_cores(), own_cores())
        threads = threads_of_process(cores) if cores > 1 else None
        CORES.use(threads.threads if threads else None, cores)
        if self.cluster:
            return DaskCluster(self.cluster.removeprefix("dask://"), self._checked_tls(identity))
        return threads

    def _checked_tls(self, identity: Path | None) -> Path:
        """The folder of the cluster's files, of another authority than the consortium's."""
        if self.tls is None:
            raise ConfigError(
                'compute = "dask://…" needs compute_tls, the folder with the ca.pem, cert.pem and '
                "key.pem of the site's cluster. Add it"
            )
        absent = [name for name in TLS_FILES if not (self.tls / name).is_file()]
        if absent:
            raise ConfigError(
                f"{self.tls}: the cluster's {', '.join(TLS_FILES)} were expected, and "
                f"{', '.join(absent)} came not. Put them there, or correct compute_tls"
            )
        if identity is not None and _same_authority(self.tls, identity):
            raise ConfigError(
                f"{self.tls}: ca.pem is the consortium's. Every other member could then run code "
                "on this site's cluster. Make an authority of the site's own for it: "
                "`umpc ca init`"
            )
        return self.tls


THIS_MACHINE = ComputePlace()
"""All cores of this machine."""


def named_place(cores: int | None, compute: str | None, tls: Path | None) -> ComputePlace:
    """The place that a command line names. Raises: ConfigError."""
    if compute and not re.fullmatch(DASK, compute):
        raise ConfigError(
            f"--compute: {DASK_EXPECTED} was expected, and {compute!r} came. Correct it"
        )
    return ComputePlace(cores or 0, compute or "", tls)


def _same_authority(one: Path, other: Path) -> bool:
    """Whether two folders trust one authority, by the key that it signs with."""
    from cryptography import x509

    def key(folder: Path) -> object:
        return x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes()).public_key()

    return key(one) == key(other)
