# SPDX-License-Identifier: GPL-2.0
"""Runs scenarios in guests and makes out which scenario is to blame for what."""

import re
import time
from pathlib import Path

from cases import FAIL, PASS, Case, Verdicts
from report import COMPLAINT, HARMLESS, Console

RUN = "tests/guest/lib/run"
# Seconds that a guest may need besides its scenarios: boot, loading and removal of modules, leak check.
BOOT_SECONDS = {"base": 60, "debug": 180}
SCENARIO_SECONDS = 100

_MARK = re.compile(rb"weft-check: (begin|end) (\S+)")
# Cases that every scenario has, whatever it tries.
OURS = {"unload", "kernel-log"}
# Reported as a case of its own.
_LEAK = b"weft-leakcheck:"


class Transcript:
    """What a guest, or a pair, has said: scenarios in the order they began, with their cases and their output."""

    def __init__(self):
        self.begun = []
        self.ended = set()
        self.cases = {}
        self.output = {}
        self.seconds = {}
        self._start = {}
        self._now = {}
        self._verdicts = Verdicts()

    def feed(self, line):
        """Takes a line; returns the name of the scenario that ended with it."""
        side, text = (line[0], line[3:]) if re.match("[AB]: ", line) else ("", line)
        if text.startswith("@begin "):
            self._begin(side, text.split()[1])
        elif text.startswith("@end "):
            self._now.pop(side, None)
            if side != "A":
                return self._end(text.split()[1])
        elif text.startswith("scripts/vm: "):
            # The runner explains what happened to the guest, and repeats what the kernel log has.
            self._now.clear()
        elif side in self._now:
            self._take(side, self._now[side], text)
        return None

    def _begin(self, side, name):
        self._now[side] = name
        if name not in self.begun:
            self.begun.append(name)
            self._start[name] = time.monotonic()
            self.cases[name] = []
            self.output[name] = []

    def _end(self, name):
        self.ended.add(name)
        self.seconds[name] = time.monotonic() - self._start[name]
        return name

    def _take(self, side, name, text):
        if case := self._verdicts.feed(text):
            shown = f"{side.lower()}/{case.name}" if side else case.name
            self.cases[name].append(Case(shown, case.result, case.reason))
        if text.startswith("trace: "):
            # Too much to show; the log has it.
            return
        if not case or case.result != PASS:
            self.output[name].append(f"{side}: {text}" if side else text)

    @property
    def running(self):
        """The scenario in which the guest ended too early."""
        unended = [name for name in self.begun if name not in self.ended]
        return unended[0] if unended else None


def command(scenarios, log):
    """The command line and the environment for a guest that runs these scenarios."""
    first = scenarios[0]
    words = [word for scenario in scenarios for word in (scenario.program, str(scenario.timeout))]
    seconds = BOOT_SECONDS[first.kernel] + sum(scenario.timeout + SCENARIO_SECONDS for scenario in scenarios)
    line = ["scripts/vm", "--kernel", first.kernel, "--impl", first.impl, "--timeout", str(seconds), "--log", str(log)]
    if first.append:
        line += ["--append", first.append]
    if first.pair:
        sides = [["env", f"WEFT_ROLE={role}", RUN, *words] for role in "AB"]
        return [*line, "--pair", "--", *sides[0], "--", *sides[1]]
    return [*line, "--", RUN, *words]


def kernel_faults(log):
    """The complaints in the kernel logs of a run: for each scenario the first one, with its surroundings."""
    found = {}
    for path in sorted(log.parent.glob(f"{log.name}*")):
        name, console = None, Console()
        for line in path.read_bytes().replace(b"\r", b"").split(b"\n"):
            if mark := _MARK.search(line):
                _note(found, name, console)
                name, console = mark[2].decode(), Console()
            elif _LEAK not in line:
                console.feed(line + b"\n")
        _note(found, name, console)
    return found


def _note(found, name, console):
    if console.complaints and name not in found:
        first = next(line for line in console.lines if COMPLAINT.search(line) and not HARMLESS.search(line))
        found[name] = (_text(first), _text(console.report()))


def _text(raw):
    return raw.decode("utf-8", "replace").strip()


class Guest:
    """A task: scenarios that share guests, one after the other."""

    def __init__(self, name, scenarios):
        self.name = name
        self.scenarios = list(scenarios)
        self.needs = {f"build/{scenarios[0].kernel}", "build/tools"}
        self.light = self.scenarios[0].light
        self.now = "booting"

    def run(self, context):
        """Boots guests until every scenario has had its turn; yields nothing, tells results to the context."""
        pending, boot = list(self.scenarios), 0
        while pending and not context.stopped:
            boot += 1
            pending = self._boot(context, pending, Path(f"{context.log_of(self.name)}.{boot}"))

    def _boot(self, context, pending, base):
        """One guest; returns the scenarios that are left for the next."""
        console = base.with_name(base.name + ".kernel")
        for old in console.parent.glob(f"{console.name}*"):
            old.unlink()
        by_name = {scenario.program: scenario for scenario in pending}
        transcript = Transcript()

        def consume(line):
            ended = transcript.feed(line)
            self.now = transcript.running or "between scenarios"
            if ended in by_name:
                context.progress(self, by_name[ended].name, transcript.cases[ended])

        env = {"WEFT_NO_LEAKCHECK": "1"}
        status = context.execute(command(pending, console), base, consume, env)
        if context.stopped:
            return []
        faults = kernel_faults(console)
        if None in faults or not transcript.begun:
            reason = faults[None][0] if None in faults else f"the guest did not come up (status {status})"
            for scenario in pending:
                context.report(scenario.name, [Case("boot", FAIL, reason)], context.tail(base))
            return []
        for name in transcript.begun:
            self._conclude(context, transcript, name, by_name.get(name), faults.get(name), status)
        return [scenario for scenario in pending if scenario.program not in transcript.begun]

    def _conclude(self, context, transcript, name, scenario, fault, status):
        shown = scenario.name if scenario else f"{self.scenarios[0].kernel}/{name}/{self.name.rsplit('-', 1)[-1]}"
        cases, output = transcript.cases[name], transcript.output[name]
        if fault:
            cases.append(Case("kernel-log", FAIL, fault[0]))
            output = [*output, fault[1]]
        elif name not in transcript.ended:
            how = "ran out of time" if status == 124 else "ended too early"
            cases.append(Case("guest", FAIL, f"the guest {how} in the middle of it"))
        else:
            cases.append(Case("kernel-log", PASS))
        if name in transcript.ended and all(case.name.rsplit("/", 1)[-1] in OURS for case in cases):
            cases.append(Case("cases", FAIL, "it told no result"))
        context.report(shown, cases, "\n".join(output[-60:]), transcript.seconds.get(name))
