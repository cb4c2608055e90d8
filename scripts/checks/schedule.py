# SPDX-License-Identifier: GPL-2.0
"""Runs tasks side by side, each when what it needs has been done."""

import os
import re
import threading
import time

from cases import FAIL, Case
from process import Processes
from scenario import TOP

# A line at least this often, so that nobody wonders.
HEARTBEAT_SECONDS = 30
TAIL_LINES = 40


class Context:
    """What a task may use."""

    def __init__(self, results, folder):
        self.folder = folder
        self.stopped = False
        self._results = results
        self._processes = Processes()

    def log_of(self, name):
        return self.folder / (re.sub(r"[^\w.-]", "-", name) + ".log")

    def shown(self, path):
        return path.relative_to(TOP)

    def execute(self, command, log, consume, env):
        """Runs a program; its output goes to `log` and line by line to `consume`. Returns its exit status."""
        with open(log, "wb") as file:
            return self._processes.run(command, file, env, consume, TOP)

    def tail(self, log):
        lines = log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-TAIL_LINES:])

    def progress(self, task, name, cases):
        """Tells that a part of a task is over; its final results come later."""
        bad = [case for case in cases if case.result == FAIL]
        self._results.say(f"{task.name}: {name} ended" + (f", {len(bad)} failed so far" if bad else ""))

    def report(self, name, cases, output="", seconds=None):
        self._results.add(name, cases, output, seconds)

    def stop(self):
        self.stopped = True
        self._processes.stop()


class Schedule:
    """Tasks in order of importance; as many at once as there are slots, and one more that is light."""

    def __init__(self, tasks, slots, results, context):
        self._waiting = list(tasks)
        self._running = {}
        self._slots = slots
        self._results = results
        self._context = context
        self._changed = threading.Condition()
        self._failed = set()
        self._open = {task.name for task in tasks}

    def run(self):
        """Runs to the end; a KeyboardInterrupt ends all that runs."""
        try:
            with self._changed:
                while self._waiting or self._running:
                    self._start_what_can()
                    self._changed.wait(1)
                    self._heartbeat()
        except BaseException:
            self._context.stop()
            raise

    def _start_what_can(self):
        for task in list(self._waiting):
            if broken := task.needs & self._failed:
                self._waiting.remove(task)
                self._give_up(task, broken)
            elif self._has_room_for(task) and not task.needs & self._open:
                self._waiting.remove(task)
                self._running[task] = time.monotonic()
                threading.Thread(target=self._perform, args=(task,), daemon=True).start()

    def _has_room_for(self, task):
        alike = sum(other.light == task.light for other in self._running)
        return alike < (1 if task.light else self._slots)

    def _give_up(self, task, broken):
        reason = f"needs {' and '.join(sorted(broken))}, which failed"
        self._context.report(task.name, [Case("start", FAIL, reason)])
        self._open.discard(task.name)
        self._failed.add(task.name)

    def _perform(self, task):
        failed = True
        try:
            failed = task.run(self._context) is False
        except Exception as error:
            self._context.report(task.name, [Case("harness", FAIL, f"{type(error).__name__}: {error}")])
        with self._changed:
            del self._running[task]
            self._open.discard(task.name)
            if failed:
                self._failed.add(task.name)
            self._changed.notify()

    def _heartbeat(self):
        if self._running and self._results.silent_for() > HEARTBEAT_SECONDS:
            now = time.monotonic()
            parts = [f"{task.name} ({task.now}, {now - since:.0f} s)" for task, since in self._running.items()]
            self._results.say(f"still at: {', '.join(parts)}; {len(self._waiting)} tasks wait")


def slots():
    """As many tasks at once as there are processors, within reason: a guest needs 2 GiB of memory, the light one, too."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(len(os.sched_getaffinity(0)), memory // (5 << 29) - 1, 6))
