# SPDX-License-Identifier: GPL-2.0
"""How much memory the guest has left."""

import gc
import resource
import time

from cases import ON_DEBUG

# KASAN gives each object a red zone and keeps what was freed in quarantine, up to a part of all memory: what an
# allocation costs there says little. The exact limits are held to on the base kernel.
FACTOR = 8 if ON_DEBUG else 1
PAGE = resource.getpagesize()


def free_kib():
    """Memory that can be had, in KiB.

    MemAvailable does not know of the free pages that each processor keeps in its own lists, some MiB at any time.
    """
    with open("/proc/meminfo") as lines:
        fields = dict(line.split(":") for line in lines)
    with open("/proc/zoneinfo") as lines:
        kept = sum(int(line.split()[1]) for line in lines if line.split()[0] == "count:")
    return int(fields["MemAvailable"].split()[0]) + kept * PAGE // 1024


class Watch:
    """Remembers the most memory used since it began."""

    def __init__(self):
        gc.collect()
        self.before = free_kib()
        self.lowest = self.before

    def look(self):
        """Takes a sample; KiB used now."""
        now = free_kib()
        self.lowest = min(self.lowest, now)
        return self.before - now

    @property
    def most(self):
        """The most KiB used at any sample."""
        return self.before - self.lowest

    def bounded(self, kib, what):
        """Fails if more than `kib` were used at any sample."""
        self.look()
        kib *= FACTOR
        assert self.most <= kib, f"{what}: memory grew by {self.most} KiB, allowed are {kib}"

    def returns(self, kib, what, seconds=10.0):
        """Fails unless use falls back to `kib`."""
        end = time.monotonic() + seconds
        while self.look() > kib:
            assert time.monotonic() < end, f"{what}: {self.look()} KiB are still used"
            time.sleep(0.1)
