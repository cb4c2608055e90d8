# SPDX-License-Identifier: GPL-2.0
"""What the programs that take samples inside a guest have in common: modules, trace events, perf, rounds.

FOLDER/plan.json says what to do. Each round loads the modules of one setup, takes samples of every workload, then,
under perf, once more, and removes the modules again. FOLDER/rounds.jsonl gets a line for each round, FOLDER/perf.data
the profiles of all.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

TRACING = Path("/sys/kernel/tracing")
# Guest time, which costs nothing while the guest idles.
PATIENCE = 120
# Enough for all rounds, so that perf never runs while something is measured.
PROFILE_MEMORY = "64M"
# A sample needs no more than the function it is in and its caller.
PROFILE_DEPTH = 3


def run(*command, **options):
    """Runs a program to its successful end; what it printed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, **options)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: status {done.returncode}")
    return done.stdout


def write(path, text):
    """Writes a whole file, in one go."""
    Path(path).write_text(text)


def wait_for(condition, text):
    """Waits until the condition holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(text)
        time.sleep(0.2)


@contextlib.contextmanager
def modules(wanted, tainted):
    """The modules of a setup, in the order in which they need each other."""
    for module in wanted:
        run("insmod", module["path"], *module["options"])
    for module in wanted:
        if ("O" in Path("/sys/module", module["name"], "taint").read_text()) != tainted:
            sys.exit(f"{module['name']} is of the other implementation")
    yield
    for module in reversed(wanted):
        remove(module["name"])


def remove(name):
    """Removes a module as soon as its last user is gone."""
    command = ("rmmod", name)
    wait_for(lambda: not subprocess.run(command, stderr=subprocess.PIPE, check=False).returncode, f"{name} stays")


class Tracer:
    """The few events that tell when a sample begins and ends and when the processor slept."""

    def __init__(self, events):
        self.events = events

    @contextlib.contextmanager
    def on(self):
        """The events are recorded, from an empty buffer on; yields a function that reads it."""
        write(TRACING / "trace", "")
        self._switch("1")
        yield (TRACING / "trace").read_text
        self._switch("0")

    def _switch(self, choice):
        for event in self.events:
            write(TRACING / "events" / event / "enable", choice)


class Profiler:
    """perf, which waits for its turns, so that it has to start only once."""

    # What a shell does to switch the profile on or off.
    SHELL = "echo {order} > /tmp/control && read answer < /tmp/answer"

    def __init__(self, output, periods, events):
        self._output = output
        for pipe in ("control", "answer"):
            os.mkfifo(f"/tmp/{pipe}")
        chosen = [f"cpu-clock/period={period}/" for period in periods]
        chosen += [event.replace("/", ":") for event in events]
        options = ["--all-cpus", "-g", f"--mmap-pages={PROFILE_MEMORY}", *(f"--event={event}" for event in chosen)]
        quick = ["--quiet", "--synth=no", "--no-buildid", "--no-buildid-cache"]
        waiting = ["--delay=-1", "--control=fifo:/tmp/control,/tmp/answer"]
        write("/proc/sys/kernel/perf_event_max_stack", f"{PROFILE_DEPTH}")
        self._perf = subprocess.Popen(["perf", "record", *quick, *options, *waiting, "-o", "/tmp/perf.data"])
        self._control = open("/tmp/control", "w", buffering=1)
        self._answer = open("/tmp/answer")
        # Its own start must not run into a measurement.
        self._order("ping")

    @contextlib.contextmanager
    def on(self):
        """The processor is profiled."""
        self._order("enable")
        yield
        self._order("disable")

    def _order(self, command):
        self._control.write(f"{command}\n")
        if "ack" not in self._answer.readline():
            sys.exit("perf does not answer")

    def finish(self):
        """Brings the profile to the host."""
        self._control.write("stop\n")
        self._perf.wait()
        run("cp", "/tmp/perf.data", self._output)


def sections(wanted):
    """Where the code of the modules is."""
    found = {}
    for module in wanted:
        parts = Path("/sys/module", module["name"], "sections").glob(".*text*")
        found[module["name"]] = {part.name: int(part.read_text(), 16) for part in parts}
    return found


def machine():
    """What the host cannot know."""
    start = run("grep", "-m1", " _text$", "/proc/kallsyms").split()[0]
    return {"release": os.uname().release, "text": int(start, 16)}


def main(folder, events, prepare, perform):
    """All rounds. `prepare(plan)` comes first; `perform(plan, turn, tracer, profiler)` is a round and returns what is
    to be recorded about it; there is no profiler if none is wanted."""
    plan = json.loads(Path(folder, "plan.json").read_text())
    if not (TRACING / "events").is_dir():
        run("mount", "-t", "tracefs", "tracefs", str(TRACING))
    prepare(plan)
    write(Path(folder, "machine.json"), json.dumps(machine()))
    tracer = Tracer(events)
    profiler = Profiler(f"{folder}/perf.data", plan["periods"], events) if plan["periods"] else None
    for turn in plan["rounds"]:
        print(f"@round {turn['number']}", flush=True)
        setup = plan["setups"][turn["setup"]]
        with modules(setup["modules"], setup["tainted"]):
            record = {**turn, "sections": sections(plan["shared"] + setup["modules"])}
            record |= perform(plan, turn, tracer, profiler)
        with open(f"{folder}/rounds.jsonl", "a") as rounds:
            rounds.write(json.dumps(record) + "\n")
    if profiler:
        profiler.finish()
