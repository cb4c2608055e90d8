# SPDX-License-Identifier: GPL-2.0
"""The part about RNBD: fio on a disk that is mapped over soft-RoCE, with nvme-rdma beside it."""

from dataclasses import dataclass

import measure
from marks import JobMarks
from part import KERNEL, PROGRAM, RUST_SUPPORT, Module, Part, Row, Setup
from refusal import Refusal

LIBRARY, CLIENT, SERVER = "library", "client", "server"
ROCE, DISK = "soft-RoCE", "null_blk"


@dataclass(frozen=True)
class Workload:
    """A job of fio; a sample is `count` requests."""

    operation: str
    size: int
    depth: int
    count: int

    @property
    def name(self):
        """The name in files, and of the job."""
        return f"{self.operation}-{self.size}-{self.depth}"

    @property
    def title(self):
        """The name for people."""
        return f"{self.operation.removeprefix('rand')} {self.size // 1024} KiB, depth {self.depth}"


# Requests of a sample, by size and depth.
COUNTS = {(4096, 1): 200, (4096, 32): 256, (65536, 1): 16, (65536, 32): 48}
WORKLOADS = tuple(
    Workload(operation, size, depth, COUNTS[size, depth])
    for size in (4096, 65536)
    for operation in ("randread", "randwrite")
    for depth in (1, 32)
)


def _c(invalidate):
    rtrs, rnbd = "kernel/drivers/infiniband/ulp/rtrs", "kernel/drivers/block/rnbd"
    return (
        Module(f"{rtrs}/rtrs-core.ko", LIBRARY),
        Module(f"{rtrs}/rtrs-server.ko", SERVER, (f"always_invalidate={invalidate}",)),
        Module(f"{rnbd}/rnbd-server.ko", SERVER, ("dev_search_path=/dev",)),
        Module(f"{rtrs}/rtrs-client.ko", CLIENT),
        Module(f"{rnbd}/rnbd-client.ko", CLIENT),
    )


def _rust(invalidate):
    return (
        Module("updates/weft.ko", LIBRARY),
        Module("updates/weft_rdma.ko", LIBRARY),
        Module("updates/rtrs_server.ko", SERVER, (f"always_invalidate={invalidate}",)),
        Module("updates/rnbd_server.ko", SERVER, ("dev_search_path=/dev",)),
        Module("updates/rtrs_client.ko", CLIENT),
        Module("updates/rnbd_client.ko", CLIENT),
    )


def _nvme():
    host, target = "kernel/drivers/nvme/host", "kernel/drivers/nvme/target"
    return (
        Module(f"{host}/nvme-core.ko", CLIENT),
        Module(f"{host}/nvme-fabrics.ko", CLIENT),
        Module(f"{host}/nvme-rdma.ko", CLIENT),
        Module(f"{target}/nvmet.ko", SERVER),
        Module(f"{target}/nvmet-rdma.ko", SERVER),
    )


SETUPS = (
    *(Setup(f"c-{choice}", _c(choice), False, "rnbd") for choice in "YN"),
    *(Setup(f"rust-{choice}", _rust(choice), True, "rnbd") for choice in "YN"),
    Setup("nvme", _nvme(), False, "nvme"),
)

ROWS = tuple(
    Row(
        f"{load.name}-{choice}",
        f"{load.title}, {choice}",
        load.name,
        {"c": f"c-{choice}", "rust": f"rust-{choice}", "nvme": "nvme"},
    )
    for load in WORKLOADS
    for choice in "YN"
)


def read(record):
    """The samples of a round by workload."""
    windows = measure.windows(record["trace"], JobMarks())
    if len(windows) != len(record["order"]):
        raise Refusal("the kernel did not say when the samples began and ended")
    samples = {}
    for name, window in zip(record["order"], windows):
        count = record["made"][name]["requests"]
        samples[name] = measure.Sample((window.end - window.begin) / count, window.idle / count)
    return samples


PART = Part(
    name="rnbd",
    heading="RNBD over soft-RoCE: C modules, Rust modules and nvme-rdma with nvmet, both ends in one guest, null_blk",
    plot_title="RNBD over soft-RoCE, instructions per request: Rust modules against C modules and nvme-rdma",
    unit="request",
    labels={"c": "C", "rust": "Rust", "nvme": "nvme"},
    against=("c", "nvme"),
    setups=SETUPS,
    workloads=WORKLOADS,
    rows=ROWS,
    own=(CLIENT, SERVER, LIBRARY, RUST_SUPPORT),
    others=(ROCE, DISK, KERNEL, PROGRAM),
    shared=(
        Module("kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko", ROCE),
        Module("kernel/drivers/block/null_blk/null_blk.ko", DISK),
    ),
    legend=(
        "When it sleeps all wait for a timer, such as that of soft-RoCE after which it sends again.",
        "Requests are random, by fio with libaio and direct I/O. Y and N: always_invalidate of the server; nvme-rdma",
        "has no such setting. The modules' own instructions are what runs in the modules of both ends, for Rust also in",
        "the kernel's Rust code and helpers, where C has inline functions; not what they call: soft-RoCE, the block",
        "layer. Of 64 KiB they are too small a part to be measured well: see the ranges.",
    ),
    boots=2,
    blocks_per_boot=2,
    periods=(250_000, 400_000),
    read=read,
    # The second shell switches the profiler off.
    marks=lambda: JobMarks(last=False),
    traced=40,
)
