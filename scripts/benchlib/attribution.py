# SPDX-License-Identifier: GPL-2.0
"""Reads the profiles of a guest.

perf takes the samples with a timer, since the emulated processor counts no events. A timer interrupt waits while
interrupts are off, so symbols.py gives a sample right after such a piece of code to that piece. What is left of the
error is small and the same for all implementations.
"""

import re
import subprocess
from collections import Counter

import sdk
from marks import BEGIN, END
from refusal import Refusal

_HEAD = re.compile(r"\s*(?P<pid>\d+)\s+\d+\.\d{9}:\s+(?P<event>[\w:-]+)[^:\s]*:?\s*(?:.*?\bcomm=(?P<comm>\S+))?")
_ADDRESS = re.compile(r"\s+([0-9a-f]+)\s*$")


def windows(path, marks):
    """For each sample, in the order in which they were taken, how often perf found the processor where.

    Where is a tuple of addresses: of the instruction, then of its callers.
    """
    found, counts = [], None
    for comm, pid, event, chain in _events(path):
        if event.startswith("cpu-clock"):
            if chain and counts is not None:
                counts[tuple(chain)] += 1
            continue
        mark = marks.see(event.rpartition(":")[2], comm, pid)
        if mark == BEGIN:
            counts = Counter()
        elif mark == END:
            found.append(counts)
            counts = None
    return found


def _events(path):
    """Name and number of the process, event and call chain of everything in a profile, in the order of time."""
    command = [sdk.TOP / "scripts/in-root", "--bind", path.parent, "perf", "script", "--force", "--ns", "-i", path]
    command += ["-F", "tid,time,event,ip,trace"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise Refusal(f"perf cannot read the profile {path.name}: {done.stderr.strip()}")
    head, chain = None, []
    for line in done.stdout.splitlines():
        if start := _HEAD.match(line):
            if head:
                yield head["comm"], head["pid"], head["event"].rstrip(":"), chain
            head, chain = start, []
        elif address := _ADDRESS.match(line):
            chain.append(int(address[1], 16))
    if head:
        yield head["comm"], head["pid"], head["event"].rstrip(":"), chain
