# SPDX-License-Identifier: GPL-2.0
"""Named cases of a scenario: how they are declared, run and reported.

A case is a function that raises when something is wrong. A table row is a case whose function is one call, and whose
result is compared. `c` says where the C modules differ on purpose: another expected result of a row, or the reason why
a case cannot pass on them and is skipped there.
"""

import errno
import os
import signal
import sys
import time
import traceback
from dataclasses import dataclass

IMPL = os.environ.get("WEFT_IMPL", "rust")
ON_C = IMPL == "c"
SOAK = os.environ.get("WEFT_MODE", "check") == "soak"
ON_DEBUG = os.environ.get("WEFT_KERNEL", "base") == "debug"

SAME = object()


class Skip(Exception):
    """The machine lacks what the case needs."""


class Stuck(Exception):
    """A case took longer than it may."""


@dataclass
class Case:
    """One named check."""

    name: str
    function: object
    c: str | None
    limit: float
    # It holds the use of memory to a limit.
    memory: bool = False


class Cases:
    """The cases of one subject, in order."""

    def __init__(self, subject):
        self.subject = subject
        self.all = []

    def case(self, what, c=None, limit=20, memory=False):
        """Declares the decorated function as a case."""

        def add(function):
            self.all.append(Case(f"{self.subject}: {what}", function, c, limit, memory))
            return function

        return add

    def row(self, what, call, want, c=SAME):
        """Declares a table row: `call()` must give `want`, an errno name, "ok" for None, or a value."""
        expected = c if ON_C and c is not SAME else want

        def check():
            equal(outcome(call), expected)

        self.all.append(Case(f"{self.subject}: {what}", check, None, 20))


class Report:
    """Runs cases and prints what became of them."""

    def __init__(self, only=()):
        self.only = only
        self.failed = 0
        signal.signal(signal.SIGALRM, _alarm)

    def run(self, cases):
        """Runs all cases of a subject."""
        for case in cases.all:
            if not self.only or any(word in case.name for word in self.only):
                self._run(case)

    def _run(self, case):
        if ON_C and case.c:
            return self._say("SKIP", case.name, f"differs in C: {case.c}")
        started = time.monotonic()
        # The debug kernel is several times slower.
        signal.setitimer(signal.ITIMER_REAL, case.limit * (4 if ON_DEBUG else 1))
        try:
            case.function()
            status, reason = "PASS", ""
        except Skip as skip:
            status, reason = "SKIP", str(skip)
        except Exception as error:
            self.failed += 1
            status, reason = "FAIL", f"{_describe(error)} ({_place(error)})"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        took = time.monotonic() - started
        self._say(status, case.name, reason, took)

    def _say(self, status, name, reason, took=0.0):
        tail = f": {reason}" if reason else ""
        slow = f" [{took:.1f} s]" if took > 3 and not reason else ""
        print(f"{status} {name}{tail}{slow}", flush=True)

    def finish(self):
        """Ends the scenario."""
        sys.exit(1 if self.failed else 0)


def _alarm(_number, _frame):
    raise Stuck("no end in time")


def _name(number):
    # Linux has one number for both, and calls it so.
    return "EOPNOTSUPP" if number == errno.EOPNOTSUPP else errno.errorcode.get(number, str(number))


def _describe(error):
    if isinstance(error, OSError) and error.errno:
        return f"unexpected {_name(error.errno)}"
    if isinstance(error, AssertionError):
        return str(error) or "assertion failed"
    return f"{type(error).__name__} {error}"


def _place(error):
    # The line of the case itself, not of the helper that noticed.
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.endswith("cases.py")] or frames
    return ", ".join(f"{os.path.basename(frame.filename)}:{frame.lineno}" for frame in own[:2])


def outcome(call):
    """The result of a call in the language of tables: "ok" for None, the errno name of an OSError, else the value."""
    try:
        value = call()
    except OSError as error:
        return _name(error.errno)
    return "ok" if value is None else value


def equal(got, want, what=""):
    """Fails unless `got` is `want`, or one of them if that is a frozenset."""
    prefix = f"{what}: " if what else ""
    good = got in want if isinstance(want, frozenset) else got == want
    assert good, f"{prefix}got {_short(got)}, expected {_short(want)}"


def fails(name, call):
    """Fails unless `call()` raises the errno called `name`."""
    equal(outcome(call), name)


def eventually(condition, what, seconds=5.0, pause=0.01):
    """Waits until `condition()` is true and returns its value."""
    end = time.monotonic() + seconds * (4 if ON_DEBUG else 1)
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"{what}: not within {seconds:g} s"
        time.sleep(pause)


def _short(value):
    if isinstance(value, frozenset):
        value = " or ".join(sorted(map(str, value)))
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) < 120 else f"{text[:100]}... ({len(text)} characters)"
