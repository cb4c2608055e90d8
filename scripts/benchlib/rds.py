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
    """What rds-bench does; a sample is `count` messages, about 25 million instructions with the C modules."""

    kind: str
    size: int
    count: int
    warmup: int

    @property
    def name(self):
        """The name in files."""
        return f"{self.kind}-{self.size}"

    @property
    def title(self):
        """The name for people."""
        size = f"{self.size // 1024} KiB" if self.size >= 1024 else f"{self.size} B"
        return f"{ {'rr': 'request/response', 'stream': 'stream'}[self.kind]} {size}"


WORKLOADS = (
    Workload("rr", 64, 500, 30),
    Workload("rr", 1024, 500, 30),
    Workload("rr", 65536, 40, 10),
    Workload("stream", 1024, 1500, 50),
    Workload("stream", 65536, 150, 20),
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
