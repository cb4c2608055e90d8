# SPDX-License-Identifier: GPL-2.0
"""The part about RDS: rds-bench between two namespaces, over TCP."""

from dataclasses import dataclass

import measure
import sdk
from marks import ClientMarks
from part import KERNEL, PROGRAM, RUST_SUPPORT, Module, Part, Row, Setup
from refusal import Refusal


@dataclass(frozen=True)
class Workload:
    """What rds-bench does; a sample is `count` messages, 20 to 40 million instructions with the C modules.

    Workloads that are compared with each other, by paths or by copies, have the same `count`.
    """

    kind: str
    size: int
    count: int
    warmup: int
    # 0 is one socket, on whichever path it happens to be.
    paths: int = 0
    zerocopy: bool = False

    @property
    def name(self):
        """The name in files."""
        paths = f"-{self.paths}-paths" if self.paths else ""
        return f"{self.kind}-{self.size}{paths}{'-zerocopy' if self.zerocopy else ''}"

    @property
    def title(self):
        """The name for people."""
        kind = {"rr": "request/response", "stream": "stream"}[self.kind]
        paths = f", {self.paths} paths" if self.paths else ""
        return f"{kind} {_size(self.size)}{paths}{', zero-copy' if self.zerocopy else ''}"


def _size(number):
    units = ((1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
    unit, name = next((unit, name) for unit, name in units if number >= unit)
    return f"{number // unit} {name}"


WORKLOADS = (
    Workload("rr", 64, 500, 30),
    Workload("rr", 1024, 496, 80),
    Workload("rr", 1024, 496, 80, paths=8),
    Workload("rr", 65536, 40, 10),
    Workload("rr", 1 << 20, 3, 2),
    Workload("stream", 64, 800, 50),
    Workload("stream", 1024, 800, 80),
    Workload("stream", 1024, 800, 80, paths=4),
    Workload("stream", 1024, 800, 80, paths=8),
    Workload("stream", 65536, 64, 32),
    Workload("stream", 65536, 64, 32, paths=4),
    Workload("stream", 65536, 64, 32, paths=8),
    Workload("stream", 65536, 64, 32, zerocopy=True),
    Workload("stream", 1 << 20, 6, 4),
    Workload("stream", 1 << 20, 6, 4, zerocopy=True),
)

SETUPS = (
    Setup("c", tuple(Module(f"kernel/net/rds/{name}.ko", name) for name in ("rds", "rds_tcp")), False),
    Setup("rust", tuple(Module(f"updates/{name}.ko", name) for name in ("weft", "rds", "rds_tcp")), True),
)


def read(record):
    """The samples of a round by workload.

    The time that the processor slept is that until the client ended, a little longer than what the client measured,
    so it is never too little.
    """
    samples = {}
    for name, taken in record["samples"].items():
        (result,) = taken["result"]["samples"]
        found = measure.windows(taken["trace"], ClientMarks())
        if len(found) != 1:
            raise Refusal("the kernel did not say when a sample began and ended")
        samples[name] = measure.Sample(result["elapsed_ns"] / result["messages"], found[0].idle / result["messages"])
    return samples


PART = Part(
    name="rds",
    heading="RDS over TCP: C modules and Rust modules, two network namespaces in one guest",
    plot_title="RDS over TCP, instructions per message: Rust modules against C modules",
    unit="message",
    labels={"c": "C", "rust": "Rust"},
    against=("c",),
    setups=SETUPS,
    workloads=WORKLOADS,
    rows=tuple(Row(load.name, load.title, load.name, {"c": "c", "rust": "rust"}) for load in WORKLOADS),
    own=("rds", "rds_tcp", "weft", RUST_SUPPORT),
    others=(KERNEL, PROGRAM),
    shared=(),
    savings=(("stream-65536", "stream-65536-zerocopy"), ("stream-1048576", "stream-1048576-zerocopy")),
    legend=(
        "The modules' own instructions are what runs in rds, rds_tcp and weft, for Rust also in the kernel's Rust",
        "code and helpers, where C has inline functions; not what they call: copying, memory, TCP, scheduling.",
    ),
    boots=2,
    blocks_per_boot=5,
    periods=(300_000, 500_000),
    read=read,
    marks=ClientMarks,
    program=str(sdk.TOP / "build/tools/release/rds-bench"),
)
