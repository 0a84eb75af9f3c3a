"""Processors on which `tests/emulated` runs the gate, each through a small program."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import umpc
from umpc.native import KINDS, levels

ROOT = Path(umpc.__file__).parents[1]
HERE = ROOT / "tests" / "emulated"
SOURCES = (HERE / "driver.c", ROOT / "native" / "kernel.c")
OPTIONS = ("-O3", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-static")


@dataclass(frozen=True)
class Machine:
    """A processor, real or emulated.

    compiler: the words that start its C compiler. runner: the words before a program of it.
    expected: the kinds of the gate that it can run.
    """

    name: str
    compiler: tuple[str, ...]
    runner: tuple[str, ...]
    expected: tuple[str, ...] = field(default=())

    @property
    def is_emulated(self) -> bool:
        return bool(self.runner)


X86, ARM = ("gcc",), ("aarch64-linux-gnu-gcc",)
EMULATED = (
    Machine("x86-64 without AES", X86, ("qemu-x86_64", "-cpu", "qemu64,-aes")),
    Machine("x86-64, 2010", X86, ("qemu-x86_64", "-cpu", "Westmere"), ("AES-NI",)),
    Machine("x86-64, VAES", X86, ("qemu-x86_64", "-cpu", "max"), ("AES-NI", "VAES-256")),
    Machine("64-bit ARM", ARM, ("qemu-aarch64", "-cpu", "cortex-a72"), ("ARM",)),
    Machine("64-bit ARM, latest", ARM, ("qemu-aarch64", "-cpu", "max"), ("ARM",)),
)
BY_LANES = Machine(
    "this processor, VAES by lanes",
    ("gcc", "-include", str(HERE / "vaes_by_lanes.h")),
    (),
    ("AES-NI", "VAES-256", "VAES-512"),
)
"""Runs the walks of all widths on a processor with AVX-512; see `vaes_by_lanes.h`."""


def has_avx512() -> bool:
    """Whether `BY_LANES` can run here."""
    flags = set(Path("/proc/cpuinfo").read_text().split())
    return {"aes", "avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags


@dataclass(frozen=True)
class Program:
    """The gate as a program for one machine. It has the functions of `umpc.native`.

    left_out: kinds that the program has, and that a test passes over.
    """

    runner: tuple[str, ...]
    file: Path
    left_out: tuple[str, ...] = ()

    def _run(self, words: Sequence[object], *arrays: np.ndarray | bytes) -> bytes:
        sent = b"".join(a if isinstance(a, bytes) else a.tobytes() for a in arrays)
        command = [*self.runner, str(self.file), *map(str, words)]
        return subprocess.run(command, input=sent, stdout=subprocess.PIPE, check=True).stdout

    def kinds(self) -> tuple[str, ...]:
        able = int(self._run(["kinds"]))
        return tuple(n for n, bit in KINDS.items() if able & bit and n not in self.left_out)

    def generate(self, key, width, mask, roots, kind) -> tuple[np.ndarray, np.ndarray]:
        count = len(mask)
        data = self._run(["generate", KINDS[kind], width, count], key, mask, roots)
        split = 16 * levels(width) * count
        corrections = np.frombuffer(data[:split], np.uint64).reshape(levels(width), count, 2)
        return corrections, np.frombuffer(data[split:], np.uint32).reshape(count, 3)

    def evaluate(
        self, key, party, width, corrections, leaves, masked, roots, kind
    ) -> tuple[np.ndarray, np.ndarray]:
        count = len(masked)
        words = ["evaluate", KINDS[kind], party, width, count]
        data = self._run(words, key, corrections, leaves, masked, roots)
        less, equal = np.frombuffer(data, np.uint8).reshape(2, count)
        return less, equal


def has_right_vaes(machine: Machine, folder: Path) -> bool:
    """Whether the machine computes VAES as processors do. QEMU 7.2 gets the upper lane wrong."""
    probe = folder / "probe"
    options = ("-O0", "-static", "-o", str(probe), str(HERE / "vaes_probe.c"))
    subprocess.run([*machine.compiler, *options], check=True)
    return subprocess.run([*machine.runner, str(probe)]).returncode == 0


def program(machine: Machine, folder: Path) -> Program:
    """Compile the gate for a machine, without a shared library."""
    file = folder / "driver"
    words = [*machine.compiler, *OPTIONS, "-o", str(file), *map(str, SOURCES)]
    subprocess.run(words, check=True)
    return Program(machine.runner, file)
