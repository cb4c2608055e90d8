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
from marks import BEGIN, END
from plan import document
from refusal import Refusal

# A round takes 10 to 30 s on a processor that has nothing else to do; these limits only end what hangs.
BOOT_SECONDS = 300
ROUND_SECONDS = 180

LINE = re.compile(
    r"\s*(?P<comm>\S.*?)-(?P<pid>\d+)\s+\[.* (?P<seconds>\d+)\.(?P<micros>\d+): (?P<event>\w+): (?P<text>.*)"
)
_AWAKE = "state=4294967295"


@dataclass(frozen=True)
class Sample:
    """A sample without a profile. All times are nanoseconds, and so instructions, of the whole guest per unit."""

    elapsed: float
    idle: float

    @property
    def busy(self):
        """What the processor did not sleep."""
        return self.elapsed - self.idle


@dataclass(frozen=True)
class Window:
    """When a sample began and ended, and how long the processor slept meanwhile; nanoseconds."""

    begin: int
    end: int
    idle: int


@dataclass(frozen=True)
class Boot:
    """What a guest brought back."""

    folder: object
    machine: dict
    rounds: list


def run(part, guests, folder, release):
    """Runs all guests, one after the other."""
    shutil.rmtree(folder, ignore_errors=True)
    progress = Progress(sum(len(guest["rounds"]) for guest in guests))
    done = []
    for number, guest in enumerate(guests):
        own = folder / str(number)
        own.mkdir(parents=True)
        (own / "plan.json").write_text(json.dumps(document(part, guest, release)))
        done.append(_boot(part, guest["rounds"], own, progress))
    return done


def _boot(part, rounds, folder, progress):
    limit = BOOT_SECONDS + ROUND_SECONDS * len(rounds)
    command = [sdk.TOP / "scripts/vm", "--kernel", "base", "--impl", "rust", "--cpus", "1", "--icount"]
    command += ["--timeout", str(limit), "--share", folder, "--log", folder / "kernel.log", "--", part.guest, folder]
    setups = {turn["number"]: turn["setup"] for turn in rounds}
    with subprocess.Popen(command, cwd=sdk.TOP, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as guest:
        for line in guest.stdout:
            if line.startswith("@round "):
                progress.tell(setups[int(line.split()[1])])
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

    def tell(self, setup):
        """A round begins."""
        self._begun += 1
        seconds = time.monotonic() - self._started
        print(f"  round {self._begun} of {self._total}: {setup}, after {seconds:.0f} s", file=sys.stderr)


def windows(trace, marks):
    """The samples in a trace of the kernel, in the order in which they were taken."""
    found, begin, sleeps, since = [], None, [], None
    for line in trace.splitlines():
        if not (event := LINE.match(line)):
            continue
        now = int(event["seconds"]) * 10**9 + int(event["micros"].ljust(9, "0"))
        if event["event"] == "cpu_idle":
            if _AWAKE not in event["text"]:
                since = now
            elif since:
                sleeps.append((since, now))
                since = None
            continue
        mark = marks.see(event["event"], event["comm"], event["pid"])
        if mark == BEGIN:
            begin = now
        elif mark == END:
            found.append((begin, now))
    return [Window(start, end, sum(max(0, min(b, end) - max(a, start)) for a, b in sleeps)) for start, end in found]
