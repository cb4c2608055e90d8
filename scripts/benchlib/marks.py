# SPDX-License-Identifier: GPL-2.0
"""When a sample begins and ends, from events of the scheduler and of timers.

A `see` is told each event with the process it happened in, in the order of time, and answers BEGIN, END or None. A
second BEGIN without an END between takes the place of the first.
"""

BEGIN, END = "begin", "end"


class ClientMarks:
    """Of rds-bench, which sets its interval timer when a sample begins (and when it warms up), and ends with it."""

    def __init__(self):
        self._client = None

    def see(self, event, _comm, pid):
        """What the event means."""
        if event == "itimer_state":
            self._client = pid
            return BEGIN
        if event == "sched_process_exit" and pid == self._client:
            self._client = None
            return END
        return None


class JobMarks:
    """Of fio, which lets a shell run before a job that is measured and another after it."""

    _SHELL, _PROGRAM = "sh", "fio"

    def __init__(self, last=True):
        """`last`: whether the end of the second shell is among the events, too."""
        self._last = last
        self._open = False
        self._leaving = False

    def see(self, event, comm, _pid):
        """What the event means: the end of the first shell, and the beginning of the second."""
        if event == "sched_process_fork" and comm == self._PROGRAM and self._open:
            self._open, self._leaving = False, self._last
            return END
        if event != "sched_process_exit" or comm != self._SHELL:
            return None
        if self._leaving:
            self._leaving = False
            return None
        self._open = True
        return BEGIN
