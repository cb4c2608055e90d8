# SPDX-License-Identifier: GPL-2.0
"""Runs the guests, and reads what they brought back."""

import json
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass

import sdk
from plan import document
from refusal import Refusal

RDS = sdk.TOP / "tests/bench/rds"
BENCH = sdk.TOP / "build/tools/release/rds-bench"
# A round takes some 10 s on a processor that has nothing else to do; these limits only end what hangs.
BOOT_SECONDS = 300
ROUND_SECONDS = 120

_LINE = re.compile(r"-(?P<pid>\d+) .* (?P<seconds>\d+)\.(?P<micros>\d+): (?P<event>\w+): (?P<text>.*)")


@dataclass(frozen=True)
class Sample:
    """A sample without a profile. All times are nanoseconds, and so instructions, of the whole guest per message."""

    elapsed: float
    idle: float

    @property
    def busy(self):
        """What the processor did not sleep."""
        return self.elapsed - self.idle


@dataclass(frozen=True)
class Boot:
    """What a guest brought back."""

    folder: object
    machine: dict
    rounds: list


def run(guests, folder, release):
    """Runs all guests, one after the other."""
    shutil.rmtree(folder, ignore_errors=True)
    progress = Progress(sum(len(guest["rounds"]) for guest in guests))
    done = []
    for number, guest in enumerate(guests):
        own = folder / str(number)
        own.mkdir(parents=True)
        (own / "plan.json").write_text(json.dumps(document(guest, BENCH, release)))
        done.append(_boot(guest["rounds"], own, progress))
    return done


def _boot(rounds, folder, progress):
    limit = BOOT_SECONDS + ROUND_SECONDS * len(rounds)
    command = [sdk.TOP / "scripts/vm", "--kernel", "base", "--impl", "rust", "--cpus", "1", "--icount"]
    command += ["--timeout", str(limit), "--share", folder, "--log", folder / "kernel.log", "--", RDS, folder]
    impls = {turn["number"]: turn["impl"] for turn in rounds}
    with subprocess.Popen(command, cwd=sdk.TOP, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as guest:
        for line in guest.stdout:
            if line.startswith("@round "):
                progress.tell(impls[int(line.split()[1])])
            else:
                print(line, end="", file=sys.stderr)
    if guest.returncode:
        raise Refusal(f"the guest ended with status {guest.returncode} instead of a measurement")
    lines = (folder / "rounds.jsonl").read_text().splitlines()
    return Boot(folder, json.loads((folder / "machine.json").read_text()), [json.loads(line) for line in lines])


class Progress:
    """Tells how far the run is."""

    def __init__(self, total):
        self._total = total
        self._begun = 0
        self._started = time.monotonic()

    def tell(self, impl):
        """A round begins."""
        self._begun += 1
        seconds = time.monotonic() - self._started
        print(f"  round {self._begun} of {self._total}: {impl}, after {seconds:.0f} s", file=sys.stderr)


def sample(record):
    """Reads a sample without a profile."""
    (taken,) = record["result"]["samples"]
    messages = taken["messages"]
    return Sample(taken["elapsed_ns"] / messages, _idle(record["trace"]) / messages)


def _idle(trace):
    """Nanoseconds that the processor slept from the beginning of the client's sample until the client ended.

    That is a little longer than what the client measured, so it is never too little.
    """
    begin, end, since, sleeps = None, None, None, []
    for line in trace.splitlines():
        if not (found := _LINE.search(line)):
            continue
        now = int(found["seconds"]) * 10**9 + int(found["micros"].ljust(9, "0"))
        if found["event"] == "itimer_state":
            begin, client = now, found["pid"]
        elif found["event"] == "sched_process_exit" and begin and found["pid"] == client:
            end = end or now
        elif found["event"] == "cpu_idle" and "state=4294967295" not in found["text"]:
            since = now
        elif found["event"] == "cpu_idle" and since:
            sleeps.append((since, now))
            since = None
    if not begin or not end:
        raise Refusal("the kernel did not say when a sample began and ended")
    return sum(max(0, min(until, end) - max(since, begin)) for since, until in sleeps)
