# SPDX-License-Identifier: GPL-2.0
"""The samples of a round, put together from what the guest brought back."""

from collections import Counter

import attribution
import measure
from refusal import Refusal
from symbols import OWN, SLEEP


class Round:
    """The samples of a round by the names of their workloads.

    Figures are per message and in nanoseconds of the guest, which are instructions:

      elapsed  from the first send to the last answer, divided by the messages
      busy     of that, what the processor did not sleep
      own      of that, what the modules themselves took, by the profile of the same round
    """

    def __init__(self, record, profile):
        self.block = record["block"]
        self.impl = record["impl"]
        self._samples = {name: measure.sample(taken) for name, taken in record["samples"].items()}
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
        return sample.busy * sum(count for (_, part), count in counts.items() if part in OWN) / counts.total()

    def sleep(self, workload):
        """The share of the elapsed time that the processor slept."""
        sample = self._samples[workload]
        return sample.idle / sample.elapsed

    def functions(self, workload):
        """How often the profile met each function, as {(name, part): count}."""
        found = self._profile.get(workload, Counter())
        return Counter({function: count for function, count in found.items() if function[1] != SLEEP})


def read(boot, kernel_symbols, folders):
    """The rounds of a guest; `folders` has the modules of each implementation."""
    path = boot.folder / "perf.data"
    windows = attribution.windows(path) if path.exists() else []
    found = []
    for record in boot.rounds:
        profile, order = {}, record["profile_order"]
        if windows:
            symbols = kernel_symbols.with_modules(record["impl"], folders[record["impl"]], record["sections"])
            mine, windows = windows[: len(order)], windows[len(order) :]
            if len(mine) != len(order) or not all(mine):
                raise Refusal("the profile lacks a workload")
            profile = {name: _functions(window, symbols) for name, window in zip(order, mine)}
        found.append(Round(record, profile))
    return found


def _functions(window, symbols):
    found = Counter()
    for chain, count in window.items():
        found[symbols.responsible(chain)] += count
    return found
