"""Processors on which `tests/emulated` runs the gate, each through a small program."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import umpc
from umpc.native import KINDS

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
    ("AES-NI", "VAES-256"),
)
"""Runs every width of registers on a processor with AVX2; see `vaes_by_lanes.h`."""


def has_avx2() -> bool:
    """Whether `BY_LANES` can run here."""
    flags = set(Path("/proc/cpuinfo").read_text().split())
    return {"aes", "avx2"} <= flags


@dataclass(frozen=True)
class Program:
    """The gate as a program for one machine."""

    runner: tuple[str, ...]
    file: Path

    def kinds(self) -> tuple[str, ...]:
        """The kinds that the processor can run, as `umpc.native.kinds` tells."""
        command = [*self.runner, str(self.file)]
        able = int(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        return tuple(name for name, bit in KINDS.items() if able & bit)


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
