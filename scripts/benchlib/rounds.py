# SPDX-License-Identifier: GPL-2.0
"""The samples of a round, put together from what the guest brought back."""

from collections import Counter

import attribution
from refusal import Refusal
from symbols import SLEEP


class Round:
    """The samples of a round by the names of their workloads.

    Figures are per message or request and in nanoseconds of the guest, which are instructions:

      elapsed  from the first one to the end of the last one, divided by their number
      busy     of that, what the processor did not sleep
      own      of that, what the modules themselves took, by the profile of the same round
    """

    def __init__(self, part, record, profile):
        self.block = record["block"]
        self.setup = record["setup"]
        self._own = part.own
        self._samples = part.read(record)
        self._profile = profile

    @property
    def figures(self):
        """The names of the figures there are."""
        return ("busy", "elapsed", "own") if self._profile else ("busy", "elapsed")

    def figure(self, name, workload):
        """A figure of a workload."""
        sample = self._samples[workload]
        if name != "own":
            return getattr(sample, name)
        counts = self.functions(workload)
        return sample.busy * sum(count for (_, part), count in counts.items() if part in self._own) / counts.total()

    def sleep(self, workload):
        """The share of the elapsed time that the processor slept."""
        sample = self._samples[workload]
        return sample.idle / sample.elapsed

    def functions(self, workload):
        """How often the profile met each function, as {(name, part): count}."""
        found = self._profile.get(workload, Counter())
        return Counter({function: count for function, count in found.items() if function[1] != SLEEP})


def read(part, boot, kernel_symbols, file):
    """The rounds of a guest; `file` tells where the file of a module is."""
    path = boot.folder / "perf.data"
    windows = attribution.windows(path, part.marks()) if path.exists() else []
    found = []
    for record in boot.rounds:
        profile, order = {}, record["profile_order"]
        if windows:
            modules = [*part.shared, *part.setup(record["setup"]).modules]
            symbols = kernel_symbols.with_modules([(module, file(module)) for module in modules], record["sections"])
            mine, windows = windows[: len(order)], windows[len(order) :]
            if len(mine) != len(order) or not all(mine):
                raise Refusal("the profile lacks a workload")
            profile = {name: _functions(window, symbols) for name, window in zip(order, mine)}
        found.append(Round(part, record, profile))
    return found


def _functions(window, symbols):
    found = Counter()
    for chain, count in window.items():
        found[symbols.responsible(chain)] += count
    return found
