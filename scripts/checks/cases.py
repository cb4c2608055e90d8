# SPDX-License-Identifier: GPL-2.0
"""Named results, and the ways in which programs tell them."""

import re
from dataclasses import dataclass

PASS, FAIL, SKIP = "PASS", "FAIL", "SKIP"


@dataclass(frozen=True)
class Case:
    """The result of one named case; a reason belongs to every failure and every skip."""

    name: str
    result: str
    reason: str = ""


class Verdicts:
    """Lines `PASS name`, `FAIL name: reason` and `SKIP name: reason`, as our own scripts print them."""

    _pass = re.compile(r"^PASS (.+?)(?: \[[\d.]+ s\])?$")
    _other = re.compile(r"^(FAIL|SKIP) ([^:]+)(?:: (.*))?$")

    def feed(self, line):
        if found := self._pass.match(line):
            return Case(found[1], PASS)
        found = self._other.match(line)
        return Case(found[2], found[1], found[3] or "") if found else None


class Cargo:
    """The output of `cargo test`: one line for each test, behind a line that names the program."""

    _program = re.compile(r"^\s+(?:Running .*\(.*/([^/)]+)-[0-9a-f]+\)|Doc-tests (\S+))")
    _test = re.compile(r"^test (.+?) \.\.\. (ok|FAILED|ignored)(?:, (.*))?$")
    _results = {"ok": PASS, "FAILED": FAIL, "ignored": SKIP}

    def __init__(self):
        self._name = ""

    def feed(self, line):
        if found := self._program.match(line):
            self._name = found[1] or f"{found[2]}-doc"
        elif found := self._test.match(line):
            result = self._results[found[2]]
            reason = {PASS: "", FAIL: "see the log", SKIP: found[3] or "ignored"}[result]
            return Case(f"{self._name}/{found[1]}".replace(" ", "_"), result, reason)
        return None


class Unittest:
    """The output of `python3 -m unittest -v`."""

    _test = re.compile(r"^(\w+) \(.*?(?:\.?(\w+))?(?:\.\1)?\)(?: \.\.\.|$)")
    _end = re.compile(r"(?:^|\.\.\. )(ok|FAIL|ERROR|skipped (.*))$")

    def __init__(self):
        self._name = ""

    def feed(self, line):
        if found := self._test.match(line):
            self._name = f"{found[2]}/{found[1]}"
        found = self._end.search(line)
        if not found or not self._name:
            return None
        name, self._name = self._name, ""
        if found[1] == "ok":
            return Case(name, PASS)
        if found[2] is not None:
            return Case(name, SKIP, found[2].strip("'\""))
        return Case(name, FAIL, "see the log")


class Fuzz:
    """The output of tests/fuzz/run: a line for each target."""

    _line = re.compile(r"^(\w+): (\d+ inputs in \d+ s|failed.*)$")

    def feed(self, line):
        found = self._line.match(line)
        if not found:
            return None
        failed = found[2].startswith("failed")
        return Case(found[1], FAIL if failed else PASS, found[2] if failed else "")
