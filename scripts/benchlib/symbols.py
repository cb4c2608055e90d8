# SPDX-License-Identifier: GPL-2.0
"""Which function, and which part of the system, an address belongs to."""

import bisect
import functools
import re
import subprocess

import sdk
from part import KERNEL, PROGRAM, RUST_SUPPORT
from refusal import Refusal

# Not a part of anything: the processor sleeps.
SLEEP = "sleep"

_KERNEL_START = 1 << 63
# Name, value, class, type, size, line, section.
_NM_COLUMNS = 7
_RUST = re.compile(r"rust_helper_|_R[NIXYMC]")
# The functions that let interrupts in again. One that was held back meanwhile comes here, so a sample here belongs to
# the code before, which is the caller's.
_RELEASE = re.compile(r"_raw_(spin|read|write)_unlock_irq(restore)?$|rust_helper_.*unlock_irq(restore)?$")
# The kernel still says where this was, but has freed it when the module was loaded; another module may be there now.
_GONE = ".init.text"
_SLEEP = re.compile(r"(pv_native_safe_halt|native_safe_halt|default_idle|default_idle_call|arch_cpu_idle)$")


class Symbols:
    """Functions of a kernel with its modules, by address."""

    def __init__(self, kernel):
        self._kernel = kernel
        self._starts = [start for start, _, _ in kernel]
        self._modules = []

    @classmethod
    def of_kernel(cls, kernel_dir, text):
        """The kernel's own functions, `text` being where it begins."""
        lines = [line.split() for line in (kernel_dir / "System.map").read_text().splitlines()]
        shift = text - next(int(address, 16) for address, _, name in lines if name == "_text")
        found = [(int(address, 16) + shift, name) for address, kind, name in lines if kind in "TtWw"]
        return cls(sorted((start, name, RUST_SUPPORT if _RUST.match(name) else KERNEL) for start, name in found))

    def with_modules(self, modules, sections):
        """These functions and those of modules, given with their files, which are where the guest said."""
        result = Symbols(self._kernel)
        for module, file in modules:
            for section, offset, size, function in module_functions(file):
                if section == _GONE:
                    continue
                if start := sections[module.name].get(section):
                    result._modules.append((start + offset, start + offset + size, function, module.part))
        result._modules.sort()
        return result

    def function(self, address):
        """Name and part of the function at an address."""
        if address < _KERNEL_START:
            return PROGRAM, PROGRAM
        at = bisect.bisect_right(self._modules, (address, _KERNEL_START * 2)) - 1
        if at >= 0 and address < self._modules[at][1]:
            return self._modules[at][2:]
        at = bisect.bisect_right(self._starts, address) - 1
        return self._kernel[at][1:] if at >= 0 else ("unknown", KERNEL)

    def responsible(self, chain):
        """The function to which a sample belongs; `chain` begins with the address, its caller follows, and so on."""
        for address in chain:
            name, part = self.function(address)
            if _SLEEP.match(name):
                return name, SLEEP
            if not _RELEASE.match(name):
                return name, part
        return self.function(chain[0])


@functools.cache
def module_functions(path):
    """Section, offset, size and name of each function in a module."""
    command = [sdk.TOP / "scripts/in-root", "--bind", path.parent, "nm", "--defined-only", "--format=sysv", path]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise Refusal(f"cannot read the functions of {path.name}")
    rows = [[field.strip() for field in line.split("|")] for line in done.stdout.splitlines()]
    functions = [row for row in rows if len(row) == _NM_COLUMNS and row[3] == "FUNC"]
    return [(row[6], int(row[1], 16), int(row[4], 16), row[0]) for row in functions]


# What c++filt leaves of the hash of a crate.
_HASH = re.compile(r"\[[0-9a-f]{13,16}\]")


def readable(names):
    """The names as the programmer wrote them."""
    command = [sdk.TOP / "scripts/in-root", "c++filt"]
    done = subprocess.run(command, input="\n".join(names), stdout=subprocess.PIPE, text=True)
    return dict(zip(names, _HASH.sub("", done.stdout).splitlines() if not done.returncode else names))
