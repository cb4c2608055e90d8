# SPDX-License-Identifier: GPL-2.0
"""All results of a run: told while it goes on, counted at the end, kept in a file for programs."""

import json
import sys
import threading
import time
from collections import Counter

from cases import FAIL, PASS, SKIP


class Results:
    """Collects the results of all tasks, which run side by side."""

    def __init__(self, mode):
        self.mode = mode
        self._start = time.monotonic()
        self._lock = threading.Lock()
        self._cases = []
        self._seconds = {}
        self._last_word = self._start

    def elapsed(self):
        return time.monotonic() - self._start

    def say(self, text):
        """Writes a line with the time on it."""
        with self._lock:
            self._say(text)

    def _say(self, text):
        self._last_word = time.monotonic()
        minutes, seconds = divmod(int(self.elapsed()), 60)
        sys.stdout.write(f"[{minutes:3}:{seconds:02}] {text}\n")
        sys.stdout.flush()

    def silent_for(self):
        """Seconds since the last line."""
        return time.monotonic() - self._last_word

    def add(self, name, cases, output="", seconds=None):
        """Takes the final results of a group of cases and shows what is not as it should be."""
        with self._lock:
            self._cases += [(f"{name}/{case.name}", case) for case in cases]
            if seconds is not None:
                self._seconds[name] = round(seconds, 1)
            failed = [case for case in cases if case.result == FAIL]
            took = "" if seconds is None else f" ({seconds:.0f} s)"
            self._say(f"{name}: {tally(cases)}{took}")
            for case in cases:
                if case.result != PASS:
                    print(f"    {case.result} {name}/{case.name}: {case.reason}", flush=True)
            if failed and output:
                print("".join(f"    | {line}\n" for line in output.splitlines()), end="", flush=True)

    def finish(self, path, facts):
        """Writes the file and the closing line; returns the exit status."""
        counts = Counter(case.result for _, case in self._cases)
        if not self._cases:
            print("nothing matches what was asked for")
        facts |= {
            "mode": self.mode,
            "seconds": round(self.elapsed(), 1),
            "passed": counts[PASS],
            "failed": counts[FAIL],
            "skipped": counts[SKIP],
            "group_seconds": self._seconds,
            "cases": [{"name": name, "result": case.result, "reason": case.reason} for name, case in self._cases],
        }
        path.write_text(json.dumps(facts, indent=1) + "\n")
        for name, case in self._cases:
            if case.result == FAIL:
                print(f"FAIL {name}: {case.reason}")
        print(f"{counts[PASS]} passed, {counts[FAIL]} failed, {counts[SKIP]} skipped", flush=True)
        return 1 if counts[FAIL] or not self._cases else 0


def tally(cases):
    """Counts in words; what there is none of is left out."""
    counts = Counter(case.result for case in cases)
    words = ((PASS, "passed"), (FAIL, "FAILED"), (SKIP, "skipped"))
    return ", ".join(f"{counts[result]} {word}" for result, word in words if counts[result]) or "no results"
