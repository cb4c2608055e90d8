# SPDX-License-Identifier: GPL-2.0
"""Reads the profiles of a guest.

perf takes the samples with a timer, since the emulated processor counts no events. A timer interrupt waits while
interrupts are off, so symbols.py gives a sample right after such a piece of code to that piece. What is left of the
error is small and the same for both implementations.
"""

import re
import subprocess
from collections import Counter

import sdk
from refusal import Refusal

_HEAD = re.compile(r"\s*(?P<pid>\d+)\s+(?P<seconds>\d+)\.(?P<nanos>\d{9}):\s+(?P<event>[\w:-]+)")
_ADDRESS = re.compile(r"\s+([0-9a-f]+)\s*$")


def windows(path):
    """For each client's sample, in the order in which they ran, how often perf found the processor where.

    Where is a tuple of addresses: of the instruction, then of its callers.
    """
    found = []
    client, counts = None, None
    for pid, event, chain in _events(path):
        if event == "timer:itimer_state":
            # At the beginning of a sample, and before that of the warming up.
            client, counts = pid, Counter()
        elif event == "sched:sched_process_exit" and pid == client:
            found.append(counts)
            client, counts = None, None
        elif event.startswith("cpu-clock") and chain and counts is not None:
            counts[tuple(chain)] += 1
    return found


def _events(path):
    """Process, event and call chain of everything in a profile, in the order of time."""
    command = [sdk.TOP / "scripts/in-root", "--bind", path.parent, "perf", "script", "--force", "--ns", "-i", path]
    command += ["-F", "tid,time,event,ip"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise Refusal(f"perf cannot read the profile {path.name}: {done.stderr.strip()}")
    head, chain = None, []
    for line in done.stdout.splitlines():
        if start := _HEAD.match(line):
            if head:
                yield head["pid"], head["event"].rstrip(":"), chain
            head, chain = start, []
        elif address := _ADDRESS.match(line):
            chain.append(int(address[1], 16))
    if head:
        yield head["pid"], head["event"].rstrip(":"), chain
