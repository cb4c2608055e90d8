# SPDX-License-Identifier: GPL-2.0
"""What a part of the benchmark consists of; rds.py and rnbd.py are the parts there are."""

from dataclasses import dataclass
from pathlib import PurePath
from typing import Callable

import sdk

# Parts of the system that no module is: the kernel's Rust crates and the helpers, where C has inline functions.
RUST_SUPPORT = "kernel: Rust"
KERNEL = "kernel: other"
PROGRAM = "program"


@dataclass(frozen=True)
class Module:
    """A module, by its file below /lib/modules/RELEASE, and the part of the system that its functions count to."""

    path: str
    part: str
    options: tuple = ()

    @property
    def name(self):
        """The name under which the kernel has it."""
        return PurePath(self.path).stem.replace("-", "_")

    def in_guest(self, release):
        """What the guest needs to know."""
        return {"name": self.name, "path": f"/lib/modules/{release}/{self.path}", "options": list(self.options)}

    def on_host(self, kernel_dir, release):
        """Its file on this machine."""
        if self.path.startswith("updates/"):
            return sdk.TOP / "build/modules/base" / PurePath(self.path).name
        return kernel_dir / "mods/lib/modules" / release / self.path


@dataclass(frozen=True)
class Setup:
    """What a round runs with; `own` are the modules that are loaded for it, in the order they need each other."""

    name: str
    modules: tuple
    tainted: bool
    kind: str = ""


@dataclass(frozen=True)
class Row:
    """A line of the table: a workload, and the setup of each implementation that it compares."""

    name: str
    title: str
    workload: str
    setups: dict


@dataclass(frozen=True)
class Part:
    """All of a part. `read` makes Samples, by workload, of what the guest wrote about a round; `marks` makes what tells
    from events when a sample begins and ends."""

    name: str
    heading: str
    plot_title: str
    unit: str
    labels: dict
    against: tuple
    setups: tuple
    workloads: tuple
    rows: tuple
    own: tuple
    others: tuple
    shared: tuple
    legend: tuple
    boots: int
    blocks_per_boot: int
    periods: tuple
    read: Callable
    marks: Callable
    program: str = ""
    # Requests of each workload of which is traced what is posted for them.
    traced: int = 0
    # Pairs of workloads, by name: one that copies, and the same without a copy.
    savings: tuple = ()

    @property
    def guest(self):
        """The program that takes the samples."""
        return sdk.TOP / "tests/bench" / self.name

    @property
    def parts(self):
        """Names of the parts of the system, in the order in which they are shown."""
        return (*self.own, *self.others)

    def setup(self, name):
        """The setup of that name."""
        return next(setup for setup in self.setups if setup.name == name)
