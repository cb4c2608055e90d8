# SPDX-License-Identifier: GPL-2.0
"""Tasks that are one program on the host each: builds, lint, and the tests that need no guest."""

import time

from cases import FAIL, PASS, Case


class Program:
    """Runs a program and takes its results from what it prints, or from its exit status alone."""

    def __init__(self, name, command, parser=None, needs=()):
        self.name = name
        self.needs = set(needs)
        self.light = False
        self.now = "running"
        self._command = command
        self._parser = parser

    def run(self, context):
        """Runs to the end; False keeps what needs this from being started."""
        begin, found = time.monotonic(), []

        def consume(line):
            if self._parser and (case := self._parser.feed(line)):
                found.append(case)

        log = context.log_of(self.name)
        status = context.execute(self._command, log, consume, {})
        if context.stopped:
            return False
        if status and not any(case.result == FAIL for case in found):
            found.append(Case("status", FAIL, f"ended with status {status}; see {context.shown(log)}"))
        elif not found and not self._parser:
            found.append(Case("status", PASS))
        elif not found:
            found.append(Case("results", FAIL, f"it told no result; see {context.shown(log)}"))
        context.report(self.name, found, context.tail(log), time.monotonic() - begin)
        return status == 0
