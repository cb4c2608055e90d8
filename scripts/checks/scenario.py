# SPDX-License-Identifier: GPL-2.0
"""The scenarios: programs in tests/guest/ that say in comments at their top where and how they run."""

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
FOLDER = TOP / "tests/guest"

KERNELS = ("base", "debug")
MODES = ("check", "soak")
IMPLS = ("rust", "c")

_SETTING = re.compile(r"^# (kernel|soak-kernel|impl|mode|pair|timeout|alone|append|load): *(.+?)\s*$")


@dataclass(frozen=True)
class Scenario:
    """One way to run a program of tests/guest/."""

    program: str
    kernel: str
    impl: str
    timeout: int
    alone: bool
    pair: bool
    # It waits most of the time and can run beside others that leave no processor free.
    light: bool = False
    # Kernel parameters it needs.
    append: str = ""

    @property
    def name(self):
        """What its cases are called: base/poll, or base/interop/rust,c for a pair."""
        program = re.sub(r"^\d+-", "", self.program)
        shown = "" if self.impl == "rust" else f"/{self.impl}"
        return f"{self.kernel}/{program}{shown}"


def settings(text):
    """The settings in the comments at the top of a program, as words."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if match := _SETTING.match(line):
            found[match[1]] = match[2].split()
    return found


def ways(program, text, mode):
    """All ways in which `mode` runs a program."""
    said = settings(text)
    if mode not in said.get("mode", MODES):
        return
    timeouts = _numbers(program, said.get("timeout", ["120"]))
    pair = "pair" in said
    for impl in said["pair"] if pair else said.get("impl", ["rust"]):
        if not set(impl.split(",")) <= set(IMPLS) or impl.count(",") != pair:
            raise ValueError(f"tests/guest/{program}: unknown implementation {impl}")
        # Some take too long on the debug kernel for anything but a soak.
        kernels = said.get("kernel", ["base"]) + (said.get("soak-kernel", []) if mode == "soak" else [])
        for kernel in kernels:
            if kernel not in KERNELS:
                raise ValueError(f"tests/guest/{program}: unknown kernel {kernel}")
            timeout = timeouts[min(MODES.index(mode), len(timeouts) - 1)]
            # The checkers make a guest several times slower.
            timeout *= 2 if kernel == "debug" else 1
            append = " ".join(said.get("append", []))
            alone = pair or bool(append) or said.get("alone") == ["yes"]
            light = said.get("load") == ["light"]
            yield Scenario(program, kernel, impl, timeout, alone, pair, light, append)


def _numbers(program, words):
    if not all(word.isdigit() for word in words):
        raise ValueError(f"tests/guest/{program}: the timeout is not a number of seconds")
    return [int(word) for word in words]


def discover(mode, folder=FOLDER):
    """The scenarios of a mode, in the order of their programs' names."""
    found = []
    for path in sorted(folder.iterdir()):
        if path.is_file() and os.access(path, os.X_OK):
            found += ways(path.name, path.read_text(), mode)
    return found


def with_impl(scenario, impl):
    """The same scenario with other modules."""
    return replace(scenario, impl=impl)
