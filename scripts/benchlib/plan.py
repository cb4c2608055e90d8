# SPDX-License-Identifier: GPL-2.0
"""What is measured, and in which order.

A block has a round for each implementation, in random order; a round has a sample of each workload and a profile of
each, both in random order.
The two rounds of a block follow each other in the same guest, which makes their samples a pair. The blocks are shared
among guests, at least two, so that nothing depends on how one of them happened to boot.
"""

import random
from dataclasses import asdict, dataclass

IMPLS = ("c", "rust")
# The modules of each, in the order in which they need each other.
MODULES = {"c": ("rds", "rds_tcp"), "rust": ("weft", "rds", "rds_tcp")}
MODULE_FOLDER = {"c": "kernel/net/rds", "rust": "updates"}
BOOTS = 2
BLOCKS_PER_BOOT = 5
# The timers of the profiler, and the nanoseconds between two samples of one. The workloads repeat themselves exactly,
# so a single timer would again and again meet the same functions; many that are out of step meet all.
TIMERS = 16
PERIODS = (300_000, 500_000)


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


def guests(samples, seed, profile):
    """What each guest does, for so many samples of each implementation."""
    source = random.Random(seed)
    rounds = []
    for block in range(samples):
        for impl in source.sample(IMPLS, len(IMPLS)):
            rounds.append(_round(source, len(rounds), block, impl))
    boots = min(samples, max(BOOTS, -(-samples // BLOCKS_PER_BOOT)))
    return [
        {
            "rounds": [turn for turn in rounds if turn["block"] * boots // samples == boot],
            "periods": [source.randrange(*PERIODS) for _ in range(TIMERS)] if profile else [],
        }
        for boot in range(boots)
    ]


def _round(source, number, block, impl):
    names = [workload.name for workload in WORKLOADS]
    return {
        "number": number,
        "block": block,
        "impl": impl,
        "order": source.sample(names, len(names)),
        "profile_order": source.sample(names, len(names)),
    }


def document(guest, bench, release):
    """The plan of a guest, as tests/bench/rds reads it."""
    folders = {impl: f"/lib/modules/{release}/{MODULE_FOLDER[impl]}" for impl in IMPLS}
    return {
        "bench": str(bench),
        "impls": {
            impl: {"modules": [f"{folders[impl]}/{name}.ko" for name in MODULES[impl]], "tainted": impl == "rust"}
            for impl in IMPLS
        },
        "workloads": {workload.name: asdict(workload) for workload in WORKLOADS},
        **guest,
    }
